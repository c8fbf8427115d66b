"""Temporal's own limits on a run are met by going another way, and not by losing an answer."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from time import monotonic

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.conftest import ATTRIBUTES, binary
from tests.temporal.conversation import Conversation
from tests.temporal.pipelines import ALL, STEPS


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Conversation]:
    """A run on a server that takes three updates for each run, and no more."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"),
        ip="127.0.0.1",
        dev_server_log_level="never",
        search_attributes=ATTRIBUTES,
        dev_server_extra_args=["--dynamic-config-value", "history.maxTotalUpdates=3"],
    ) as server:
        with Store.open(str(tmp_path / "gatewright.db")) as store:
            address = server.client.service_client.config.target_host
            client = await Client.connect(address, plugins=[GatewrightPlugin(store)])
            gates = GateClient(client, store, task_queue="limits", patience=timedelta(seconds=20))
            async with Worker(client, task_queue="limits", workflows=ALL, activities=STEPS):
                started = await gates.start("Reviewed", "limits")
                yield Conversation(gates, started.workflow_id)


async def test_beyond_the_updates_that_a_run_may_have_answers_go_as_signals(run: Conversation) -> None:
    """The verdict is read back, at once, and every answer counts once."""
    await run.opened("review")
    await run.admitted("review", {"approved": False})
    for visit in range(2, 7):
        await run.opened(f"review~{visit}")
        since = monotonic()
        await run.admitted(f"review~{visit}", {"approved": visit == 6})
        # Far within the patience of 20 s: the limit is recognised and not waited for.
        assert monotonic() - since < 8

    assert await run.result() == "paid 1"
    doors = {receipt.responder.door for receipt in (await run.gates.receipts(run.id)).receipts if receipt.responder}
    assert doors == {"update", "signal"}
