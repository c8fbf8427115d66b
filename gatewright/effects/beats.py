"""
The heartbeat of an activity: sent by itself, and the proof that an attempt came as far as the outside.

The SDK sends heartbeats in the background and does not say when one has
arrived: one without the mark, still under way, would be written over the mark
that `Beats.witness` has just had written. So an attempt at an effect sends its
heartbeats itself, each after the reply to the one before it, until the mark
stands; from then on each has the mark, and the SDK sends them in any order.
"""

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.api.common.v1 import Payloads
from temporalio.api.workflowservice.v1 import RecordActivityTaskHeartbeatRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import ActivityOutboundInterceptor

from gatewright.store import StoreUnavailable

from .wire import MARK, own

T = TypeVar("T")


class NotCurrent(Exception):  # noqa: N818 - named for what is the case
    """This attempt is to be made anew by Temporal: whatever it does now, nobody waits for it."""


@dataclass
class Beats:
    """
    What one attempt reports: what the activity said last, whether the outside may have been reached, what it waits for.

    `outbound` is the SDK's own way. With a `client` (an attempt at an effect) the
    heartbeats go by it, one after the other, until `begun`.
    """

    outbound: ActivityOutboundInterceptor
    client: Client | None = None
    details: tuple[Any, ...] = ()
    begun: bool = False
    waits_for: str = ""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ends: bool = False
    """This attempt is to end, and the SDK has been given the occasion to hear it."""
    _unsettled: str = ""
    """Why a heartbeat without the mark may arrive at any time."""

    @property
    def marked(self) -> tuple[Any, ...]:
        """The details with our mark behind them, where it is due."""
        if not self.begun and not self.waits_for:
            return self.details
        return (*self.details, {MARK: {"begun": self.begun, "waits_for": self.waits_for}})

    def report(self, *details: Any) -> None:
        """Pass on what the activity itself reports; before the mark stands, with the next beat."""
        self.details = details
        if not self._in_turn:
            self.outbound.heartbeat(*self.marked)

    async def keep(self) -> None:
        """
        Tell Temporal that the worker lives: a third of the heartbeat time-out apart, for ever.

        Through the interceptor and not through `activity.heartbeat`, which in a sync
        activity is made for its thread and would wait for this very event loop.
        """
        timeout = self.outbound.info().heartbeat_timeout
        while timeout:
            await asyncio.sleep(timeout.total_seconds() / 3)
            await self.beat()

    async def beat(self) -> None:
        """Send one heartbeat now; before the mark stands, after those before it, and until there is a reply."""
        if not self._in_turn:
            self.outbound.heartbeat(*self.marked)
            return
        async with self._turn:
            if self.client is not None and self._in_turn:
                await self._beat_in_turn(self.client)

    async def witness(self) -> None:
        """
        Have Temporal write down that this attempt is about to reach the outside, and return only when it has.

        That is what tells an attempt that died before from one whose intent a
        restored database has forgotten. While Temporal is away it is asked again.

        Raises `NotCurrent` where Temporal no longer waits for this attempt, and where
        a heartbeat without the mark got no reply: that could arrive later. (Not in
        the next attempt, whose token is another.) Raises `asyncio.CancelledError`
        where Temporal has said that the attempt is to end.
        """
        if self.client is None:
            return
        async with self._turn:
            if self._ends:
                await _cancelled()
            if self._unsettled and not self.begun:
                raise NotCurrent(f"a heartbeat got no reply ({self._unsettled})")
            self.begun = True
            while True:
                try:
                    ends = await self._record(self.client, within=None)
                except RPCError as refused:
                    if refused.status is RPCStatusCode.NOT_FOUND:
                        raise NotCurrent(refused.message) from refused
                    activity.logger.warning("Temporal is away, the effect waits: %s", refused.message)
                    await asyncio.sleep(1)
                    continue
                except Exception:  # noqa: BLE001 - whatever a converter raises
                    ends = True
                if ends:
                    self._end()
                    await _cancelled()
                return

    @property
    def _in_turn(self) -> bool:
        return self.client is not None and not self.begun and not self._ends

    async def _beat_in_turn(self, client: Client) -> None:
        try:
            ends = await self._record(client, within=self.outbound.info().heartbeat_timeout)
        except RPCError as refused:
            if ends := refused.status is RPCStatusCode.NOT_FOUND:
                activity.logger.warning("Temporal no longer waits for this attempt: %s", refused.message)
            else:
                self._unsettled = refused.message or refused.status.name
                activity.logger.warning("Temporal is away, a heartbeat got no reply: %s", self._unsettled)
        except Exception:  # noqa: BLE001 - whatever a converter raises
            ends = True
        if ends:
            self._end()

    def _end(self) -> None:
        """
        Let the SDK end the attempt.

        It hears in the reply to a heartbeat of its own that Temporal ends it; or
        cannot encode what the activity reported, as we could not.
        """
        self._ends = True
        self.outbound.heartbeat(*self.marked)

    async def _record(self, client: Client, *, within: timedelta | None) -> bool:
        """Send one heartbeat and await the reply; whether that says that the attempt is to end."""
        info = self.outbound.info()
        request = RecordActivityTaskHeartbeatRequest(
            namespace=info.namespace,
            task_token=info.task_token,
            identity=client.identity,
            details=Payloads(payloads=await client.data_converter.encode(self.marked)),
        )
        reply = await client.workflow_service.record_activity_task_heartbeat(request, timeout=within)
        return reply.cancel_requested or reply.activity_paused or reply.activity_reset


async def _cancelled() -> None:
    """Wait until the SDK has heard that the attempt is to end, and end it (a sync activity's task is not cancelled by the SDK)."""
    while not activity.is_cancelled():  # noqa: ASYNC110 - the event is the SDK's own
        await asyncio.sleep(0.05)
    raise asyncio.CancelledError


class MarkedOutbound(ActivityOutboundInterceptor):
    """Remembers what the activity reported last, and keeps our mark out of its sight."""

    def __init__(self, next: ActivityOutboundInterceptor, beats: Beats) -> None:
        super().__init__(next)
        self._beats = beats

    def heartbeat(self, *details: Any) -> None:
        """See base class."""
        self._beats.report(*details)

    def info(self) -> activity.Info:
        """See base class."""
        info = super().info()
        return dataclasses.replace(info, heartbeat_details=own(info.heartbeat_details))


async def patiently(record: Callable[[], T], beats: Beats) -> T:
    """Do one thing in the store, waiting for as long as it is away (the activity's own time-out bounds it), and say so."""
    pause = 0.2
    while True:
        try:
            done = await asyncio.to_thread(record)
        except StoreUnavailable as away:
            beats.waits_for = f"the store is away: {away}"
            activity.logger.warning("the store is away, the effect waits: %s", away)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 10.0)
        else:
            beats.waits_for = ""
            return done
