"""The worker as a child process: started, watched, started again if it dies, and stopped with grace."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from .embedded import end
from .exits import AWAY, FAILED, USAGE, Stop

READY = "worker ready"
READY_SECONDS = 60.0
STOP_SECONDS = 35.0
"""A little more than the 30 seconds that the worker gives its running steps."""

BACKOFF = (1.0, 2.0, 5.0, 10.0, 30.0)


def has_worker() -> bool:
    """Whether the current folder holds a worker."""
    return Path("worker/__main__.py").is_file()


def require_worker() -> None:
    """`Stop` unless the current folder holds a worker."""
    if not has_worker():
        raise Stop(
            USAGE,
            f"there is no worker/__main__.py in {Path.cwd()}: run this from a checkout of your pipelines",
            kind="no_worker_package",
        )


def child_environment(address: str, store: str, data_dir: Path) -> dict[str, str]:
    """The environment of a worker of an embedded server: the caller's, without settings for another server."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    return own | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": "default",
        # Otherwise a profile in the user's own config file would bring its TLS and API key.
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "GATEWRIGHT_STORE": store,
        "GATEWRIGHT_DATA_DIR": str(data_dir),
        "PYTHONUNBUFFERED": "1",
    }


class WorkerProcess:
    """
    `python -m worker` in the current folder; what it prints goes to `worker.log` in `folder`.

    `environment` is asked when it starts, because the server's address is known only then.
    `say` is told when it dies and is started again, by `tend`, which whoever
    waits calls every now and then.
    """

    def __init__(self, environment: Callable[[], dict[str, str]], folder: Path, say: Callable[[str], None]) -> None:
        self._environment = environment
        self._log = folder.absolute() / "worker.log"
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._deaths = 0
        self._started = 0.0
        self._again_at: float | None = None

    def start(self) -> None:
        """Start it and wait until it polls; `Stop` with its last words if it does not come up."""
        self._launch()
        ends = time.monotonic() + READY_SECONDS
        while not self._ready.wait(0.05):
            if self._process is None or self._process.poll() is not None:
                code = self._process.returncode if self._process else FAILED
                kind, exit_code = ("unreachable", AWAY) if code == AWAY else ("worker_failed", FAILED)
                raise Stop(exit_code, f"the worker did not start: {self._last_words()} (see {self._log})", kind=kind)
            if time.monotonic() > ends:
                raise Stop(FAILED, f"the worker was not ready within 60 s (see {self._log})", kind="worker_failed")

    def tend(self) -> None:
        """Start it again if it died: at once the first time, then later and later."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            if self._deaths and self._ready.is_set() and time.monotonic() - self._started > BACKOFF[-1]:
                self._deaths = 0
            return
        if self._again_at is None:
            wait = BACKOFF[min(self._deaths, len(BACKOFF) - 1)]
            self._deaths += 1
            self._again_at = time.monotonic() + wait
            self._say(
                f"the worker died ({_how(process.returncode)}); it is started again in {wait:.0f} s, "
                f"and runs go on from where they were (see {self._log})"
            )
        elif time.monotonic() >= self._again_at:
            self._launch()

    def stop(self) -> None:
        """Stop it with grace; repeating it does nothing."""
        process, self._process = self._process, None
        if process is not None:
            end(process, STOP_SECONDS)

    def _launch(self) -> None:
        self._again_at = None
        self._ready = threading.Event()
        self._started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "worker"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                # It is stopped by us, with grace, and not by a Ctrl-C that reaches everything on the terminal.
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=(self._process.stdout, self._ready), daemon=True).start()

    def _listen(self, printed: IO[bytes], ready: threading.Event) -> None:
        with printed, self._log.open("ab") as log:
            for line in printed:
                if line.decode("utf-8", "replace").startswith(READY):
                    ready.set()
                log.write(line)
                log.flush()

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else "it said nothing"


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"
