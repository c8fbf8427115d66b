"""The shells that the scripts run in, and an environment for what is started."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(params=["sh", "busybox sh"])
def shell(request: pytest.FixtureRequest) -> list[str]:
    """The shell of this machine, and the one of the images that the scripts run in."""
    words = str(request.param).split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]} here: apt-get install {words[0]}")
    return words


@pytest.fixture
def clean() -> dict[str, str]:
    """The environment without settings of ours, and with the programs of this environment on its path."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "GATEWRIGHT_", "PG"))}
    return own | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }
