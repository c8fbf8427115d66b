"""
The record of one run: what was asked, answered, refused and performed.

Everything that a run knows about its gates is folded from its entries, so that
a book survives continue-as-new as JSON and reads the same afterwards.

What is bounded, and what never is:

- Of refusals and dead letters the first and the last 20 are kept per gate (and
  of those that name no gate), each cut to about 4 KB; beyond that they are
  counted by name.
- Beyond about 4 MB of payloads, schemas, answers and outputs the oldest that
  are over lose theirs (their digests stay, and the gate index has them).
- `compacted()`, called when a run continues as new, turns every occurrence that
  is over into one `Settled` line, drops its refusals and what was said,
  consumed and performed, and keeps the last 50 receipts with an anchor.
- Never compacted: open gates, the numbers of visits and calls, and who answered
  which occurrence with what digest (about 530 bytes for each: Temporal takes
  some 3,900 of them in one payload).
"""

import json
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, assert_never

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from .entries import (
    Answered,
    Asked,
    Closed,
    Consumed,
    DeadLettered,
    Entry,
    Expired,
    Opened,
    Performed,
    Refused,
    Said,
    Settled,
    Superseded,
)
from .errors import BookError
from .gate import PinnedGate
from .identity import MAX_NUMBER, FrameIdentity, FrameState, Occurrence, Standing
from .receipt import Anchor, Receipt
from .record import KEPT, GateRecord, GateState, Tally

MAX_WEIGHT = 4 * 1024 * 1024
"""
About how much JSON of what was shown, said and returned a book keeps, in characters.

A book is written whole when its run ends, in a workflow task that may take two
seconds.
"""

LIGHT = 1024
"""Entries whose contents are no longer than this are not counted."""

KEPT_RECEIPTS = 50
"""How many receipts travel through continue-as-new in full."""

_ENTRY: TypeAdapter[Any] = TypeAdapter(Entry)
_RECEIPTS = TypeAdapter(tuple[Receipt, ...])


