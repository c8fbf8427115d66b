"""
Local activities that keep the store's index in step with a run.

The index never decides, so it may never hold a run up: where the store is
away, the gate opens all the same and `gatewright reindex` repairs the index
later. What these activities return is recorded in history, and that is what
pins a gate: a replay is given the gate as it was shown, not as today's code
would render it.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from temporalio import activity

from gatewright.protocol.entries import Refused
from gatewright.protocol.gate import PinnedGate
from gatewright.protocol.identity import Branch, Occurrence, Standing
from gatewright.protocol.word import Word
from gatewright.store import GateRow, RefusalRow, RunRecord, SessionKey, Store, StoreError

from . import names

logger = logging.getLogger(__name__)

PATIENCE = 1.0
"""
How long a gate waits for the store before it opens unlisted, in seconds.

A verdict waits for it too, because Temporal replies to an update only when the
workflow task that carried it is complete.
"""


class SettleGate(Word):
    """A gate that no longer waits, and why."""

    workflow_id: str
    interrupt_id: str
    state: str
    at: datetime
    answer_id: str | None = None
    principal: str | None = None
    channel: str | None = None
    value: JsonValue = None
    receipt_digest: str | None = None
    fits: bool = True


class RefusedAnswer(Word):
    """An answer that a run refused, for the index to count and to show."""

    workflow_id: str
    refused: Refused


SOON = 0.25
"""After how long a settled gate is listed as such where no local activity has told of it first, in seconds."""


class OpenGate(Word):
    """A gate that is about to open, and those that were settled since the index was last told for certain."""

    workflow_id: str
    pipeline: str
    occurrence: Occurrence
    branch: Branch
    gate: PinnedGate
    opened_at: datetime
    settled: tuple[SettleGate, ...] = ()


class Opening(Word):
    """The gate as recorded, and the ledger that the run relies on from now on."""

    gate: PinnedGate
    ledger_id: str | None = None


class Ledger(Word):
    """Which ledger this worker's store holds."""

    ledger_id: str | None = None


class Settling(Word):
    """
    Whether the answer fits the gate's type, as the code that took it saw it.

    Recorded with the gate's end, so that a replay by later code, whose type may
    have changed, goes the way that the run went.
    """

    fits: bool = True


class CloseRun(Word):
    """A run that is over, with its book for the archive."""

    workflow_id: str
    first_execution_run_id: str
    pipeline: str
    standing: Standing
    at: datetime
    reason: str | None = None
    book: dict[str, Any]
    settled: tuple[SettleGate, ...] = ()


class IndexActivities:
    """The local activities over one store; with no store they still pin gates."""

    def __init__(self, store: Store | None, teller: "IndexTeller | None" = None) -> None:
        self._store = store
        self._teller = teller or IndexTeller(store)

    @property
    def all(self) -> list[Callable[..., Any]]:
        """What a worker registers."""
        return [self.open_gate, self.settle_gate, self.close_run, self.learn_ledger]

    @activity.defn(name=names.OPEN_GATE)
    async def open_gate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Pin a gate and list it: `OpenGate` to `Opening`, as JSON."""
        asked = OpenGate.model_validate(given)
        self._teller.told(asked.settled)
        await self._index(lambda store: open_gate(store, asked))
        opening = Opening(gate=asked.gate, ledger_id=self._store.ledger_id if self._store else None)
        return opening.model_dump(mode="json")

    @activity.defn(name=names.SETTLE_GATE)
    async def settle_gate(self, given: dict[str, Any]) -> dict[str, Any]:
        """List a gate as it now stands: `SettleGate` to `Settling`, as JSON."""
        settled = SettleGate.model_validate(given)
        await self._index(lambda store: settle_gate(store, settled))
        return Settling(fits=settled.fits).model_dump(mode="json")

    @activity.defn(name=names.CLOSE_RUN)
    async def close_run(self, given: dict[str, Any]) -> None:
        """List a run as over and archive its book (`CloseRun` as JSON): its record outlives Temporal's retention."""
        closing = CloseRun.model_validate(given)
        self._teller.told(closing.settled)
        await self._index(lambda store: archive_run(store, closing))

    @activity.defn(name=names.LEARN_LEDGER)
    async def learn_ledger(self, _nothing: None = None) -> dict[str, Any]:
        """Tell which ledger this worker's effects are recorded in: `Ledger`, as JSON."""
        return Ledger(ledger_id=self._store.ledger_id if self._store else None).model_dump(mode="json")

    async def _index(self, write: Callable[[Store], object]) -> None:
        if self._store is None:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.to_thread(write, self._store)
        except (StoreError, TimeoutError) as away:
            logger.warning(
                "the index was not written (`gatewright reindex` repairs it): %s", str(away) or "the store hangs"
            )
        except Exception:
            # Whatever it was, it is no reason to fail a run that is doing well.
            logger.exception("the index was not written (`gatewright reindex` repairs it)")


