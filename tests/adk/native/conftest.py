"""The samples behind ADK's own classes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from gatewright.adk import Gateway

if TYPE_CHECKING:
    from gatewright.adk.native import TemporalRunner


@pytest.fixture
def runner(gateway: Gateway, workers: None) -> "TemporalRunner":
    """The gated sample's runner."""
    # The extra may be missing: the tests then skip, and this file must not fail.
    from gatewright.adk.native import TemporalRunner

    return TemporalRunner(gateway, "gated")


@pytest.fixture
def port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@asynccontextmanager
async def served(app: Any, port: int) -> AsyncIterator[str]:
    """The address of an ASGI app that is served by uvicorn."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", ws="none"))
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await serving