class _Head(BaseModel):
    """What a saved book says besides its entries."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    identity: FrameIdentity
    run: int = Field(ge=1, le=MAX_NUMBER)
    declared: tuple[str, ...]
    epoch: int = Field(ge=0)
    ledger_id: str | None
    dropped: int = Field(ge=0)
    visits: dict[str, int]
    calls: dict[str, int]
    anchor: Anchor


class Book:
    """The entries of one run, with what follows from them at hand. Written only through `write`."""

    VERSION: ClassVar[int] = 1

    def __init__(self, identity: FrameIdentity, *, run: int = 1, declared: Iterable[str] = ()) -> None:
        """
        An empty book for the `run`-th run of a session.

        `declared` are names of gates that the pipeline may come to; an answer
        to one of them is then refused as early instead of unknown.
        """
        self.identity = identity
        self.run = run
        self.declared = tuple(declared)
        self.epoch = 0
        self.standing = Standing.OPEN
        self.ledger_id: str | None = None
        self.entries: list[Any] = []
        self.dropped = 0
        """How many transcript entries compaction has removed before `entries[0]`."""
        self.receipts: list[Receipt] = []
        self.anchor = Anchor(number=0, digest=None)
        self.gates: dict[str, GateRecord] = {}
        self.answer_ids: dict[str, str] = {}
        self.visits: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.refusals: dict[str, Tally] = {}
        self.dead_letters = Tally()
        self._open: dict[str, GateRecord] = {}
        self._heavy: deque[tuple[int, int]] = deque()
        self._weight = 0

    # What the book says

    @property
    def frame(self) -> FrameState:
        """The run's authority to continue, as it stands."""
        return FrameState(identity=self.identity, standing=self.standing, epoch=self.epoch)

    @property
    def open(self) -> list[GateRecord]:
        """The occurrences that wait for an answer, oldest first."""
        return list(self._open.values())

    @property
    def head(self) -> Receipt | Anchor | None:
        """The last receipt of the chain, to which the next one is linked."""
        if self.receipts:
            return self.receipts[-1]
        return self.anchor if self.anchor.number else None

    @property
    def cursor(self) -> int:
        """Where the transcript goes on: how many entries were written, those included that compaction dropped."""
        return self.dropped + len(self.entries)

    def next_occurrence(self, gate: str) -> Occurrence:
        """The occurrence that the next arrival at this gate makes; numbers never go back."""
        return Occurrence(gate=gate, run=self.run, visit=self.visits[gate] + 1)

    def reserve(self, gate: str) -> Occurrence:
        """Take the next occurrence of this gate: two arrivals at one moment are two occurrences."""
        occurrence = self.next_occurrence(gate)
        self.visits[gate] += 1
        return occurrence

    def reserve_call(self, name: str) -> int:
        """Take the next visit number of this step or effect."""
        self.calls[name] += 1
        return self.calls[name]

    def answered_as(self, answer_id: str) -> GateRecord | None:
        """The occurrence that the answer of this id was admitted to."""
        interrupt_id = self.answer_ids.get(answer_id)
        return None if interrupt_id is None else self.gates[interrupt_id]

    def tally(self, interrupt_id: str | None) -> Tally:
        """The refusals of one occurrence, or, for anything that the run never asked, of no gate at all (`""`)."""
        known = interrupt_id if interrupt_id in self.gates else ""
        return self.refusals.get(known or "", Tally())

    # Writing

    def write(self, *entries: Any) -> None:
        """
        Record facts. All of them pass here, and each is checked against the book first.

        Raises `BookError` for one that contradicts it, such as a second answer
        to one occurrence: that is a fault of the caller, not of a person.
        """
        for entry in entries:
            self._fold(entry)
            if not isinstance(entry, Refused | DeadLettered):
                self.entries.append(entry)
                self._weigh(len(self.entries) - 1)

    def pin(self, occurrence: Occurrence, gate: PinnedGate) -> None:
        """
        An open gate is what this record of it says, and not what was written when it was asked.

        Raises `BookError` for a gate that the run never asked.
        """
        record = self.gates.get(occurrence.interrupt_id)
        if record is None:
            msg = f"{occurrence.interrupt_id} cannot be pinned: it was never asked"
            raise BookError(msg)
        record.gate, record.shown = gate, gate.digest
        for position in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[position]
            if isinstance(entry, Asked) and entry.occurrence == occurrence:
                self.entries[position] = entry.model_copy(update={"gate": gate})
                return

    def _weigh(self, position: int) -> None:
        """Count what the entry at `position` weighs, and make the oldest ones thin where it becomes too much."""
        heavy = self.entries[position].heavy()
        if heavy is None or (size := len(json.dumps(heavy))) <= LIGHT:
            return
        self._heavy.append((position, size))
        self._weight += size
        for _ in range(len(self._heavy)):
            if self._weight <= MAX_WEIGHT:
                break
            oldest, size = self._heavy.popleft()
            entry = self.entries[oldest]
            record = self.gates.get(entry.occurrence.interrupt_id) if isinstance(entry, Asked | Answered) else None
            if record is not None and record.state == "open":
                # What an open gate shows is what it is judged by.
                self._heavy.append((oldest, size))
                continue
            self.entries[oldest] = thin = entry.thin()
            self._weight -= size
            if record is not None and isinstance(thin, Asked):
                record.gate = thin.gate
            elif record is not None and isinstance(thin, Answered):
                record.answered = thin

    def _fold(self, entry: Any) -> None:
        match entry:
            case Asked():
                self._fold_asked(entry)
            case Answered():
                record = self._waiting(entry.occurrence, "answered")
                self._chain(entry.receipt)
                self._settle(record, "answered", entry.at)
                record.answered = entry
                # An id that is taken stays with whom it was given to, or their repeat would read as a conflict.
                self.answer_ids.setdefault(entry.answer.answer_id, record.interrupt_id)
            case Expired():
                record = self._waiting(entry.occurrence, "expired")
                record.reason = "the deadline passed without an answer"
                if entry.outcome == "fail":
                    self._settle(record, "expired", entry.at)
            case Superseded():
                record = self._waiting(entry.occurrence, "superseded")
                record.reason = entry.reason
                self._settle(record, "superseded", entry.at)
            case Refused():
                known = entry.objections[0].interrupt_id
                key = known if known in self.gates else ""
                self.refusals.setdefault(key or "", Tally()).add(entry.refusal.value, entry.brief())
            case DeadLettered():
                self.dead_letters.add(entry.door, entry.brief())
            case Consumed():
                self._known(entry.occurrence, "consumed", "answered").consumed.append(entry)
                self._chain_any(entry.receipt)
            case Performed():
                self._chain_any(entry.receipt)
                self.calls[entry.call.name] = max(self.calls[entry.call.name], entry.call.visit)
            case Closed():
                self.standing = entry.standing
                for record in self.open:
                    record.reason = f"the run is {entry.standing.value}"
                    self._settle(record, "closed", entry.at)
            case Settled():
                self._fold_settled(entry)
            case Opened() | Said():
                pass
            case _:
                msg = f"a book does not record {type(entry).__name__}"
                raise BookError(msg)

    def _fold_asked(self, entry: Asked) -> None:
        if self.standing is not Standing.OPEN:
            msg = f"{entry.occurrence.interrupt_id} cannot be asked: the run is {self.standing.value}"
            raise BookError(msg)
        record = GateRecord(entry.occurrence, entry.branch, entry.gate.digest, entry.at, entry.gate)
        self._enter(record)
        self._open[record.interrupt_id] = record

    def _fold_settled(self, entry: Settled) -> None:
        record = GateRecord(entry.occurrence, entry.branch, entry.shown, entry.at, None, entry.state)
        record.settled, record.closed_at = entry, entry.at
        self._enter(record)
        if entry.answer_id is not None:
            self.answer_ids.setdefault(entry.answer_id, record.interrupt_id)

    def _enter(self, record: GateRecord) -> None:
        occurrence = record.occurrence
        if record.interrupt_id in self.gates:
            msg = f"{record.interrupt_id} was asked before; an occurrence is asked once"
            raise BookError(msg)
        if occurrence.run != self.run:
            msg = f"{record.interrupt_id} belongs to run {occurrence.run} of the session, and this is run {self.run}"
            raise BookError(msg)
        self.gates[record.interrupt_id] = record
        self.visits[occurrence.gate] = max(self.visits[occurrence.gate], occurrence.visit)

    def _known(self, occurrence: Occurrence, what: str, state: GateState) -> GateRecord:
        record = self.gates.get(occurrence.interrupt_id)
        if record is None or record.state != state:
            msg = f"{occurrence.interrupt_id} cannot be {what}: it is {record.state if record else 'unknown'}"
            raise BookError(msg)
        return record

    def _waiting(self, occurrence: Occurrence, what: str) -> GateRecord:
        return self._known(occurrence, what, "open")

    def _settle(self, record: GateRecord, state: GateState, at: datetime) -> None:
        record.state, record.closed_at = state, at
        del self._open[record.interrupt_id]

    def _chain_any(self, receipt: Receipt | None) -> None:
        if receipt is not None:
            self._chain(receipt)

    def _chain(self, receipt: Receipt) -> None:
        head = self.head
        if receipt.previous != (head.digest if head else None):
            msg = f"receipt {receipt.number} does not follow the head of the chain"
            raise BookError(msg)
        self.receipts.append(receipt)

    # JSON

    def to_json(self) -> dict[str, Any]:
        """The book as tagged JSON, with its version; `Book.from_json` reads it back."""
        return {
            "gatewright_book": self.VERSION,
            "identity": self.identity.model_dump(mode="json"),
            "run": self.run,
            "declared": list(self.declared),
            "epoch": self.epoch,
            "ledger_id": self.ledger_id,
            "dropped": self.dropped,
            "visits": dict(self.visits),
            "calls": dict(self.calls),
            "anchor": self.anchor.model_dump(mode="json"),
            "carried_receipts": [receipt.model_dump(mode="json") for receipt in self._carried()],
            "entries": [entry.model_dump(mode="json") for entry in self.entries],
            "refusals": {key: _tally_json(tally) for key, tally in self.refusals.items()},
            "dead_letters": _tally_json(self.dead_letters),
        }

    def _carried(self) -> list[Receipt]:
        """Receipts whose entries compaction dropped: the others are found in the entries."""
        in_entries = {
            entry.receipt.number
            for entry in self.entries
            if isinstance(entry, Answered | Consumed | Performed) and entry.receipt is not None
        }
        return [receipt for receipt in self.receipts if receipt.number not in in_entries]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Read a book; `BookError` for another version or a damaged one."""
        version = data.get("gatewright_book") if isinstance(data, dict) else None
        if version != cls.VERSION:
            msg = f"this is not a book of version {cls.VERSION} (it says {version!r}); read it with the release that wrote it"
            raise BookError(msg)
        try:
            head = _Head.model_validate(data)
            book = cls(head.identity, run=head.run, declared=head.declared)
            book.epoch, book.ledger_id, book.dropped, book.anchor = (
                head.epoch,
                head.ledger_id,
                head.dropped,
                head.anchor,
            )
            book.receipts.extend(_RECEIPTS.validate_python(data["carried_receipts"]))
            book.write(*(_ENTRY.validate_python(entry) for entry in data["entries"]))
            # Numbers that were taken for an arrival or a call that no entry tells of yet never go back either.
            book.visits.update(Counter(head.visits) - book.visits)
            book.calls.update(Counter(head.calls) - book.calls)
            book.refusals = {key: _tally(saved) for key, saved in data["refusals"].items()}
            book.dead_letters = _tally(data["dead_letters"])
        except (KeyError, TypeError, AttributeError, ValueError) as damaged:
            msg = f"this book is damaged: {type(damaged).__name__}: {damaged}"
            raise BookError(msg) from damaged
        return book

    def compacted(self) -> "Book":
        """A book of the same knowledge for a fresh execution: see the module's first lines for what it leaves out."""
        fresh = Book(self.identity, run=self.run, declared=self.declared)
        fresh.epoch, fresh.ledger_id = self.epoch, self.ledger_id
        fresh.dropped = self.dropped + len(self.entries)
        kept = self.receipts[-KEPT_RECEIPTS:]
        gone = self.receipts[: len(self.receipts) - len(kept)]
        fresh.anchor = Anchor(number=gone[-1].number, digest=gone[-1].digest) if gone else self.anchor
        fresh.receipts.extend(kept)
        for record in self.gates.values():
            if record.state == "open":
                assert record.gate is not None  # noqa: S101 - an open gate is never compacted
                fresh.write(
                    Asked(at=record.opened_at, occurrence=record.occurrence, branch=record.branch, gate=record.gate)
                )
            else:
                fresh.write(_settled(record))
        fresh.visits.update(self.visits - fresh.visits)
        fresh.calls.update(self.calls)
        fresh.refusals = {key: tally.copy() for key, tally in self.refusals.items() if not key or key in self._open}
        fresh.dead_letters = self.dead_letters.copy()
        return fresh


