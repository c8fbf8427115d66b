"""
Whatever meets in one workflow task, the history that it leaves can be replayed.

A query that shares a task with a local activity makes SDK 1.35 complete the
task before the workflow is told of the local activity's result (live), and
after it (on replay). A command that waited for that result would then stand on
the other side of an update that was accepted in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from temporalio.worker import Replayer

from gatewright.temporal import GatewrightPlugin, NoWorkerError
from tests.temporal.conversation import Conversation
from tests.temporal.pipelines import ALL, STEPS

ROUNDS = 4
TOGETHER = 6

OpenRun = Callable[..., Awaitable[Conversation]]


async def crowd(run: Conversation, gate: str, response: Any) -> None:
    """Eight answers at once, and two who keep asking how it stands."""
    over = asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            with suppress(NoWorkerError):
                await run.gates.gates(run.id)
            await asyncio.sleep(0.003)

    looking = [asyncio.ensure_future(look()) for _ in range(2)]
    await run.opened(gate)
    await asyncio.gather(*(run.say(gate, response, answer_id=f"{gate}-{n}") for n in range(8)))
    over.set()
    await asyncio.gather(*looking)


@pytest.mark.parametrize("sticky", [1000, 20])
async def test_every_history_of_a_crowd_replays(open_run: OpenRun, working: Any, sticky: int) -> None:
    """
    With a `sticky` time-out of 20 ms a cached run is often taken up anew in the middle.

    Not with signals besides: what SDK 1.35 then brings in which activation is
    not the same on replay, for any workflow (docs/threat-model.md).
    """
    patience = timedelta(milliseconds=sticky)
    replayer = Replayer(workflows=ALL, plugins=[GatewrightPlugin(None)])

    async def conversation(name: str) -> str | None:
        run = await open_run("Reviewed", name)
        await crowd(run, "review", {"approved": True})
        await run.result()
        history = await run.handle.fetch_history()
        failed = (await replayer.replay_workflow(history, raise_on_replay_failure=False)).replay_failure
        return None if failed is None else f"{name}: {failed}"

    async with working(ALL, STEPS, sticky_queue_schedule_to_start_timeout=patience):
        for number in range(ROUNDS):
            names = [f"steady-{sticky}-{number}-{each}" for each in range(TOGETHER)]
            failures = await asyncio.gather(*map(conversation, names))
            assert [failure for failure in failures if failure] == []
