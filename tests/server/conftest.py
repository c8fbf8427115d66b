"""The server on a port of its own, over the tests' Temporal and a worker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from gatewright.adk import Gateway
from gatewright.server import Security, bind, create_app, find_ui, serve
from gatewright.temporal import GateClient
from tests.server.pipelines import APPS, STEPS, WORKFLOWS
from tests.server.talk import Talk


@pytest.fixture
def gateway(gates: GateClient) -> Gateway:
    """The gateway over the test's own store and task queue."""
    return Gateway(gates, APPS)


@pytest.fixture
def app(gateway: Gateway) -> FastAPI:
    """The ASGI app, with ADK's UI."""
    return create_app(gateway, ui=find_ui())


@pytest.fixture
def asking(gateway: Gateway) -> Callable[..., httpx.AsyncClient]:
    """`asking(security)` is a client of an app with this security, without a network in between."""

    def client(security: Security | None = None, peer: str = "127.0.0.1", **options: Any) -> httpx.AsyncClient:
        app = create_app(gateway, security=security, ui=find_ui())
        transport = httpx.ASGITransport(app, client=(peer, 50000))
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", **options)

    return client


@pytest.fixture
async def worker(working: Any) -> AsyncIterator[None]:
    """A worker lives."""
    with ThreadPoolExecutor(4) as threads:
        async with working(WORKFLOWS, STEPS, activity_executor=threads):
            yield


@dataclass
class Served:
    """A server that runs."""

    url: str
    app: FastAPI
    stop: Callable[[], Awaitable[None]]


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[Served]:
    """The app on a free port; it has stopped in the end."""
    listening = bind("127.0.0.1", 0)
    stopping = asyncio.Event()
    with listening:
        serving = asyncio.create_task(serve(app, listening, stopping))

        async def stop() -> None:
            stopping.set()
            await serving

        try:
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", app, stop)
        finally:
            await stop()


@pytest.fixture
async def serving(app: FastAPI, worker: None) -> AsyncIterator[Served]:
    """The server, with a worker behind it."""
    async with served(app) as running:
        yield running


@pytest.fixture
async def talk(serving: Served) -> AsyncIterator[Talk]:
    """Somebody who talks to the server over the network."""
    async with httpx.AsyncClient(base_url=serving.url, timeout=60) as client:
        yield Talk(client, session=f"s-{uuid4().hex[:8]}")
