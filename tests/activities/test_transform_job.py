"""A job's outcome is written down, then delivered, as often as it takes within ten minutes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from activities.jobs import ROOT, JobFolder, job_folder
from activities.models import Callback, JobFailure, JobOrder, JobOutcome, TransformResult
from activities.transform_job import concluded, delivered
from tests.activities.builders import CALLBACK

RESULT = TransformResult(path="/data.parquet", rows=1, columns=["a"], bytes=2, sha256="ab")


class Line:
    """A line to a waiting run that is down as often as the script says, with a clock that pauses move."""

    def __init__(self, script: Sequence[Exception | None]) -> None:
        self._script = list(script)
        self.now = 0.0
        self.pauses: list[float] = []
        self.heard: list[tuple[dict[str, Any] | None, dict[str, Any] | None]] = []

    async def deliver(
        self, callback: Callback, *, response: dict[str, Any] | None, failure: dict[str, Any] | None
    ) -> None:
        assert CALLBACK == callback
        # Down for good once the script has run dry.
        trouble = self._script.pop(0) if self._script else ConnectionError("down")
        if trouble is not None:
            raise trouble
        self.heard.append((response, failure))

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def deliver_all(self, outcome: JobOutcome) -> bool:
        return await delivered(CALLBACK, outcome, self.deliver, pause=self.pause, clock=lambda: self.now)


def folder_with(order: JobOrder, jobs: Path) -> JobFolder:
    folder = job_folder(jobs, order.key)
    folder.place(order)
    return folder


async def test_a_result_is_delivered_as_the_response() -> None:
    """And a failure as the failure; never both."""
    line = Line([None, None])

    assert await line.deliver_all(JobOutcome(result=RESULT))
    assert await line.deliver_all(JobOutcome(failure=JobFailure(type="source_changed", message="m")))
    assert [(RESULT.model_dump(), None), (None, {"type": "source_changed", "message": "m"})] == line.heard


async def test_whatever_hinders_a_delivery_is_waited_out() -> None:
    """A server that restarts, a worker that is away, an error that nobody thought of."""
    line = Line([ConnectionError("no server"), RuntimeError("no worker"), KeyError("?"), None])

    assert await line.deliver_all(JobOutcome(result=RESULT))
    assert ([1.0, 2.0, 4.0], 1) == (line.pauses, len(line.heard))


async def test_after_ten_minutes_a_delivery_is_given_up() -> None:
    """Pauses grow to half a minute and no further."""
    line = Line([])

    assert not await line.deliver_all(JobOutcome(result=RESULT))
    assert (30.0, True) == (max(line.pauses), 560 < line.now <= 600)


def test_a_transform_that_works_has_a_result(order: JobOrder, jobs: Path) -> None:
    """Its file lies in the job's folder."""
    folder = folder_with(order, jobs)

    outcome = concluded(order, folder)

    assert outcome.result is not None
    assert (str(folder.data_file), None) == (outcome.result.path, outcome.failure)


def test_a_rejected_plan_is_a_failure_by_name(order: JobOrder, jobs: Path) -> None:
    """The run can tell a person what to change."""
    wrong = order.model_copy(update={"plan": order.plan.model_copy(update={"drop": ["nmae"]})})

    outcome = concluded(wrong, folder_with(wrong, jobs))

    assert outcome.failure is not None
    assert ("unknown_columns", True) == (outcome.failure.type, "nmae" in outcome.failure.message)


def test_a_source_that_is_gone_is_a_failure_by_name(order: JobOrder, jobs: Path) -> None:
    """Not an exception that nobody sees."""
    Path(order.plan.source).unlink()

    outcome = concluded(order, folder_with(order, jobs))

    assert outcome.failure is not None
    assert "unreadable_source" == outcome.failure.type


def test_an_unforeseen_error_is_a_failure_that_quotes_nothing(
    order: JobOrder, jobs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its text may hold values; it goes into the log, and the failure says where that is."""
    folder = folder_with(order, jobs)
    # A folder cannot be replaced by a file.
    (folder.data_file / "secret").mkdir(parents=True)

    outcome = concluded(order, folder)

    assert outcome.failure is not None
    assert ("internal", True) == (outcome.failure.type, str(folder.log_file) in outcome.failure.message)
    assert "Traceback" in caplog.text


def test_what_a_killed_job_left_is_swept_up(order: JobOrder, jobs: Path) -> None:
    """Copies of the source are not kept by accident."""
    folder = folder_with(order, jobs)
    (folder.path / ".scratch-killed").mkdir()
    concluded(order, folder)

    assert {"job.json", "data.parquet"} == {path.name for path in folder.path.iterdir()}


@pytest.mark.parametrize(("arguments", "code", "said"), [(["nowhere/job.json"], 2, "There is no"), ([], 2, "usage")])
def test_the_process_says_how_it_is_called(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    """By hand it is called with a job file."""
    ran = subprocess.run(
        [sys.executable, "-m", "activities.transform_job", *(str(tmp_path / argument) for argument in arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (code, True) == (ran.returncode, said in ran.stderr)
