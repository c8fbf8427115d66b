"""What a run has under way, as Temporal tells it: attempts, the last failure, and what an attempt says that it waits for."""

from contextlib import suppress
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.converter import DataConverter

from gatewright.effects.wire import MARK

from .errors import innermost
from .views import CallUnderWay


async def calls_under_way(client: Client, described: WorkflowExecutionDescription) -> tuple[CallUnderWay, ...]:
    """
    The activities of a run that have not ended, the one scheduled first before the others.

    What nobody here can decode (a codec that this client lacks) is left out of them.
    """
    pending = sorted(
        described.raw_description.pending_activities,
        key=lambda each: (each.scheduled_time.ToNanoseconds(), each.activity_id),
    )
    return tuple([await _call(client.data_converter, each) for each in pending])


async def _call(converter: DataConverter, pending: PendingActivityInfo) -> CallUnderWay:
    return CallUnderWay(
        activity_id=pending.activity_id,
        activity_type=pending.activity_type.name,
        state=PendingActivityState.Name(pending.state).removeprefix("PENDING_ACTIVITY_STATE_").lower(),
        attempt=pending.attempt,
        last_failure=await _last_failure(converter, pending),
        waits_for=await _waits_for(converter, pending),
        next_attempt_at=_at(pending.next_attempt_schedule_time) if _waits_for_its_turn(pending) else None,
    )


def _waits_for_its_turn(pending: PendingActivityInfo) -> bool:
    return pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED and pending.HasField(
        "next_attempt_schedule_time"
    )


def _at(moment: Timestamp) -> datetime:
    return moment.ToDatetime(tzinfo=UTC)


async def _last_failure(converter: DataConverter, pending: PendingActivityInfo) -> str | None:
    if not pending.HasField("last_failure"):
        return None
    with suppress(Exception):
        return innermost(await converter.decode_failure(pending.last_failure))[:1000]
    return pending.last_failure.message[:1000]


async def _waits_for(converter: DataConverter, pending: PendingActivityInfo) -> str | None:
    """What the attempt that runs now reported; details of an attempt before it say nothing of this one."""
    running = pending.state != PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    told = pending.last_heartbeat_time.ToNanoseconds() >= pending.last_started_time.ToNanoseconds()
    if not running or not told or not pending.heartbeat_details.payloads:
        return None
    with suppress(Exception):
        # The last detail is ours, where there is one; the others are the activity's own.
        [mark] = await converter.decode(pending.heartbeat_details.payloads[-1:])
        if isinstance(mark, dict) and isinstance(ours := mark.get(MARK), dict):
            return str(ours.get("waits_for") or "") or None
    return None
