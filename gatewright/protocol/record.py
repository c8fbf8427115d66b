"""What became of one occurrence, and what was refused there: the pieces of which a book is folded."""

from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from .entries import Answered, Consumed, DeadLettered, Refused, Settled
from .gate import PinnedGate
from .identity import BranchPath, Occurrence
from .receipt import OccurrenceFact

KEPT = 20
"""How many refusals per gate are kept in full from the beginning, and how many from the end."""

GateState = Literal["open", "answered", "expired", "superseded", "closed"]


@dataclass
class Tally:
    """Refusals (or dead letters) of one gate: the first and last in full, all of them counted by name."""

    first: list[Any] = field(default_factory=list)
    last: deque[Any] = field(default_factory=lambda: deque(maxlen=KEPT))
    by_name: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many there were altogether."""
        return self.by_name.total()

    @property
    def full(self) -> bool:
        """Whether a further one would push an earlier one out."""
        return self.count >= 2 * KEPT

    def add(self, name: str, entry: Refused | DeadLettered) -> None:
        """Keep one more."""
        self.by_name[name] += 1
        (self.first if len(self.first) < KEPT else self.last).append(entry)

    def copy(self) -> "Tally":
        """Another tally of the same, to which more can be added without changing this one."""
        return Tally(list(self.first), self.last.copy(), self.by_name.copy())

    @property
    def kept(self) -> list[Any]:
        """Those that are kept in full, oldest first."""
        return [*self.first, *self.last]


@dataclass
class GateRecord:
    """One occurrence: where it is owned, what was shown, and what became of it."""

    occurrence: Occurrence
    branch: BranchPath
    shown: str
    opened_at: datetime
    gate: PinnedGate | None
    state: GateState = "open"
    answered: Answered | None = None
    settled: Settled | None = None
    closed_at: datetime | None = None
    reason: str | None = None
    consumed: list[Consumed] = field(default_factory=list)

    @property
    def interrupt_id(self) -> str:
        """The occurrence on the wire."""
        return self.occurrence.interrupt_id

    @property
    def principal(self) -> str | None:
        """Who answered; None where nobody did."""
        if self.answered is not None:
            return self.answered.answer.principal
        return self.settled.principal if self.settled else None

    @property
    def content_digest(self) -> str | None:
        """The digest of what was answered, by which a repeat is known."""
        if self.answered is not None and self.answered.receipt.responder is not None:
            return self.answered.receipt.responder.content_digest
        return self.settled.content_digest if self.settled else None

    @property
    def stands_for(self) -> str:
        """The gate whose question this is: its own, or the one that is asked again here."""
        known = self.gate.stands_for if self.gate else self.settled.stands_for if self.settled else None
        return known or self.occurrence.gate

    @property
    def fact(self) -> OccurrenceFact:
        """The occurrence as receipts state it."""
        at = self.occurrence
        return OccurrenceFact(interrupt_id=at.interrupt_id, gate=at.gate, run=at.run, visit=at.visit, digest=self.shown)
