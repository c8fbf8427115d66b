"""The health checks say what is so: of the worker by what Temporal sees of it, of the server by asking it."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conftest import binary

ROOT = Path(__file__).parents[2]
CHECK = str(ROOT / "deploy" / "healthy.py")
TOKEN = "a-token-of-this-test alice\n"


@asynccontextmanager
async def living(*command: str, ready: str, environment: dict[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Keep a process from the line that says that it is ready, to a good end on SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            said = ""
            while ready not in said:
                line = (await process.stdout.readline()).decode()
                assert line, f"{command} ended: {said}"
                said += line
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.communicate()


async def check(what: str, environment: dict[str, str]) -> tuple[int | None, str]:
    """Ask the check, as a container's engine does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        CHECK,
        *what.split(),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


@pytest.fixture
def settings(clean: dict[str, str], address: str, queue: str, tmp_path: Path) -> dict[str, str]:
    return clean | {
        "TEMPORAL_ADDRESS": address,
        "GATEWRIGHT_TASK_QUEUE": queue,
        "GATEWRIGHT_STORE": str(tmp_path / "store.db"),
        "GATEWRIGHT_DATA_DIR": str(tmp_path / "data"),
        "PYTHONUNBUFFERED": "1",
    }


async def test_a_worker_is_well_once_it_asks_for_work(settings: dict[str, str], queue: str) -> None:
    """Not before it is there, and not by a worker of another task queue."""
    before, said = await check("worker", settings)
    assert (1, f"no worker of {socket.gethostname()} asks task queue {queue} of namespace default for work\n") == (
        before,
        said,
    )

    async with living(sys.executable, "-m", "worker", ready="worker ready", environment=settings):
        assert (0, "") == await check("worker", settings)
        elsewhere, _ = await check("worker", settings | {"GATEWRIGHT_TASK_QUEUE": f"{queue}-other"})
        assert 1 == elsewhere


@pytest.mark.parametrize(
    ("setting", "told"),
    [({"TEMPORAL_ADDRESS": "127.0.0.1:1"}, "refused"), ({"TEMPORAL_NAMESPACE": "nobodys"}, "nobodys")],
)
async def test_a_worker_that_cannot_reach_temporal_is_not_well(
    setting: dict[str, str], told: str, settings: dict[str, str]
) -> None:
    code, said = await check("worker", settings | setting)

    assert 1 == code
    assert told in said
    assert 1 == len(said.splitlines()), said


async def test_a_server_is_well_while_it_answers(settings: dict[str, str], tmp_path: Path) -> None:
    """With the settings of the container: on every address, with tokens, which the check has none of."""
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKEN)
    tokens.chmod(0o400)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings |= {
        "GATEWRIGHT_HOST": "127.0.0.1",
        "GATEWRIGHT_PORT": str(port),
        "GATEWRIGHT_TOKEN_FILE": str(tokens),
        "GATEWRIGHT_APPS": "worker.apps:APPS",
        "GATEWRIGHT_ALLOW_HOST": "gates.example.com",
        # Whoever has a proxy in the environment does not mean it for this machine.
        "http_proxy": "http://127.0.0.1:1",
    }
    down, _ = await check("serve", settings)
    assert 1 == down

    async with living(binary("gatewright"), "serve", ready="callers", environment=settings) as server:
        assert (0, "") == await check("serve", settings)
        server.send_signal(signal.SIGTERM)
        assert 0 == await asyncio.wait_for(server.wait(), 30)


@pytest.mark.parametrize("what", ["", "both", "worker serve"])
async def test_whoever_asks_for_neither_is_told_of_both(what: str, clean: dict[str, str]) -> None:
    assert (1, "say which is meant: healthy.py worker, or healthy.py serve\n") == await check(what, clean)


def test_the_check_can_be_run_by_its_name() -> None:
    """The image puts it on the path."""
    assert os.access(CHECK, os.X_OK)
