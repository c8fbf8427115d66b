"""`python -m worker`: what it says when a setting is wrong, and how it stops."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


async def start(tmp_path: Path, **settings: str) -> asyncio.subprocess.Process:
    """The worker's process, with an environment of its own."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "GATEWRIGHT_"))
    }
    environment |= {"GATEWRIGHT_STORE": str(tmp_path / "store.db"), "GATEWRIGHT_DATA_DIR": str(tmp_path / "data")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "worker",
        cwd=ROOT,
        env=environment | settings,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        ({"TEMPORAL_ADDRESS": "bad:1:2"}, 2, "invalid port number"),
        ({"TEMPORAL_PROFILE": "nobodys"}, 2, "Profile 'nobodys' not found"),
        ({"GATEWRIGHT_CHECK": "maybe"}, 2, "GATEWRIGHT_CHECK is 0 or 1"),
        ({"GATEWRIGHT_DATA_DIR": "/proc/nowhere"}, 2, "GATEWRIGHT_DATA_DIR"),
        ({"GATEWRIGHT_STORE": "mysql://somewhere/db"}, 4, "mysql"),
        ({"TEMPORAL_ADDRESS": "127.0.0.1:1"}, 4, "gatewright dev"),
    ],
)
async def test_a_wrong_setting_is_one_line_and_an_exit_code(
    settings: dict[str, str], code: int, told: str, tmp_path: Path
) -> None:
    """No traceback: whoever set it reads what to change."""
    process = await start(tmp_path, **settings)
    _, error = await process.communicate()

    assert code == process.returncode, error.decode()
    assert told in error.decode()
    assert "Traceback" not in error.decode()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_it_says_that_it_is_ready_and_stops_when_told(how: signal.Signals, tmp_path: Path, address: str) -> None:
    """One line on its standard output, and exit code 0."""
    process = await start(tmp_path, TEMPORAL_ADDRESS=address, GATEWRIGHT_TASK_QUEUE="stops")
    assert process.stdout is not None
    ready = await asyncio.wait_for(process.stdout.readline(), 60)
    assert ready.decode().startswith(f"worker ready: {address}")
    process.send_signal(how)
    _, error = await asyncio.wait_for(process.communicate(), 60)

    assert process.returncode == 0, error.decode()
