"""Folders, files and a Gemini API for the tests of the steps."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.jobs import JobFolder
from activities.models import JobOrder
from tests.activities.builders import small_order, until
from tests.activities.gemini import GeminiStandIn


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    """Where a test writes its source."""
    return tmp_path / "source.csv"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeminiStandIn]:
    """A local Gemini API, configured as the service; fails the test if its script was too short or too long."""
    for name in [name for name in os.environ if name.startswith(("GOOGLE_", "GEMINI_", "GATEWRIGHT_"))]:
        monkeypatch.delenv(name)
    with GeminiStandIn() as stand_in:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", stand_in.url)
        monkeypatch.setenv("GEMINI_API_KEY", "key-of-the-test")
        monkeypatch.setenv("GATEWRIGHT_MODEL", "gemini-of-the-test")
        yield stand_in
        stand_in.check()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Path]:
    """The folder of all jobs; what still runs in it when the test is over is ended."""
    folder = tmp_path / "jobs"
    yield folder
    for path in folder.iterdir() if folder.exists() else ():
        end(JobFolder(path))


def end(folder: JobFolder) -> None:
    """Kill a job's process, if it lives, and wait until the kernel has let go of its lock."""
    lock = folder.lock()
    if lock is None:
        os.kill(int((folder.path / "pid").read_text("utf-8")), signal.SIGKILL)
        lock = until(folder.lock)
    os.close(lock)


@pytest.fixture
def order(csv_file: Path) -> JobOrder:
    """An order to mask and drop a column of a small file."""
    return small_order(csv_file)
