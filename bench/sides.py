"""
Who is measured: each side opens runs, answers their gates and says when the run has paused again.

Every side's worker is a process of its own. On Temporal, a run has paused when
the server knows of no workflow task and no activity of it: one
`DescribeWorkflowExecution` every few milliseconds, which costs a worker nothing
and is the same for every side.
"""

import asyncio
import json
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4  # noqa: TID251 - a client mints ids

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.contrib.pydantic import pydantic_data_converter

from bench.pipelines import GATE, Bare, Gated
from gatewright.protocol import Admitted, Answer, Occurrence
from gatewright.store import SessionKey, Store
from gatewright.temporal import GateClient, GatewrightPlugin

POLL_SECONDS = 0.003
"""How often a run is looked at until it has paused; `throughput` looks less often, because it looks at many."""


START_SECONDS = 60.0
"""How long a worker may take until it is ready."""


class CutOff(Exception):  # noqa: N818 - it says what was done, not what was wrong
    """A side took longer than it may, or failed; what it was at is told."""


@dataclass(frozen=True)
class Timing:
    """Seconds from the answer until its verdict (None where a side has none) and until the run paused again."""

    verdict: float | None
    pause: float


class Process:
    """A child that says `ready`; what it complains of goes to a file."""

    def __init__(self, module: str, *args: str, log: Path) -> None:
        self._command = [sys.executable, "-W", "ignore", "-m", module, *args]
        self._log = log
        self._child: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it is ready; `CutOff` with the place of its last words where it ends instead."""
        with self._log.open("ab") as log:
            self._child = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        async with asyncio.timeout(START_SECONDS):
            word = (await self.line()).strip()
        if word != "ready":
            words = self._log.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise CutOff(f"its worker did not start: {' '.join(words)}")

    @property
    def pid(self) -> int:
        """Its number; 0 where it does not run."""
        return 0 if self._child is None else self._child.pid

    async def line(self) -> str:
        """The next line that it prints; empty at the end."""
        if self._child is None or self._child.stdout is None:
            return ""
        return (await self._child.stdout.readline()).decode()

    def tell(self, line: str) -> None:
        """Write one line to it."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.write(f"{line}\n".encode())

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL after ten seconds."""
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            child.terminate()
            try:
                async with asyncio.timeout(10):
                    await child.wait()
            except TimeoutError:
                child.kill()
                await child.wait()

    async def kill(self) -> None:
        """SIGKILL."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            await child.wait()


class Side(ABC):
    """One way to run the pipeline."""

    name: str
    label: str
    process: Process
    on_temporal = False
    keeps = True
    """Whether its runs outlive its process."""

    @abstractmethod
    async def start(self, *, cache: int | None = None) -> None:
        """Start its worker; `cache` bounds how many runs it keeps in memory (Temporal only)."""

    @abstractmethod
    async def open(self, run: str, gates: int, *, poll: float = POLL_SECONDS) -> None:
        """Open a run of so many gates and wait until it is at its first."""

    @abstractmethod
    async def answer(self, run: str, number: int, gates: int, *, poll: float = POLL_SECONDS) -> Timing:
        """Answer its gate of this number, and wait until the run is at its next or over."""

    async def events(self, run: str) -> int | None:  # noqa: ARG002 - only Temporal has a history
        """How long the run's history is by now; None where there is none."""
        return None

    async def stop(self) -> None:
        """End its worker in good order."""
        await self.process.stop()

    async def kill(self) -> None:
        """End its worker in no order at all."""
        await self.process.kill()


class OnTemporal(Side):
    """What the sides on Temporal have in common."""

    on_temporal = True

    def __init__(self, name: str, label: str, address: str, folder: Path) -> None:
        self.name = name
        self.label = label
        self.queue = f"bench-{name}-{uuid4().hex[:6]}"
        self.store_url = f"sqlite:///{folder}/{name}-store.db"
        self._address = address
        self._log = folder / f"{name}.log"
        self.client: Client

    async def connect(self) -> None:
        """Connect the one that answers."""
        self.client = await Client.connect(self._address, data_converter=pydantic_data_converter)

    async def start(self, *, cache: int | None = None) -> None:
        """See base class."""
        options = [] if cache is None else ["--cache", str(cache)]
        args = [self.name, self._address, self.queue, "--store", self.store_url, *options]
        self.process = Process("bench.worker", *args, log=self._log)
        await self.process.start()

    async def open(self, run: str, gates: int, *, poll: float = POLL_SECONDS) -> None:
        """See base class."""
        await self.begin(run, gates)
        await self.paused(run, poll)

    async def answer(self, run: str, number: int, gates: int, *, poll: float = POLL_SECONDS) -> Timing:  # noqa: ARG002
        """See base class."""
        began = time.perf_counter()
        await self.say(run, number)
        verdict = time.perf_counter() - began
        await self.paused(run, poll)
        return Timing(verdict, time.perf_counter() - began)

    async def paused(self, run: str, poll: float) -> None:
        """Wait until the run waits for somebody, or is over."""
        handle = self.client.get_workflow_handle(run)
        while True:
            described = await handle.describe()
            raw = described.raw_description
            idle = not raw.pending_activities and not raw.HasField("pending_workflow_task")
            if described.status is not WorkflowExecutionStatus.RUNNING or idle:
                return
            if raw.pending_workflow_task.attempt > 3:
                raise CutOff(f"its workflow task fails (attempt {raw.pending_workflow_task.attempt})")
            await asyncio.sleep(poll)

    async def events(self, run: str) -> int | None:
        """See base class."""
        return (await self.client.get_workflow_handle(run).describe()).history_length

    @abstractmethod
    async def begin(self, run: str, gates: int) -> None:
        """Start the run."""

    @abstractmethod
    async def say(self, run: str, number: int) -> None:
        """Send the answer and wait for the verdict."""


