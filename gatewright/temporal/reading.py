"""Reading runs: from the run itself, from the index where no worker answers, from the archive once it is over."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError, RPCStatusCode

from gatewright.protocol.book import Book
from gatewright.protocol.canonical import plain
from gatewright.protocol.entries import Closed
from gatewright.protocol.identity import FrameIdentity, FrameState, Standing, session_run
from gatewright.store import RUN_CLOSED, GateRow, RunRecord, Store, StoreError

from . import names
from .errors import NoWorkerError, ServerUnavailableError, UnknownRunError, innermost
from .underway import calls_under_way
from .views import (
    AnswerView,
    BookPart,
    GatesPage,
    GateView,
    PolicyView,
    ReceiptsPage,
    RefusalsView,
    RunView,
    TranscriptPage,
    gates_page,
    receipts_page,
    refusals_view,
    transcript_page,
)

T = TypeVar("T")

_AWAY = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED}

STANDING = {
    WorkflowExecutionStatus.COMPLETED: Standing.COMPLETED,
    WorkflowExecutionStatus.FAILED: Standing.FAILED,
    WorkflowExecutionStatus.TIMED_OUT: Standing.FAILED,
    WorkflowExecutionStatus.CANCELED: Standing.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: Standing.ABANDONED,
}


class RunReader:
    """What can be read of the runs behind one Temporal client, listed by one store."""

    client: Client
    store: Store

    def __init__(self, client: Client, store: Store, *, task_queue: str, patience: timedelta) -> None:
        self.client = client
        self.store = store
        self._task_queue = task_queue
        self._patience = patience

    async def list(
        self,
        *,
        run: str | None = None,
        states: Collection[str] | None = ("open",),
        search: str | None = None,
        limit: int = 100,
    ) -> list[GateRow]:
        """Gates from the index, newest first; `states=None` lists all of them."""
        return await asyncio.to_thread(self.store.gates, run=run, states=states, search=search, limit=limit)

    async def get(self, workflow_id: str) -> RunView:
        """
        One run, its standing, its gates and its calls under way.

        Read from the run itself; where no worker answers, from the index, and
        `source` says so; once it is over, also from its archive.
        """
        described = await self._described(workflow_id)
        if described is None:
            return await self._from_archive(workflow_id)
        status = described.status.name.lower() if described.status else "unknown"
        running = described.status is WorkflowExecutionStatus.RUNNING
        view = RunView(
            workflow_id=workflow_id,
            pipeline=described.workflow_type,
            status=status,
            opened_at=described.start_time,
            closed_at=described.close_time,
            calls=await calls_under_way(self.client, described) if running else (),
        )
        result, failure = (None, None) if running else await self._outcome(workflow_id)
        # Looked at first, because a query of a run in trouble waits in vain for as long as it may.
        trouble = await self._trouble(workflow_id, described) if running else None
        frame, gates = None, None
        with suppress(NoWorkerError):
            if not trouble:
                frame, gates = await self._all_gates(workflow_id)
        if gates is None:
            rows = await asyncio.to_thread(self.store.gates, run=workflow_id, limit=1000)
            listed = tuple(_indexed(row) for row in rows)
            update = {"gates": listed, "source": "index", "result": result, "failure": failure, "trouble": trouble}
            return view.model_copy(update=update)
        return view.model_copy(update={"frame": frame, "gates": gates, "result": result, "failure": failure})

    async def gates(self, workflow_id: str) -> tuple[GateView, ...]:
        """The gates of one run, read from the run itself (or its archive), open ones first."""
        return (await self._all_gates(workflow_id))[1]

    async def transcript(self, workflow_id: str, after: int = 0) -> TranscriptPage:
        """One page of a run's transcript from cursor `after` on."""
        return await self._view(
            workflow_id, names.QUERY_TRANSCRIPT, TranscriptPage, lambda book: transcript_page(book, after), after
        )

    async def told(self, run: RunRecord, after: int = 0) -> TranscriptPage:
        """As `transcript`, but of a run that is over from its archive, which needs no worker."""
        if run.standing in RUN_CLOSED:
            archived = await asyncio.to_thread(self.store.archive, run.workflow_id)
            if archived is not None:
                return transcript_page(Book.from_json(archived), after)
        return await self.transcript(run.workflow_id, after)

    async def running(self, workflow_id: str) -> bool:
        """Whether Temporal says that the run goes on."""
        described = await self._described(workflow_id)
        return described is not None and described.status is WorkflowExecutionStatus.RUNNING

    async def receipts(self, workflow_id: str, after: int = 0) -> ReceiptsPage:
        """One page of a run's receipts, those with a number greater than `after`."""
        return await self._view(
            workflow_id, names.QUERY_RECEIPTS, ReceiptsPage, lambda book: receipts_page(book, after), after
        )

    async def refusals(self, workflow_id: str) -> RefusalsView:
        """What the run refused and could not read; what no run could record is in `Store.refusals`."""
        return await self._view(workflow_id, names.QUERY_REFUSALS, RefusalsView, refusals_view)

    async def watch(
        self, workflow_id: str, after: int = 0, *, every: timedelta = timedelta(seconds=0.5)
    ) -> AsyncIterator[dict[str, Any]]:
        """
        The transcript's entries as they come, until the run is over.

        A worker that is away is waited for; `UnknownRunError` where there is no
        such run.
        """
        while True:
            try:
                page = await self.transcript(workflow_id, after)
            except NoWorkerError:
                described = await self._described(workflow_id)
                if described is None or described.status is not WorkflowExecutionStatus.RUNNING:
                    return
                await asyncio.sleep(every.total_seconds())
                continue
            for entry in page.entries:
                yield entry
            after = page.next
            if page.closed:
                return
            if not page.entries:
                await asyncio.sleep(every.total_seconds())
                described = await self._described(workflow_id)
                if described is None or described.status is not WorkflowExecutionStatus.RUNNING:
                    rest = await self.transcript(workflow_id, after)
                    for entry in rest.entries:
                        yield entry
                    return

    # Reaching Temporal

    async def _described(self, workflow_id: str) -> Any:
        try:
            return await self._reach(self.client.get_workflow_handle(workflow_id).describe())
        except UnknownRunError:
            return None

    async def _outcome(self, workflow_id: str) -> tuple[Any, str | None]:
        try:
            return plain(await self.client.get_workflow_handle(workflow_id).result()), None
        except WorkflowFailureError as failed:
            return None, innermost(failed.cause)

    async def _book(self, workflow_id: str) -> Book:
        """The whole book, piece by piece; begun anew where the run wrote into it in between."""
        while True:
            first = BookPart.model_validate(await self._query(workflow_id, names.QUERY_BOOK, 0))
            rest = [
                BookPart.model_validate(await self._query(workflow_id, names.QUERY_BOOK, part))
                for part in range(1, first.parts)
            ]
            if all(part.stamp == first.stamp for part in rest):
                return Book.from_json(json.loads(first.text + "".join(part.text for part in rest)))

    async def _closed_book(self, workflow_id: str) -> Book:
        """The book of a run that is over: from its archive, from itself, or (nothing is known any more) an empty one."""
        with suppress(StoreError):
            archived = await asyncio.to_thread(self.store.archive, workflow_id)
            if archived is not None:
                return Book.from_json(archived)
        described = await self._described(workflow_id)
        status = described.status if described else None
        standing = STANDING.get(status, Standing.FAILED) if status else Standing.FAILED
        ended = described.close_time if described else None
        with suppress(NoWorkerError, UnknownRunError):
            return close(await self._book(workflow_id), standing, at=ended or now())
        with suppress(StoreError):
            record = await asyncio.to_thread(self.store.run, workflow_id)
            if record is not None and record.standing in set(Standing):
                standing = Standing(record.standing)
        return close(empty_book(workflow_id), standing, at=ended or now())

    async def _from_archive(self, workflow_id: str) -> RunView:
        record = await asyncio.to_thread(self.store.run, workflow_id)
        archived = await asyncio.to_thread(self.store.archive, workflow_id)
        if record is None:
            msg = f"there is no run {workflow_id}, neither in Temporal nor in the archive"
            raise UnknownRunError(msg)
        view = RunView(
            workflow_id=workflow_id,
            pipeline=record.pipeline,
            status=record.standing,
            opened_at=record.opened_at,
            closed_at=record.closed_at,
            source="archive",
            failure=record.reason,
        )
        if archived is None:
            return view
        book = Book.from_json(archived)
        return view.model_copy(update={"frame": book.frame, "gates": gates_page(book).gates})

    async def _all_gates(self, workflow_id: str) -> tuple[FrameState, tuple[GateView, ...]]:
        gates: list[GateView] = []
        start = 0
        while True:
            at = start
            page = await self._view(workflow_id, names.QUERY_GATES, GatesPage, lambda book: gates_page(book, at), at)  # noqa: B023 - called at once
            gates += page.gates
            if page.next is None:
                return page.frame, tuple(sorted(gates, key=lambda gate: gate.state != "open"))
            start = page.next

    async def _view(self, workflow_id: str, query: str, view: type[T], render: Callable[[Book], T], *args: Any) -> T:
        """A view from the run, or, once Temporal has forgotten it, from its archive."""
        try:
            raw = await self._query(workflow_id, query, *args)
        except (UnknownRunError, NoWorkerError):
            archived = await asyncio.to_thread(self.store.archive, workflow_id)
            if archived is None:
                raise
            return render(Book.from_json(archived))
        return TypeAdapter(view).validate_python(raw)

    async def _query(self, workflow_id: str, query: str, *args: Any, patience: timedelta | None = None) -> Any:
        handle: WorkflowHandle[Any, Any] = self.client.get_workflow_handle(workflow_id)
        try:
            return await handle.query(query, args=args, rpc_timeout=patience or self._patience)
        except WorkflowQueryFailedError as failed:
            if "expected but not found" in str(failed):
                msg = f"{workflow_id} hosts no Gatewright frame"
                raise UnknownRunError(msg) from failed
            raise NoWorkerError(str(failed)) from failed
        except RPCError as failed:
            if failed.status is RPCStatusCode.NOT_FOUND:
                msg = f"there is no run {workflow_id}"
                raise UnknownRunError(msg) from failed
            if failed.status is RPCStatusCode.UNAVAILABLE:
                raise ServerUnavailableError(unreachable(failed)) from failed
            trouble = await self._trouble(workflow_id)
            msg = (
                f"the worker cannot go on with {workflow_id}: {trouble}"
                if trouble
                else f"no worker answered for {workflow_id} ({failed.message}). Is one running on its task queue?"
            )
            raise NoWorkerError(msg) from failed

    async def _trouble(self, workflow_id: str, described: WorkflowExecutionDescription | None = None) -> str | None:
        """Why the run's last workflow task failed, if that is how it stands; None where nothing failed."""
        try:
            if described is None:
                described = await self._reach(self.client.get_workflow_handle(workflow_id).describe())
            if described.raw_description.pending_workflow_task.attempt <= 1:
                return None
            history = await self.client.workflow_service.get_workflow_execution_history_reverse(
                GetWorkflowExecutionHistoryReverseRequest(
                    namespace=self.client.namespace,
                    execution=WorkflowExecution(workflow_id=workflow_id, run_id=described.run_id),
                    maximum_page_size=20,
                )
            )
        except (RPCError, UnknownRunError, ServerUnavailableError):
            return None
        for event in history.history.events:  # the latest first
            if event.HasField("workflow_task_completed_event_attributes"):
                break
            if event.HasField("workflow_task_failed_event_attributes"):
                failure = event.workflow_task_failed_event_attributes.failure
                cause = failure.cause.message if failure.HasField("cause") else ""
                return f"{failure.message}{f' ({cause})' if cause else ''}"[:1000]
        # A task that merely timed out, because its worker died, is no trouble: the next worker takes it.
        return None

    async def _reach(self, call: Awaitable[T], *, running: str | None = None) -> T:
        try:
            return await call
        except RPCError as failed:
            if failed.status is RPCStatusCode.NOT_FOUND:
                msg = f"{running} is not running: {failed.message}" if running else failed.message
                raise UnknownRunError(msg) from failed
            if failed.status in _AWAY:
                raise ServerUnavailableError(unreachable(failed)) from failed
            raise

    async def workers(self, task_queue: str | None = None, *, lately: timedelta | None = None) -> int:
        """How many workers have asked the task queue for workflow tasks: in the last five minutes, or within `lately`."""
        described = await self._reach(
            self.client.workflow_service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=self.client.namespace,
                    task_queue=TaskQueue(name=task_queue or self._task_queue),
                    task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
                )
            )
        )
        if lately is None:
            return len(described.pollers)
        since = (now() - lately).timestamp()
        return sum(poller.last_access_time.ToNanoseconds() / 1e9 >= since for poller in described.pollers)


