"""
Around every activity that `Frame.perform` calls: which call it is, its heartbeat, and, for effects, the ledger.

An effect is recorded as intended before it is attempted and as performed after
it; an attempt that finds it performed returns the recorded result and does
nothing. While the store is away the effect waits, because it is never
performed unrecorded.
"""

import asyncio
import contextlib
import inspect
import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from pydantic import JsonValue
from pydantic_core import to_jsonable_python
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from gatewright.protocol.call import Call
from gatewright.protocol.canonical import NotJson, digest, plain
from gatewright.store import LedgerConflict, LedgerEntry, Store, StoreUnavailable

from .declare import CannotTell, Declaration, DidNotHappen, EffectKind, Happened, declaration_of

CALL_HEADER = "gatewright-call"
"""The activity header in which a workflow names the call."""

T = TypeVar("T")

_CALL: ContextVar[Call] = ContextVar("gatewright_call")
_LAST_BEAT: ContextVar["_Beats"] = ContextVar("gatewright_beats")


class NotPerformed(Exception):  # noqa: N818 - it says what is known, as ledger states do
    """Raise it from an effect to say that the effect is known not to have happened; the attempt may be repeated."""


def current_call() -> Call:
    """
    The call that is running: its key, branch and visit.

    `LookupError` outside an activity that `Frame.perform` called on a worker
    with the Gatewright plugin.
    """
    try:
        return _CALL.get()
    except LookupError:
        msg = (
            "no Gatewright call is running here: call the function with Frame.perform on a worker with GatewrightPlugin"
        )
        raise LookupError(msg) from None


def heartbeat(*details: Any) -> None:
    """Report progress to Temporal inside an activity; outside one (a unit test, a script) do nothing."""
    if activity.in_activity():
        activity.heartbeat(*details)


@contextlib.contextmanager
def running(call: Call) -> Iterator[None]:
    """Make `call` the current call within the block; for tests of functions that ask for it."""
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)


class EffectsInterceptor(Interceptor):
    """The worker interceptor; `store` holds the ledger (None: this worker can run steps and no effects)."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See base class."""
        return _Inbound(next, self._store)


@dataclass
class _Beats:
    details: tuple[Any, ...] = ()


class _Outbound(ActivityOutboundInterceptor):
    """Remembers what the activity reported last, so that our own beats do not erase it."""

    def heartbeat(self, *details: Any) -> None:
        if beats := _LAST_BEAT.get(None):
            beats.details = details
        super().heartbeat(*details)


