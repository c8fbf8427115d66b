"""
The inbox under load: `python -m bench.inbox [--seconds 60] [--pages 50] [--rate 20]`.

So many open lists and so many answers a second against `gatewright serve`, with
a Temporal server, a worker and the pages on the same machine. What is checked
and what came of it: docs/inbox-load.md. Exit code 1 where a check fails.
"""

import argparse
import asyncio
import json
import os
import secrets
import ssl
import statistics
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bench.inbox_pages import Gate, Page, Sent, Timings
from bench.sides import GatewrightSide, Process, run_name
from gatewright.cli.embedded import EmbeddedError, EmbeddedServer, free_port
from gatewright.store import Store
from gatewright.temporal.process import leave

ENDLESS = 100_000
"""How many gates a run has: more than are answered."""

QUIET_SECONDS = 4.0
"""How long everything rests at the end, so that the last change is told and fetched."""

FLAT = 1.05
"""How far the server's memory at the end may be above what it was in the second ten seconds."""


@dataclass
class Second:
    """How the server stood at one second: its memory in MB, its CPU time so far, and the whole machine's."""

    at: float
    rss: float
    cpu: float
    busy: float
    polls: int
    listeners: int
    version: int | None


@dataclass
class Load:
    """What one run of it came to."""

    seconds: float
    pages: list[Page] = field(default_factory=list)
    timings: Timings = field(default_factory=Timings)
    seen: list[Second] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    late: int = 0
    """How many answers had no gate to go to when their time came."""
    worker_cpu: float = 0.0
    own_cpu: float = 0.0


async def load(seconds: float, pages: int, rate: float) -> tuple[Load, list[str], str]:
    """Start everything, send, check; what came of it, what is wrong, and the tables as text."""
    token = secrets.token_urlsafe(24)
    result = Load(seconds)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inbox-")))
        temporal = stack.enter_context(EmbeddedServer(folder / "temporal.db"))
        side = GatewrightSide("gatewright", "Gatewright", temporal.address, folder)
        await side.connect()
        await side.start()
        stack.push_async_callback(side.stop)
        os.environ |= {
            "TEMPORAL_ADDRESS": temporal.address,
            "GATEWRIGHT_STORE": side.store_url,
            "GATEWRIGHT_TASK_QUEUE": side.queue,
            "GATEWRIGHT_INBOX_TOKEN": token,
            "GATEWRIGHT_PRINCIPAL": "user:bench",
        }
        port = free_port()
        server = Process("bench.inbox_server", str(port), side.queue, log=folder / "server.log")
        await server.start()
        stack.push_async_callback(server.stop)
        runs = max(int(rate * 4), 4)
        _say(f"opening {runs} runs")
        for _ in range(runs):
            await side.begin(run_name(side), ENDLESS)
        context = ssl.create_default_context()
        result.pages = [Page(f"http://127.0.0.1:{port}", context, result.timings) for _ in range(pages)]
        for page in result.pages:
            stack.push_async_callback(page.close)
            await page.sign_in(token)
        _say(f"{seconds:g} s with {pages} pages and {rate:g} answers a second")
        await _run(result, server, side.process, rate)
        with Store.open(side.store_url) as store:
            began = datetime.fromtimestamp(0, UTC)
            rows = [row for start in range(0, ENDLESS, 1000) for row in store.gates(limit=1000, offset=start)]
            touched = store.touched_gates(began, limit=ENDLESS)
        log = (folder / "server.log").read_text("utf-8", "replace")
    result.timings.wrong += [f"the server logged: {line[:200]}" for line in log.splitlines() if " ERROR " in line]
    answered = {(row.workflow_id, row.interrupt_id): row for row in rows if row.state == "answered"}
    wrong = [*_wrong(result), *result.timings.wrong]
    index = [(gate, row.answer_id, row.response) for gate, row in answered.items()]
    accepted = [(sent.gate, sent.answer_id, sent.value) for sent in result.sent if sent.answer_id]
    wrong += [f"accepted, and not so in the index: {each}" for each in accepted if each not in index]
    told = {sent.gate for sent in result.sent if sent.answer_id or sent.status == 202}
    wrong += [f"in the index, and nobody was told: {each}" for each in index if each[0] not in told]
    doubled = [each for each, times in Counter(each for _, each, _ in index).items() if times > 1]
    wrong += [f"more than once in the index: {each}" for each in doubled]
    still = sum(row.state == "open" for row in rows)
    wrong += [f"a page shows {page.count} open gates of {still}" for page in result.pages if page.count != still]
    news = _news(result, {gate: touched[gate].timestamp() for gate in answered})
    return result, wrong, tables(result, news, rate)