def empty_book(workflow_id: str) -> Book:
    """A book that says nothing, for a run of which nothing else is known."""
    identity = FrameIdentity(namespace="", workflow_id=workflow_id, first_execution_run_id="")
    return Book(identity, run=session_run(workflow_id))


def close(book: Book, standing: Standing, *, at: datetime, reason: str | None = None) -> Book:
    """The book of a run that Temporal says is over, closed if the run itself could not do so (it was terminated)."""
    if book.standing is Standing.OPEN:
        book.write(Closed(at=at, standing=standing, reason=reason))
    return book


def _indexed(row: GateRow) -> GateView:
    """A gate as the index lists it, for when nobody can ask the run."""
    answer = None
    if row.state == "answered" and row.closed_at is not None:
        answer = AnswerView(
            answer_id=row.answer_id or "",
            principal=row.principal or "",
            channel=row.channel or "",
            at=row.closed_at,
            value=row.response,
            receipt=row.receipt_digest or "",
        )
    return GateView(
        interrupt_id=row.interrupt_id,
        gate=row.gate,
        visit=row.visit,
        branch=row.branch,
        kind=row.kind,
        state="closed" if row.state == "blocked" else row.state,
        message=row.message,
        payload=row.payload if row.state == "open" else None,
        response_schema=row.response_schema if row.state == "open" else None,
        digest=row.digest,
        policy=PolicyView(dangerous=row.dangerous, invited=row.invited),
        opened_at=row.opened_at,
        deadline=row.deadline,
        on_deadline=row.on_deadline,
        default=row.default_response,
        closed_at=row.closed_at,
        answer=answer,
        refusals=row.refusals,
    )


def unreachable(failed: RPCError) -> str:
    """What to say when the server itself does not answer."""
    return f"Temporal cannot be reached ({failed.message or failed.status.name}). Check TEMPORAL_ADDRESS and that the server runs."


def now() -> datetime:
    """The client's own clock."""
    return datetime.now(UTC)  # noqa: TID251 - a client's own clock
