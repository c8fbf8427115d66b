"""Histories recorded by earlier releases replay with the code as it is: what is paused today goes on tomorrow."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from gatewright.temporal import Frame, Gate, GatewrightPlugin

HERE = Path(__file__).parent
NAMES = sorted(f"{path.parent.name}/{path.stem}" for path in HERE.glob("*/*.json"))


@pytest.mark.parametrize("seed", ["0", "1", "31337"])
async def test_every_history_replays_in_another_process_with_another_hash_seed(seed: str) -> None:
    """P05, T06: nothing that is replayed depends on the order of a set."""
    replaying = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.histories.replay",
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=HERE.parents[1],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await replaying.communicate()

    assert replaying.returncode == 0, output.decode()
    assert all(f"{name}: replayed" in output.decode() for name in NAMES)
    assert len(NAMES) >= 8


@workflow.defn(name="Quick")
class AnotherPipeline:
    """Asks two gates where the recorded pipeline asked one job."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> None:
        await self.frame.ask(Gate("first"))
        await self.frame.ask(Gate("second"))


async def test_a_history_that_does_not_fit_is_found_out() -> None:
    """The replay can fail: another pipeline under a recorded one's name diverges."""
    recorded = (HERE / "first" / "the_first_of_two_gates.json").read_text().replace('"FirstOfTwo"', '"Quick"')
    history = WorkflowHistory.from_json("another", recorded)
    replayer = Replayer(workflows=[AnotherPipeline], plugins=[GatewrightPlugin()])

    with pytest.raises(workflow.NondeterminismError):
        await replayer.replay_workflow(history)
