"""
The desk of a run: where answers come in, are judged one after the other, and where the record can be read.

Two doors lead to one admission: the signal, which survives anything, and the
update, whose reply is the verdict. Both are dynamic handlers, because only
those are given every delivery, whatever its name and arguments.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from gatewright.protocol.admission import Admission, Admitted, Pending, Repeated, admit, unreadable
from gatewright.protocol.answer import Evidence, Message
from gatewright.protocol.book import Book
from gatewright.protocol.decoding import Fault
from gatewright.protocol.entries import Answered, DeadLettered, Objection, Refusal, Refused
from gatewright.protocol.gate import Gate
from gatewright.temporal import names
from gatewright.temporal.door import Read, Unreadable, preview, read
from gatewright.temporal.listing import tell_refused
from gatewright.temporal.moves import Moves
from gatewright.temporal.views import gates_page, receipts_page, refusals_view, transcript_page

T = TypeVar("T")

_EARLY = {Refusal.NOT_OPEN_YET, Refusal.UNKNOWN_GATE, Refusal.AMBIGUOUS_GATE}
"""What becomes of an answer whose gate does not stand open, and may in a moment."""


class Desk:
    """Judges what is delivered to one run and writes it into its book."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.known: dict[str, Gate[Any]] = {}
        """Open gates by interrupt id, as today's code wrote them: for checks that no replay repeats."""
        self.busy: Callable[[], bool] = lambda: False
        """Whether the run has begun something that will write into the book without anybody's answer."""
        self.closing = False
        """Whether the run is over and on its way out: what comes now leaves no trace in history."""
        self.moves = Moves()
        self.held = ""
        """Why no answer can be taken for a moment."""
        self.typed = False
        """Whether the run relies on it that what came by update fits the gate's type."""
        self._lock = asyncio.Lock()
        self._other_signals: Callable[..., Any] | None = None
        self._own_metadata: Callable[..., Any] | None = None

    def serve(self) -> None:
        """Register the doors and the queries with the workflow that is being made; its own dynamic signals stay in use."""
        if workflow.get_signal_handler(names.ANSWER) or workflow.get_update_handler(names.ANSWER):
            msg = f"this workflow has a signal or an update named {names.ANSWER!r} of its own, which would shadow the door"
            raise RuntimeError(msg)
        if workflow.get_dynamic_update_handler() is not None:
            # It could be called, and its validator could not: an update that it would turn away must not run.
            msg = "this workflow has a dynamic update handler of its own; register its updates by name"
            raise RuntimeError(msg)
        self._other_signals = workflow.get_dynamic_signal_handler()
        workflow.set_dynamic_signal_handler(self._on_signal)
        workflow.set_dynamic_update_handler(self._on_update, validator=self._validate)
        workflow.set_query_handler(names.QUERY_GATES, self._query_gates)
        workflow.set_query_handler(names.QUERY_TRANSCRIPT, self._query_transcript)
        workflow.set_query_handler(names.QUERY_RECEIPTS, self._query_receipts)
        workflow.set_query_handler(names.QUERY_REFUSALS, self._query_refusals)
        workflow.set_query_handler(names.QUERY_JUDGE, self._query_judge)
        workflow.set_query_handler(names.QUERY_VERDICT, self._query_verdict)
        self._own_metadata = workflow.get_query_handler(names.QUERY_METADATA)
        workflow.set_query_handler(names.QUERY_METADATA, self._query_metadata)

    # The doors

    async def _on_signal(self, name: str, args: Sequence[RawValue]) -> None:
        if name != names.ANSWER and self._other_signals is not None:
            await _call(self._other_signals, name, args)
            return
        ruling = await self._deliver(name, args, "signal")
        if isinstance(ruling, Refused):
            # Nobody waits for the verdict of a signal, so it is at least said here.
            workflow.logger.warning("a signal was refused: %s: %s", ruling.refusal.value, ruling.reason)

    async def _on_update(self, name: str, args: Sequence[RawValue]) -> Any:
        return (await self._deliver(name, args, "update")).model_dump(mode="json")

    def _validate(self, name: str, args: Sequence[RawValue]) -> None:
        """
        Turn away, without history, what need not or cannot be recorded.

        Oversized messages, refusals beyond those that the book keeps, and
        answers that today's type would not take, or that may only be early: none
        of these depends on the book alone, and a validator, unlike a handler, is
        never replayed.
        """
        if self.held or self.moves.here():
            raise _busy(self.held or "the run goes on at this moment")
        if name != names.ANSWER and not self.closing:
            return
        delivery = read(args, "update")
        if isinstance(delivery, Unreadable):
            ruling: Admission = unreadable(self.book, delivery.reason, delivery.evidence, at=workflow.now())
        else:
            ruling = admit(self.book, delivery.message, delivery.evidence, at=workflow.now())
        turn_away = False
        if isinstance(ruling, Admitted):
            if self.typed and not all(map(self._checkable, ruling.entries)):
                msg = "the gate's type cannot be asked, or has changed since the gate was shown: send this as a signal"
                raise ApplicationError(msg, type=names.ERROR_BY_SIGNAL, non_retryable=True)
            ruling = self._untyped(ruling) or ruling
            turn_away = True
        elif isinstance(ruling, Refused):
            early = any(objection.refusal in _EARLY for objection in ruling.objections)
            if early and not self.closing and self.moves.to_come(args):
                raise _busy("the run was taken over by a worker at this moment, and the gate may be about to open")
            too_large = ruling.refusal is Refusal.TOO_LARGE
            turn_away = too_large or self.book.tally(ruling.objections[0].interrupt_id).full
        if self.closing or (turn_away and isinstance(ruling, Refused)):
            words = f"{ruling.refusal.value}: {ruling.reason}" if isinstance(ruling, Refused) else ruling.verdict
            raise ApplicationError(
                words,
                ruling.model_dump(mode="json"),
                type=names.ERROR_REFUSED,
                non_retryable=True,
            )

    def _checkable(self, entry: Answered) -> bool:
        """
        Whether an answer that would be admitted can be said to fit the gate's type, or not to.

        Not where the type has changed while the person was reading and would
        not take what was shown, nor where the pipeline has not yet come to the
        gate again after it continued as new.
        """
        gate = self.known.get(entry.occurrence.interrupt_id)
        if entry.answer.failure is not None:
            return True
        if gate is None:
            return False
        pinned = self.book.gates[entry.occurrence.interrupt_id].gate
        changed = pinned is None or pinned.response_schema != gate.response_schema
        return not (changed and gate.problems(entry.value))

    def _untyped(self, admitted: Admitted) -> Refused | None:
        """The refusal of answers that the recorded schema takes and the gate's type, by rules of its own, does not."""
        for entry in admitted.entries:
            gate = self.known.get(entry.occurrence.interrupt_id)
            if gate is None or entry.answer.failure is not None:
                continue
            pinned = self.book.gates[entry.occurrence.interrupt_id].gate
            if pinned is None or pinned.response_schema != gate.response_schema:
                # The type changed while the person was reading: what was shown is what counts, so the answer is
                # admitted, and the frame asks again for what today's type wants besides.
                continue
            if problems := gate.problems(entry.value):
                faults = tuple(Fault(path=path, message=message) for path, message in problems)
                words = "; ".join(f"{fault.path}: {fault.message}" for fault in faults[:5])
                objection = Objection(
                    refusal=Refusal.INVALID,
                    reason=f"the response does not fit what {gate.name!r} asks: {words}",
                    interrupt_id=entry.occurrence.interrupt_id,
                    answer_id=entry.answer.answer_id,
                    faults=faults,
                    armed=True,
                    open=tuple(record.interrupt_id for record in self.book.open[:50]),
                )
                return Refused(
                    at=workflow.now(),
                    objections=(objection,),
                    principal=entry.answer.principal,
                    channel=entry.answer.channel,
                    door="update",
                )
        return None

    async def _deliver(self, name: str, args: Sequence[RawValue], door: str) -> Admission:
        """One delivery, judged and written in the order of arrival."""
        async with self._lock:
            if name != names.ANSWER:
                raw = read(args, door)
                delivery: Read | Unreadable = Unreadable(
                    f"{door} {name[:100]!r} is not known; answers come as {names.ANSWER!r}",
                    raw.preview if isinstance(raw, Unreadable) else preview(args),
                    raw.evidence,
                )
            else:
                delivery = read(args, door)
            at = workflow.now()
            if isinstance(delivery, Unreadable):
                ruling: Admission = unreadable(self.book, delivery.reason, delivery.evidence, at=at)
                self.book.write(
                    DeadLettered(
                        at=at,
                        door=door,
                        name=name[:200].encode("utf-8", "backslashreplace").decode(),
                        reason=delivery.reason.encode("utf-8", "backslashreplace").decode(),
                        size=delivery.evidence.size,
                        preview=delivery.preview,
                    )
                )
            else:
                ruling = admit(self.book, delivery.message, delivery.evidence, at=at)
            match ruling:
                case Admitted(entries=entries):
                    self.book.write(*entries)
                    ruling = ruling.model_copy(update={"cursor": self.book.cursor})
                case Refused():
                    self.book.write(ruling)
                    tell_refused(ruling)
                case Repeated() | Pending():
                    pass
            return ruling

    # Queries

    def _query_metadata(self) -> WorkflowMetadata:
        """
        What Temporal tells its UI of this workflow, with `answer` by name.

        A dynamic handler has no name there, and the UI offers only named
        signals and updates.
        """
        told = self._own_metadata() if self._own_metadata else WorkflowMetadata()
        for definitions in (told.definition.signal_definitions, told.definition.update_definitions):
            definitions.add(name=names.ANSWER, description='Answer a gate: {"interruptId": ..., "response": ...}')
        return cast("WorkflowMetadata", told)

    def _query_gates(self, start: int = 0) -> dict[str, Any]:
        return gates_page(self.book, start).model_dump(mode="json")

    def _query_transcript(self, after: int = 0) -> dict[str, Any]:
        page = transcript_page(self.book, after)
        waiting = page.next == self.book.cursor and bool(self.book.open) and not self.busy()
        return page.model_copy(update={"waiting": waiting}).model_dump(mode="json")

    def _query_receipts(self, after: int = 0) -> dict[str, Any]:
        return receipts_page(self.book, after).model_dump(mode="json")

    def _query_refusals(self) -> dict[str, Any]:
        return refusals_view(self.book).model_dump(mode="json")

    def _query_judge(self, message: dict[str, Any]) -> dict[str, Any]:
        """What would be ruled if this message came now; nothing is recorded."""
        size = len(json.dumps(message).encode())
        ruling = admit(self.book, Message.model_validate(message), Evidence(size=size, door="query"), at=workflow.now())
        if isinstance(ruling, Admitted):
            ruling = self._untyped(ruling) or ruling
        return ruling.model_dump(mode="json")

    def _query_verdict(self, answer_id: str, content: str | None = None, attempt: str = "") -> dict[str, Any] | None:
        """
        What was ruled on the answer of this id and content digest; None where it has not been judged or is not kept.

        With `attempt`, a refusal of an earlier delivery of the same answer is not taken for this one's.
        """
        record = self.book.answered_as(answer_id)
        # The same id with other content was refused as a conflict: the first one's receipt is not its verdict.
        if record and record.answered and content in {None, record.answered.answer.content_digest}:
            return Admitted(receipts=(record.answered.receipt,)).model_dump(mode="json")
        kept = [entry for tally in self.book.refusals.values() for entry in tally.kept]
        for entry in sorted(kept, key=lambda entry: entry.at, reverse=True):
            named = any(objection.answer_id == answer_id for objection in entry.objections)
            if entry.attempt == attempt if attempt else named:
                return cast("dict[str, Any]", entry.model_dump(mode="json"))
        return None


def _busy(why: str) -> ApplicationError:
    return ApplicationError(f"{why}; send it again", type=names.ERROR_BUSY)


async def _call(handler: Callable[..., Any], name: str, args: Sequence[RawValue]) -> Any:
    """Hand a message on to the dynamic handler that the application had before the frame."""
    result = handler(name, args)
    return await result if isinstance(result, Awaitable) else result
