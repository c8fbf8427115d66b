"""The heartbeat of an activity: sent by itself, and the proof that an attempt came as far as the outside."""

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
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
    """Temporal has given this attempt up: whatever it does now, nobody waits for it."""


@dataclass
class Beats:
    """What one attempt reports: what the activity said last, whether the outside may have been reached, what it waits for."""

    details: tuple[Any, ...] = ()
    begun: bool = False
    waits_for: str = ""

    @property
    def marked(self) -> tuple[Any, ...]:
        """The details with our mark behind them, where it is due."""
        if not self.begun and not self.waits_for:
            return self.details
        return (*self.details, {MARK: {"begun": self.begun, "waits_for": self.waits_for}})


class MarkedOutbound(ActivityOutboundInterceptor):
    """Remembers what the activity reported last, and keeps our mark out of its sight."""

    def __init__(self, next: ActivityOutboundInterceptor, beats: Beats) -> None:
        super().__init__(next)
        self._beats = beats

    def heartbeat(self, *details: Any) -> None:
        """See base class."""
        self._beats.details = details
        super().heartbeat(*self._beats.marked)

    def info(self) -> activity.Info:
        """See base class."""
        info = super().info()
        return dataclasses.replace(info, heartbeat_details=own(info.heartbeat_details))


async def beat(outbound: ActivityOutboundInterceptor, beats: Beats) -> None:
    """
    Tell Temporal that the worker lives: a third of the heartbeat time-out apart, for ever.

    Through the interceptor and not through `activity.heartbeat`, which in a sync
    activity is made for its thread and would wait for this very event loop.
    """
    timeout = outbound.info().heartbeat_timeout
    while timeout:
        await asyncio.sleep(timeout.total_seconds() / 3)
        outbound.heartbeat(*beats.marked)


async def witness(client: Client, outbound: ActivityOutboundInterceptor, beats: Beats) -> None:
    """
    Have Temporal write down that this attempt is about to reach the outside, and return only when it has.

    That is what tells an attempt that died before from one whose intent a
    restored database has forgotten. `NotCurrent` where Temporal no longer waits
    for this attempt. While Temporal is away it is asked again.
    """
    beats.begun = True
    info = outbound.info()
    request = RecordActivityTaskHeartbeatRequest(
        namespace=info.namespace,
        task_token=info.task_token,
        identity=client.identity,
        details=Payloads(payloads=await client.data_converter.encode(beats.marked)),
    )
    while True:
        try:
            await client.workflow_service.record_activity_task_heartbeat(request)
        except RPCError as refused:
            if refused.status is RPCStatusCode.NOT_FOUND:
                raise NotCurrent(refused.message) from refused
            activity.logger.warning("Temporal is away, the effect waits: %s", refused.message)
            await asyncio.sleep(1)
        else:
            return


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
