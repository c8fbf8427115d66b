"""One key, one folder, one process at a time."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.errors import JobConflict
from activities.jobs import ROOT, JobFolder, dispatched, job_folder, safe_name
from activities.models import JobOrder, JobOutcome, TransformJob
from tests.activities.builders import until
from tests.activities.conftest import end


def folder_of(job: TransformJob) -> JobFolder:
    return JobFolder(Path(job.folder))


def pid_of(job: TransformJob) -> int:
    return int((Path(job.folder) / "pid").read_text("utf-8"))


def test_a_dispatched_job_is_done_by_another_process(order: JobOrder, jobs: Path) -> None:
    """In a session of its own, so that it outlives the worker and its terminal; the order and the log are kept."""
    job = dispatched(order, jobs=jobs)
    outcome = until(folder_of(job).outcome)

    assert job.started
    assert pid_of(job) not in {os.getpid(), os.getppid()}
    assert pid_of(job) == os.getsid(pid_of(job))
    assert outcome.result is not None
    assert (3, ["id", "email", "amount"]) == (outcome.result.rows, outcome.result.columns)
    assert Path(outcome.result.path).is_file()
    assert "Wrote 3 rows" in folder_of(job).log_file.read_text("utf-8")


def test_a_living_job_is_not_started_twice(order: JobOrder, jobs: Path) -> None:
    """From the first moment: the process inherits the lock that its dispatcher took."""
    first = dispatched(order, jobs=jobs)
    again = dispatched(order, jobs=jobs)

    assert (True, False) == (first.started, again.started)
    assert first.folder == again.folder


def test_of_many_dispatches_at_once_one_starts_the_job(order: JobOrder, jobs: Path) -> None:
    """An attempt that timed out may still be running beside the next one."""
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: dispatched(order, jobs=jobs), range(8)))

    assert [True] == [job.started for job in results if job.started]


def test_a_dead_job_is_started_again(order: JobOrder, jobs: Path) -> None:
    """Killed outright, it cannot say so; its lock does."""
    first = dispatched(order, jobs=jobs)
    killed = pid_of(first)
    os.kill(killed, signal.SIGKILL)
    os.close(until(folder_of(first).lock))

    again = dispatched(order, jobs=jobs)

    assert (True, True) == (again.started, pid_of(again) != killed)
    assert until(folder_of(again).outcome).result is not None


def test_a_done_job_that_could_not_say_so_is_only_delivered(order: JobOrder, jobs: Path) -> None:
    """The recorded outcome stands: the data is not written a second time."""
    first = dispatched(order, jobs=jobs)
    outcome = until(folder_of(first).outcome)
    end(folder_of(first))
    assert outcome.result is not None
    written = Path(outcome.result.path).stat()

    again = dispatched(order, jobs=jobs)
    until(
        lambda: "Could not call back" in folder_of(again).log_file.read_text("utf-8").rpartition(str(pid_of(again)))[2]
    )

    assert again.started
    assert (written.st_ino, written.st_mtime_ns) == (
        Path(outcome.result.path).stat().st_ino,
        Path(outcome.result.path).stat().st_mtime_ns,
    )


def test_a_delivered_job_is_over(order: JobOrder, jobs: Path) -> None:
    """A repeated dispatch starts nothing."""
    folder = job_folder(jobs, order.key)
    folder.place(order)
    folder.conclude(JobOutcome())
    folder.mark_delivered()

    assert TransformJob(key=order.key, folder=str(folder.path), started=False) == dispatched(order, jobs=jobs)


def test_a_key_with_another_order_is_a_conflict(order: JobOrder, jobs: Path) -> None:
    """A key names one call for ever; nothing is started, and the first order stands."""
    folder = job_folder(jobs, order.key)
    folder.place(order)
    other = order.model_copy(update={"plan": order.plan.model_copy(update={"drop": []})})

    with pytest.raises(JobConflict, match="another order") as conflict:
        dispatched(other, jobs=jobs)

    assert conflict.value.non_retryable
    assert (order, False) == (folder.order(), (folder.path / "pid").exists())


def test_a_job_that_ends_leaves_no_remains(order: JobOrder, jobs: Path) -> None:
    """Its parent waits for it: a process table full of the dead takes no more living."""
    job = dispatched(order, jobs=jobs)
    end(folder_of(job))

    def gone() -> bool:
        try:
            os.kill(pid_of(job), 0)
        except ProcessLookupError:
            return True
        return False

    assert until(gone)


def test_a_job_started_by_hand_leaves_a_living_one_alone(order: JobOrder, jobs: Path) -> None:
    """Whoever has no lock asks for it, and goes away if it is held."""
    job = dispatched(order, jobs=jobs)
    by_hand = subprocess.run(
        [sys.executable, "-m", "activities.transform_job", str(folder_of(job).order_file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert 0 == by_hand.returncode
    assert "Another process is doing this job" in by_hand.stderr


def test_every_key_has_a_safe_name_of_its_own() -> None:
    """Keys that differ never share a folder, and none leaves the folder of all jobs."""
    keys = ["gw1-0af", "a/b", "a_b", "../../etc", "..", "", "x" * 200, "x" * 201, "ключ", "A b"]
    names = [safe_name(key) for key in keys]

    assert "gw1-0af" == names[0]
    assert len(keys) == len(set(names))
    assert all(name and "/" not in name and not name.startswith(".") and len(name) <= 120 for name in names)
