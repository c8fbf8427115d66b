"""
What is measured, one function for each table.

Sides take turns in short chunks, so that whatever else the machine does meets
all of them; a side that takes too long is cut off, and its cell says so.
"""

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from temporalio.exceptions import TemporalError
from temporalio.service import RPCError

from bench.sides import CutOff, Side, Timing, run_name

Cells = dict[str, dict[str, Any]]
"""By side, then by what was measured; times in milliseconds. `cut_off` says why a side stops short."""

T = TypeVar("T")

FAILURES = (CutOff, RPCError, TemporalError)
"""How a side fails; anything else is a fault of the benchmark."""

CHUNK = 5
WATCH_SECONDS = 0.025
"""How often each of many runs is looked at, so that looking costs little beside the work."""


async def latency(sides: Sequence[Side], rounds: Sequence[int], at: Sequence[int], limit: float) -> Cells:
    """
    Answer to verdict and to next pause, warm: one run of so many gates for each round and side.

    The figure at K is the median over gates 1 to K of every run that is at
    least K long.
    """
    cells: Cells = {side.name: {} for side in sides}
    samples: dict[str, list[tuple[int, int, Timing]]] = {side.name: [] for side in sides}
    async with _working(sides, cells):
        for length in (3, *rounds):
            await _round(sides, length, limit, cells, samples if length != 3 else None)
    for side in sides:
        cell, taken = cells[side.name], samples[side.name]
        for gates in at:
            within = [timing for length, number, timing in taken if length >= gates >= number]
            # A cut-off run never came so far: its easy first gates would be called a figure for all of them.
            if within and any(number == gates for _, number, _ in taken):
                cell[f"pause@{gates}"] = _median(timing.pause for timing in within)
                cell[f"verdict@{gates}"] = _median(timing.verdict for timing in within)
        longest = max(rounds)
        pauses = [timing.pause for length, _, timing in taken if length == longest]
        tenth = longest // 10
        if tenth >= 10 and len(pauses) == longest * list(rounds).count(longest):
            cell["flatness"] = statistics.median(pauses[-tenth:]) / statistics.median(pauses[:tenth])
    return cells


