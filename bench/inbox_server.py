"""
`gatewright serve` as it is, in a process that tells how its feed stands: `python -m bench.inbox_server PORT QUEUE`.

Where Temporal and the store are, and the token, the environment says, as it
does for the command. Prints one line once it serves, and then each second a
line of JSON; SIGTERM stops it.
"""

import argparse
import asyncio
import json
import socket
from importlib import import_module

from fastapi import FastAPI

import gatewright.server
from bench.pipelines import Gated
from bench.worker import READY
from gatewright.cli.out import Out
from gatewright.cli.serve import Serving, serve
from gatewright.temporal.process import leave

EVERY = 1.0
"""How often it tells, in seconds."""

_serve = gatewright.server.serve


async def serve_and_tell(app: FastAPI, listening: socket.socket, stop: asyncio.Event) -> None:
    """Serve the app that the command made, and tell."""
    telling = asyncio.create_task(_tell(app))
    try:
        await _serve(app, listening, stop)
    finally:
        telling.cancel()


async def _tell(app: FastAPI) -> None:
    feed = app.state.inbox.feed
    print(READY, flush=True)  # noqa: T201 - whoever started it waits for this line
    while True:
        await asyncio.sleep(EVERY)
        told = {"polls": feed.polls, "listeners": feed.listeners, "version": feed.version}
        print(json.dumps(told), flush=True)  # noqa: T201 - read by whoever started it


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.inbox_server")
    parser.add_argument("port", type=int)
    parser.add_argument("queue")
    chosen = parser.parse_args()
    # The command looks its server up here when it begins to serve.
    vars(import_module("gatewright.server"))["serve"] = serve_and_tell
    out = Out()
    out.screen = out.aside
    wanted = Serving(apps=(f"bench={Gated.__name__}@{chosen.queue}",), port=chosen.port)
    leave(asyncio.run(serve(out, wanted)))


if __name__ == "__main__":
    main()
