"""How a run asks: the gate opens, is listed and pinned, waits for its answer, and asks again where today's type wants more."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, TypeVar, cast

from temporalio import workflow

from gatewright.protocol.admission import admit_default
from gatewright.protocol.answer import Answer
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Answered as AnsweredEntry
from gatewright.protocol.entries import Asked, Expired, Superseded
from gatewright.protocol.gate import Gate, PinnedGate
from gatewright.protocol.identity import BranchPath, Occurrence
from gatewright.protocol.receipt import Receipt
from gatewright.protocol.record import GateRecord
from gatewright.protocol.recovery import BLOCKED, FAILED, system_name

from . import names
from .desk import Desk
from .details import describe
from .errors import GateExpiredError, GateFailedError
from .index import OpenGate, Opening, SettleGate
from .listing import Listing

T = TypeVar("T")

MAX_ECHO = 2_000
"""How many characters of an answer that no longer fits are shown to whoever is asked again."""


@dataclass(frozen=True)
class Answered(Generic[T]):
    """An admitted answer: the value in the gate's own type, who gave it where, and the receipt."""

    value: T
    occurrence: Occurrence
    answer: Answer
    receipt: Receipt

    @property
    def principal(self) -> str:
        """Who answered, as far as the channel knew; `engine:deadline` for a default."""
        return self.answer.principal


