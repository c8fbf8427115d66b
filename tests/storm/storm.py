"""
The storm: hostile messages by every channel against paused runs, with a worker that is restarted, killed and away.

The claim: nothing that is sent to a paused run can restart, poison, cross or
lose it. Counted outside Temporal: each first step once, each effect once.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from temporalio.client import Client

from gatewright.store import SessionKey, Store
from gatewright.temporal import GateClient, GatewrightPlugin, RunView
from tests.storm.arms import UPDATES, Shot, Target, arms
from tests.storm.channels import Channels, Told
from tests.storm.pipeline import ACTED, STARTED
from tests.storm.process import WorkerProcess, environment
from tests.storm.races import race
from tests.storm.runs import PATH, Stage
from tests.storm.tally import Owed, Tally
from tests.temporal.conversation import until

BATCH = 12
AT_ONCE = 6
"""Temporal takes 10 updates in flight per run."""

KEPT = 40
"""From how many refusals of one gate on the run turns further ones away unrecorded."""


class StormLostError(AssertionError):
    """A message got through; to go on would only blame those that came after it."""


class Storm:
    """One storm of so many messages against the server at `address`; `folder` takes the store, counters and log. `progress` is told how many went out."""

    def __init__(
        self,
        address: str,
        binary: str,
        folder: Path,
        *,
        messages: int,
        seed: int,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._address = address
        self._binary = binary
        self._folder = folder
        self._messages = messages
        self._dice = random.Random(seed)  # noqa: S311 - a storm can be had again
        self._owed: dict[str, Owed] = {}
        self._progress = progress
        self.tally = Tally()

    async def rage(self) -> Tally:
        """All of it; `Tally.mismatches` is empty where the claim holds."""
        began = time.monotonic()
        url = f"sqlite:///{self._folder}/gatewright.db"
        queue = f"storm-{self._folder.name}"
        told = environment(self._address, url, queue)
        with Store.open(url) as store:
            client = await Client.connect(self._address, plugins=[GatewrightPlugin(store)])
            self._gates = GateClient(client, store, task_queue=queue)
            self._store = store
            self._channels = Channels(self._gates, self._binary, self._address)
            self._stage = Stage(self._gates, self._channels, self.tally, str(self._folder), queue)
            async with WorkerProcess("tests.storm.worker", told, self._folder / "worker.log") as self._worker:
                await self._worker.start()
                paused, over = await self._opened()
                await self._volleys([*paused, over])
                names = [await race(self._stage, max(self._messages // 50, 5), self._dice)]
                await self._finish(paused)
                for target in [*paused, over]:
                    await self._stage.audit(target)
                self._count_lines([*names, *(target.name for target in [*paused, over])])
                await self._worker.stop()
        self.tally.events["seconds"] = round(time.monotonic() - began)
        return self.tally

    async def _opened(self) -> tuple[list[Target], Target]:
        """Runs paused at each of the gates, one more in the session of the first, and one that is over."""
        session = SessionKey(app="storm", user="ann", session="shared")
        opener = self._stage.open
        first = await opener("at first", 0, session=session)
        beside = await opener("beside it", 1, session=session, on_text="open")
        second = await opener("at second", 1)
        looped = await opener("at looped", 3)
        over = await opener("over", len(PATH))
        first.foreign = (beside.open, "first@2")
        beside.foreign = (first.open, "second")
        return [first, beside, second, looped], over

    # Volleys

    def _ammunition(self, targets: list[Target]) -> Iterator[tuple[Target, Shot, str]]:
        """Volley after volley: every kind at every run, by another of its channels each time."""
        number = 0
        while True:
            number += 1
            volley = [
                (target, shot, shot.channels[(number + index) % len(shot.channels)])
                for target in targets
                for index, shot in enumerate(arms(target, number))
            ]
            self._dice.shuffle(volley)
            yield from volley

    def _batches(self, targets: list[Target]) -> list[tuple[Target, list[tuple[Shot, str]]]]:
        """Messages in the order in which they were dealt, a batch to one run at a time."""
        waiting: dict[str, list[tuple[Shot, str]]] = {target.workflow_id: [] for target in targets}
        by_id = {target.workflow_id: target for target in targets}
        batches = []
        dealt = self._ammunition(targets)
        for _ in range(self._messages):
            target, shot, channel = next(dealt)
            batch = waiting[target.workflow_id]
            batch.append((shot, channel))
            if len(batch) == BATCH:
                batches.append((target, list(batch)))
                batch.clear()
        return batches + [(by_id[name], batch) for name, batch in waiting.items() if batch]

    async def _volleys(self, targets: list[Target]) -> None:
        batches = self._batches(targets)
        weather = self._weather(len(batches))
        for index, (target, batch) in enumerate(batches):
            trouble = weather.get(index)
            if trouble is not None:
                self.tally.events[trouble] += 1
            match trouble:
                case "graceful restart":
                    await self._worker.stop()
                    await self._worker.start()
                case "kill -9 between":
                    await self._worker.kill()
                    await self._worker.start()
                case _:
                    pass
            match trouble:
                case "kill -9 amid":
                    await self._throw(target, batch, kill=True)
                case "nobody there":
                    await self._worker.kill()
                    await self._throw(target, batch, start=True)
                case _:
                    await self._throw(target, batch)
            await self._check(target)

    def _weather(self, batches: int) -> dict[int, str]:
        """Which batch meets which trouble: each kind at least once, and one in about fifteen batches."""
        kinds = ["graceful restart", "kill -9 between", "kill -9 amid", "nobody there"]
        number = min(max(len(kinds), batches // 15), batches)
        return {
            index: kinds[order % len(kinds)]
            for order, index in enumerate(sorted(self._dice.sample(range(batches), number)))
        }

    async def _throw(
        self, target: Target, batch: list[tuple[Shot, str]], *, kill: bool = False, start: bool = False
    ) -> None:
        """Send a batch, some of it at once; `kill` the worker amid it, or `start` it once the signals lie in Temporal."""
        width = asyncio.Semaphore(AT_ONCE)
        arrived = asyncio.Semaphore(0)
        disturbed = kill or start

        async def send(shot: Shot, channel: str) -> Told:
            if start and channel in {"raw update", "command update"}:
                # Waits for its worker, and so must not keep the others from being sent.
                return await self._channels.send(shot, target.workflow_id, channel)
            async with width:
                told = await self._channels.send(shot, target.workflow_id, channel, worker=not start)
            arrived.release()
            return told

        held_back = sum(start and channel in {"raw update", "command update"} for _, channel in batch)
        async with asyncio.TaskGroup() as group:
            sending = [group.create_task(send(shot, channel)) for shot, channel in batch]
            for _ in range(len(batch) // 3 if kill else len(batch) - held_back if start else 0):
                await arrived.acquire()
            if kill:
                await self._worker.kill()
            if disturbed:
                await self._worker.start()
        owed = self._owed.setdefault(target.workflow_id, Owed())
        for (shot, channel), task in zip(batch, sending, strict=True):
            self.tally.note(shot, channel, task.result(), target.workflow_id, owed, disturbed=disturbed)
        self._progress(self.tally.sent)

    async def _check(self, target: Target) -> None:
        """The run stands where it stood, and has counted exactly what was sent to it."""
        owed = self._owed[target.workflow_id]

        async def agrees() -> bool:
            return not await self._differences(target, owed)

        try:
            await until(agrees, "the counts agree", seconds=20)
        except AssertionError:
            for difference in await self._differences(target, owed):
                self.tally.complain(f"{target.workflow_id}: {difference}")
        if target.open and await self._stage.look(target) is None:
            gates = await self._gates.gates(target.workflow_id)
            answers = {gate.interrupt_id: gate.answer for gate in gates if gate.answer}
            msg = f"{target.open} of {target.workflow_id} is no longer open; admitted was {answers.get(target.open)}"
            raise StormLostError(msg)

    async def _differences(self, target: Target, owed: Owed) -> list[str]:
        view = await self._gates.refusals(target.workflow_id)
        counted: Counter[str] = Counter()
        for by_name in view.counts.values():
            counted.update(by_name)
        rows = self._store.refusals(run=target.workflow_id, limit=1000)
        in_store = Counter(row.refusal for row in rows if row.recorded_by == "client")
        wrong = owed.wrong(counted, in_store)
        if view.dead_letter_count != counted["unreadable"]:
            wrong.append(f"{view.dead_letter_count} dead letters for {counted['unreadable']} unreadable messages")
        unrecorded = owed.turned_away - Counter({"too_large": owed.turned_away["too_large"]})
        if unrecorded and max(sum(by_name.values()) for by_name in view.counts.values()) < KEPT:
            wrong.append(f"turned away although the book had room: {dict(unrecorded)}")
        return wrong

    # The end

    async def _finish(self, paused: list[Target]) -> None:
        """One good answer at each gate ends each run: by every channel, and once with nobody there to judge it."""
        channels = ["command update", "raw signal", "client signal", "raw update", "command signal", "client update"]
        turn = 0
        for target in paused:
            while target.open:
                turn += 1
                channel = channels[turn % len(channels)]
                if turn in {4, 8} and channel not in UPDATES:
                    await self._answer_with_nobody_there(target, channel)
                else:
                    await self._stage.pass_on(target, channel)
                await self._stage.again(target, "client update")

    async def _answer_with_nobody_there(self, target: Target, channel: str) -> None:
        await self._worker.kill()
        self.tally.events["good answer with nobody there"] += 1
        shot = self._stage.shot(target)
        told = await self._channels.send(shot, target.workflow_id, channel, worker=False)
        status: RunView = await self._gates.get(target.workflow_id)
        if status.source != "index" or status.status != "running":
            self.tally.complain(f"{target.workflow_id} was {status.status} by {status.source} with nobody there")
        await self._worker.start()
        await self._stage.moved(target, shot, channel, told, alive=False)

    def _count_lines(self, names: list[str]) -> None:
        """The counters outside Temporal: every first step once, every effect once."""
        for file in (STARTED, ACTED):
            counted = Counter((self._folder / file).read_text("utf-8").splitlines())
            if counted != Counter(names):
                self.tally.complain(f"{file}: {dict(counted)}, expected one line for each of {names}")
            self.tally.events[f"{file}: lines for {len(names)} runs"] = counted.total()