def _settled(record: GateRecord) -> Settled:
    if record.settled is not None:
        return record.settled
    answered = record.answered
    state: Literal["answered", "expired", "superseded"]
    match record.state:
        case "answered" | "expired" | "superseded":
            state = record.state
        case "open" | "closed":
            state = "superseded"
        case _:
            assert_never(record.state)
    return Settled(
        at=record.closed_at or record.opened_at,
        occurrence=record.occurrence,
        branch=record.branch,
        state=state,
        shown=record.shown,
        stands_for=record.gate.stands_for if record.gate else None,
        answer_id=answered.answer.answer_id if answered else None,
        content_digest=record.content_digest,
        principal=answered.answer.principal if answered else None,
        channel=answered.answer.channel if answered else None,
        receipt_number=answered.receipt.number if answered else None,
        receipt_digest=answered.receipt.digest if answered else None,
    )


def _tally_json(tally: Tally) -> dict[str, Any]:
    return {
        "first": [entry.model_dump(mode="json") for entry in tally.first],
        "last": [entry.model_dump(mode="json") for entry in tally.last],
        "by_name": dict(tally.by_name),
    }


def _tally(saved: dict[str, Any]) -> Tally:
    return Tally(
        first=[_ENTRY.validate_python(entry) for entry in saved["first"]],
        last=deque((_ENTRY.validate_python(entry) for entry in saved["last"]), maxlen=KEPT),
        by_name=Counter(saved["by_name"]),
    )
