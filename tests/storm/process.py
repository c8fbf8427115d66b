"""A worker as a process of its own: started, stopped with grace, and killed without any."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

READY = "worker ready"
"""What a worker prints, alone or at the beginning of a line, once it polls."""

READY_SECONDS = 60.0
STOP_SECONDS = 40.0


def environment(address: str, store: str, queue: str, **more: str) -> dict[str, str]:
    """What a worker of the test's own server is told; settings for any other server are left out."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "GATEWRIGHT_"))}
    return own | {
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "GATEWRIGHT_STORE": store,
        "GATEWRIGHT_TASK_QUEUE": queue,
        "PYTHONUNBUFFERED": "1",
        **more,
    }


class WorkerProcess:
    """`python -m MODULE` over and over; what it prints goes to `log`. Left, it is gone, whatever happened."""

    def __init__(self, module: str, told: Mapping[str, str], log: Path) -> None:
        self._module = module
        self._told = dict(told)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.kills = 0

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start it and wait until it polls; `AssertionError` with its last words where it does not come up."""
        self.starts += 1
        began = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
                [sys.executable, "-m", self._module],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._told,
                # Ctrl-C is for the one that harasses it, which then ends it.
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(READY_SECONDS):
                while READY not in self._printed(began):
                    assert self.alive, f"the worker ended at once:\n{self._printed(began)[-2000:]}"
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"the worker did not come up:\n{self._printed(began)[-2000:]}") from None

    async def kill(self) -> None:
        """SIGKILL, the pid's own; nothing of it is told."""
        assert self._process is not None
        self.kills += 1
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    async def stop(self) -> None:
        """SIGTERM, and wait until it has gone by itself; `AssertionError` where it does not go well."""
        assert self._process is not None
        self._process.terminate()
        code = await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        assert code == 0, f"the worker stopped with exit code {code}:\n{self._printed(0)[-3000:]}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None and self.alive:
            self._process.kill()
            self._process.wait()

    def _printed(self, began: int) -> str:
        with self._log.open("rb") as log:
            log.seek(began)
            return log.read().decode("utf-8", "replace")
