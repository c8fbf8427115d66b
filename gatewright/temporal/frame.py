"""
The frame that a workflow hosts: `ask`, `perform` and `say`.

Construct it in `@workflow.init`, because answers can arrive before `run` does.
This file owns no rules: it carries answers in, writes what admission ruled, and
waits.

    @workflow.defn
    class Release:
        @workflow.init
        def __init__(self, request: Request) -> None:
            self.frame = Frame()

        @workflow.run
        async def run(self, request: Request) -> str:
            confirmed = await self.frame.ask(Gate("confirm", answer=Confirmation))
            return await self.frame.perform(publish, request, authorised_by=confirmed)
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, TypeVar, cast, overload

from temporalio import workflow
from temporalio.exceptions import ActivityError

from gatewright.effects.declare import declaration_of
from gatewright.protocol.admission import admit_default
from gatewright.protocol.answer import Answer
from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.canonical import digest
from gatewright.protocol.entries import Answered as AnsweredEntry
from gatewright.protocol.entries import (
    Asked,
    Closed,
    Consumed,
    Expired,
    Opened,
    Performed,
    Said,
    Superseded,
)
from gatewright.protocol.gate import Gate, PinnedGate
from gatewright.protocol.identity import MAX_NAME, BranchPath, FrameIdentity, Occurrence, Standing, session_run
from gatewright.protocol.receipt import EffectFact, EffectState, Receipt
from gatewright.protocol.record import GateRecord

from . import names
from .calls import Route, activity_options, awaited, kept, seen_through, session_delta
from .desk import Desk
from .details import describe
from .errors import GateExpiredError, GateFailedError, innermost, innermost_type
from .index import CloseRun, OpenGate, Opening, SettleGate
from .listing import Listing
from .opening import OpeningWord
from .outbound import calling
from .views import book_part

T = TypeVar("T")
R = TypeVar("R")

UNTOLD = "untold"
"""Where a carried book holds what the index is still to be told."""

MAX_ECHO = 2_000
"""How many characters of an answer that no longer fits are shown to whoever is asked again."""

FAILED = "failed:"
"""How the gate is named that asks again when today's type no longer takes an admitted answer."""


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


