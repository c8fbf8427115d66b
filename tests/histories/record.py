"""
Record the histories that must replay for ever: `make histories`.

Each scenario is played on a real server and its history written into the folder
of today's series. A series is begun with every change of what a run commands
(`workflow.patched`), and an earlier one is never recorded again: a history that
no longer replays means that a release would break runs that are paused today.
"""

import asyncio
import base64
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release
from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from gatewright.temporal.process import leave
from tests.conftest import ATTRIBUTES, binary
from tests.effects.outside import FUNCTIONS, HEALED, Doing
from tests.temporal import pipelines
from tests.temporal.conversation import Conversation
from workflows import DatasetRelease

HERE = Path(__file__).parent
SERIES = HERE / "effects"
"""
Runs whose effects are planned in the ledger and whose failures ask a person.

`steady` are those before, since no command waits for a local activity, and
`first` those before them.
"""
ROOT = HERE.parents[1]
SCENARIOS: dict[str, Callable[[GateClient], Awaitable[Conversation]]] = {}


def scenario(play: Callable[[GateClient], Awaitable[Conversation]]) -> Callable[[GateClient], Awaitable[Conversation]]:
    """Play it and keep its history under its own name."""
    SCENARIOS[play.__name__] = play
    return play


async def opened(gates: GateClient, pipeline: str, given: Any = None) -> Conversation:
    """A run that was just opened."""
    return Conversation(gates, (await gates.start(pipeline, given)).workflow_id)


@scenario
async def reviewed_in_a_loop(gates: GateClient) -> Conversation:
    """Refusals of several kinds by both doors, a round that is not approved, a repeat, an effect."""
    run = await opened(gates, "Reviewed", "recorded")
    await run.opened("review")
    await run.handle.signal("answer")
    await run.handle.signal("aprove", {"interruptId": "review"})
    await run.refused("review", {"approved": "perhaps"}, principal="alice")
    await run.refused("review~2", {"approved": True}, principal="alice", signal=True)
    await run.admitted("review", {"approved": False}, answer_id="first", principal="alice")
    await run.opened("review~2")
    await run.say("review", {"approved": False}, answer_id="first", principal="alice")
    await run.admitted("review~2", {"result": '{"approved": "yes", "level": "4"}'}, principal="bob", signal=True)
    await run.result()
    return run


@scenario
async def two_gates_at_once(gates: GateClient) -> Conversation:
    """Answered one by one, in the other order."""
    run = await opened(gates, "TwoGates")
    await run.opened("left")
    await run.opened("right")
    await run.admitted("right", "R")
    await run.admitted("left", 1)
    await run.result()
    return run


@scenario
async def the_first_of_two_gates(gates: GateClient) -> Conversation:
    """The other one is superseded."""
    run = await opened(gates, "FirstOfTwo")
    await run.opened("left")
    await run.opened("right")
    await run.admitted("left", "L")
    await run.opened("end")
    await run.refused("right", "R")
    await run.admitted("end")
    await run.result()
    return run


@scenario
async def asked_again_by_its_type(gates: GateClient) -> Conversation:
    """A rule that no schema expresses, met by signal."""
    run = await opened(gates, "Checked")
    await run.opened("number")
    await run.admitted("number", {"number": 1}, signal=True)
    await run.opened("failed:number")
    await run.admitted("failed:number", {"number": 2})
    await run.result()
    return run


@scenario
async def a_job_that_failed(gates: GateClient) -> Conversation:
    """A typed failure through a system gate."""
    run = await opened(gates, "Job")
    await run.opened("job")
    await run.admitted("job", principal="system:job", failure={"type": "disk_full", "message": "no room"})
    await run.result()
    return run


@scenario
async def cancelled_at_its_gate(gates: GateClient) -> Conversation:
    """The run ends in its own way."""
    run = await opened(gates, "Reviewed", "cancelled")
    await run.opened("review")
    await gates.cancel(run.id, reason="recorded")
    try:
        await run.result()
    except Exception:
        return run
    raise AssertionError("it was not cancelled")


@scenario
async def the_last_of_three_executions(gates: GateClient) -> Conversation:
    """Continued as new twice, with its book."""
    run = await opened(gates, "Rolling", 3)
    for interrupt_id in ("round", "round~2", "round~3"):
        await run.opened(interrupt_id)
        await run.admitted(interrupt_id, 1)
    await run.result()
    return run


@scenario
async def dataset_release_revised_once(gates: GateClient) -> Conversation:
    """Profile, review, a misspelt column refused, revise, review again, release."""
    run = await opened(gates, "DatasetRelease", {"source": str(ROOT / "activities/sample/orders.csv")})
    await run.opened("review_profile")
    await run.refused("review_profile", {"mask": ["emial"]}, principal="ann")
    await run.admitted("review_profile", {"mask": ["email"]}, principal="ann")
    await run.opened("confirm_release")
    await run.admitted("confirm_release", {"decision": "revise", "comment": "drop the notes"}, principal="bob")
    await run.opened("review_profile~2")
    await run.admitted("review_profile~2", {"mask": ["email"], "drop": ["notes"]}, principal="ann")
    await run.opened("confirm_release~2")
    await run.admitted("confirm_release~2", {"decision": "release"}, principal="bob")
    await run.result()
    return run


