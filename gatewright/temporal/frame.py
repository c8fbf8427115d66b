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
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from gatewright.effects.declare import OnFailure, declaration_of
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Closed, Opened, Said
from gatewright.protocol.gate import Gate
from gatewright.protocol.identity import BranchPath, FrameIdentity, Standing, session_run

from . import names
from .asking import Answered, Asking
from .calls import Route, kept, session_delta
from .deciding import perform
from .desk import Desk
from .index import CloseRun
from .listing import Listing
from .opening import OpeningWord
from .performing import Performing, Wanted
from .views import book_part

T = TypeVar("T")
R = TypeVar("R")

UNTOLD = "untold"
"""Where a carried book holds what the index is still to be told."""

NO_SKIP: Any = object()
"""That the pipeline cannot do without a step or effect, so that nobody is offered to skip it."""

RESET = "reset"
"""Where a carried book says that an execution before it repeated what another had done (`temporal workflow reset`)."""


class Frame:
    """
    One run's gates, calls and record, served by Temporal.

    `name` is the outermost component of every branch (the workflow's type by
    default), `gates` the names of gates that the pipeline may come to, and
    `carried` the book of the execution that continued as new. When a step or
    effect has failed for good, a person is asked (`on_failure="ask"`) or the run
    fails (`"fail"`); `operators` are the principals who may answer that and say
    whether an effect happened (empty: anyone).
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        gates: Iterable[str] = (),
        carried: Any = None,
        on_failure: OnFailure = "ask",
        operators: Iterable[str] = (),
    ) -> None:
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
        self._listing = Listing()
        self._listing.carried((carried or {}).get(UNTOLD, ()))
        self._on_failure = on_failure
        self._performing = Performing(
            self.book,
            self.branch,
            self._listing,
            self.ask,
            operators=tuple(operators),
            reset=_repeats(info, carried),
        )
        self._asking = Asking(self.book, self.branch, self._desk, self._listing, self._performing.remember_ledger)
        self._desk.busy = lambda: bool(self._performing.running) or self._listing.busy
        self._desk.typed = self._listing.steady
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
        return await self._asking.ask(gate, node)

    @overload
    async def perform(
        self,
        function: Callable[..., Awaitable[R]],
        *args: Any,
        authorised_by: "Answered[Any] | None" = None,
        state: dict[str, Any] | None = None,
        route: Route = None,
        on_failure: OnFailure | None = None,
        on_skip: Any = NO_SKIP,
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
        on_failure: OnFailure | None = None,
        on_skip: Any = NO_SKIP,
        **options: Any,
    ) -> R: ...
    async def perform(
        self,
        function: Callable[..., Any],
        *args: Any,
        authorised_by: "Answered[Any] | None" = None,
        state: dict[str, Any] | None = None,
        route: Route = None,
        on_failure: OnFailure | None = None,
        on_skip: Any = NO_SKIP,
        **options: Any,
    ) -> Any:
        """
        Run a step or an effect as an activity, once for its key, and record what came of it.

        `state` is what it changes in the session's state, and `route` which way
        the pipeline goes on: both are recorded with the output, as ADK's
        `Event(state=..., route=...)` has them. `options` are those of `workflow.start_activity` (`task_queue`,
        `retry_policy`, time-outs...) and override what the declaration says.

        When it has failed for good, the gate `failed:<name>` asks whether to
        retry, to abort or, where `on_skip` gives the value to go on with, to
        skip. With `on_failure="fail"` (here, where it is declared, or for the
        frame, in this order) `ActivityError` is raised instead. An effect of
        which nobody knows whether it happened always asks, at the gate
        `blocked:<name>`. Raises `CallAbortedError` where the answer is abort.
        """
        declaration = declaration_of(function)
        wanted = Wanted(
            function,
            declaration,
            args,
            authorised_by=authorised_by,
            delta=None if state is None else session_delta(state),
            route=route,
            on_failure=on_failure or declaration.on_failure or self._on_failure,
            on_skip=() if on_skip is NO_SKIP else (on_skip,),
            options=options,
        )
        return await perform(self._performing, wanted)

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
        and hand it to the next execution's `Frame(carried=...)`. Steps and effects
        have to be over by then; gates may be open.
        """
        carried = {**self.book.compacted().to_json(), UNTOLD: self._listing.carry()}
        return carried | {RESET: True} if self._performing.reset else carried

    # The end of a run

    def opened(self, args: Sequence[Any], said: OpeningWord | None = None) -> None:
        """The run begins, with these arguments and what its opener said (called by the plugin's interceptor)."""
        if self.book.entries or self.book.dropped:
            return
        given, _ = kept(list(args) if len(args) != 1 else args[0])
        word = said or OpeningWord()
        pipeline = workflow.info().workflow_type
        self.book.write(Opened(at=workflow.now(), pipeline=pipeline, input=given, text=word.text, note=word.note))

    def refuse_cron(self) -> None:
        """
        Raise `ApplicationError` where Temporal starts the workflow anew by a cron schedule (called by the plugin's interceptor).

        Its executions are one run to Temporal, so their calls have the same keys:
        each effect would be done by the first of them and by no other.
        """
        if workflow.info().cron_schedule and workflow.patched(names.PATCH_NO_CRON):
            msg = (
                "a run has keys for one execution of its pipeline, and a cron schedule repeats it under the same keys: "
                "start a run each time, with a Temporal Schedule"
            )
            raise ApplicationError(msg, type="CronSchedule", non_retryable=True)

    async def handed_over(self) -> None:
        """
        This execution ends and the run goes on in another: nothing is to be left untold, or half admitted.

        Raises `RuntimeError` while a call is not over: the next execution would
        make it again, under another key.
        """
        if self._performing.pending and workflow.patched(names.PATCH_HANDED_OVER):
            msg = (
                f"the run cannot continue as new, because {', '.join(self._performing.pending)} is not over, and the next "
                "execution would make that call under another key: await it before workflow.continue_as_new, or cancel its "
                "task and await that"
            )
            raise RuntimeError(msg)
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
        self._asking.show()
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


def _repeats(info: workflow.Info, carried: Any) -> bool:
    """Whether the execution begins anew what another has begun: a reset, a retry of the workflow, or one that was handed no book."""
    anew = info.attempt > 1 or (info.continued_run_id is not None and carried is None)
    return anew or info.original_execution_run_id != info.run_id or bool((carried or {}).get(RESET))


def hosted() -> Frame | None:
    """The frame of the workflow that is running, if it hosts one."""
    owner = getattr(workflow.get_query_handler(names.QUERY_BOOK), "__self__", None)
    return owner if isinstance(owner, Frame) else None
