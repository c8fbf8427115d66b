"""The ASGI app on a socket, until it is told to stop."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

GRACE_SECONDS = 8
"""A little more than an answer waits for its verdict."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; `OSError` if the port is taken or the address is not this machine's."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=2048)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever called `serve`."""
        yield


async def serve(app: FastAPI, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; turns that are being followed end then, and what is being said is said to the end."""
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            # Otherwise whoever comes from loopback could say that it is somebody else's address.
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )

    async def end() -> None:
        await stop.wait()
        app.state.streams.stop()
        server.should_exit = True

    ending = asyncio.create_task(end())
    try:
        await server.serve(sockets=[listening])
    finally:
        ending.cancel()
