"""How the sandbox is entered for a run, and for its payloads."""

import base64
from collections.abc import Sequence
from dataclasses import replace

from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import PayloadCodec, SerializationContext, WithSerializationContext
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker, WorkflowInstance
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from gatewright.temporal.sandbox import PlainSandbox, lightened
from tests.temporal.conversation import Conversation
from tests.temporal.pipelines import ALL, STEPS


class ByContext(PayloadCodec, WithSerializationContext):
    """Encodes for the workflow, or the activity, that the payload belongs to, and for nobody else."""

    def __init__(self, context: SerializationContext | None = None) -> None:
        self.name = type(context).__name__ if context else "nobody"

    def with_context(self, context: SerializationContext) -> "ByContext":
        """See base class."""
        return ByContext(context)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See base class."""
        return [
            Payload(
                metadata={"encoding": b"by-context", "for": self.name.encode()},
                data=base64.b64encode(payload.SerializeToString()),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See base class."""
        decoded = []
        for payload in payloads:
            assert payload.metadata["for"] == self.name.encode()
            decoded.append(Payload.FromString(base64.b64decode(payload.data)))
        return decoded


async def test_a_codec_is_still_told_whose_payload_it_has(address: str, store: Store, queue: str) -> None:
    """Only without a codec is the sandbox not asked."""
    converter = replace(pydantic_data_converter, payload_codec=ByContext())
    client = await Client.connect(address, plugins=[GatewrightPlugin(store)], data_converter=converter)
    gates = GateClient(client, store, task_queue=queue)
    async with Worker(client, task_queue=queue, workflows=ALL, activities=STEPS) as worker:
        assert not isinstance(worker.config(active_config=True).get("workflow_runner"), PlainSandbox)
        run = Conversation(gates, (await gates.start("Reviewed", "by context")).workflow_id)
        await run.opened("review")
        await run.admitted("review", {"approved": True, "level": 2}, principal="alice")
        assert await run.result() == "paid 2"


async def test_worker_and_replayer_are_given_the_light_sandbox(client: Client, queue: str) -> None:
    """The plugin's own converter has no codec."""
    worker = Worker(client, task_queue=queue, workflows=ALL, activities=STEPS)
    replayer = Replayer(workflows=ALL, plugins=[GatewrightPlugin()])

    for config in (worker.config(active_config=True), replayer.config(active_config=True)):
        assert isinstance(config.get("workflow_runner"), PlainSandbox)


def test_the_sandbox_is_lightened_only_where_nobody_uses_what_it_leaves_out() -> None:
    """And only Temporal's own; the names that are left out are those of the SDK."""
    own = SandboxedWorkflowRunner()
    coded = replace(pydantic_data_converter, payload_codec=ByContext())
    without = UnsandboxedWorkflowRunner()

    class Mine(SandboxedWorkflowRunner):
        pass

    assert isinstance(lightened(own, pydantic_data_converter), PlainSandbox)
    assert lightened(own, coded) is own
    assert lightened(without, pydantic_data_converter) is without
    assert type(lightened(Mine(), pydantic_data_converter)) is Mine
    for name in ("get_serialization_context", "get_external_store_context"):
        assert callable(getattr(WorkflowInstance, name))
