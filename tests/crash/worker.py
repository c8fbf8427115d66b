"""
The worker of the dataset release with barriers in it, to be killed at them: `python -m tests.crash.worker`.

Like `python -m worker`, but around each step it writes what it does to
CRASH_FOLDER/steps.txt, and waits in the middle of a step for as long as
CRASH_FOLDER/hold-STEP.PLACE exists. The places:

    before     in the step, before its work
    after      in the step, its work done (for an effect: done, and not in the ledger yet)
    recorded   its work done and, for an effect, in the ledger; Temporal does not know yet
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.plugin import SimplePlugin
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor, Worker

from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release
from gatewright.store import Store
from gatewright.temporal import GatewrightPlugin
from gatewright.temporal.process import leave
from tests.storm.process import READY
from workflows import ALL

STEPS: list[Callable[..., Any]] = [profile_dataset, draft_notes, dispatch_transform, publish_release]
NAMES = {step.__name__ for step in STEPS}
LOG = "steps.txt"


class Barriers(Interceptor):
    """Waits around every step's work, or (`outside`) around that and what the ledger does about it."""

    def __init__(self, folder: Path, *, outside: bool) -> None:
        self.folder = folder
        self.outside = outside

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See base class."""
        return _Held(next, self)

    def write(self, line: str) -> None:
        """One line that a kill cannot cut."""
        with (self.folder / LOG).open("a", encoding="utf-8") as log:
            log.write(f"{line} {os.getpid()}\n")

    async def hold(self, step: str, place: str) -> None:
        """Wait for as long as the barrier is there."""
        barrier = self.folder / f"hold-{step}.{place}"
        if barrier.exists():
            self.write(f"held {step}.{place}")
            while barrier.exists():
                await asyncio.sleep(0.02)


class _Held(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, barriers: Barriers) -> None:
        super().__init__(next)
        self._barriers = barriers

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        name = activity.info().activity_type
        if name not in NAMES:
            return await self.next.execute_activity(input)
        if self._barriers.outside:
            result = await self.next.execute_activity(input)
            await self._barriers.hold(name, "recorded")
            return result
        self._barriers.write(f"begin {name}")
        await self._barriers.hold(name, "before")
        result = await self.next.execute_activity(input)
        await self._barriers.hold(name, "after")
        self._barriers.write(f"end {name}")
        return result


async def serve() -> None:
    """Poll until told to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    folder = Path(os.environ["CRASH_FOLDER"])
    with Store.open(os.environ["GATEWRIGHT_STORE"]) as store:
        client = await Client.connect(os.environ["TEMPORAL_ADDRESS"], plugins=[GatewrightPlugin(store)])
        worker = Worker(
            client,
            task_queue=os.environ["GATEWRIGHT_TASK_QUEUE"],
            workflows=ALL,
            activities=STEPS,
            # Interceptors that a plugin of the worker's brings come after the client's plugin: inside the ledger.
            interceptors=[Barriers(folder, outside=True)],
            plugins=[SimplePlugin("barriers", interceptors=[Barriers(folder, outside=False)])],
        )
        async with worker:
            print(READY, flush=True)
            await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve())
    leave(0)