async def _run(result: Load, server: Process, worker: Process, rate: float) -> None:
    following = [asyncio.create_task(page.follow()) for page in result.pages]
    watching = asyncio.create_task(_watch(result, server))
    await asyncio.sleep(2)
    result.seen.clear()
    worker_before, own_before = _cpu(worker.pid), time.process_time()
    await _answer(result, rate)
    result.worker_cpu, result.own_cpu = _cpu(worker.pid) - worker_before, time.process_time() - own_before
    during = list(result.seen)
    await asyncio.sleep(QUIET_SECONDS)
    last = result.seen[-1]
    result.seen = during
    result.timings.wrong += [
        f"a page was told version {page.version}, shows {page.shown}, and the last one is {last.version}"
        for page in result.pages
        if not (page.version == last.version and page.shown == str(last.version))
    ]
    for task in (watching, *following):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _answer(result: Load, rate: float) -> None:
    """Send at its rate, whether or not what was sent before has been ruled on; each gate once."""
    taken: set[Gate] = set()
    began = time.monotonic()
    async with asyncio.TaskGroup() as sending:
        for number in range(int(result.seconds * rate)):
            await asyncio.sleep(began + number / rate - time.monotonic())
            page = result.pages[number % len(result.pages)]
            free = [gate for gate in page.open if gate not in taken]
            if not free:
                result.late += 1
                continue
            # Not the one that changed last, but any: as many people would.
            gate = secrets.choice(free)
            taken.add(gate)
            sending.create_task(_send(result, page, gate, number))
        await asyncio.sleep(began + result.seconds - time.monotonic())


async def _send(result: Load, page: Page, gate: Gate, number: int) -> None:
    result.sent.append(await page.answer(gate, {"approved": number % 3 != 0, "number": number}))


async def _watch(result: Load, server: Process) -> None:
    """Note with each line of the server's how it stands."""
    while line := await server.line():
        now = time.monotonic()
        result.seen.append(Second(now, _rss(server.pid), _cpu(server.pid), _busy(), **json.loads(line)))


