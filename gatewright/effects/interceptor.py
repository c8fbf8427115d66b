"""
Around every activity that `Frame.perform` calls: which call it is, its heartbeat, and, for effects, the ledger.

A step runs. A step that is declared `once` runs unless the ledger has its
result from another run. An effect is an `Attempt`.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NoReturn

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from gatewright.protocol.call import Call
from gatewright.protocol.finding import Errand
from gatewright.store import Store

from .attempt import Attempt, NotPerformed
from .beats import Beats, MarkedOutbound
from .current import CALL
from .declare import Declaration, declaration_of
from .examination import Examination
from .once import shared
from .results import with_finding
from .wire import CALL_HEADER, ERRAND_HEADER, begun, own


class EffectsInterceptor(Interceptor):
    """
    The worker interceptor; `store` holds the ledger (None: this worker can run steps and no effects).

    `client` is the worker's own, by which an effect has Temporal write down that
    it is about to reach the outside.
    """

    def __init__(self, store: Store | None, client: Client | None = None) -> None:
        self._store = store
        self._client = client

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See base class."""
        return _Inbound(next, self._store, self._client)


class _Inbound(ActivityInboundInterceptor):
    """Made anew for every attempt of every activity."""

    def __init__(self, next: ActivityInboundInterceptor, store: Store | None, client: Client | None) -> None:
        super().__init__(next)
        self._store = store
        self._client = client

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._outbound = outbound
        # What the attempt before it has reported stays reported until there is more to say.
        told = outbound.info().heartbeat_details
        self._beats = Beats(outbound, details=tuple(own(told)), begun=begun(told))
        super().init(MarkedOutbound(outbound, self._beats))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        call = _called(input)
        declaration = _declared(input.fn)
        if call is None:
            # An activity of somebody else's in the same worker, or an effect that was called around Frame.perform.
            if declaration is not None and declaration.effect:
                _refuse("NotACall", f"{activity.info().activity_type} is an effect: call it with Frame.perform")
            return await self.next.execute_activity(input)
        if declaration is None:
            _refuse("NotACall", f"{activity.info().activity_type} is neither a step nor an effect on this worker")
        errand = _errand(input)
        if call.effect and (errand is None or errand.mode != "examine"):
            self._beats.client = self._client
        token = CALL.set(call)
        beating = asyncio.create_task(self._beats.keep())
        try:
            if not call.effect and declaration.once is None:
                return await self.next.execute_activity(input)
            if self._store is None:
                what = "an effect" if call.effect else "a step that runs once for several runs"
                _refuse("NoLedger", f"{call.id} is {what}, and this worker has no store: GatewrightPlugin(store=...)")
            if not call.effect:
                return await self._shared(call, declaration, input, self._store)
            return await self._effect(call, errand, declaration, input, self._store)
        finally:
            beating.cancel()
            CALL.reset(token)

    async def _effect(
        self, call: Call, errand: Errand | None, declaration: Declaration, input: ExecuteActivityInput, store: Store
    ) -> Any:
        given: dict[str, Any] = {
            "store": store,
            "client": self._client,
            "outbound": self._outbound,
            "beats": self._beats,
        }
        if errand is not None and errand.mode == "examine":
            found, finding = await Examination(call, errand, declaration, input, **given).examine()
            return with_finding(found or activity.payload_converter().to_payloads([None])[0], finding)
        attempt = Attempt(call, errand, declaration, input, **given)
        return with_finding(*await attempt.perform(lambda: self.next.execute_activity(input)))

    async def _shared(self, call: Call, declaration: Declaration, input: ExecuteActivityInput, store: Store) -> Any:
        """The result of a step that runs once for several runs: from this run, or from whichever was first."""
        given: dict[str, Any] = {"store": store, "client": None, "outbound": self._outbound, "beats": self._beats}
        attempt = Attempt(await shared(call, declaration, input.args), None, declaration, input, **given)
        return with_finding(*await attempt.perform(lambda: self.next.execute_activity(input)))


def _called(input: ExecuteActivityInput) -> Call | None:
    payload = input.headers.get(CALL_HEADER)
    return None if payload is None else Call.model_validate(json.loads(payload.data))


def _errand(input: ExecuteActivityInput) -> Errand | None:
    payload = input.headers.get(ERRAND_HEADER)
    return None if payload is None else Errand.model_validate_json(payload.data)


def _declared(function: Callable[..., Any]) -> Declaration | None:
    try:
        return declaration_of(function)
    except TypeError:
        return None


def _refuse(kind: str, message: str) -> NoReturn:
    raise ApplicationError(message, type=kind, non_retryable=True)


__all__ = ["CALL_HEADER", "EffectsInterceptor", "NotPerformed"]
