"""Deadlines, on the server that skips time: an hour passes in milliseconds."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.protocol import Refusal
from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.conftest import binary
from tests.temporal.conversation import Conversation
from tests.temporal.pipelines import ALL, STEPS


@pytest.fixture
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """A time-skipping server."""
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=binary("temporal-test-server")
    ) as environment:
        keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
        await environment.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                search_attributes={"GatewrightPipeline": keyword, "GatewrightSession": keyword},
                namespace=environment.client.namespace,
            )
        )
        yield environment


@pytest.fixture
async def hour(skipping: WorkflowEnvironment, store: Store) -> AsyncIterator[Any]:
    """`await hour(default)` opens a run whose gate waits for an hour, with a worker living."""
    # The server that skips time cannot list search attributes, so the plugin's check would have nobody to ask.
    plugin = GatewrightPlugin(store, check=False)
    client = await Client.connect(skipping.client.service_client.config.target_host, plugins=[plugin])
    gates = GateClient(client, store, task_queue="hours")
    async with Worker(client, task_queue="hours", workflows=ALL, activities=STEPS):

        async def opener(default: Any) -> Conversation:
            started = await gates.start("ByDeadline", default)
            run = Conversation(gates, started.workflow_id)
            await run.opened("review")
            return run

        yield opener


async def test_a_gate_without_a_default_expires(hour: Any, skipping: WorkflowEnvironment) -> None:
    """The pipeline is told, the late answer is refused, the run goes on."""
    run = await hour(None)
    await skipping.sleep(timedelta(hours=2))
    await run.opened("late")

    assert (await run.refused("review", {"approved": True})).refusal is Refusal.EXPIRED
    await run.admitted("late")
    assert "review" in await run.result()


async def test_a_default_answers_in_the_engines_name(hour: Any, skipping: WorkflowEnvironment) -> None:
    """It leaves a receipt that says so, and the pipeline continues with the value, its own defaults applied."""
    run = await hour({"approved": False})
    await skipping.sleep(timedelta(hours=2))

    assert await run.result() == "engine:deadline False"
    [receipt] = (await run.gates.receipts(run.id)).receipts
    assert receipt.responder is not None
    assert (receipt.responder.principal, receipt.responder.channel) == ("engine:deadline", "deadline")


async def test_an_answer_in_time_beats_the_deadline(hour: Any, skipping: WorkflowEnvironment) -> None:
    """After 59 minutes it still counts, and the timer changes nothing afterwards."""
    run = await hour({"approved": False})
    await skipping.sleep(timedelta(minutes=59))
    await run.admitted("review", {"approved": True}, principal="alice")
    await skipping.sleep(timedelta(hours=1))

    assert await run.result() == "alice True"


async def test_an_answer_that_meets_the_deadline_is_applied_once_or_refused(
    hour: Any, skipping: WorkflowEnvironment
) -> None:
    """Sent at the hour itself, ten times: what the sender was told is what the run went on with."""
    for n in range(10):
        run = await hour({"approved": False})
        sleeping = asyncio.create_task(skipping.sleep(timedelta(hours=1)))
        ruling = await run.say("review", {"approved": True}, principal="alice")
        await sleeping
        expected = "alice True" if ruling.verdict == "admitted" else "engine:deadline False"
        assert await run.result() == expected, f"round {n}: {ruling}"


async def test_the_engine_itself_is_nobody_who_may_answer(hour: Any) -> None:
    """Its principal in somebody else's message is not an answer: only admission's own default speaks for it."""
    run = await hour(None)

    refused = await run.refused("review", {"approved": True}, principal="engine:deadline")
    assert refused.refusal is Refusal.NOT_AN_ANSWER