class _Inbound(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, store: Store | None) -> None:
        super().__init__(next)
        self._store = store

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._outbound = outbound
        super().init(_Outbound(outbound))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        call = _called(input)
        if call is None:
            # An activity of somebody else's in the same worker, or an effect that was called around Frame.perform.
            if _declared_effect(input.fn):
                _refuse("NotACall", f"{activity.info().activity_type} is an effect: call it with Frame.perform")
            return await self.next.execute_activity(input)
        beats = _Beats()
        token, beat_token = _CALL.set(call), _LAST_BEAT.set(beats)
        beating = asyncio.create_task(_beat(self._outbound, beats))
        try:
            if not call.effect:
                return await self.next.execute_activity(input)
            return await self._once(call, declaration_of(input.fn), input)
        finally:
            beating.cancel()
            _CALL.reset(token)
            _LAST_BEAT.reset(beat_token)

    async def _once(self, call: Call, declaration: Declaration, input: ExecuteActivityInput) -> Any:
        """Perform an effect once for its key, whatever died in between."""
        if self._store is None:
            _refuse("NoLedger", f"{call.id} is an effect, and this worker has no store: GatewrightPlugin(store=...)")
        store, ledger = self._store, self._store.ledger
        if call.ledger_id is not None and call.ledger_id != store.ledger_id:
            _refuse(
                "LedgerMismatch",
                f"{call.id} relies on ledger {call.ledger_id}, and this worker's store holds {store.ledger_id}. "
                "Whether the effect was attempted is recorded there; point the worker to that store.",
            )
        found = await self._intend(call, input)
        if found is not None and found.state == "performed":
            return found.result
        if found is not None and found.state == "intended":
            match await self._known(call, declaration, input):
                case Happened(result):
                    return await self._performed(call, result)
                case CannotTell(reason):
                    await _patiently(lambda: ledger.unknown(call.key, error=reason, at=_now()))
                    _unknown(call, reason)
                case DidNotHappen():
                    pass
        elif found is not None and found.state == "unknown":
            _unknown(call, found.error or "an earlier attempt ended without a word")
        try:
            result = await self.next.execute_activity(input)
        except NotPerformed as failure:
            error = str(failure)
            await _patiently(lambda: ledger.failed(call.key, error=error, at=_now()))
            raise ApplicationError(error, type="NotPerformed") from failure
        return await self._performed(call, result)

    async def _intend(self, call: Call, input: ExecuteActivityInput) -> LedgerEntry | None:
        """Record the intent; the entry as it stood before, or None where this attempt is the first."""
        assert self._store is not None  # noqa: S101 - _once refused
        ledger = self._store.ledger
        try:
            arguments = digest(plain(list(input.args)))
        except NotJson as wrong:
            _refuse("NotJson", f"{call.id}: an effect's arguments are recorded by digest and must be JSON: {wrong}")
        try:
            intention = await _patiently(
                lambda: ledger.intend(
                    key=call.key,
                    effect=call.name,
                    workflow_id=call.identity.workflow_id,
                    branch=str(call.branch),
                    visit=call.visit,
                    generation=call.generation,
                    arguments_digest=arguments,
                    at=_now(),
                )
            )
        except LedgerConflict as conflict:
            _refuse("LedgerConflict", f"{call.id}: {conflict}")
        return None if intention.first else intention.entry

    async def _known(
        self,
        call: Call,
        declaration: Declaration,
        input: ExecuteActivityInput,
    ) -> Happened | DidNotHappen | CannotTell:
        """What is known of an effect that was begun: from the outside where it can be asked."""
        match declaration.kind:
            case EffectKind.KEYED:
                # The outside tells the repeat by our key, so attempting it again does no harm.
                return DidNotHappen()
            case EffectKind.RECONCILABLE:
                assert declaration.reconcile is not None  # noqa: S101 - @effect refused
                found: Happened | DidNotHappen | CannotTell = await _called_anyhow(
                    declaration.reconcile, call, *input.args
                )
                return found
            case _:
                return CannotTell(
                    "an earlier attempt began it and ended without a word, and the outside cannot be asked"
                )

    async def _performed(self, call: Call, result: Any) -> Any:
        assert self._store is not None  # noqa: S101 - _once refused
        ledger = self._store.ledger
        try:
            # As Temporal would carry it: what is returned the first time and what a retry finds must be the same.
            recorded: JsonValue = json.loads(json.dumps(to_jsonable_python(result)))
            receipt: JsonValue = {"result_digest": digest(plain(recorded))}
        except (TypeError, ValueError) as wrong:
            unkept: JsonValue = {"result": "not JSON"}
            await _patiently(lambda: ledger.performed(call.key, result=None, receipt=unkept, at=_now()))
            _refuse("NotJson", f"{call.id} was performed, and its result is lost, because it is not JSON: {wrong}")
        entry = await _patiently(lambda: ledger.performed(call.key, result=recorded, receipt=receipt, at=_now()))
        return result if entry.result == recorded else entry.result


def _called(input: ExecuteActivityInput) -> Call | None:
    payload = input.headers.get(CALL_HEADER)
    return None if payload is None else Call.model_validate(json.loads(payload.data))


def _declared_effect(function: Callable[..., Any]) -> bool:
    try:
        return declaration_of(function).effect
    except TypeError:
        return False


async def _called_anyhow(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the pipeline's author that may or may not be async."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    return await asyncio.to_thread(function, *args)


async def _patiently(record: Callable[[], T]) -> T:
    """Do one thing in the store, waiting for as long as it is away (the activity's own time-out bounds it)."""
    pause = 0.2
    while True:
        try:
            return await asyncio.to_thread(record)
        except StoreUnavailable as away:
            activity.logger.warning("the store is away, the effect waits: %s", away)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 10.0)


async def _beat(outbound: ActivityOutboundInterceptor, beats: _Beats) -> None:
    """
    Tell Temporal that the worker lives: a third of the heartbeat time-out apart.

    Through the interceptor and not through `activity.heartbeat`, which in a sync
    activity is made for its thread and would wait for this very event loop.
    """
    timeout = activity.info().heartbeat_timeout
    while timeout:
        await asyncio.sleep(timeout.total_seconds() / 3)
        outbound.heartbeat(*beats.details)


def _unknown(call: Call, reason: str) -> NoReturn:
    _refuse("EffectUnknown", f"it is not known whether {call.id} happened ({reason}); it is not repeated on hope")


def _refuse(kind: str, message: str) -> NoReturn:
    raise ApplicationError(message, type=kind, non_retryable=True)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - activity side


__all__ = ["CALL_HEADER", "EffectsInterceptor", "NotPerformed", "current_call", "heartbeat", "running"]