class IndexTeller:
    """
    Tells the index of settled gates soon, beside the run: `tell` returns before it is written.

    Nothing of it is certain, and nothing depends on it: the next gate that
    opens, or the end of the run, tells the same as a local activity. Mostly
    that comes first, and then there is nothing left to tell.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._pending: dict[tuple[str, str], dict[str, Any]] = {}
        # A flood of refusals that a store in trouble cannot take is not kept in memory: the books have them.
        self._refused: deque[dict[str, Any]] = deque(maxlen=1_000)
        self._lock = threading.Lock()
        self._telling = False
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gatewright-index")

    def tell(self, given: dict[str, Any]) -> None:
        """Take a `SettleGate` or a `RefusedAnswer`, as JSON; it is written by a thread of its own."""
        if self._store is None:
            return
        with self._lock:
            if "refused" in given:
                self._refused.append(given)
            else:
                self._pending[given["workflow_id"], given["interrupt_id"]] = given
            if not self._telling:
                self._telling = True
                self._executor.submit(self._write, self._store)

    def told(self, settled: Iterable[SettleGate]) -> None:
        """These are written by a local activity, which is certain."""
        with self._lock:
            for each in settled:
                self._pending.pop((each.workflow_id, each.interrupt_id), None)

    def _write(self, store: Store) -> None:
        while True:
            # Not at once, when the worker has its hands full with the very answer.
            time.sleep(SOON)
            with self._lock:
                batch, self._pending = self._pending, {}
                refused = [self._refused.popleft() for _ in range(len(self._refused))]
                if not batch and not refused:
                    self._telling = False
                    return
            for given in (*refused, *batch.values()):
                try:
                    if "refused" in given:
                        record_refusal(store, RefusedAnswer.model_validate(given))
                    else:
                        settle_gate(store, SettleGate.model_validate(given))
                except StoreError as away:
                    logger.debug("the index was not told at once: %s", away)
                except Exception:
                    logger.exception("the index was not told at once")


def settle_gate(store: Store, settled: SettleGate) -> None:
    """List a gate as it now stands."""
    store.settle_gate(
        settled.workflow_id,
        settled.interrupt_id,
        state=settled.state,
        at=settled.at,
        answer_id=settled.answer_id,
        principal=settled.principal,
        channel=settled.channel,
        response=settled.value,
        receipt_digest=settled.receipt_digest,
    )


def record_refusal(store: Store, told: RefusedAnswer) -> None:
    """Count a refused answer at its gate, and keep what was wrong with it."""
    first = told.refused.objections[0]
    store.record_refusal(
        RefusalRow(
            workflow_id=told.workflow_id,
            interrupt_id=first.interrupt_id,
            answer_id=first.answer_id,
            refusal=first.refusal.value,
            reason=first.reason,
            principal=told.refused.principal or None,
            channel=told.refused.channel,
            at=told.refused.at,
            recorded_by="run",
            detail=told.refused.brief().model_dump(mode="json"),
        )
    )


def open_gate(store: Store, asked: OpenGate) -> None:
    """List a gate as open, and first those that were settled before."""
    for settled in asked.settled:
        settle_gate(store, settled)
    store.open_gate(gate_row(asked))


def gate_row(asked: OpenGate) -> GateRow:
    """The row by which an open gate is listed."""
    gate = asked.gate
    return GateRow(
        workflow_id=asked.workflow_id,
        interrupt_id=asked.occurrence.interrupt_id,
        gate=gate.name,
        visit=asked.occurrence.visit,
        kind=gate.kind.value,
        state="open",
        pipeline=asked.pipeline,
        branch=str(asked.branch),
        message=gate.message or "",
        payload=gate.payload,
        response_schema=gate.response_schema,
        digest=gate.digest,
        dangerous=gate.policy.dangerous,
        invited=gate.policy.invited,
        opened_at=asked.opened_at,
        deadline=gate.deadline,
        on_deadline=gate.on_deadline,
        default_response=gate.default,
    )


def archive_run(store: Store, closing: CloseRun) -> None:
    """List a run as over, whether or not it was started through us, and keep its book."""
    for settled in closing.settled:
        settle_gate(store, settled)
    if store.run(closing.workflow_id) is None:
        session, number = SessionKey.of_workflow(closing.workflow_id)
        store.register_run(
            RunRecord(
                workflow_id=closing.workflow_id,
                session=session,
                number=number,
                opening_id=f"workflow:{closing.first_execution_run_id}",
                pipeline=closing.pipeline,
                task_queue="",
                standing="open",
                first_execution_run_id=closing.first_execution_run_id,
                opened_at=closing.at,
            )
        )
    store.close_run(
        closing.workflow_id,
        standing=closing.standing.value,
        at=closing.at,
        reason=closing.reason,
        archive=closing.book,
    )
