"""
What a run asks of the ledger before and between its effects: ordinary activities, so that history tells what the ledger had.

    plan      make the ledger's entry for a call before anything is attempted: an entry that is missing later was lost
    resolve   write down a person's word about a call of which nobody knows whether it happened
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError

from gatewright.effects.elsewhere import made_elsewhere
from gatewright.protocol.call import Call
from gatewright.protocol.finding import Finding
from gatewright.protocol.receipt import EffectState
from gatewright.protocol.word import Told, Word
from gatewright.store import EffectUnderWay, LedgerEntry, Plan, Store, StoreError, StoreUnavailable

from . import names

T = TypeVar("T")

BEAT = 5.0
"""How often Temporal is told that the worker lives, in seconds."""

_NO_ENTRY = Finding(
    state=EffectState.UNKNOWN, because="the ledger has no entry of it: it was emptied, or restored from a backup"
)


class PlanEffect(Word):
    """
    A call that is about to be made.

    `replaces` is the key of the generation before, which is known not to have
    happened. `reset` says that this execution repeats what another has done
    before it (`temporal workflow reset`, or a retry of the workflow). With `look`
    nothing is planned: the finding is what the ledger knows of attempts at it.
    """

    call: Call
    kind: str
    replaces: str | None = None
    reset: bool = False
    look: bool = False


class Planned(Told):
    """
    The ledger that the run relies on, and the generation that counts: one that a person decided on before a reset is found again.

    A `finding` is what forbids to go on with it.
    """

    ledger_id: str
    generation: int
    finding: Finding | None = None


class ResolveEffect(Word):
    """
    A person's word on whether a call happened.

    `doubted`: history has told the run more than the ledger knows, so that a
    ledger which says that it did not happen does not beat the word.
    """

    call: Call
    kind: str
    happened: bool
    by: str
    comment: str | None = None
    receipt: JsonValue = None
    result: JsonValue = None
    doubted: bool = False


class Resolved(Told):
    """What stands after it: a fact that the ledger learned meanwhile beats a word."""

    ledger_id: str
    finding: Finding


class LedgerActivities:
    """The activities over one store's ledger."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    @property
    def all(self) -> list[Callable[..., Any]]:
        """What a worker registers."""
        return [self.plan_effect, self.resolve_effect]

    @activity.defn(name=names.PLAN_EFFECT)
    async def plan_effect(self, given: dict[str, Any]) -> dict[str, Any]:
        """Make the ledger's entry for a call: `PlanEffect` to `Planned`, as JSON."""
        async with _beating():
            return await self._plan(PlanEffect.model_validate(given))

    async def _plan(self, asked: PlanEffect) -> dict[str, Any]:
        store, call = self._needed(asked.call), asked.call
        if call.ledger_id is not None and call.ledger_id != store.ledger_id:
            reason = (
                f"the run relies on ledger {call.ledger_id}, and this worker's store holds {store.ledger_id}: "
                "whether it was attempted is recorded there"
            )
            return _planned(store, call.generation, Finding(state=EffectState.UNKNOWN, because=reason))
        if asked.look:
            entry = await self._asked(lambda: store.ledger.entry(call.key))
            return _planned(store, call.generation, _finding(entry) if entry else _NO_ENTRY)
        if asked.reset and asked.replaces is None and (lost := await self._lost(store, call)) is not None:
            return _planned(store, call.generation, lost)
        entry = await self._asked(
            lambda: store.ledger.plan(
                key=call.key,
                effect=call.name,
                kind=asked.kind,
                workflow_id=call.identity.workflow_id,
                branch=str(call.branch),
                visit=call.visit,
                generation=call.generation,
                replaces=asked.replaces,
            )
        )
        # What was to be replaced may have happened after all: then it is returned, and it stands.
        stands = _finding(entry) if asked.replaces is not None and entry.key == asked.replaces else None
        return _planned(store, entry.generation, stands)

    @activity.defn(name=names.RESOLVE_EFFECT)
    async def resolve_effect(self, given: dict[str, Any]) -> dict[str, Any]:
        """
        Write down a person's word: `ResolveEffect` to `Resolved`, as JSON; tried again while an attempt is under way.

        `ApplicationError` (not retryable) where the ledger does not take it: trying again will not help.
        """
        said = ResolveEffect.model_validate(given)
        try:
            async with _beating():
                return await self._resolve(said)
        except StoreError as refused:
            raise ApplicationError(str(refused), type="StoreError", non_retryable=True) from refused

    async def _resolve(self, said: ResolveEffect) -> dict[str, Any]:
        store, call = self._needed(said.call), said.call
        entry = await self._asked(
            lambda: _resolved(
                store,
                call.key,
                by=said.by,
                happened=said.happened,
                comment=said.comment,
                receipt=said.receipt,
                result=said.result,
                # A run that relied on another ledger did not rely on what this one says, which a backup may have brought back.
                despite_failed=said.doubted or call.ledger_id not in {None, store.ledger_id},
                new=Plan(
                    effect=call.name,
                    kind=said.kind,
                    workflow_id=call.identity.workflow_id,
                    branch=str(call.branch),
                    visit=call.visit,
                    generation=call.generation,
                ),
            )
        )
        return Resolved(ledger_id=store.ledger_id, finding=_finding(entry)).model_dump(mode="json")

    def _needed(self, call: Call) -> Store:
        if self._store is None:
            raise ApplicationError(
                f"{call.id} is an effect, and this worker has no store: GatewrightPlugin(store=...)",
                type="NoLedger",
                non_retryable=True,
            )
        return self._store

    async def _lost(self, store: Store, call: Call) -> Finding | None:
        """
        Whether an execution before the reset made this very call, of which the ledger knows nothing.

        One that is known not to have happened may come from a backup: only what
        a person said, or decided in its place, is taken for the last word.
        """
        entry = await self._asked(lambda: store.ledger.entry(call.key))
        if entry is not None and (
            entry.state not in {"planned", "failed"} or entry.resolution is not None or entry.successor is not None
        ):
            return None
        made = await made_elsewhere(activity.client(), call, activity.info().workflow_run_id)
        if made == "no" or (made == "scheduled" and entry is not None):
            return None
        return Finding(
            state=EffectState.UNKNOWN,
            source="history",
            because="an execution before the reset made this call, and the ledger "
            + ("says that nothing has happened" if entry and entry.state == "failed" else "knows of no attempt")
            + ": it was emptied, or restored from a backup",
        )

    async def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(ask)
        except StoreUnavailable as away:
            raise ApplicationError(f"the store is away, the effect waits: {away}", type="StoreUnavailable") from away
        except EffectUnderWay as living:
            raise ApplicationError(str(living), type="EffectUnderWay") from living


@asynccontextmanager
async def _beating() -> AsyncIterator[None]:
    """Heartbeats, for as long as the block takes."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(BEAT)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


def _resolved(store: Store, key: str, **word: Any) -> LedgerEntry:
    try:
        return store.ledger.resolve(key, **word)
    except EffectUnderWay:
        raise
    except StoreUnavailable:
        raise
    except StoreError:
        # What stands forbids this word: then that is what the run is told.
        entry = store.ledger.entry(key)
        if entry is None or entry.state not in {"performed", "failed"}:
            raise
        return entry


def _finding(entry: LedgerEntry) -> Finding:
    state = EffectState.NOT_ATTEMPTED if entry.state == "planned" else EffectState(entry.state)
    return Finding(
        state=state,
        source=entry.said_by or "ledger",
        because=(entry.error or "")[:2000],
        attempts=entry.attempts,
        receipt=entry.receipt,
    )


def _planned(store: Store, generation: int, finding: Finding | None) -> dict[str, Any]:
    return Planned(ledger_id=store.ledger_id, generation=generation, finding=finding).model_dump(mode="json")
