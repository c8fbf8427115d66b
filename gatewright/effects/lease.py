"""
An attempt's right to act: a lease on the key, kept alive by heartbeats, and looked at right before the outside is called.

A worker that was only stopped (a paused process, a machine that slept) wakes up
in the middle of an effect that somebody else may have taken over meanwhile. Its
lease has run out then, and `fence()` says so before anything is done. What no
fence can stop is a process that is stopped between the fence and the call that
follows it for longer than the lease and `call_timeout` together: against that
only an outside that honours the key helps.
"""

import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from pydantic import JsonValue

from gatewright.protocol.canonical import plain


class LeaseLost(Exception):  # noqa: N818 - named for what is the case
    """The attempt may not call the outside any more: its lease ran out, and another attempt may be under way."""


def elapsed() -> float:
    """Seconds on a clock that also counts while the machine sleeps (where there is one)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass
class Lease:
    """
    The lease of one attempt on one key: `seconds` from the moment at which it was last asked for.

    The local end is never later than the one that the ledger keeps, because it
    counts from before the question.
    """

    key: str
    holder: str
    seconds: float
    until: float = 0.0
    receipts: list[JsonValue] = field(default_factory=list)
    """What the effect gave to `receipt`: the last one counts."""

    def extend(self, asked_at: float) -> None:
        """The ledger has granted what was asked for at `asked_at` (`elapsed()`)."""
        self.until = asked_at + self.seconds

    def lose(self) -> None:
        """Somebody else has it."""
        self.until = 0.0

    def check(self) -> None:
        """Raise `LeaseLost` unless the lease still runs."""
        if elapsed() >= self.until:
            msg = f"the lease on {self.key} has run out: this attempt was stopped too long and may not go on"
            raise LeaseLost(msg)


LEASE: ContextVar[Lease | None] = ContextVar("gatewright_lease", default=None)
"""The lease of the effect that runs here; None in a step and in a test that calls the function by itself."""


def fence() -> None:
    """
    Stop here (`LeaseLost`) if another attempt may have taken this effect over; call it right before the outside.

    It looks at a clock and nothing else. Outside an effect it does nothing.
    """
    if (lease := LEASE.get()) is not None:
        lease.check()


def receipt(proof: JsonValue) -> None:
    """
    Keep what the outside gave as its proof (a transaction number, an ETag), with the effect's key, in ledger and receipts.

    The last one counts. Raises `NotJson` for what cannot be shown as JSON, also
    outside an effect, where it does nothing else: so a test of the function
    finds it, and no attempt whose outcome could not be written down then.
    """
    shown = plain(proof)
    if (lease := LEASE.get()) is not None:
        lease.receipts.append(shown)


__all__ = ["LEASE", "Lease", "LeaseLost", "elapsed", "fence", "receipt"]
