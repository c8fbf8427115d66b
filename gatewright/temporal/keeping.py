"""Keeping the store's listing true to Temporal: archives, runs that ended behind its back, and the index anew."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta

from temporalio.client import WorkflowExecutionStatus

from gatewright.protocol.book import Book
from gatewright.protocol.identity import Standing
from gatewright.store import GateRow, RunRecord, SessionKey

from . import names
from .errors import NoWorkerError, UnknownRunError
from .index import CloseRun, archive_run
from .reading import STANDING, RunReader, close, now
from .views import GateView, gates_page


class IndexKeeper(RunReader):
    """What can be written about runs from outside, because Temporal says so."""

    async def reindex(self, query: str | None = None) -> int:
        """Rebuild the index from Temporal, run by run; how many runs were read. `query` narrows Temporal's list."""
        count = 0
        async for listed in self.client.list_workflows(query or f"{names.ATTRIBUTE_PIPELINE} IS NOT NULL"):
            if listed.status is WorkflowExecutionStatus.CONTINUED_AS_NEW:
                continue
            await self._reindex(
                listed.id, listed.workflow_type, listed.task_queue, listed.status, listed.start_time, listed.close_time
            )
            count += 1
        return count

    async def _reindex(
        self,
        workflow_id: str,
        pipeline: str,
        task_queue: str,
        status: WorkflowExecutionStatus | None,
        opened_at: datetime,
        closed_at: datetime | None,
    ) -> None:
        try:
            book = await self._book(workflow_id)
        except NoWorkerError:
            book = None
        if await asyncio.to_thread(self.store.run, workflow_id) is None:
            session, number = SessionKey.of_workflow(workflow_id)
            await asyncio.to_thread(
                self.store.register_run,
                RunRecord(
                    workflow_id=workflow_id,
                    session=session,
                    number=number,
                    opening_id=f"reindex:{workflow_id}",
                    pipeline=pipeline,
                    task_queue=task_queue,
                    standing="open",
                    first_execution_run_id=book.identity.first_execution_run_id if book else None,
                    opened_at=opened_at,
                ),
            )
        if book is not None:
            rows = [row_of(view, workflow_id, pipeline) for view in gates_page(book).gates]
            await asyncio.to_thread(self.store.replace_index, workflow_id, rows)
        if status is not None and status is not WorkflowExecutionStatus.RUNNING:
            await self._archive(workflow_id, STANDING.get(status, Standing.FAILED), None, closed_at or now(), book)

    async def _catch_up(
        self, workflow_id: str, status: WorkflowExecutionStatus | None, closed_at: datetime | None
    ) -> None:
        standing = STANDING.get(status, Standing.FAILED) if status else Standing.FAILED
        book: Book | None = None
        with suppress(NoWorkerError):
            book = await self._book(workflow_id)
        await self._archive(workflow_id, standing, None, closed_at or now(), book)

    async def _archive(
        self, workflow_id: str, standing: Standing, reason: str | None, at: datetime, book: Book | None
    ) -> None:
        if book is None:
            await asyncio.to_thread(
                self.store.close_run, workflow_id, standing=standing.value, at=at, reason=reason, archive=None
            )
            return
        close(book, standing, reason=reason, at=at)
        closing = CloseRun(
            workflow_id=workflow_id,
            first_execution_run_id=book.identity.first_execution_run_id,
            pipeline="",
            standing=standing,
            at=at,
            reason=reason,
            book=book.to_json(),
        )
        await asyncio.to_thread(archive_run, self.store, closing)

    async def still_open(self, record: RunRecord) -> bool:
        """Whether a run that the store takes for open is so; one that ended behind its back is listed as it ended."""
        try:
            described = await self._reach(self.client.get_workflow_handle(record.workflow_id).describe())
        except UnknownRunError:
            # Allocated and never started: its opener died in between, or is about to start it.
            if record.standing == "allocated" and now() - record.opened_at < timedelta(minutes=1):
                return True
            await asyncio.to_thread(
                self.store.close_run, record.workflow_id, standing="failed", at=now(), reason="it was never started"
            )
            return False
        if described.status is WorkflowExecutionStatus.RUNNING:
            return True
        await self._catch_up(record.workflow_id, described.status, described.close_time)
        return False


def row_of(view: GateView, workflow_id: str, pipeline: str) -> GateRow:
    """The index row of a gate that a run told about."""
    answer = view.answer
    return GateRow(
        workflow_id=workflow_id,
        interrupt_id=view.interrupt_id,
        gate=view.gate,
        visit=view.visit,
        kind=view.kind.value,
        state=view.state,
        pipeline=pipeline,
        branch=view.branch,
        message=view.message or "",
        payload=view.payload,
        response_schema=view.response_schema,
        digest=view.digest,
        dangerous=view.policy.dangerous,
        invited=view.policy.invited,
        opened_at=view.opened_at,
        deadline=view.deadline,
        on_deadline=view.on_deadline,
        default_response=view.default,
        closed_at=view.closed_at,
        answer_id=answer.answer_id if answer else None,
        principal=answer.principal if answer else None,
        channel=answer.channel if answer else None,
        response=answer.value if answer else None,
        receipt_digest=answer.receipt if answer else None,
        refusals=view.refusals,
    )
