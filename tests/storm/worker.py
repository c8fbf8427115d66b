"""
The worker of the storm, a process that can be killed: `python -m tests.storm.worker`.

Reads TEMPORAL_ADDRESS, GATEWRIGHT_STORE and GATEWRIGHT_TASK_QUEUE. SIGTERM stops it gracefully.
"""

import asyncio
import os
import signal

from temporalio.client import Client
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GatewrightPlugin
from gatewright.temporal.process import leave
from tests.storm.pipeline import PIPELINES, STEPS
from tests.storm.process import READY


async def serve() -> None:
    """Poll until told to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with Store.open(os.environ["GATEWRIGHT_STORE"]) as store:
        client = await Client.connect(os.environ["TEMPORAL_ADDRESS"], plugins=[GatewrightPlugin(store)])
        queue = os.environ["GATEWRIGHT_TASK_QUEUE"]
        async with Worker(client, task_queue=queue, workflows=PIPELINES, activities=STEPS):
            print(READY, flush=True)
            await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve())
    leave(0)