async def _round(
    sides: Sequence[Side],
    length: int,
    limit: float,
    cells: Cells,
    samples: dict[str, list[tuple[int, int, Timing]]] | None,
) -> None:
    runs = {side.name: run_name(side) for side in sides}
    left = {side.name: limit for side in sides}
    events: dict[str, int | None] = {}
    for first in range(1, length + 1, CHUNK):
        for side in _turned(sides, first // CHUNK):
            if "cut_off" in cells[side.name]:
                continue
            began = time.monotonic()
            with _cut_off(cells[side.name], f"at gate {first} of {length}"):
                async with asyncio.timeout(max(left[side.name], 0.001)):
                    if first == 1:
                        # One gate more than is answered: after the last of them the run pauses too.
                        await side.open(runs[side.name], length + 1)
                        events[side.name] = await side.events(runs[side.name])
                    for number in range(first, min(first + CHUNK, length + 1)):
                        timing = await side.answer(runs[side.name], number, length + 1)
                        if samples is not None:
                            samples[side.name].append((length, number, timing))
            left[side.name] -= time.monotonic() - began
    for side in sides:
        before = events.get(side.name)
        if before is not None and "cut_off" not in cells[side.name]:
            cells[side.name]["events"] = ((await side.events(runs[side.name]) or 0) - before) / length


async def cold(sides: Sequence[Side], at: Sequence[int], repeats: int, limit: float) -> Cells:
    """
    An answer to a run that the worker has not in memory, at gate G.

    `pause@G` is from the answer, sent once a new process is ready; `total@G`
    from the start of that process; `uncached@G` with a worker that keeps no run
    in memory at all.
    """
    walks = [_Walk(side, max(at) + repeats * 3 + 1, limit) for side in sides if side.keeps]
    for gate in at:
        for walk in walks:
            await walk.to(gate)
        for turn in range(repeats):
            for walk in _turned(walks, turn):
                await walk.cold(gate)
        for turn in range(repeats):
            for walk in _turned(walks, turn):
                if walk.side.on_temporal:
                    await walk.cold(gate, cache=0)
    return {walk.side.name: walk.cell(repeats) for walk in walks}


class _Walk:
    """One side's run, walked from gate to gate by workers that come and go."""

    def __init__(self, side: Side, gates: int, limit: float) -> None:
        self.side = side
        self._gates = gates
        self._limit = limit
        self._run = run_name(side)
        self._answered = 0
        self._opened = False
        self._cut_off: dict[str, Any] = {}
        self._taken: dict[str, list[float]] = defaultdict(list)

    async def to(self, gate: int) -> None:
        """Come to this gate, warm; nothing where the side has been cut off before."""
        if self._cut_off:
            return
        async with self._worker(f"on the way to gate {gate}", None):
            if not self._opened:
                await self.side.open(self._run, self._gates)
                self._opened = True
            while self._answered < gate - 1:
                await self._answer()

    async def cold(self, gate: int, *, cache: int | None = None) -> None:
        """Answer once, to a worker that has just started; counted as at `gate`."""
        if self._cut_off:
            return
        began = time.perf_counter()
        async with self._worker(f"cold at gate {gate}{' with no cache' if cache == 0 else ''}", cache):
            ready = time.perf_counter() - began
            if cache == 0:
                # The new process has been measured: what is left is that every task replays the run.
                await self._answer()
            timing = await self._answer()
            if cache == 0:
                self._taken[f"uncached@{gate}"].append(timing.pause)
            else:
                self._taken[f"pause@{gate}"].append(timing.pause)
                self._taken[f"total@{gate}"].append(ready + timing.pause)

    def cell(self, repeats: int) -> dict[str, Any]:
        """What was measured as often as it should be."""
        return {key: _median(taken) for key, taken in self._taken.items() if len(taken) == repeats} | self._cut_off

    async def _answer(self) -> Timing:
        self._answered += 1
        return await self.side.answer(self._run, self._answered, self._gates)

    @asynccontextmanager
    async def _worker(self, what: str, cache: int | None) -> AsyncIterator[None]:
        try:
            with _cut_off(self._cut_off, what):
                async with asyncio.timeout(self._limit):
                    await self.side.start(cache=cache)
                    yield
        finally:
            await self.side.stop()


async def crash(sides: Sequence[Side], repeats: int, limit: float) -> Cells:
    """The verdict on the first answer after kill -9 of the only worker, sent once the next one is ready."""
    sides = [side for side in sides if side.on_temporal]
    cells: Cells = {side.name: {} for side in sides}
    for side in sides:
        verdicts, since = [], []
        with _cut_off(cells[side.name], "after a crash"):
            for _ in range(repeats):
                async with asyncio.timeout(limit):
                    verdict, between = await _crash(side)
                verdicts.append(verdict)
                since.append(between + verdict)
            cells[side.name] |= {"verdict": _median(verdicts), "since_kill": _median(since)}
    return cells


async def _crash(side: Side) -> tuple[float, float]:
    """Seconds from the answer to its verdict, and from the kill until the next worker was ready."""
    run, gates = run_name(side), 10
    try:
        await side.start()
        await side.open(run, gates)
        for number in (1, 2, 3):
            await side.answer(run, number, gates)
        await side.kill()
        killed = time.perf_counter()
        await side.start()
        between = time.perf_counter() - killed
        return (await side.answer(run, 4, gates)).verdict or 0.0, between
    finally:
        await side.stop()


async def throughput(
    sides: Sequence[Side], pipelines: int, together: int, gates: int, rounds: int, limit: float
) -> Cells:
    """Whole pipelines per second, so many of them at a time, from the opening to the end."""
    cells: Cells = {side.name: {} for side in sides}
    rates: dict[str, list[float]] = {side.name: [] for side in sides}
    async with _working(sides, cells):
        for turn in range(rounds):
            for side in _turned(sides, turn):
                if "cut_off" in cells[side.name]:
                    continue
                with _cut_off(cells[side.name], f"running {pipelines} pipelines"):
                    async with asyncio.timeout(limit):
                        await _pipelines(side, min(together, pipelines), together, gates)
                        began = time.perf_counter()
                        failed = await _pipelines(side, pipelines, together, gates)
                        rates[side.name].append((pipelines - failed) / (time.perf_counter() - began))
                        cells[side.name]["failed"] = cells[side.name].get("failed", 0) + failed
    for side in sides:
        if rates[side.name]:
            cells[side.name]["per_second"] = statistics.median(rates[side.name])
    return cells


async def _pipelines(side: Side, pipelines: int, together: int, gates: int) -> int:
    """Run them; how many failed."""
    room = asyncio.Semaphore(together)

    async def one() -> bool:
        async with room:
            run = run_name(side)
            try:
                await side.open(run, gates, poll=WATCH_SECONDS)
                for number in range(1, gates + 1):
                    await side.answer(run, number, gates, poll=WATCH_SECONDS)
            except FAILURES:
                return False
            return True

    return (await asyncio.gather(*(one() for _ in range(pipelines)))).count(False)


@asynccontextmanager
async def _working(sides: Sequence[Side], cells: Cells) -> AsyncIterator[None]:
    """The workers of all sides live."""
    for side in sides:
        with _cut_off(cells[side.name], "at its start"):
            await side.start()
    try:
        yield
    finally:
        for side in sides:
            await side.stop()


@contextmanager
def _cut_off(cell: dict[str, Any], what: str) -> Iterator[None]:
    """A side that is too slow, or fails, is out of this table; the others go on."""
    try:
        yield
    except TimeoutError:
        cell["cut_off"] = f"{what}: over its time limit"
    except FAILURES as failed:
        cell["cut_off"] = f"{what}: {type(failed).__name__}: {failed}"[:300]


def _turned(sides: Sequence[T], by: int) -> list[T]:
    """The sides in another order at each turn: none is always the first after a pause."""
    by %= len(sides)
    return [*sides[by:], *sides[:by]]


def _median(seconds: Any) -> float | None:
    known = [value for value in seconds if value is not None]
    return statistics.median(known) * 1000 if known else None
