"""
One side's worker as a process of its own: `python -m bench.worker SIDE ADDRESS QUEUE [--store URL] [--cache N]`.

Prints one line once it polls; SIGTERM stops it.
"""

import argparse
import asyncio
import signal
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GatewrightPlugin
from gatewright.temporal.process import leave

READY = "ready"


async def serve(side: str, address: str, queue: str, store: str, options: dict[str, Any]) -> None:
    """Poll until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if side == "bare":
        from bench.pipelines import Bare, bare_step

        client = await Client.connect(address, data_converter=pydantic_data_converter)
        worker = Worker(client, task_queue=queue, workflows=[Bare], activities=[bare_step], **options)
    elif side == "gatewright":
        from bench.pipelines import Gated, gatewright_step

        client = await Client.connect(address, plugins=[GatewrightPlugin(Store.open(store))])
        worker = Worker(client, task_queue=queue, workflows=[Gated], activities=[gatewright_step], **options)
    else:
        from temporalio.google_adk import GoogleAdkPlugin

        from bench.graph import AdkOnTemporal, tga_step

        client = await Client.connect(address, plugins=[GoogleAdkPlugin()])
        worker = Worker(client, task_queue=queue, workflows=[AdkOnTemporal], activities=[tga_step], **options)
    async with worker:
        print(READY, flush=True)  # noqa: T201 - whoever started it waits for this line
        await stop.wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker")
    parser.add_argument("side", choices=["bare", "gatewright", "tga"])
    parser.add_argument("address")
    parser.add_argument("queue")
    parser.add_argument("--store", default="")
    parser.add_argument("--cache", type=int, default=None, help="max_cached_workflows; the SDK's default otherwise")
    chosen = parser.parse_args()
    options = {} if chosen.cache is None else {"max_cached_workflows": chosen.cache}
    asyncio.run(serve(chosen.side, chosen.address, chosen.queue, chosen.store, options))


if __name__ == "__main__":
    main()
    leave(0)
