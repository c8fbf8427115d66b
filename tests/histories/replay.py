"""Replay every recorded history with the code as it is: `python -m tests.histories.replay`; exit 1 names what diverged."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from gatewright.temporal import GatewrightPlugin
from gatewright.temporal.process import leave
from tests.effects.outside import Doing
from tests.temporal import pipelines
from workflows import DatasetRelease

HERE = Path(__file__).parent


async def histories() -> AsyncIterator[WorkflowHistory]:
    """The recorded ones, by name."""
    for path in sorted(HERE.glob("*/*.json")):
        yield WorkflowHistory.from_json(f"{path.parent.name}/{path.stem}", path.read_text())


async def main() -> int:
    """Replay them all."""
    replayer = Replayer(workflows=[DatasetRelease, Doing, *pipelines.ALL], plugins=[GatewrightPlugin()])
    diverged = 0
    async with replayer.workflow_replay_iterator(histories()) as results:
        async for result in results:
            failure = result.replay_failure
            diverged += failure is not None
            print(f"{result.history.workflow_id}: {failure or 'replayed'}")
    print(f"PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')}: {diverged} diverged")
    return 1 if diverged else 0


if __name__ == "__main__":
    leave(asyncio.run(main()))
