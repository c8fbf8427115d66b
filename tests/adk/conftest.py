"""The samples on a real server, behind a gateway."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from gatewright.adk import Gateway
from gatewright.temporal import GateClient
from tests.adk.conversing import Talk
from tests.adk.pipelines import SAMPLES, apps


@pytest.fixture
def gateway(gates: GateClient, queue: str) -> Gateway:
    """The samples' gateway; nobody works yet."""
    return Gateway(gates, apps(queue))


@pytest.fixture
async def workers(client: Client, queue: str) -> AsyncIterator[None]:
    """A worker for each sample."""
    async with AsyncExitStack() as stack:
        for name, (workflow, activities) in SAMPLES.items():
            worker = Worker(client, task_queue=f"{queue}-{name}", workflows=[workflow], activities=activities)
            await stack.enter_async_context(worker)
        yield


@pytest.fixture
def talk(gateway: Gateway, workers: None) -> Callable[..., Talk]:
    """`talk("gated")` begins a conversation with a sample, in a session of its own."""

    def begin(app: str, *, user: str = "user", gateway: Gateway = gateway) -> Talk:
        return Talk(gateway, app, user, f"s-{uuid4().hex[:12]}")

    return begin
