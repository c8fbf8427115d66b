"""The command as a process of its own, against the tests' server, store and worker."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewright.cli.embedded import find_binary
from gatewright.temporal import GateClient
from tests.cli.forked import command, forking
from tests.cli.pipelines import Approve
from tests.temporal.conversation import until

GATEWRIGHT = [sys.executable, "-c", "from gatewright.cli import main; main()"]
"""The command, whether or not its script is installed."""

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Gatewright = Callable[..., Awaitable[Ended]]


def plain_environment(**changes: str) -> dict[str, str]:
    """The environment without what the person who runs the tests has set for Gatewright or Temporal."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "GATEWRIGHT_"))}
    return own | {"TEMPORAL_CONFIG_FILE": os.devnull, "GATEWRIGHT_TEMPORAL": str(find_binary()), **changes}


@pytest.fixture
def environment(address: str, tmp_path: Path, queue: str, store: Any) -> dict[str, str]:
    """Settings that lead the command to the tests' server and the test's own store."""
    return plain_environment(
        TEMPORAL_ADDRESS=address,
        GATEWRIGHT_STORE=str(tmp_path / "gatewright.db"),
        GATEWRIGHT_TASK_QUEUE=queue,
        GATEWRIGHT_PRINCIPAL="alice",
    )


@pytest.fixture
def gatewright(environment: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Gatewright:
    """`await gatewright("gates", "--run", run)` runs the command to its end; `stdin` is text, `env` changes settings."""

    async def run(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Ended:
        streams = tmp_path_factory.mktemp("streams")
        (streams / "0").write_text(stdin, encoding="utf-8")
        process = forking().Process(
            target=command, args=(list(arguments), environment | (env or {}), tmp_path, streams), daemon=True
        )
        process.start()
        try:
            # Not joined in a thread: of two that wait for one process only one is told how it ended.
            async with asyncio.timeout(PATIENCE):
                while (code := process.exitcode) is None:
                    await asyncio.sleep(0.02)
        finally:
            process.kill()
        out, err = ((streams / number).read_text(encoding="utf-8") for number in ("1", "2"))
        return Ended(code, out, err)

    return run


@pytest.fixture
async def worker(working: Any) -> AsyncIterator[None]:
    """A worker lives."""
    async with working([Approve], []):
        yield


@pytest.fixture
async def run(gates: GateClient, worker: None) -> str:
    """A run that waits at `review`."""
    started = await gates.start("Approve", 1)
    await until(lambda: gates.list(run=started.workflow_id), "review is listed")
    return started.workflow_id
