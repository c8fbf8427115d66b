"""
Whoever answers: start, list, get, answer, watch, cancel and abandon runs.

An answer goes as an update, whose reply is the verdict. Where no worker is
there to judge it, it is left with Temporal as a signal under the same answer
id, so that it survives a restart of the server and counts once.
"""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4  # noqa: TID251 - a client mints ids

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from gatewright.protocol.admission import Admitted, Pending, Repeated, Verdict, admit
from gatewright.protocol.answer import Answer, Evidence, Message
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Objection, Refusal, Refused
from gatewright.protocol.identity import Standing
from gatewright.store import RUN_OPEN, RefusalRow, Store, StoreError

from . import names
from .errors import NoWorkerError, ServerUnavailableError, UnknownRunError
from .reading import empty_book, now, unreachable
from .starting import RunOpener
from .views import Delivered

logger = logging.getLogger(__name__)

Ruling = Admitted | Repeated | Pending | Refused | Delivered
"""What `GateClient.answer` returns: a verdict, or that there is none yet."""

_VERDICT: TypeAdapter[Admitted | Repeated | Pending | Refused] = TypeAdapter(Verdict)

# The run's task fails, or it has had its 10 updates in flight or 2,000 altogether: signals still come through.
_NO_VERDICT = {
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.RESOURCE_EXHAUSTED,
}


# Nobody has judged it: the run was just going on, or the worker let the update lie (Temporal's own word for that).
_AGAIN = {names.ERROR_BUSY, "UnprocessedUpdate"}


