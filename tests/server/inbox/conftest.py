"""The inbox on a port of its own, with a worker behind it and people who can sign in."""

import asyncio
import hashlib
import html
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from gatewright.adk import Gateway
from gatewright.server import Settings, create_app
from gatewright.store import GateRow, SessionKey
from gatewright.temporal import GateClient
from tests.server.conftest import Served
from tests.server.inbox import pipelines
from tests.server.pipelines import APPS, STEPS, WORKFLOWS

TOKENS = {"ada": "token-of-ada-0123456789", "bob": "token-of-bob-0123456789"}
SETTINGS = Settings(
    tokens={hashlib.sha256(token.encode()).digest(): name for name, token in TOKENS.items()},
    temporal_ui="http://127.0.0.1:8233",
)


@pytest.fixture
def gateway(gates: GateClient) -> Gateway:
    """The gateway, with the pipelines of the inbox's tests too."""
    return Gateway(gates, [*APPS, *pipelines.APPS])


@pytest.fixture
def app(gateway: Gateway) -> FastAPI:
    """The ASGI app with an inbox."""
    return create_app(gateway, inbox=SETTINGS)


@pytest.fixture
async def worker(working: Any) -> AsyncIterator[None]:
    """A worker lives."""
    with ThreadPoolExecutor(4) as threads:
        async with working([*WORKFLOWS, *pipelines.WORKFLOWS], STEPS, activity_executor=threads):
            yield


@dataclass
class Person:
    """Somebody with a browser that has no JavaScript."""

    name: str
    client: httpx.AsyncClient

    async def get(self, row: GateRow | str, **headers: str) -> httpx.Response:
        """A gate's page, or any other."""
        return await self.client.get(row if isinstance(row, str) else gate_path(row), headers=headers)

    async def fill(self, row: GateRow, changes: dict[str, str], page: str | None = None) -> httpx.Response:
        """Open the gate's page (or take one that was opened before), fill the form in, and send it."""
        page = (await self.get(row)).text if page is None else page
        hidden = {name: hidden_field(page, name) for name in ("seal", "nonce", "digest")}
        return await self.client.post(gate_path(row), data=hidden | {"as": "form"} | changes)


def hidden_field(page: str, name: str) -> str:
    """What a hidden field of a page holds."""
    found = re.search(rf'<input type="hidden" name="{name}" value="([^"]*)"', page)
    assert found, f"the page has no hidden field {name}"
    return html.unescape(found[1])


def gate_path(row: GateRow) -> str:
    """A gate's page."""
    return str(httpx.URL("/inbox/gate", params={"run": row.workflow_id, "id": row.interrupt_id}))


@pytest.fixture
async def person(serving: Served) -> AsyncIterator[Callable[[str], Awaitable[Person]]]:
    """`await person("ada")` signs in."""
    async with AsyncExitStack() as ends:

        async def signed_in(name: str) -> Person:
            client = await ends.enter_async_context(httpx.AsyncClient(base_url=serving.url, timeout=30))
            entered = await client.get("/inbox", params={"token": TOKENS[name]})
            assert entered.status_code == 303
            return Person(name, client)

        yield signed_in


@pytest.fixture
def stopped_at(gates: GateClient) -> Callable[..., Awaitable[GateRow]]:
    """`await stopped_at("Asking", "asking")` opens a run and gives its first gate, as the index lists it."""

    async def stopped(pipeline: str, app: str, gate: str | None = None) -> GateRow:
        key = SessionKey(app=app, user="user", session=uuid4().hex[:8])
        started = await gates.start(pipeline, "text", session=key)
        return await listed(gates, started.workflow_id, gate)

    return stopped


async def listed(gates: GateClient, run: str, gate: str | None = None, *, other_than: str = "") -> GateRow:
    """The run's open gate once the index lists it."""
    async with asyncio.timeout(20):
        while True:
            for row in gates.store.gates(run=run, states=("open",)):
                if gate in (None, row.gate) and row.interrupt_id != other_than:
                    return row
            await asyncio.sleep(0.05)
