"""What a Temporal application is given, and what it is told when something is missing."""

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin, SetupError
from gatewright.temporal.plugin import STICKY_TIMEOUT
from tests.conftest import binary
from tests.temporal.conversation import Conversation, until
from tests.temporal.pipelines import ALL, COUNTED, STEPS


async def test_a_server_without_our_search_attributes_is_named_at_the_start(store: Store) -> None:
    """Each attribute that is missing, with the command that makes it."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"), ip="127.0.0.1", dev_server_log_level="never"
    ) as bare:
        client = await Client.connect(bare.client.service_client.config.target_host, plugins=[GatewrightPlugin(store)])
        worker = Worker(client, task_queue="q", workflows=ALL, activities=STEPS)
        with pytest.raises(SetupError) as missing:
            await worker.run()

        assert "search-attribute create --namespace default --name GatewrightPipeline --type Keyword" in str(
            missing.value
        )
        assert "GatewrightSession" in str(missing.value)
        gates = GateClient(client, store, task_queue="q")
        with pytest.raises(SetupError, match="GatewrightPipeline"):
            await gates.start("Quick")


async def test_a_worker_without_the_plugin_holds_the_run_up_and_says_why(
    address: str, open_run: object, gates: GateClient, queue: str, store: Store
) -> None:
    """Its task fails with the way out, until a worker that is set up takes it: the run is not lost."""
    from temporalio.contrib.pydantic import pydantic_data_converter

    bare = await Client.connect(address, data_converter=pydantic_data_converter)
    started = await gates.start("Quick")
    run = Conversation(gates, started.workflow_id)
    from temporalio.worker import UnsandboxedWorkflowRunner

    async with Worker(
        bare, task_queue=queue, workflows=ALL, activities=[], workflow_runner=UnsandboxedWorkflowRunner()
    ):

        async def failing() -> str | None:
            async for event in run.handle.fetch_history_events():
                if event.HasField("workflow_task_failed_event_attributes"):
                    return str(event.workflow_task_failed_event_attributes.failure.message)
            return None

        assert "GatewrightPlugin" in await until(failing, "the task fails")
    plugged = await Client.connect(address, plugins=[GatewrightPlugin(store)])
    async with Worker(plugged, task_queue=queue, workflows=ALL, activities=STEPS):
        await run.opened("go")
        await run.admitted("go", 1)
        assert await run.result() == 1


async def test_without_a_store_gates_work_and_effects_are_refused(address: str, gates: GateClient, queue: str) -> None:
    """An effect is never performed unrecorded: the run says what to do, and goes on when that is done."""
    unlisted = await Client.connect(address, plugins=[GatewrightPlugin()])
    async with Worker(unlisted, task_queue=queue, workflows=ALL, activities=STEPS):
        started = await gates.start("Reviewed", "no store")
        run = Conversation(gates, started.workflow_id)
        await run.opened("review")
        await run.admitted("review", {"approved": True})
        refused = await run.opened("failed:pay")
        assert "GatewrightPlugin(store=...)" in str(refused.message)
        assert "known not to have happened" in str(refused.message)
        assert COUNTED["no store paid"] == 0
    async with Worker(gates.client, task_queue=queue, workflows=ALL, activities=STEPS):
        await run.admitted("failed:pay", {"decision": "retry"})
        assert await run.result() == "paid 1"


async def test_the_plugin_keeps_what_the_application_chose(client: Client, queue: str) -> None:
    """A short sticky time-out where none was set; the application's own stays."""
    from datetime import timedelta

    worker = Worker(client, task_queue=queue, workflows=ALL, activities=STEPS)
    assert worker.config(active_config=True)["sticky_queue_schedule_to_start_timeout"] == STICKY_TIMEOUT
    own = Worker(
        client,
        task_queue=f"own-{queue}",
        workflows=ALL,
        activities=STEPS,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=7),
    )
    assert own.config(active_config=True)["sticky_queue_schedule_to_start_timeout"] == timedelta(seconds=7)
