"""
Job folders: one folder per key, one process at a time, one outcome.

    <data>/jobs/<key>/
        job.json       the order, written once
        lock           held (flock) by the job's process for as long as it lives, and by nobody else
        pid            of the process that was started last, for people
        log            what the processes wrote
        data.parquet   the result's data
        result.json    the outcome, written once
        delivered      there when the waiting run has ruled on the outcome

Whether a job lives is asked of the kernel and not of a pid: a lock ends with its process however that ends, while a pid
may have been given to another process since. The dispatcher takes the lock and the process inherits it, so between the
two nobody can start a second one.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from activities.errors import JobConflict
from activities.files import flush, replace_durably
from activities.models import JobOrder, JobOutcome, TransformJob

ROOT = Path(__file__).resolve().parents[1]
"""Where `python -m activities...` finds this package."""


class JobFolder:
    """The folder of one job; every file in it is reached through here."""

    def __init__(self, path: Path) -> None:
        """Name a job's folder, which need not exist yet."""
        self.path = path
        self.order_file = path / "job.json"
        self.data_file = path / "data.parquet"
        self.log_file = path / "log"
        self._outcome_file = path / "result.json"
        self._delivered_file = path / "delivered"

    def order(self) -> JobOrder | None:
        """What the job was told, if it was told already."""
        return JobOrder.model_validate_json(self.order_file.read_text("utf-8")) if self.order_file.exists() else None

    def place(self, order: JobOrder) -> None:
        """Write the order, once; `JobConflict` if the folder holds another."""
        self.path.mkdir(parents=True, exist_ok=True)
        placed = self.order()
        if placed is None:
            replace_durably(self.order_file, order.model_dump_json(indent=1))
        elif placed != order:
            raise JobConflict(
                f"{self.order_file} holds another order under the key {order.key}. A key names one call for ever: "
                "find out which of the two calls is right before removing the folder."
            )

    def outcome(self) -> JobOutcome | None:
        """How the job ended, if it did."""
        if not self._outcome_file.exists():
            return None
        return JobOutcome.model_validate_json(self._outcome_file.read_text("utf-8"))

    def conclude(self, outcome: JobOutcome) -> None:
        """Record how the job ended."""
        replace_durably(self._outcome_file, outcome.model_dump_json(indent=1))

    @property
    def delivered(self) -> bool:
        """Whether the waiting run has ruled on the outcome."""
        return self._delivered_file.exists()

    def mark_delivered(self) -> None:
        """Record that the waiting run has ruled on the outcome."""
        self._delivered_file.touch()
        flush(self.path)

    def lock(self) -> int | None:
        """Take the lock and return its file descriptor, to be closed or inherited; nothing if a process holds it."""
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def start(self, lock: int) -> int:
        """Start the job's process, which inherits the lock, and return its pid. The caller closes its own `lock`."""
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "activities.transform_job", str(self.order_file), "--lock", str(lock)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock],
                # The job outlives the worker, and a Ctrl-C meant for the worker.
                start_new_session=True,
            )
        (self.path / "pid").write_text(f"{process.pid}\n", "utf-8")
        # Somebody must wait for a child, or its remains stay in the process table.
        threading.Thread(target=process.wait, name=f"job {process.pid}", daemon=True).start()
        return process.pid


def job_folder(jobs: Path, key: str) -> JobFolder:
    """The folder of the job with this key, below the folder of all jobs."""
    return JobFolder(jobs.resolve() / safe_name(key))


def safe_name(key: str) -> str:
    """A key as a file name: itself where that is safe, else what is safe of it and a digest of all of it."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", key)[:100]
    if plain == key and plain:
        return plain
    return f"{plain[:60]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def dispatched(order: JobOrder, *, jobs: Path) -> TransformJob:
    """
    See to it that a job is being done: start its process unless one is alive, or has done it and said so.

    A job whose outcome is recorded but not delivered gets a process that only delivers. Returns at once. Raises
    `JobConflict` if the key was used for another order.
    """
    folder = job_folder(jobs, order.key)
    folder.place(order)
    started = False
    if (lock := folder.lock()) is not None:
        try:
            # Looked at under the lock: a process may just have finished.
            if not folder.delivered:
                folder.start(lock)
                started = True
        finally:
            os.close(lock)
    return TransformJob(key=order.key, folder=str(folder.path), started=started)
