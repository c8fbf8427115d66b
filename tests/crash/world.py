"""One release in a world of its own: a worker that can be killed, barriers, a folder of jobs and releases."""

import asyncio
import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio.client import Client

from activities.jobs import JobFolder
from gatewright.protocol import Admitted, Answer, Verified, verify
from gatewright.store import Store
from gatewright.temporal import GateClient, GateView, GatewrightPlugin, NoWorkerError, UnknownRunError
from tests.crash.worker import LOG
from tests.storm.process import WorkerProcess, environment
from tests.temporal.conversation import PATIENCE, until


@dataclass
class World:
    """A worker, a client, and what the two have done."""

    folder: Path
    gates: GateClient
    worker: WorkerProcess
    run: str = ""
    crashes: Counter[str] = field(default_factory=Counter)
    """How often the worker died while this step or gate may have been at work."""
    verdicts: list[tuple[float, float]] = field(default_factory=list)
    """Of each answer given right after a crash: seconds from the kill, and from when the next worker polled, to its verdict."""
    killed_at: float = 0.0

    # What can be seen

    def executions(self) -> Counter[str]:
        """How often the work of each step was begun."""
        return Counter(words[1] for words in self._log() if words[0] == "begin")

    def _log(self) -> list[list[str]]:
        log = self.folder / LOG
        return [line.split() for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    @property
    def jobs(self) -> list[JobFolder]:
        """The folders of the jobs that were dispatched."""
        folder = self.folder / "data" / "jobs"
        return [JobFolder(path) for path in sorted(folder.iterdir())] if folder.exists() else []

    @property
    def releases(self) -> list[Path]:
        """What lies in the folder of releases, leftovers included."""
        folder = self.folder / "data" / "releases"
        return sorted(folder.iterdir()) if folder.exists() else []

    async def gate(self, interrupt_id: str, state: str = "open", *, seconds: float = 60) -> GateView:
        """Wait until an occurrence is open, or whatever else it is to be."""

        async def look() -> GateView | None:
            with contextlib.suppress(NoWorkerError, UnknownRunError):
                for gate in await self.gates.gates(self.run):
                    if gate.interrupt_id == interrupt_id and gate.state == state:
                        return gate
            return None

        view: GateView = await until(look, f"{interrupt_id} is {state}", seconds=seconds)
        return view

    async def job(self) -> int:
        """Wait for the first job to be started; its pid."""

        async def look() -> int | None:
            for folder in self.jobs:
                with contextlib.suppress(FileNotFoundError, ValueError):
                    return int((folder.path / "pid").read_text("utf-8"))
            return None

        pid: int = await until(look, "a job runs", seconds=60)
        return pid

    # What can be done

    def hold(self, point: str) -> None:
        """Put a barrier up."""
        (self.folder / f"hold-{point}").touch()

    async def kill_at(self, point: str) -> None:
        """Wait until a step stands at this barrier, kill -9 its worker, take the barrier away and start the next worker."""

        async def held() -> bool:
            return ["held", point] in [words[:2] for words in self._log()]

        await until(held, f"a step is held at {point}", seconds=60)
        await self.crash(point.partition(".")[0], between=(self.folder / f"hold-{point}").unlink)

    async def crash(self, *where: str, between: Callable[[], object] | None = None) -> None:
        """Kill -9 the worker, which may be at work at any of these, and start the next; `between` is done while none lives."""
        self.crashes.update(where)
        await self.worker.kill()
        self.killed_at = time.monotonic()
        if between is not None:
            between()
        await self.worker.start()

    async def answer(self, interrupt_id: str, response: Mapping[str, Any], *, timed: bool = False) -> None:
        """
        Answer well, and be admitted.

        Where the kill has hit the worker in the middle of a workflow task (the
        listing of a gate is a part of one), nobody else is given that task
        before its ten seconds are over.
        """
        began = time.monotonic()
        answer = Answer(
            answer_id=f"answer-to-{interrupt_id}",
            interrupt_id=interrupt_id,
            response=dict(response),
            principal="user:ann",
        )
        ruling = await self.gates.answer(self.run, answer, patience=PATIENCE)
        assert isinstance(ruling, Admitted), ruling
        if timed:
            self.verdicts.append((time.monotonic() - self.killed_at, time.monotonic() - began))

    # What is left at the end

    async def result(self) -> dict[str, Any]:
        """How the run ended."""
        async with asyncio.timeout(90):
            outcome: dict[str, Any] = await self.gates.client.get_workflow_handle(self.run).result()
            return outcome

    async def lanes(self) -> dict[str, list[str]]:
        """
        The transcript as kinds with interrupt ids and call ids, in order, by lane.

        The transform's gate and the dispatch of its job go on beside everything
        else, so what they are before and after differs from run to run.
        """
        lanes: dict[str, list[str]] = {"main": [], "transform": [], "dispatch": []}
        after, closed = 0, False
        while not closed:
            page = await self.gates.transcript(self.run, after)
            for entry in page.entries:
                name = entry.get("interrupt_id") or entry.get("call_id") or ""
                lane = {"dispatch_transform": "dispatch", "transform": "transform"}.get(
                    name.partition("#")[0].partition("~")[0]
                )
                lanes[lane or "main"].append(f"{entry['kind']} {name}".strip())
            after, closed = page.next, page.closed
        return lanes

    async def receipts(self) -> int:
        """How many receipts the run has; `AssertionError` where their chain does not hold."""
        verified = verify((await self.gates.receipts(self.run)).receipts)
        assert isinstance(verified, Verified), verified
        return verified.count


@asynccontextmanager
async def world(address: str, folder: Path, source: Path, *, minutes: float = 15) -> AsyncIterator[World]:
    """A run of the dataset release, opened before its first worker starts, so that barriers can be put up."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    url, queue = f"sqlite:///{folder}/gatewright.db", f"crash-{uuid4().hex[:12]}"
    told = environment(
        address, url, queue, CRASH_FOLDER=str(folder), GATEWRIGHT_DATA_DIR=str(folder / "data"), GATEWRIGHT_MODEL=""
    )
    with Store.open(url) as store:
        client = await Client.connect(address, plugins=[GatewrightPlugin(store)])
        gates = GateClient(client, store, task_queue=queue)
        async with WorkerProcess("tests.crash.worker", told, folder / "worker.log") as worker:
            made = World(folder, gates, worker)
            request = {"source": str(source), "transform_minutes": minutes}
            made.run = (await gates.start("DatasetRelease", request)).workflow_id
            try:
                yield made
            finally:
                await _clean_up(made)


async def _clean_up(made: World) -> None:
    """End the run, and the jobs that it leaves when a test fails."""
    with contextlib.suppress(Exception):
        await made.gates.client.get_workflow_handle(made.run).terminate("the test is over")
    for folder in made.jobs:
        lock = folder.lock()
        if lock is None:
            # The lock is held for as long as the process lives: the pid is still its own.
            os.kill(int((folder.path / "pid").read_text("utf-8")), signal.SIGKILL)
        else:
            os.close(lock)