class BareSide(OnTemporal):
    """Temporal by hand."""

    async def begin(self, run: str, gates: int) -> None:
        """See base class."""
        await self.client.start_workflow(Bare.run, gates, id=run, task_queue=self.queue)

    async def say(self, run: str, number: int) -> None:
        """See base class."""
        handle = self.client.get_workflow_handle_for(Bare.run, run)
        await handle.execute_update(Bare.answer, args=[number, {"approved": True, "number": number}])


class GatewrightSide(OnTemporal):
    """The library as its users use it: store, client, plugin."""

    async def connect(self) -> None:
        """See base class."""
        store = Store.open(self.store_url)
        self.client = await Client.connect(self._address, plugins=[GatewrightPlugin(store)])
        self.gates = GateClient(self.client, store, task_queue=self.queue)

    async def begin(self, run: str, gates: int) -> None:
        """See base class."""
        key, _ = SessionKey.of_workflow(run)
        started = await self.gates.start(Gated.__name__, gates, session=key)
        if started.workflow_id != run:
            raise CutOff(f"the run was named {started.workflow_id}, not {run}")

    async def say(self, run: str, number: int) -> None:
        """See base class."""
        response = {"approved": True, "number": number}
        interrupt_id = Occurrence(gate=GATE, run=1, visit=number).interrupt_id
        answer = Answer(interrupt_id=interrupt_id, response=response, principal="user:bench", answer_id=uuid4().hex)
        ruling = await self.gates.answer(run, answer)
        if not isinstance(ruling, Admitted):
            raise CutOff(f"answer {number} was not admitted: {ruling!r}"[:300])


class TgaSide(OnTemporal):
    """ADK's graph inside a Temporal workflow."""

    async def begin(self, run: str, gates: int) -> None:
        """See base class."""
        await self.client.start_workflow("AdkOnTemporal", gates, id=run, task_queue=self.queue)

    async def say(self, run: str, number: int) -> None:
        """See base class."""
        response = {"approved": True, "number": number}
        handle = self.client.get_workflow_handle(run)
        await handle.execute_update("respond", args=[f"review-{number}", response])


class AdkSide(Side):
    """ADK's own runner over one of its session services."""

    def __init__(self, name: str, label: str, folder: Path) -> None:
        self.name = name
        self.label = label
        self.keeps = name != "adk-memory"
        self._file = folder / f"{name}.db"
        self._log = folder / f"{name}.log"
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[str | None]] = {}
        self._listening: asyncio.Task[None] | None = None

    async def start(self, *, cache: int | None = None) -> None:  # noqa: ARG002 - ADK has no such thing
        """See base class."""
        kind = self.name.removeprefix("adk-")
        self.process = Process("bench.adk_worker", kind, str(self._file), log=self._log)
        await self.process.start()
        self._listening = asyncio.create_task(self._listen())

    async def open(self, run: str, gates: int, *, poll: float = POLL_SECONDS) -> None:  # noqa: ARG002
        """See base class."""
        await self._command(run, 0, gates)

    async def answer(self, run: str, number: int, gates: int, *, poll: float = POLL_SECONDS) -> Timing:  # noqa: ARG002
        """See base class."""
        began = time.perf_counter()
        await self._command(run, number, gates)
        return Timing(None, time.perf_counter() - began)

    async def stop(self) -> None:
        """See base class."""
        await super().stop()
        if self._listening is not None:
            await self._listening

    async def _command(self, run: str, number: int, gates: int) -> None:
        mine = next(self._numbers)
        reply = self._waiting[mine] = asyncio.get_running_loop().create_future()
        self.process.tell(json.dumps({"id": mine, "run": run, "number": number, "gates": gates}))
        if error := await reply:
            raise CutOff(error)

    async def _listen(self) -> None:
        while line := await self.process.line():
            reply: dict[str, Any] = json.loads(line)
            future = self._waiting.pop(reply["id"])
            if not future.done():
                future.set_result(reply["error"])
        for future in self._waiting.values():
            if not future.done():
                future.set_result("its process ended")
        self._waiting.clear()


async def sides(names: list[str], address: str, folder: Path) -> list[Side]:
    """The sides of these names, in this order, ready to be started."""
    temporal: dict[str, tuple[type[OnTemporal], str]] = {
        "bare": (BareSide, "bare Temporal"),
        "gatewright": (GatewrightSide, "Gatewright"),
        "tga": (TgaSide, "temporalio-google-adk"),
    }
    adk = {
        "adk-memory": "ADK in memory",
        "adk-sqlite": "ADK SqliteSessionService",
        "adk-database": "ADK DatabaseSessionService",
    }
    made: list[Side] = []
    for name in names:
        if name in temporal:
            kind, label = temporal[name]
            side = kind(name, label, address, folder)
            await side.connect()
            made.append(side)
        else:
            made.append(AdkSide(name, adk[name], folder))
    return made


NAMES = ["bare", "gatewright", "tga", "adk-memory", "adk-sqlite", "adk-database"]


def run_name(side: Side) -> str:
    """An id for a new run, in the form that Gatewright's own runs have."""
    return f"bench/{side.name}/{uuid4().hex[:12]}/1"