class Frame:
    """
    One run's gates, calls and record, served by Temporal.

    `name` is the outermost component of every branch (the workflow's type by
    default), `gates` the names of gates that the pipeline may come to, and
    `carried` the book of the execution that continued as new.
    """

    def __init__(self, *, name: str | None = None, gates: Iterable[str] = (), carried: Any = None) -> None:
        if hosted() is not None:
            msg = "this run hosts a frame already: one run, one frame"
            raise RuntimeError(msg)
        info = workflow.info()
        identity = FrameIdentity(
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            first_execution_run_id=info.first_execution_run_id,
        )
        self.branch = BranchPath().child(name or info.workflow_type, 1)
        if carried is None:
            self.book = Book(identity, run=session_run(info.workflow_id), declared=gates)
        else:
            self.book = Book.from_json(carried)
        self._desk = Desk(self.book)
        self._calls = 0
        """How many steps and effects run now."""
        self._listing = Listing()
        self._listing.carried((carried or {}).get(UNTOLD, ()))
        self._desk.busy = lambda: bool(self._calls) or self._listing.busy
        self._desk.typed = self._listing.steady
        self._orphans = {record.interrupt_id for record in self.book.open}
        self._desk.serve()
        # Asked after everything that happens to the run, and never true.
        self._watch = asyncio.create_task(workflow.wait_condition(self._desk.moves.note))
        workflow.set_query_handler(names.QUERY_BOOK, self._query_book)

    # What a pipeline says

    async def ask(self, gate: Gate[T], *, node: str | None = None) -> Answered[T]:
        """
        Open the gate and wait for its answer.

        `node` names the place in the pipeline where it is asked, if that is
        another name than the gate's (in ADK, the node that yields it).
        Raises `GateExpiredError` at a deadline without a default and
        `GateFailedError` where a system gate is answered with a failure. When
        the pipeline stops waiting (the task is cancelled), the gate is
        superseded and a late answer is refused.
        """
        record = self._carried_over(gate) or await self._open(gate, node)
        occurrence = record.occurrence
        try:
            entry = await self._answer_to(record)
        except asyncio.CancelledError:
            if record.state == "open":
                reason = workflow.cancellation_reason()
                why = "the pipeline went another way" if reason is None else f"the run was cancelled {reason}".rstrip()
                self.book.write(Superseded(at=workflow.now(), occurrence=occurrence, reason=why))
                self._show()
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

    @overload
    async def perform(
        self,
        function: Callable[..., Awaitable[R]],
        *args: Any,
        authorised_by: "Answered[Any] | None" = None,
        state: dict[str, Any] | None = None,
        route: Route = None,
        **options: Any,
    ) -> R: ...
    @overload
    async def perform(
        self,
        function: Callable[..., R],
        *args: Any,
        authorised_by: "Answered[Any] | None" = None,
        state: dict[str, Any] | None = None,
        route: Route = None,
        **options: Any,
    ) -> R: ...
    async def perform(
        self,
        function: Callable[..., Any],
        *args: Any,
        authorised_by: "Answered[Any] | None" = None,
        state: dict[str, Any] | None = None,
        route: Route = None,
        **options: Any,
    ) -> Any:
        """
        Run a step or an effect as an activity, once for its key, and record what came of it.

        `state` is what it changes in the session's state, and `route` which way
        the pipeline goes on: both are recorded with the output, as ADK's
        `Event(state=..., route=...)` has them. `options` are those of `workflow.start_activity` (`task_queue`,
        `retry_policy`, time-outs...) and override what the declaration says.
        Raises `ActivityError` when it failed after its retries.
        """
        declaration = declaration_of(function)
        delta = None if state is None else session_delta(state)
        visit = self.book.reserve_call(declaration.name)
        if declaration.effect and self.book.ledger_id is None and not (self._listing.steady and self.book.gates):
            # Every gate brings it along. Whether one was asked is the same on replay; whether it has been listed is not.
            self._remember_ledger(await self._listing.ledger())
        call = Call.at(
            self.book.identity,
            self.branch,
            declaration.name,
            visit,
            effect=declaration.effect,
            authorised_by=authorised_by.occurrence.interrupt_id if authorised_by else None,
            ledger_id=self.book.ledger_id if declaration.effect else None,
        )
        if authorised_by is not None:
            self.book.write(Consumed(at=workflow.now(), occurrence=authorised_by.occurrence, by=call.id, key=call.key))
        with calling(call):
            handle = workflow.start_activity(
                function, args=args, activity_id=call.id, **activity_options(declaration, options)
            )
        self._calls += 1
        try:
            result, cancelled = await (seen_through(handle) if declaration.effect else awaited(handle))
        except ActivityError as failed:
            error, kind = innermost(failed)[:2000], innermost_type(failed)
            self.book.write(Performed(at=workflow.now(), call=call, outcome="failed", error=error, error_type=kind))
            raise
        finally:
            self._calls -= 1
        performed = self._performed(call, result, authorised_by)
        self.book.write(performed.model_copy(update={"state_delta": delta, "route": route}))
        if cancelled is not None:
            raise cancelled
        return result

    def upcoming(self, gate: str) -> str:
        """The interrupt id that the next `ask` of this gate will have: what a job is told to answer before it starts."""
        return self.book.next_occurrence(gate).interrupt_id

    def say(self, text: str, *, node: str | None = None) -> None:
        """Tell whoever reads the transcript something; `node` names the step that is about to run and says it."""
        branch = self.branch if node is None else self.branch.child(node, self.book.calls[node] + 1)
        self.book.write(Said(at=workflow.now(), text=text, branch=branch))

    def carry(self) -> dict[str, Any]:
        """
        The book for `workflow.continue_as_new`, compacted.

        Call it after `workflow.wait_condition(workflow.all_handlers_finished)`
        and hand it to the next execution's `Frame(carried=...)`.
        """
        return {**self.book.compacted().to_json(), UNTOLD: self._listing.carry()}

    # Opening and waiting

    async def _open(self, gate: Gate[T], node: str | None) -> GateRecord:
        occurrence = self.book.reserve(gate.name)
        place = (occurrence.gate, occurrence.visit) if node is None else (node, self.book.reserve_call(node))
        asked = OpenGate(
            workflow_id=self.book.identity.workflow_id,
            pipeline=workflow.info().workflow_type,
            occurrence=occurrence,
            branch=self.branch.child(*place),
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
        self.book.write(Asked(at=workflow.now(), occurrence=asked.occurrence, branch=asked.branch, gate=pinned))
        self._show()
        return self.book.gates[asked.occurrence.interrupt_id]

    def _pin(self, record: GateRecord, opening: Opening) -> None:
        """The gate is what was recorded, although today's code may show another."""
        self._remember_ledger(opening.ledger_id)
        if opening.gate != record.gate:
            self.book.pin(record.occurrence, opening.gate)
            self._show()

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
                self.book.write(Expired(at=workflow.now(), occurrence=record.occurrence, outcome=pinned.on_deadline))
                if pinned.on_deadline == "default":
                    self.book.write(admit_default(self.book, record, at=workflow.now()))
        self._show()
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
        name = FAILED + origin
        if len(name) > MAX_NAME:
            name = f"{FAILED}{origin[:100]}-{digest(origin)[-16:]}"
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
                    "answer": entry.value if len(said) <= MAX_ECHO else said[:MAX_ECHO],
                    "problems": [f"{path}: {message}" for path, message in problems],
                },
            )
        )

    def _carried_over(self, gate: Gate[T]) -> GateRecord | None:
        """The gate of this name that was open when the run continued as new: asking for it again goes on waiting there."""
        for record in self.book.gates.values() if self._orphans else ():
            # Perhaps answered already, in the first task of this execution.
            if record.interrupt_id in self._orphans and record.occurrence.gate == gate.name:
                self._orphans.discard(record.interrupt_id)
                self._desk.known[record.interrupt_id] = gate
                self._show()
                return record
        return None

    def _settled(self, record: GateRecord, *, fits: bool = True) -> SettleGate:
        answered = record.answered
        return SettleGate(
            workflow_id=self.book.identity.workflow_id,
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

    def _remember_ledger(self, ledger_id: str | None) -> None:
        # The first ledger that the run met is the one it relies on: another one is found out when an effect is called.
        if self.book.ledger_id is None:
            self.book.ledger_id = ledger_id

    def _performed(self, call: Call, result: Any, authorised_by: Answered[Any] | None) -> Performed:
        output, output_digest = kept(result)
        receipt = None
        if call.effect:
            record = self.book.gates.get(call.authorised_by or "")
            receipt = Receipt.seal(
                self.book.head,
                kind="effect",
                at=workflow.now(),
                frame=self.book.frame,
                occurrence=record.fact if record else None,
                branch=call.branch,
                responder=authorised_by.receipt.responder if authorised_by else None,
                effect=EffectFact(
                    state=EffectState.PERFORMED,
                    name=call.name,
                    key=call.key,
                    receipt={"result_digest": output_digest},
                ),
            )
        return Performed(
            at=workflow.now(),
            call=call,
            output=output,
            output_digest=output_digest,
            receipt=receipt,
        )

    def _show(self) -> None:
        """Temporal's own UI shows the open gates and how to answer them; this costs no event."""
        workflow.set_current_details(describe(self.book))

    # The end of a run

    def opened(self, args: Sequence[Any], said: OpeningWord | None = None) -> None:
        """The run begins, with these arguments and what its opener said (called by the plugin's interceptor)."""
        if self.book.entries or self.book.dropped:
            return
        given, _ = kept(list(args) if len(args) != 1 else args[0])
        word = said or OpeningWord()
        pipeline = workflow.info().workflow_type
        self.book.write(Opened(at=workflow.now(), pipeline=pipeline, input=given, text=word.text, note=word.note))

    async def handed_over(self) -> None:
        """This execution ends and the run goes on in another: nothing is to be left untold, or half admitted."""
        self._desk.held = "the run is about to continue as new" if self._listing.steady else ""
        if self._listing.busy or not workflow.all_handlers_finished():
            # Not otherwise: what is admitted from now on is not in the book that was carried.
            await self.settled()

    async def settled(self) -> None:
        """Wait until every handler has ended and every gate is listed as it stands."""
        await workflow.wait_condition(lambda: not self._listing.busy and workflow.all_handlers_finished())

    async def finish(self, standing: Standing, *, reason: str | None = None, output: Any = None) -> None:
        """
        The run is over: refuse what still comes, let handlers end, archive (called by the plugin's interceptor).

        Nothing is lost after an OK: whatever was admitted before is in the
        book, and whatever comes later is refused `frame_closed`.
        """
        shown, _ = kept(output)
        self._desk.closing = self._listing.steady
        self.book.write(Closed(at=workflow.now(), standing=standing, reason=reason, output=shown))
        self._show()
        await self.settled()
        closing = CloseRun(
            workflow_id=self.book.identity.workflow_id,
            first_execution_run_id=self.book.identity.first_execution_run_id,
            pipeline=workflow.info().workflow_type,
            standing=standing,
            at=workflow.now(),
            reason=reason,
            book=self.book.to_json(),
        )
        await self._listing.closed(closing)
        # What woke in between must end before the run does: a local activity that is cut off holds its task for 10 s.
        await self.settled()

    def _query_book(self, part: int = 0) -> dict[str, Any]:
        return book_part(self.book, part).model_dump(mode="json")


def hosted() -> Frame | None:
    """The frame of the workflow that is running, if it hosts one."""
    owner = getattr(workflow.get_query_handler(names.QUERY_BOOK), "__self__", None)
    return owner if isinstance(owner, Frame) else None