def _rss(pid: int) -> float:
    """The memory that a process has, in MB."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return next(int(each.split()[1]) for each in status.splitlines() if each.startswith("VmRSS")) / 1024


def _cpu(pid: int) -> float:
    """The seconds of CPU that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _busy() -> float:
    """The seconds of CPU that the whole machine has spent."""
    fields = [int(each) for each in Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def _wrong(result: Load) -> Iterable[str]:
    statuses = Counter(sent.status for sent in result.sent)
    if others := {status: times for status, times in statuses.items() if status != 303}:
        yield f"answers that were not accepted, by status: {others}"
    if result.late:
        yield f"{result.late} answers had no gate to go to"
    if len(result.seen) > 1 and any(second.listeners != len(result.pages) for second in result.seen):
        yield f"not all pages listened all the time: {sorted({second.listeners for second in result.seen})}"
    if max(_polls(result.seen), default=0) > 2:
        yield f"the index was polled {max(_polls(result.seen))} times in a second"
    if len(result.seen) >= 30:
        before, after = _memory(result.seen)
        if after > before * FLAT:
            yield f"the server's memory grew from {before:.1f} to {after:.1f} MB"


def _polls(seen: Sequence[Second]) -> list[int]:
    return [after.polls - before.polls for before, after in pairwise(seen)]


def _memory(seen: Sequence[Second]) -> tuple[float, float]:
    """The median of the second ten seconds, and of the last ten; of what there is, where that is less."""
    early = seen[10:20] if len(seen) >= 30 else seen[: len(seen) // 2 or 1]
    return statistics.median(each.rss for each in early), statistics.median(each.rss for each in seen[-10:])


def _news(result: Load, settled: dict[Gate, float]) -> list[float]:
    """
    From sending an answer until a page was told, for each answer and page.

    `settled` says when the index heard of it: an event before that told of something else.
    """
    found: list[float] = []
    for page in result.pages:
        told: dict[Gate, list[float]] = {}
        for news in page.news:
            for gate in settled if news.gates is None else news.gates:
                told.setdefault(gate, []).append(news.at)
        for sent in result.sent:
            if sent.answer_id is None or sent.gate not in settled:
                continue
            times = told.get(sent.gate, [])
            after = bisect_left(times, settled[sent.gate])
            if after == len(times):
                result.timings.wrong.append(f"a page was never told of {sent.gate}")
            else:
                found.append(times[after] - sent.at)
    return found


def tables(result: Load, news: list[float], rate: float) -> str:
    """The figures as markdown."""
    taken = result.timings.taken
    times = [
        ("answer: the form sent, until it is accepted", taken["answer"]),
        ("news: the form sent, until each page is told", news),
        ("a gate's page", taken["page"]),
        ("the list, after an event", taken["list"]),
    ]
    lines = ["| milliseconds | number | p50 | p95 | p99 | longest |", "| --- | --- | --- | --- | --- | --- |"]
    for title, each in times:
        cells = [f"{_quantile(each, share) * 1000:,.0f}" for share in (0.5, 0.95, 0.99, 1)]
        lines.append(f"| {title} | {len(each):,} | {' | '.join(cells)} |")
    seen = result.seen
    took = seen[-1].at - seen[0].at
    polls, (early, last) = _polls(seen), _memory(seen)
    accepted = sum(sent.answer_id is not None for sent in result.sent)
    figures = [
        (f"answers accepted, of {int(result.seconds * rate):,}", f"{accepted:,}"),
        ("polls of the index per second, on average (most)", f"{statistics.mean(polls):.2f} ({max(polls)})"),
        ("server's memory in the second ten seconds, in the last ten", f"{early:.1f} MB, {last:.1f} MB"),
        ("server's memory every ten seconds, MB", ", ".join(f"{each.rss:.0f}" for each in seen[::10])),
        ("server's CPU, of one core", f"{(seen[-1].cpu - seen[0].cpu) / took:.0%}"),
        ("worker's CPU, of one core", f"{result.worker_cpu / result.seconds:.0%}"),
        ("CPU of what plays the pages, of one core", f"{result.own_cpu / result.seconds:.0%}"),
        (
            f"all that runs on the machine, of its {os.cpu_count()} cores",
            f"{(seen[-1].busy - seen[0].busy) / took / (os.cpu_count() or 1):.0%}",
        ),
    ]
    more = ["| figure | |", "| --- | --- |", *(f"| {name} | {figure} |" for name, figure in figures)]
    return "\n".join([*lines, "", *more])


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def main() -> int:
    """Read the options, load, print. Exit code 1 where a check fails, 4 where there is no server to start."""
    parser = argparse.ArgumentParser(prog="python -m bench.inbox", description="The inbox under load.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long answers are sent")
    parser.add_argument("--pages", type=int, default=50, help="lists that are open all the time")
    parser.add_argument("--rate", type=float, default=20.0, help="answers a second")
    chosen = parser.parse_args()
    try:
        _, wrong, text = asyncio.run(load(chosen.seconds, chosen.pages, chosen.rate))
    except EmbeddedError as missing:
        _say(str(missing))
        return 4
    print(text)  # noqa: T201 - the result
    for line in wrong[:40]:
        _say(f"WRONG {line}")
    _say(f"{len(wrong)} wrong" if wrong else "every check holds")
    return 1 if wrong else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - progress


if __name__ == "__main__":
    leave(main())
