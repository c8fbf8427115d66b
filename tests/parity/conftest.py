"""Both sides of a conversation: real ADK in this process, and a gateway with real workers."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from gatewright.adk import Gateway
from gatewright.temporal import GateClient
from tests.adk.pipelines import SAMPLES, apps

Serving = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def serving(client: Client, gates: GateClient, queue: str) -> Serving:
    """`async with serving("gated", ...) as gateway:` the samples of these names are worked on."""

    @asynccontextmanager
    async def samples(*names: str) -> AsyncIterator[Gateway]:
        async with AsyncExitStack() as stack:
            for name in names:
                workflow, activities = SAMPLES[name]
                worker = Worker(client, task_queue=f"{queue}-{name}", workflows=[workflow], activities=activities)
                await stack.enter_async_context(worker)
            yield Gateway(gates, [app for app in apps(queue) if app.name in names])

    return samples