class GateClient(RunOpener):
    """
    The gates of the runs behind one Temporal client, listed by one store.

    `patience` is how long an answer waits for a verdict before it is left as a
    signal.
    """

    def __init__(
        self,
        client: Client,
        store: Store,
        *,
        task_queue: str = "gatewright",
        patience: timedelta = timedelta(seconds=5),
    ) -> None:
        super().__init__(client, store, task_queue=task_queue, patience=patience)

    # Answering

    async def answer(
        self, workflow_id: str, message: Message | Answer, *, signal: bool = False, patience: timedelta | None = None
    ) -> Ruling:
        """
        Say something to a run and return what was ruled on it.

        `Delivered` means that it lies in Temporal and nobody has judged it yet.
        With `signal=True` it goes as a signal from the start and the verdict is
        read back. Raises `UnknownRunError` and `ServerUnavailableError`; a
        refusal that the run cannot record is recorded in the store.
        """
        said = Message.of(message) if isinstance(message, Answer) else message
        wait = patience or self._patience
        size, unsendable = _measure(workflow_id, said)
        if unsendable is not None:
            await self._record_refusal(workflow_id, unsendable)
            return unsendable
        body = said.model_dump(mode="json")
        if signal:
            return await self._signal(workflow_id, said, body, wait, why="it was sent as a signal")
        handle = self.client.get_workflow_handle(workflow_id)
        ends = asyncio.get_running_loop().time() + wait.total_seconds()
        while True:
            try:
                raw = await handle.execute_update(names.ANSWER, body, id=uuid4().hex, rpc_timeout=wait)
                return _VERDICT.validate_python(raw)
            except WorkflowUpdateFailedError as failed:
                kind = failed.cause.type if isinstance(failed.cause, ApplicationError) else None
                left = ends - asyncio.get_running_loop().time()
                if kind in _AGAIN and left > 0:
                    await asyncio.sleep(0.05)
                    continue
                if kind in _AGAIN | {names.ERROR_BY_SIGNAL}:
                    rest = timedelta(seconds=max(left, 0))
                    return await self._signal(workflow_id, said, body, rest, why=str(failed.cause))
                return await self._turned_away(workflow_id, said, failed)
            except WorkflowUpdateRPCTimeoutOrCancelledError:
                return await self._signal(workflow_id, said, body, timedelta(0), why="no worker judged it in time")
            except RPCError as failed:
                if failed.status is RPCStatusCode.NOT_FOUND:
                    return await self._closed(workflow_id, said, size)
                left = ends - asyncio.get_running_loop().time()
                spent = "limit on the total number" in failed.message
                if failed.status is RPCStatusCode.FAILED_PRECONDITION and not spent and left > 0:
                    # The task that carried it was thrown away (something else came in at that moment): say it again.
                    await asyncio.sleep(min(0.1, left))
                    continue
                if failed.status in _NO_VERDICT:
                    rest = timedelta(seconds=max(left, 0))
                    return await self._signal(workflow_id, said, body, rest, why=failed.message)
                raise ServerUnavailableError(unreachable(failed)) from failed

    async def judge(self, workflow_id: str, message: Message | Answer) -> Ruling:
        """What would be ruled on this message now; nothing is sent and nothing recorded."""
        said = Message.of(message) if isinstance(message, Answer) else message
        size, unsendable = _measure(workflow_id, said)
        if unsendable is not None:
            return unsendable
        evidence = Evidence(size=size, door="query")
        described = await self._described(workflow_id)
        if described is None or described.status is not WorkflowExecutionStatus.RUNNING:
            return admit(await self._closed_book(workflow_id), said, evidence, at=now())
        raw = await self._query(workflow_id, names.QUERY_JUDGE, said.model_dump(mode="json"))
        return _VERDICT.validate_python(raw)

    async def _signal(
        self, workflow_id: str, said: Message, body: dict[str, Any], wait: timedelta, *, why: str
    ) -> Ruling:
        attempt = said.attempt or uuid4().hex
        try:
            handle = self.client.get_workflow_handle(workflow_id)
            await handle.signal(names.ANSWER, {**body, "attempt": attempt}, rpc_timeout=self._patience)
        except RPCError as failed:
            if failed.status is RPCStatusCode.NOT_FOUND:
                return await self._closed(workflow_id, said, 0)
            raise ServerUnavailableError(unreachable(failed)) from failed
        ids = tuple(answer.name for answer in said.answers)
        ends = asyncio.get_running_loop().time() + wait.total_seconds()
        while wait and ids:
            with suppress(NoWorkerError, UnknownRunError):
                content = said.answers[0].content_digest
                raw = await self._query(workflow_id, names.QUERY_VERDICT, ids[0], content, attempt, patience=wait)
                if raw is not None:
                    return _VERDICT.validate_python(raw)
            if asyncio.get_running_loop().time() >= ends:
                break
            await asyncio.sleep(0.1)
        if trouble := await self._trouble(workflow_id):
            why = f"the worker cannot go on with the run: {trouble}"
        reason = f"{why}; the answer lies in Temporal as a signal and is judged once when a worker takes it"
        return Delivered(answer_ids=ids, reason=reason)

    async def _turned_away(self, workflow_id: str, said: Message, failed: WorkflowUpdateFailedError) -> Ruling:
        cause = failed.cause
        if isinstance(cause, ApplicationError) and cause.type == names.ERROR_REFUSED:
            ruling = _VERDICT.validate_python(cause.details[0])
            await self._record_refusal(workflow_id, ruling)
            return ruling
        if isinstance(cause, ApplicationError) and cause.type == "AcceptedUpdateCompletedWorkflow":
            # The run ended while the answer was on its way in: its book knows whether it counted.
            return await self._closed(workflow_id, said, 0)
        if "expected but not found" in str(cause):
            msg = f"{workflow_id} hosts no Gatewright frame, so it takes no answers ({cause})"
            raise UnknownRunError(msg) from failed
        raise NoWorkerError(str(cause)) from failed

    async def _closed(self, workflow_id: str, said: Message, size: int) -> Ruling:
        """The ruling on an answer that Temporal did not take, because the run is over or never was."""
        described = await self._described(workflow_id)
        if described is not None and described.status is WorkflowExecutionStatus.RUNNING:
            # It continued as new between our call and this look: say it to the execution that runs now.
            return await self.answer(workflow_id, said)
        if described is None and await asyncio.to_thread(self.store.run, workflow_id) is None:
            await self._record_refusal(workflow_id, _never(said, f"there is no run {workflow_id}"))
            msg = f"there is no run {workflow_id}, neither in Temporal nor in the archive. `gatewright gates` lists what is open."
            raise UnknownRunError(msg)
        record = await asyncio.to_thread(self.store.run, workflow_id)
        if described is not None and record is not None and record.standing in RUN_OPEN:
            # It ended behind the store's back.
            await self._catch_up(workflow_id, described.status, described.close_time)
        evidence = Evidence(size=size, door="client")
        ruling = admit(await self._closed_book(workflow_id), said, evidence, at=now())
        await self._record_refusal(workflow_id, ruling)
        return ruling

    async def _record_refusal(self, workflow_id: str, ruling: Ruling) -> None:
        if not isinstance(ruling, Refused):
            return
        first = ruling.objections[0]
        row = RefusalRow(
            workflow_id=workflow_id,
            interrupt_id=first.interrupt_id,
            answer_id=first.answer_id,
            refusal=first.refusal.value,
            reason=first.reason,
            principal=ruling.principal or None,
            channel=ruling.channel,
            at=ruling.at,
            recorded_by="client",
            detail=ruling.model_dump(mode="json"),
        )
        try:
            await asyncio.to_thread(self.store.record_refusal, row)
        except StoreError as away:
            logger.warning("a refusal was not recorded, because the store is away: %s", away)

    # Ending

    async def cancel(self, workflow_id: str, *, reason: str) -> None:
        """
        Ask the run to end in its own way (its cleanup runs, its gates close).

        `UnknownRunError` where no such run is open.
        """
        handle = self.client.get_workflow_handle(workflow_id)
        # Temporal takes the cancellation of a run that was cancelled before, and says nothing.
        described = await self._reach(handle.describe(), running=workflow_id)
        if described.status is not WorkflowExecutionStatus.RUNNING:
            status = described.status.name.lower() if described.status else "over"
            msg = f"{workflow_id} is not running: it is {status}"
            raise UnknownRunError(msg)
        await self._reach(handle.cancel(reason=reason), running=workflow_id)

    async def abandon(self, workflow_id: str, *, reason: str) -> None:
        """End the run at once, whether or not a worker lives: nothing of it runs any more, its archive is kept."""
        book: Book | None = None
        with suppress(NoWorkerError):
            book = await self._book(workflow_id)
        handle = self.client.get_workflow_handle(workflow_id)
        await self._reach(handle.terminate(reason=reason), running=workflow_id)
        await self._archive(workflow_id, Standing.ABANDONED, reason, now(), book)


def _measure(workflow_id: str, said: Message) -> tuple[int, Refused | None]:
    """The message's size in bytes, and the refusal of one that cannot even be sent: too large, or not JSON."""
    try:
        size = len(said.model_dump_json().encode())
    except (PydanticSerializationError, ValueError):
        size = 0
    ruling = admit(empty_book(workflow_id), said, Evidence(size=size, door="client"), at=now())
    if isinstance(ruling, Refused) and ruling.refusal in {Refusal.TOO_LARGE, Refusal.INVALID}:
        return size, ruling
    return size, None


def _never(said: Message, reason: str) -> Refused:
    first = said.answers[0] if said.answers else Answer()
    objection = Objection(
        refusal=Refusal.UNKNOWN_GATE,
        reason=reason,
        interrupt_id=first.interrupt_id or None,
        answer_id=first.answer_id or None,
    )
    return Refused(at=now(), objections=(objection,), principal=first.principal, channel=first.channel, door="client")