async def doing(gates: GateClient, what: str, name: str, **options: Any) -> Conversation:
    """A run that performs one step or effect."""
    await gates.client.start_workflow("Doing", args=[what, name, options], id=f"{what}-{name}", task_queue="recorded")
    return Conversation(gates, f"{what}-{name}")


@scenario
async def an_effect_that_did_not_happen(gates: GateClient) -> Conversation:
    """Blocked, and made again under the next generation."""
    run = await doing(gates, "transfer", "again")
    await run.opened("blocked:transfer")
    await run.admitted("blocked:transfer", {"decision": "did_not_happen"}, principal="ops")
    await run.result()
    return run


@scenario
async def an_effect_that_happened(gates: GateClient) -> Conversation:
    """Blocked, and gone on with what somebody found out."""
    run = await doing(gates, "transfer", "happened")
    await run.opened("blocked:transfer")
    word = {"decision": "happened", "receipt": "t-1", "result": {"id": 1, "name": "happened"}}
    await run.admitted("blocked:transfer", word, principal="ops", signal=True)
    await run.result()
    return run


@scenario
async def an_effect_that_the_outside_was_asked_about(gates: GateClient) -> Conversation:
    """Its last attempt lost its word, and the outside knows."""
    run = await doing(gates, "asked", "asked")
    await run.result()
    return run


@scenario
async def a_keyed_effect_that_was_told_again(gates: GateClient) -> Conversation:
    """Failed after its attempts, and tried again under its own key."""
    run = await doing(gates, "keyed", "keyed")
    await run.opened("failed:keyed")
    HEALED.add("keyed")
    await run.admitted("failed:keyed", {"decision": "retry"}, principal="ops")
    await run.result()
    return run


@scenario
async def a_step_that_failed_twice_and_was_skipped(gates: GateClient) -> Conversation:
    """Tried again once, in vain."""
    run = await doing(gates, "stumble", "skipped", on_skip="without")
    await run.opened("failed:stumble")
    await run.admitted("failed:stumble", {"decision": "retry"}, principal="ops")
    await run.opened("failed:stumble~2")
    await run.admitted("failed:stumble~2", {"decision": "skip"}, principal="ops")
    await run.result()
    return run


@scenario
async def a_step_that_was_aborted(gates: GateClient) -> Conversation:
    """The run fails, as somebody said."""
    run = await doing(gates, "stumble", "aborted")
    await run.opened("failed:stumble")
    await run.admitted("failed:stumble", {"decision": "abort"}, principal="ops")
    try:
        await run.result()
    except Exception:
        return run
    raise AssertionError("it was not aborted")


def neutral(history: Any, places: dict[str, str]) -> Any:
    """The history without the names of the machine that recorded it, in its payloads too."""
    if isinstance(history, dict):
        plain = {key: neutral(value, places) for key, value in history.items()}
        if "@" in str(plain.get("identity", "")):
            plain["identity"] = "job"
        if isinstance(plain.get("data"), str) and "metadata" in plain:
            plain["data"] = renamed(plain["data"], places)
            plain["metadata"] = {name: renamed(value, places) for name, value in plain["metadata"].items()}
        return plain
    if isinstance(history, list):
        return [neutral(item, places) for item in history]
    if isinstance(history, str):
        for place, stand_in in places.items():
            history = history.replace(place, stand_in)
    return history


def renamed(encoded: str, places: dict[str, str]) -> str:
    """What is written in base64, with stand-ins for the places."""
    text = base64.b64decode(encoded)
    for place, stand_in in places.items():
        text = text.replace(place.encode(), stand_in.encode())
    return base64.b64encode(text).decode()


async def record() -> None:
    """Play every scenario and write its history."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = await stack.enter_async_context(
            await WorkflowEnvironment.start_local(
                dev_server_existing_path=binary("temporal"),
                ip="127.0.0.1",
                dev_server_log_level="never",
                search_attributes=ATTRIBUTES,
            )
        )
        address = server.client.service_client.config.target_host
        store = stack.enter_context(Store.open(f"{folder}/gatewright.db"))
        os.environ |= {
            "TEMPORAL_ADDRESS": address,
            "GATEWRIGHT_STORE": f"{folder}/gatewright.db",
            "GATEWRIGHT_DATA_DIR": f"{folder}/data",
        }
        client = await Client.connect(address, plugins=[GatewrightPlugin(store)], identity="recorder")
        gates = GateClient(client, store, task_queue="recorded")
        steps: list[Callable[..., Any]] = [
            profile_dataset,
            draft_notes,
            dispatch_transform,
            publish_release,
            *pipelines.STEPS,
            *FUNCTIONS.values(),
        ]
        await stack.enter_async_context(
            Worker(client, task_queue="recorded", workflows=[DatasetRelease, Doing, *pipelines.ALL], activities=steps)
        )
        SERIES.mkdir(exist_ok=True)
        for name, play in SCENARIOS.items():
            run = await play(gates)
            history = json.loads((await run.handle.fetch_history()).to_json())
            clean = neutral(history, {folder: "/srv/gatewright", str(ROOT): "/opt/gatewright"})
            (SERIES / f"{name}.json").write_text(json.dumps(clean, indent=1) + "\n")
            print(f"{name}: {len(clean['events'])} events")


if __name__ == "__main__":
    asyncio.run(record())
    leave(0)
