"""What was sent and what came of it, counted; and what should not have been, in words."""

from collections import Counter
from dataclasses import dataclass, field

from gatewright.protocol import Refusal
from tests.storm.arms import ALL, REPEATED, Shot
from tests.storm.channels import DELIVERED, Told


@dataclass
class Owed:
    """What the book of one run must count by now: exactly this, and up to `spare` more."""

    refused: Counter[str] = field(default_factory=Counter)
    spare: Counter[str] = field(default_factory=Counter)
    """
    Of messages whose sender lost patience: the update may still be judged beside the signal that it became.

    A refused message is then refused twice, an admitted one admitted once.
    """
    turned_away: Counter[str] = field(default_factory=Counter)

    def wrong(self, counted: Counter[str], in_store: Counter[str]) -> list[str]:
        """How the run's own count differs from what is owed; empty where it agrees."""
        complaints = []
        for name in sorted({*self.refused, *counted, *in_store}):
            least = self.refused[name] - in_store[name]
            most = least + self.spare[name]
            if not least <= counted[name] <= most:
                expected = f"{least}" if least == most else f"{least} to {most}"
                complaints.append(f"the run counts {counted[name]} {name}, expected {expected}")
        return complaints


@dataclass
class Tally:
    """The storm's own account."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By outcome and channel."""
    kinds: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)
    delivered: int = 0
    """How many were left with Temporal without a verdict, and judged from there."""
    events: Counter[str] = field(default_factory=Counter)

    @property
    def sent(self) -> int:
        return self.outcomes.total()

    def complain(self, what: str) -> None:
        """Something was not as it must be."""
        self.mismatches.append(what)

    def note(self, shot: Shot, channel: str, told: Told, where: str, owed: Owed, *, disturbed: bool) -> None:
        """
        Count one message, whose sender was told this.

        A verdict has to be the expected one. Where none was given, the book's
        count is: `Owed.wrong` compares it.
        """
        self.outcomes[shot.expect, channel] += 1
        self.kinds[shot.kind] += 1
        at = f"{shot.kind} by {channel} at {where}"
        if told.name == DELIVERED:
            self.delivered += 1
            patient = channel in {"raw signal", "command signal"} or disturbed
            if not patient and not (shot.nameless and channel == "client signal"):
                self.complain(f"{at}: no verdict came ({told.words})")
        elif told.name != shot.expect and not self._first_again(shot, channel, told):
            self.complain(f"{at}: expected {shot.expect}, was told {told.name}: {told.words[:300]}")
        elif shot.receipt is not None and told.receipt != shot.receipt:
            self.complain(f"{at}: expected the receipt {shot.receipt}, got {told.receipt}")
        self._owe(shot, channel, told, owed)

    @staticmethod
    def _first_again(shot: Shot, channel: str, told: Told) -> bool:
        """The verdict of a signal is read back by its answer id, which knows the first receipt and not the number of repeats."""
        return shot.expect == REPEATED and channel == "client signal" and told.name == "admitted"

    def _owe(self, shot: Shot, channel: str, told: Told, owed: Owed) -> None:
        if shot.expect not in set(Refusal):
            return
        if told.turned_away:
            owed.turned_away[shot.expect] += 1
            return
        owed.refused[shot.expect] += 1
        if channel == "client update" and told.name == DELIVERED:
            owed.spare[shot.expect] += 1

    def table(self) -> str:
        """Messages by outcome and channel, as text."""
        columns = [*ALL, "all"]
        lines = [f"{'outcome':<22}" + "".join(f"{name:>16}" for name in columns)]
        names = sorted({outcome for outcome, _ in self.outcomes})
        for name in names:
            numbers = [self.outcomes[name, channel] for channel in ALL]
            lines.append(f"{name:<22}" + "".join(f"{number or '':>16}" for number in [*numbers, sum(numbers)]))
        numbers = [sum(self.outcomes[name, channel] for name in names) for channel in ALL]
        lines.append(f"{'all':<22}" + "".join(f"{number:>16,}" for number in [*numbers, sum(numbers)]))
        return "\n".join(lines)
