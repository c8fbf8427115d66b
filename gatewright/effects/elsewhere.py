"""What another execution of the same run has done: a run that was reset repeats calls that an execution before it has made."""

import json
from typing import Literal

from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes, HistoryEvent
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RawValue
from temporalio.converter import DataConverter

from gatewright.protocol.call import Call
from gatewright.protocol.finding import Errand, Finding
from gatewright.protocol.receipt import EffectState

from .results import finding_of
from .wire import CALL_HEADER, ERRAND_HEADER, PLAN_EFFECT, begun, told

Made = Literal["no", "scheduled", "begun"]

_NOTHING_DONE = {EffectState.FAILED, EffectState.NOT_ATTEMPTED}


async def made_elsewhere(client: Client, call: Call, run_id: str | None) -> Made:
    """
    How far another execution than `run_id` has come with this very call, as far as Temporal keeps it.

    `begun`: an attempt may have reached the outside, as its heartbeat or its end
    says, and nobody found out there that it did nothing.
    """
    made: Made = "no"
    escaped = call.identity.workflow_id.replace("\\", "\\\\").replace("'", "\\'")
    async for listed in client.list_workflows(f"WorkflowId = '{escaped}'"):
        if listed.run_id == run_id:
            continue
        handle = client.get_workflow_handle(listed.id, run_id=listed.run_id)
        came = await _made_in(client.data_converter, handle, call)
        if came == "begun":
            return "begun"
        made = came if made == "no" else made
    return made


async def _made_in(converter: DataConverter, handle: WorkflowHandle[object, object], call: Call) -> Made:
    """How far one execution has come with the call."""
    attempted: dict[int, str] = {}
    examined: set[int] = set()
    looks: set[int] = set()
    made: Made = "no"
    async for event in handle.fetch_history_events():
        if event.HasField("activity_task_scheduled_event_attributes"):
            attributes = event.activity_task_scheduled_event_attributes
            if await _looks(converter, attributes, call):
                looks.add(event.event_id)
            fields = attributes.header.fields
            if CALL_HEADER not in fields or json.loads(fields[CALL_HEADER].data)["key"] != call.key:
                continue
            errand = Errand.model_validate_json(fields[ERRAND_HEADER].data) if ERRAND_HEADER in fields else Errand()
            if errand.mode == "examine":
                # It has only looked.
                examined.add(event.event_id)
            else:
                attempted[event.event_id] = attributes.activity_id
                made = "begun" if made == "begun" else "scheduled"
        elif (ended := _ended(event)) in attempted:
            del attempted[ended]
            if await _may_have_acted(converter, event):
                made = "begun"
        elif ended in examined:
            found = await _found(converter, event)
            if found is not None and found.state in _NOTHING_DONE and made == "begun":
                made = "scheduled"
        elif ended in looks and await _had_no_attempt(converter, event):
            # The last attempt had not come as far as the ledger, which was then looked into for those before it.
            made = "scheduled"
    if made != "scheduled" or not attempted:
        return made
    # An execution that a reset has ended keeps what its activities had reported.
    described = await handle.describe()
    for pending in described.raw_description.pending_activities:
        if pending.activity_id in attempted.values() and begun(
            await converter.decode(list(pending.heartbeat_details.payloads))
        ):
            return "begun"
    return made


async def _looks(converter: DataConverter, scheduled: ActivityTaskScheduledEventAttributes, call: Call) -> bool:
    """Whether the activity that is scheduled here looks into the ledger for attempts at the call."""
    if scheduled.activity_type.name != PLAN_EFFECT:
        return False
    match await converter.decode(list(scheduled.input.payloads)):
        case [{"look": True, "call": {"key": call.key}}]:
            return True
        case _:
            return False


async def _had_no_attempt(converter: DataConverter, event: HistoryEvent) -> bool:
    """Whether the ledger had no attempt, as a look into it that has ended here says."""
    match await converter.decode(list(event.activity_task_completed_event_attributes.result.payloads)):
        case [{"finding": {"state": EffectState.NOT_ATTEMPTED.value}}]:
            return True
        case _:
            return False


async def _may_have_acted(converter: DataConverter, event: HistoryEvent) -> bool:
    """Whether the activity that has ended here may have reached the outside."""
    if event.HasField("activity_task_timed_out_event_attributes"):
        timeout = event.activity_task_timed_out_event_attributes.failure.timeout_failure_info
        return begun(await converter.decode(list(timeout.last_heartbeat_details.payloads)))
    if event.HasField("activity_task_failed_event_attributes"):
        failure = await converter.decode_failure(event.activity_task_failed_event_attributes.failure)
        # What it says is known of all its attempts.
        known = told(failure)
        return known is None or known.state not in _NOTHING_DONE
    return True


async def _found(converter: DataConverter, event: HistoryEvent) -> Finding | None:
    """What an examination that has ended here found out; None where it failed."""
    if not event.HasField("activity_task_completed_event_attributes"):
        return None
    payloads = event.activity_task_completed_event_attributes.result.payloads
    decoded = await converter.decode(list(payloads), [RawValue])
    return finding_of(decoded[0].payload) if decoded else None


def _ended(event: HistoryEvent) -> int:
    """Which activity the event says to be over, by its scheduling event; 0 for any other event."""
    for name in ("completed", "failed", "timed_out"):
        if event.HasField(f"activity_task_{name}_event_attributes"):  # type: ignore[arg-type]
            ended: int = getattr(event, f"activity_task_{name}_event_attributes").scheduled_event_id
            return ended
    return 0
