"""
Where an attempt is stopped, what happens meanwhile, and what must come of it.

What is promised is written down here and nowhere else in the harness: `blocked`
says of every kind, point and trouble whether a person must be asked.
"""

from enum import StrEnum

from gatewright.effects import EffectKind


class Point(StrEnum):
    """A place in an attempt, in the order in which it is passed."""

    BEFORE_INTENT = "before the intent"
    AFTER_INTENT = "after the intent"
    BEFORE_FENCE = "before the fence"
    """Temporal has written down that the outside is about to be reached, and the effect's own code has begun."""
    BEFORE_OUTSIDE = "before the outside call"
    """After the fence: nothing of ours stands between this and the outside."""
    UNCOMMITTED = "inside, not committed"
    """The outside has the call, and does not keep it."""
    COMMITTED = "inside, committed"
    """The outside has done it, and nobody here has read its reply."""
    BEFORE_RECEIPT = "before the receipt"
    AFTER_RECEIPT = "after the receipt"
    BEFORE_REPORT = "before completion is reported"

    @property
    def number(self) -> int:
        """How far the attempt has come: 0 for the first point."""
        return list(Point).index(self)


class Trouble(StrEnum):
    """What happens to the first attempt at its point, and to the run or the ledger before the next one begins."""

    KILL = "kill"
    SHORT_STOP = "short stop"
    """SIGSTOP for longer than the heartbeat time-out, and SIGCONT while the call's time still runs."""
    LONG_STOP = "long stop"
    """SIGSTOP past lease and call time, so that the next attempt begins meanwhile."""
    EMPTIED = "kill, ledger emptied"
    """The ledger has lost everything of the run."""
    EMPTIED_UNDER = "ledger emptied under a living attempt"
    """The same, and the attempt goes on at once; Temporal would not try it again."""
    RESTORED = "kill, ledger restored"
    """The ledger is as it was before the attempt: the call is planned."""
    RESTORED_AGAIN = "kill, ledger restored, kill"
    """The second attempt beats, and is killed before it asks the ledger."""
    OTHER = "kill, another ledger"
    """The next worker has another store, with another ledger."""
    RESET = "kill, reset"
    """`temporal workflow reset` to before the effect."""
    RESET_STOPPED = "long stop, reset"
    EMPTIED_RESET = "kill, ledger emptied, reset"
    RESTORED_RESET = "kill, ledger restored, reset"
    CONTINUED = "continue-as-new, kill"
    """The effect is the second of its run, behind a continue-as-new."""

    @property
    def stops(self) -> bool:
        """Whether the process goes on later, instead of being dead."""
        return self in {Trouble.SHORT_STOP, Trouble.LONG_STOP, Trouble.RESET_STOPPED, Trouble.EMPTIED_UNDER}

    @property
    def empties(self) -> bool:
        """Whether the ledger forgets the run."""
        return self in {Trouble.EMPTIED, Trouble.EMPTIED_UNDER, Trouble.EMPTIED_RESET}

    @property
    def restores(self) -> bool:
        """Whether the ledger forgets the attempt."""
        return self in {Trouble.RESTORED, Trouble.RESTORED_AGAIN, Trouble.RESTORED_RESET}

    @property
    def resets(self) -> bool:
        """Whether the run is reset."""
        return self in {Trouble.RESET, Trouble.RESET_STOPPED, Trouble.EMPTIED_RESET, Trouble.RESTORED_RESET}

    @property
    def points(self) -> tuple[Point, ...]:
        """
        Where it can strike.

        An outside does not stand still because its client does: a client that
        is stopped inside of a call finds it committed.
        """
        return tuple(point for point in Point if not self.stops or point is not Point.UNCOMMITTED)


KINDS = (EffectKind.KEYED, EffectKind.RECONCILABLE, EffectKind.OPAQUE)

_UNSETTLED = (
    Point.AFTER_INTENT,
    Point.BEFORE_FENCE,
    Point.BEFORE_OUTSIDE,
    Point.UNCOMMITTED,
    Point.COMMITTED,
    Point.BEFORE_RECEIPT,
)
"""The intent is written, and no receipt."""


def blocked(trouble: Trouble, kind: EffectKind, point: Point) -> bool:
    """Whether a person must be asked, because nobody knows whether the effect happened; otherwise nobody may be."""
    match trouble:
        case Trouble.EMPTIED | Trouble.OTHER | Trouble.EMPTIED_RESET:
            # The ledger that would know is gone, whatever it knew.
            return True
        case Trouble.EMPTIED_UNDER:
            # What the ledger has told already is known.
            return point.number < Point.AFTER_RECEIPT.number
        case Trouble.RESTORED | Trouble.RESTORED_AGAIN | Trouble.RESTORED_RESET:
            # Temporal knows which attempts came as far as the outside.
            return point.number >= Point.BEFORE_FENCE.number
        case Trouble.SHORT_STOP:
            # The attempt goes on in time, and is over or gives itself up before another one begins; an
            # effect's own code that is stopped by its fence looks like any failure of an outside that cannot be asked.
            return kind is EffectKind.OPAQUE and point is Point.BEFORE_FENCE
        case Trouble.KILL | Trouble.LONG_STOP | Trouble.RESET | Trouble.RESET_STOPPED | Trouble.CONTINUED:
            return kind is EffectKind.OPAQUE and point in _UNSETTLED


def unfenced(trouble: Trouble, kind: EffectKind, point: Point) -> bool:
    """Whether a second call of the outside is what no fence can stop, so that it breaks no promise."""
    return (
        trouble in {Trouble.LONG_STOP, Trouble.RESET_STOPPED}
        and kind is not EffectKind.KEYED
        and point is Point.BEFORE_OUTSIDE
    )
