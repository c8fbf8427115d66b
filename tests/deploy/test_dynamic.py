"""What the dynamic configuration is for: no update blocks the run that it is sent to."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ruamel.yaml import YAML
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.update.v1 import Input, Meta, Request
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.conftest import ATTRIBUTES, binary
from tests.temporal.conversation import Conversation
from tests.temporal.pipelines import Quick

FILE = Path(__file__).parents[2] / "deploy" / "temporal" / "dynamic.yaml"


@pytest.fixture
async def configured(store: Store) -> AsyncIterator[Client]:
    """A server with the values of the file."""
    values: dict[str, list[dict[str, Any]]] = YAML(typ="safe").load(FILE)
    flags = [f"{key}={entries[0]['value']}" for key, entries in values.items()]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"),
        ip="127.0.0.1",
        dev_server_log_level="never",
        search_attributes=ATTRIBUTES,
        dev_server_extra_args=[word for flag in flags for word in ("--dynamic-config-value", flag)],
    ) as environment:
        yield await Client.connect(
            str(environment.client.service_client.config.target_host), plugins=[GatewrightPlugin(store)]
        )


async def send(client: Client, run: str, size: int) -> Any:
    """Send an update of about this many bytes, once: the SDK would repeat a refusal for 14 seconds."""
    data = b'{"interruptId": "go", "response": "' + b"x" * size + b'"}'
    return await client.workflow_service.update_workflow_execution(
        UpdateWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run),
            request=Request(
                meta=Meta(update_id=uuid4().hex, identity="test"),
                input=Input(
                    name="answer",
                    args=Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=data)]),
                ),
            ),
        ),
        retry=False,
    )


@pytest.mark.parametrize("size", [1_998_000, 2_005_000, 2_200_000, 3_000_000])
async def test_the_next_answer_waits_for_no_oversized_update(
    configured: Client, store: Store, queue: str, size: int
) -> None:
    """
    Each is refused, by the run up to the bound and by the server beyond it, and the good answer counts at once.

    With the server's defaults the two larger ones block the run for 15 seconds and more.
    """
    run = f"oversized-{size}"
    async with Worker(configured, task_queue=queue, workflows=[Quick]):
        handle = await configured.start_workflow(Quick.run, id=run, task_queue=queue)
        await Conversation(GateClient(configured, store, task_queue=queue), run).opened("go")
        if size < 2_000_000:
            answered = await send(configured, run, size)
            assert "too_large" in answered.outcome.failure.message
        else:
            with pytest.raises(RPCError, match="total payload size of in-flight updates") as refused:
                await send(configured, run, size)
            assert RPCStatusCode.RESOURCE_EXHAUSTED == refused.value.status
        began = time.monotonic()
        await handle.execute_update("answer", {"interruptId": "go", "response": "yes"})

        assert "yes" == await handle.result()
        assert time.monotonic() - began < 5
