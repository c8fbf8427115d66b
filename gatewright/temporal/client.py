"""
Whoever answers: start, list, get, answer, watch, cancel and abandon runs.

An answer goes as an update, whose reply is the verdict. Where no worker is
there to judge it, it is left with Temporal as a signal under the same answer
id, so that it survives a restart of the server and counts once.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NoReturn
from uuid import uuid4  # noqa: TID251 - a client mints ids

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from gatewright.protocol.admission import Admitted, Pending, Repeated, Verdict, admit
from gatewright.protocol.answer import Answer, Evidence, Message
from gatewright.protocol.book import Book
from gatewright.protocol.canonical import digest, plain
from gatewright.protocol.entries import Objection, Refusal, Refused
from gatewright.protocol.identity import Standing
from gatewright.store import RUN_OPEN, RefusalRow, RunRecord, SessionKey, SessionOpen, Store, StoreError

from . import names
from .errors import NoWorkerError, ServerUnavailableError, SessionBusyError, SetupError, UnknownRunError
from .keeping import IndexKeeper
from .opening import OpeningWord, saying, speaking
from .reading import empty_book, now, unreachable
from .views import Delivered

logger = logging.getLogger(__name__)

Ruling = Admitted | Repeated | Pending | Refused | Delivered
"""What `GateClient.answer` returns: a verdict, or that there is none yet."""

MEMO_OPENING = "gatewright_opening"
"""The memo by which a run is known as the one that an opening made."""

_VERDICT: TypeAdapter[Admitted | Repeated | Pending | Refused] = TypeAdapter(Verdict)

_AWAY = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
# The run's task fails, or it has had its 10 updates in flight or 2,000 altogether: signals still come through.
_NO_VERDICT = {
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.RESOURCE_EXHAUSTED,
}


# Nobody has judged it: the run was just going on, or the worker let the update lie (Temporal's own word for that).
_AGAIN = {names.ERROR_BUSY, "UnprocessedUpdate"}


@dataclass(frozen=True)
class Started:
    """A run as `GateClient.start` found or made it; `created` is False where the opening id was known already."""

    workflow_id: str
    run: RunRecord
    created: bool


class GateClient(IndexKeeper):
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
        self._opener = speaking(client)

    # Opening

    async def start(
        self,
        pipeline: str,
        input: Any = None,
        *,
        session: SessionKey | None = None,
        opening_id: str | None = None,
        on_text: Literal["refuse", "open"] = "refuse",
        task_queue: str | None = None,
        summary: str | None = None,
        word: OpeningWord | None = None,
    ) -> Started:
        """
        Open a run of `pipeline`, the next of its session.

        `word` is what its opener said, for the transcript; where there is one, it
        and not the input tells a repeated opening from another. The same
        `opening_id` finds the run that it opened before. While a run of the
        session is open, `SessionBusyError` names it and its gates
        (`on_text="open"` opens another beside it, as ADK does).
        """
        key = session or SessionKey(app=pipeline, user="user", session=uuid4().hex[:12])
        opening = opening_id or uuid4().hex
        queue = task_queue or self._task_queue
        given = input if word is None else word.model_dump(mode="json")
        record, created = await self._allocate(key, opening, pipeline, queue, given, on_text)
        if record.standing == "failed" and not record.first_execution_run_id:
            msg = f"the opening {opening!r} of {record.workflow_id} failed ({record.reason}); open it under another opening id"
            raise UnknownRunError(msg)
        if record.standing != "allocated":
            return Started(record.workflow_id, record, created=False)
        try:
            with saying(word):
                handle = await self._opener.start_workflow(
                    pipeline,
                    *([] if input is None else [input]),
                    id=record.workflow_id,
                    task_queue=record.task_queue,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    static_summary=summary,
                    memo={MEMO_OPENING: opening},
                    search_attributes=TypedSearchAttributes(
                        [
                            SearchAttributePair(SearchAttributeKey.for_keyword(names.ATTRIBUTE_PIPELINE), pipeline),
                            SearchAttributePair(SearchAttributeKey.for_keyword(names.ATTRIBUTE_SESSION), key.path),
                        ]
                    ),
                )
            first = handle.first_execution_run_id or handle.result_run_id or ""
        except WorkflowAlreadyStartedError:
            first = await self._opened_before(record, opening)
        except RPCError as refused:
            await self._not_opened(record, refused)
        await asyncio.to_thread(self.store.run_started, record.workflow_id, first_execution_run_id=first, at=now())
        return Started(record.workflow_id, record, created=created)

    async def _opened_before(self, record: RunRecord, opening: str) -> str:
        """The first execution of a run that is there already, if it was opened by this very opening."""
        described = await self._reach(self.client.get_workflow_handle(record.workflow_id).describe())
        if await described.memo_value(MEMO_OPENING, default=None) != opening:
            # Numbers are the store's, and this store does not know what another one allocated.
            reason = f"{record.workflow_id} was opened by somebody else; this store does not know Temporal's runs"
            await asyncio.to_thread(
                self.store.close_run, record.workflow_id, standing="failed", at=now(), reason=reason
            )
            msg = f"{reason}. Run `gatewright reindex`, and start again."
            raise SetupError(msg)
        # An earlier attempt got through to Temporal, and its word did not get back to us.
        return str(described.raw_description.workflow_execution_info.first_run_id)

    async def _not_opened(self, record: RunRecord, refused: RPCError) -> NoReturn:
        """Temporal did not open the run: where that is final, the session must not wait for it."""
        if refused.status in _AWAY:
            raise ServerUnavailableError(unreachable(refused)) from refused
        await asyncio.to_thread(
            self.store.close_run, record.workflow_id, standing="failed", at=now(), reason=refused.message
        )
        if refused.status is RPCStatusCode.INVALID_ARGUMENT and "earch attribute" in refused.message:
            commands = "; ".join(
                f"temporal operator search-attribute create --namespace {self.client.namespace} --name {name} --type Keyword"
                for name in (names.ATTRIBUTE_PIPELINE, names.ATTRIBUTE_SESSION)
            )
            msg = f"{refused.message}. Register what runs are listed by: {commands}"
            raise SetupError(msg) from refused
        msg = f"Temporal did not open {record.workflow_id}: {refused.message}"
        raise SetupError(msg) from refused

    async def _allocate(
        self, key: SessionKey, opening: str, pipeline: str, queue: str, given: Any, on_text: str
    ) -> tuple[RunRecord, bool]:
        """The run's number, allocated in the store; a run that ended behind the store's back is caught up with first."""
        while True:
            try:
                return await asyncio.to_thread(
                    self.store.allocate_run,
                    key,
                    opening_id=opening,
                    pipeline=pipeline,
                    task_queue=queue,
                    input_digest=digest(plain(given)),
                    at=now(),
                    refuse_if_open=on_text == "refuse",
                )
            except SessionOpen as busy:
                open_run = busy.run
                if await self.still_open(open_run):
                    waiting = await asyncio.to_thread(self.store.gates, run=open_run.workflow_id, states={"open"})
                    ids = tuple(row.interrupt_id for row in waiting)
                    raise SessionBusyError(
                        open_run.workflow_id, ids, opening=open_run.standing == "allocated"
                    ) from busy

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
