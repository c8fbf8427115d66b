"""What another execution of the same run has done: a run that was reset repeats calls that an execution before it has made."""

import json
from typing import Literal

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from gatewright.protocol.call import Call

from .wire import CALL_HEADER, begun

Made = Literal["no", "scheduled", "begun"]


async def made_elsewhere(client: Client, call: Call, run_id: str | None) -> Made:
    """
    How far another execution than `run_id` has come with this very call, as far as Temporal keeps it.

    `begun`: an attempt may have reached the outside, as its heartbeat or its end says.
    """
    made: Made = "no"
    escaped = call.identity.workflow_id.replace("\\", "\\\\").replace("'", "\\'")
    async for listed in client.list_workflows(f"WorkflowId = '{escaped}'"):
        if listed.run_id == run_id:
            continue
        handle = client.get_workflow_handle(listed.id, run_id=listed.run_id)
        scheduled: dict[int, str] = {}
        async for event in handle.fetch_history_events():
            if event.HasField("activity_task_scheduled_event_attributes"):
                attributes = event.activity_task_scheduled_event_attributes
                fields = attributes.header.fields
                if CALL_HEADER in fields and json.loads(fields[CALL_HEADER].data)["key"] == call.key:
                    scheduled[event.event_id] = attributes.activity_id
                    made = "scheduled"
            elif (ended := _ended(event)) in scheduled:
                if not event.HasField("activity_task_timed_out_event_attributes"):
                    return "begun"
                timeout = event.activity_task_timed_out_event_attributes.failure.timeout_failure_info
                if begun(await client.data_converter.decode(list(timeout.last_heartbeat_details.payloads))):
                    return "begun"
                del scheduled[ended]
        if not scheduled:
            continue
        # An execution that a reset has ended keeps what its activities had reported.
        described = await handle.describe()
        for pending in described.raw_description.pending_activities:
            if pending.activity_id in scheduled.values() and begun(
                await client.data_converter.decode(list(pending.heartbeat_details.payloads))
            ):
                return "begun"
    return made


def _ended(event: HistoryEvent) -> int:
    """Which activity the event says to be over, by its scheduling event; 0 for any other event."""
    for name in ("completed", "failed", "timed_out"):
        if event.HasField(f"activity_task_{name}_event_attributes"):  # type: ignore[arg-type]
            ended: int = getattr(event, f"activity_task_{name}_event_attributes").scheduled_event_id
            return ended
    return 0
