"""What came of the trials, by kind and point, and where a promise was broken."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatewright.effects import EffectKind
from tests.effects_crash.points import KINDS, Point, Trouble, blocked, unfenced


@dataclass(frozen=True)
class Case:
    """What a trial tries; `honoured` False: with an outside that ignores the keys that it was declared to honour."""

    trouble: Trouble
    kind: EffectKind
    point: Point
    honoured: bool = True

    def __str__(self) -> str:
        """As it is named in what is printed."""
        return f"{self.trouble}: {self.kind}, {self.point}"


@dataclass
class Outcome:
    """
    What came of one trial.

    `calls` is how many effects the outside performed for it (a repeat with a key
    that the outside honours is none), `repeats` how many such repeats there
    were, `asked` the gates at which a person was asked, in order. `faults` are
    what must not be, in words; `disturbed` says why the trial shows nothing.
    """

    case: Case
    name: str
    calls: int = 0
    repeats: int = 0
    ended: bool = False
    asked: list[str] = field(default_factory=list)
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    disturbed: str = ""

    @property
    def blocked(self) -> int:
        """How often a person was asked whether it happened."""
        return sum(gate.startswith("blocked:") for gate in self.asked)

    @property
    def failed(self) -> int:
        """How often a person was asked what follows a failure."""
        return sum(gate.startswith("failed:") for gate in self.asked)

    @property
    def duplicate(self) -> bool:
        """Whether the outside performed it more than once."""
        return self.calls > 1

    @property
    def lost(self) -> bool:
        """Whether the run never ended, or ended without the effect."""
        return not self.ended or self.calls == 0

    def broken(self) -> list[str]:
        """Which promises it breaks."""
        case, broken = self.case, list(self.faults)
        if self.duplicate and not unfenced(case.trouble, case.kind, case.point):
            broken.append(f"{self.calls} calls of the outside")
        if self.lost:
            broken.append("lost: " + ("the outside has no call" if self.ended else "the run did not end"))
        if bool(self.blocked) != blocked(case.trouble, case.kind, case.point):
            broken.append(f"asked at {self.asked or 'no gate'}, which is not what must be")
        return broken


class Tally:
    """The outcomes of many trials."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.disturbed: list[Outcome] = []
        """Trials that showed nothing, because the machine was too busy for their time-outs; they were repeated."""
        self.seconds = 0.0

    def note(self, outcome: Outcome, *, last: bool) -> None:
        """Keep an outcome; one that was disturbed counts only where it is the `last` that is tried."""
        if not outcome.disturbed:
            self.outcomes.append(outcome)
        elif last:
            outcome.faults.append(f"disturbed to the last: {outcome.disturbed}")
            self.outcomes.append(outcome)
        else:
            self.disturbed.append(outcome)

    def broken(self) -> list[str]:
        """Every broken promise, in words."""
        promised = [outcome for outcome in self.outcomes if outcome.case.honoured]
        return [f"{outcome.case} ({outcome.name}): {words}" for outcome in promised for words in outcome.broken()] + [
            # Whatever disturbed them, nothing may be done twice or lost.
            f"{outcome.case} ({outcome.name}), disturbed: {outcome.calls} calls, {'' if outcome.ended else 'not '}ended"
            for outcome in self.disturbed
            if outcome.case.honoured
            and (
                (outcome.duplicate and not unfenced(outcome.case.trouble, outcome.case.kind, outcome.case.point))
                or outcome.lost
            )
        ]

    def at(self, case: Case) -> list[Outcome]:
        """What came of one kind at one point."""
        return [outcome for outcome in self.outcomes if outcome.case == case]


def table(trouble: Trouble, tallies: Mapping[str, Tally]) -> str:
    """What came of one trouble, in Markdown: kind by kind, point by point, database by database, nothing summed up."""
    columns = [f"{name}: {what}" for name in tallies for what in ("trials", "duplicates", "lost", "BLOCKED")]
    lines = [_line(["kind", "point", "must be BLOCKED", *columns]), "|" + "---|" * (3 + len(columns))]
    for kind in KINDS:
        for point in trouble.points:
            case = Case(trouble, kind, point)
            beyond = " (*)" if unfenced(trouble, kind, point) else ""
            cells = [f"{kind}", f"{point}{beyond}", "all" if blocked(trouble, kind, point) else "none"]
            for tally in tallies.values():
                outcomes = tally.at(case)
                cells += [
                    f"{len(outcomes)}",
                    f"{sum(outcome.duplicate for outcome in outcomes)}",
                    f"{sum(outcome.lost for outcome in outcomes)}",
                    f"{sum(outcome.blocked > 0 for outcome in outcomes)}",
                ]
            lines.append(_line(cells))
    return "\n".join(lines)


def notes(trouble: Trouble, tallies: Mapping[str, Tally]) -> str:
    """What the table does not say: how long it took, what else was asked, what was repeated."""
    lines = []
    for name, tally in tallies.items():
        seconds = sorted(outcome.seconds for outcome in tally.outcomes)
        told = [f"{name}: {tally.seconds / 60:.0f} minutes, a trial {seconds[len(seconds) // 2]:.1f} s"]
        if repeats := sum(outcome.repeats for outcome in tally.outcomes):
            told.append(f"{repeats} repeats that the outside told by their key")
        if twice := sum(outcome.blocked > 1 for outcome in tally.outcomes):
            told.append(f"{twice} asked whether it happened more than once")
        if tally.disturbed:
            told.append(f"{len(tally.disturbed)} disturbed and tried again")
        for case, number in sorted(
            Counter(outcome.case for outcome in tally.outcomes if outcome.failed).items(), key=str
        ):
            told.append(f"`failed:` asked and answered with retry in {number} of {case.kind}, {case.point}")
        lines.append("; ".join(told) + ".")
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
