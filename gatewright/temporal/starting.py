"""Opening runs: the next number of a session, allocated in the store, and the workflow that is started under it."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NoReturn
from uuid import uuid4  # noqa: TID251 - a client mints ids

from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from gatewright.protocol.canonical import digest, plain
from gatewright.store import RunRecord, SessionKey, SessionOpen, Store

from . import names
from .errors import ServerUnavailableError, SessionBusyError, SetupError, UnknownRunError
from .keeping import IndexKeeper
from .opening import OpeningWord, saying, speaking
from .reading import now, unreachable

MEMO_OPENING = "gatewright_opening"
"""The memo by which a run is known as the one that an opening made."""

_AWAY = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}


@dataclass(frozen=True)
class Started:
    """A run as `GateClient.start` found or made it; `created` is False where the opening id was known already."""

    workflow_id: str
    run: RunRecord
    created: bool


class RunOpener(IndexKeeper):
    """Opens the runs of one Temporal client, numbered by one store."""

    def __init__(self, client: Client, store: Store, *, task_queue: str, patience: timedelta) -> None:
        super().__init__(client, store, task_queue=task_queue, patience=patience)
        self._opener = speaking(client)

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