class Asking:
    """The gates of one run, as its pipeline asks them; `remember_ledger` is told which ledger the index's worker has."""

    def __init__(
        self,
        book: Book,
        branch: BranchPath,
        desk: Desk,
        listing: Listing,
        remember_ledger: Callable[[str | None], None],
    ) -> None:
        self._book = book
        self._branch = branch
        self._desk = desk
        self._listing = listing
        self._remember_ledger = remember_ledger
        self._orphans = {record.interrupt_id for record in book.open}
        """Gates that were open when the run continued as new, until the pipeline asks for them again."""

    async def ask(self, gate: Gate[T], node: str | None = None) -> Answered[T]:
        """Open the gate and wait for its answer; see `Frame.ask`."""
        record = self._carried_over(gate) or await self._open(gate, node)
        occurrence = record.occurrence
        try:
            entry = await self._answer_to(record)
        except asyncio.CancelledError:
            if record.state == "open":
                reason = workflow.cancellation_reason()
                why = "the pipeline went another way" if reason is None else f"the run was cancelled {reason}".rstrip()
                self._book.write(Superseded(at=workflow.now(), occurrence=occurrence, reason=why))
                self.show()
                self._listing.settled(self._settled(record))
            raise
        finally:
            self._desk.known.pop(occurrence.interrupt_id, None)
        if record.state == "closed":
            # The run is over, and this task of it was left behind: nobody is to be told that a deadline passed.
            raise asyncio.CancelledError
        problems, fits = await self._told(gate, record, entry)
        if entry is None:
            raise GateExpiredError(occurrence.interrupt_id)
        if entry.answer.failure is not None:
            raise GateFailedError(occurrence.interrupt_id, entry.answer.failure)
        if not fits:
            return await self._ask_again(gate, entry, problems)
        return Answered(gate.loosely(entry.value), occurrence, entry.answer, entry.receipt)

    async def _open(self, gate: Gate[T], node: str | None) -> GateRecord:
        occurrence = self._book.reserve(gate.name)
        place = (occurrence.gate, occurrence.visit) if node is None else (node, self._book.reserve_call(node))
        asked = OpenGate(
            workflow_id=self._book.identity.workflow_id,
            pipeline=workflow.info().workflow_type,
            occurrence=occurrence,
            branch=self._branch.child(*place),
            gate=gate.pin(opened_at=workflow.now()),
            opened_at=workflow.now(),
        )
        if not self._listing.steady:
            return await self._open_as_listed(gate, asked)
        record = self._opened(gate, asked, asked.gate)
        self._listing.asked(asked, lambda opening: self._pin(record, opening))
        return record

    async def _open_as_listed(self, gate: Gate[T], asked: OpenGate) -> GateRecord:
        """Open a gate of a run of the first release: once it is listed."""
        try:
            opening = await self._listing.opened_first(asked)
        except asyncio.CancelledError:
            # Listed perhaps, and never asked: nothing of it is in the book, so the index must not keep it.
            self._listing.settled(
                SettleGate(
                    workflow_id=asked.workflow_id,
                    interrupt_id=asked.occurrence.interrupt_id,
                    state="superseded",
                    at=workflow.now(),
                )
            )
            raise
        self._remember_ledger(opening.ledger_id)
        return self._opened(gate, asked, opening.gate)

    def _opened(self, gate: Gate[T], asked: OpenGate, pinned: PinnedGate) -> GateRecord:
        self._desk.known[asked.occurrence.interrupt_id] = gate
        self._book.write(Asked(at=workflow.now(), occurrence=asked.occurrence, branch=asked.branch, gate=pinned))
        self.show()
        return self._book.gates[asked.occurrence.interrupt_id]

    def _pin(self, record: GateRecord, opening: Opening) -> None:
        """The gate is what was recorded, although today's code may show another."""
        self._remember_ledger(opening.ledger_id)
        if opening.gate != record.gate:
            self._book.pin(record.occurrence, opening.gate)
            self.show()

    async def _answer_to(self, record: GateRecord) -> AnsweredEntry | None:
        """The admitted answer, or None at a deadline without a default."""
        deadline = record.gate.deadline if record.gate else None
        wait = None if deadline is None else max(deadline - workflow.now(), timedelta(0))
        try:
            await workflow.wait_condition(
                lambda: record.state != "open", timeout=wait, timeout_summary=f"deadline of {record.interrupt_id}"
            )
        except TimeoutError:
            # An answer may have been admitted in the very activation that brought the timer.
            if record.state == "open":
                pinned = cast("PinnedGate", record.gate)
                self._book.write(Expired(at=workflow.now(), occurrence=record.occurrence, outcome=pinned.on_deadline))
                if pinned.on_deadline == "default":
                    self._book.write(admit_default(self._book, record, at=workflow.now()))
        self.show()
        return record.answered

    async def _told(
        self, gate: Gate[T], record: GateRecord, entry: AnsweredEntry | None
    ) -> tuple[list[tuple[str, str]], bool]:
        """
        Tell the index how the gate was settled; what today's type has against the answer, and whether it fitted then.

        What came by update fits: the validator, which no replay repeats, has
        asked the type. Whether anything else fits is recorded with the telling,
        so that a later type does not send a replay another way.
        """
        responder = entry.receipt.responder if entry is not None else None
        if self._listing.steady and (responder is None or responder.door == "update"):
            self._listing.settled(self._settled(record))
            return [], True
        said = entry is not None and entry.answer.failure is None
        problems = gate.problems(entry.value) if entry is not None and said else []
        settling = await self._listing.settled_for_certain(self._settled(record, fits=not problems))
        return problems, settling.fits

    async def _ask_again(self, gate: Gate[T], entry: AnsweredEntry, problems: list[tuple[str, str]]) -> Answered[T]:
        """
        Ask for a value that today's type takes.

        The recorded schema took the answer, so it is admitted and stays so; the
        type has changed since, or has rules that no JSON Schema can express.
        """
        origin = gate.stands_for or gate.name
        name = system_name(FAILED, origin)
        said = json.dumps(entry.value, ensure_ascii=False)
        return await self.ask(
            replace(
                gate,
                name=name,
                stands_for=origin,
                on_deadline="fail",
                message=f"{entry.occurrence.interrupt_id} was answered, and the pipeline no longer takes that answer. "
                "Give one that it takes.",
                # As text where it is long: what an answer may hold, a gate need not be able to show.
                payload={
                    **_subject(gate.stands_for or gate.name, gate.payload),
                    "answer": entry.value if len(said) <= MAX_ECHO else said[:MAX_ECHO],
                    "problems": [f"{path}: {message}" for path, message in problems],
                },
            )
        )

    def _carried_over(self, gate: Gate[T]) -> GateRecord | None:
        """The gate of this name that was open when the run continued as new: asking for it again goes on waiting there."""
        for record in self._book.gates.values() if self._orphans else ():
            # Perhaps answered already, in the first task of this execution.
            if (
                record.interrupt_id in self._orphans
                and record.occurrence.gate == gate.name
                and (_asks_about_same(gate, record) or not workflow.patched(names.PATCH_HANDED_OVER))
            ):
                self._orphans.discard(record.interrupt_id)
                self._desk.known[record.interrupt_id] = gate
                self.show()
                return record
        return None

    def _settled(self, record: GateRecord, *, fits: bool = True) -> SettleGate:
        answered = record.answered
        return SettleGate(
            workflow_id=self._book.identity.workflow_id,
            interrupt_id=record.interrupt_id,
            state=record.state,
            at=record.closed_at or workflow.now(),
            answer_id=answered.answer.answer_id if answered else None,
            principal=answered.answer.principal if answered else None,
            channel=answered.answer.channel if answered else None,
            value=answered.value if answered else None,
            receipt_digest=answered.receipt.digest if answered else None,
            fits=fits,
        )

    def show(self) -> None:
        """Temporal's own UI shows the open gates and how to answer them; this costs no event."""
        workflow.set_current_details(describe(self._book))


def _subject(name: str, payload: object) -> dict[str, str]:
    """Which call a gate of ours asks about, by its id and its key; nothing of a gate of the pipeline's."""
    if not name.startswith((BLOCKED, FAILED)) or not isinstance(payload, dict):
        return {}
    return {part: said for part in ("call", "key") if isinstance(said := payload.get(part), str)}


def _asks_about_same(gate: Gate[Any], record: GateRecord) -> bool:
    """Whether a gate that was carried over asks about the very call that this one does, or neither about any."""
    shown = record.gate.payload if record.gate else None
    return _subject(gate.name, gate.payload).get("key") == _subject(record.occurrence.gate, shown).get("key")
