"""
Fresh processes at the price of a fork: `python -m tests.effects_crash.forks` imports everything once, and forks when told.

Told by lines of JSON on its standard input; tells on its standard output who is
born, stopped and dead, beside what its children tell there themselves. When its
input ends, it kills its children (and nobody else) and goes. Nothing of the SDK
runs before a fork: the import starts no thread.
"""

import asyncio
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from gatewright.store import Store
from tests.effects_crash.victim import Setup, work

BOUND = 30.0
"""How long a process may take to come to where it is expected, in seconds."""


class Forking:
    """The process that forks."""

    def __init__(self) -> None:
        self._children: set[int] = set()
        self._wake, self._woken = os.pipe()

    def serve(self) -> None:
        """Until standard input ends."""
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, _noted)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        buffered = b""
        try:
            while True:
                ready, _, _ = select.select([0, self._wake], [], [])
                if self._wake in ready:
                    os.read(self._wake, 4096)
                    self._reap()
                if 0 in ready:
                    read = os.read(0, 65536)
                    if not read:
                        return
                    *lines, buffered = (buffered + read).split(b"\n")
                    for line in lines:
                        self._told(json.loads(line))
        finally:
            for pid in self._children:
                os.kill(pid, signal.SIGKILL)
            for pid in self._children:
                os.waitpid(pid, 0)

    def _told(self, order: dict[str, Any]) -> None:
        if "fork" in order:
            setup = Setup.model_validate(order["fork"])
            if (pid := os.fork()) == 0:
                self._child(setup)
            self._children.add(pid)
            _tell({"pid": pid, "said": "born", "name": order["name"]})
        elif order["pid"] in self._children:
            os.kill(order["pid"], signal.Signals(order["signal"]))

    def _child(self, setup: Setup) -> NoReturn:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (0, self._wake, self._woken):
            os.close(descriptor)
        # The SDK writes its own log to standard output.
        told = os.dup(1)
        os.dup2(2, 1)
        code = 1
        try:
            asyncio.run(work(setup, told))
            code = 0
        finally:
            # Past everything that waits in this process's name in the one that it was forked from.
            os._exit(code)

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                _tell({"pid": pid, "said": "stopped"})
            else:
                self._children.discard(pid)
                _tell({"pid": pid, "said": "ended", "code": os.waitstatus_to_exitcode(status)})


def _noted(_signal: int, _frame: FrameType | None) -> None:
    """Written into the wake-up pipe by the interpreter."""


def _tell(news: dict[str, Any]) -> None:
    os.write(1, json.dumps(news).encode() + b"\n")


class Child:
    """A forked process, as the harness knows it."""

    def __init__(self, forks: "Forks") -> None:
        self._forks = forks
        self.pid = 0
        self.news: list[dict[str, Any]] = []
        self._changed = asyncio.Event()

    def hear(self, news: dict[str, Any]) -> None:
        """Something has become of it, or it tells something."""
        self.pid = news["pid"]
        self.news.append(news)
        self._changed.set()

    def heard(self, said: str) -> list[dict[str, Any]]:
        """What was told so far under this word."""
        return [news for news in self.news if news["said"] == said]

    async def until(self, *words: str, bound: float = BOUND) -> dict[str, Any] | None:
        """Wait until one of these is told, and return the first that was; None when the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(bound):
                while True:
                    for news in self.news:
                        if news["said"] in words:
                            return news
                    self._changed.clear()
                    await self._changed.wait()
        return None

    def send(self, sent: signal.Signals) -> None:
        """Send it a signal; nothing happens where it has ended."""
        if self.pid and not self.heard("ended"):
            self._forks.tell({"pid": self.pid, "signal": sent.value})


class Forks:
    """The harness's side: `async with Forks(log) as forks`, and nothing of it is left behind."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._unborn: dict[str, Child] = {}
        self._children: dict[int, Child] = {}
        self._early: dict[int, list[dict[str, Any]]] = {}
        """What a child told before its parent came to say that it is born."""

    def fork(self, name: str, setup: Setup) -> Child:
        """A fresh process; `name` is nobody else's."""
        child = self._unborn[name] = Child(self)
        self.tell({"fork": setup.model_dump(mode="json"), "name": name})
        return child

    def tell(self, order: dict[str, Any]) -> None:
        """Pass an order on."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def __aenter__(self) -> Self:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "GATEWRIGHT_"))}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.effects_crash.forks",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=Path(__file__).parents[2],
                env=own | {"TEMPORAL_CONFIG_FILE": os.devnull},
                # Ctrl-C is for the harness, which then ends it.
                start_new_session=True,
            )
        self._hearing = asyncio.create_task(self._hear())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._hearing
        await self._process.wait()

    async def _hear(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            news = json.loads(line)
            pid = news["pid"]
            if news["said"] == "born":
                self._children[pid] = self._unborn.pop(news["name"])
                for early in self._early.pop(pid, []):
                    self._children[pid].hear(early)
            if pid not in self._children:
                self._early.setdefault(pid, []).append(news)
                continue
            self._children[pid].hear(news)
            if news["said"] == "ended":
                # Its number may be another's from now on.
                del self._children[pid]


def warm() -> None:
    """Do once what every child would do for the first time: imports that wait until they are needed, most of all."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/store.db") as store:
        store.ledger.plan(key="k", effect="e", kind="keyed", workflow_id="w", branch="b@1", visit=1, generation=0)
        store.ledger.begin("k", holder="h", lease=1, call_seconds=1, arguments_digest="d", alone=False)
        store.ledger.performed("k", result=1, receipt=None)
    importlib.import_module("sqlalchemy.dialects.postgresql.psycopg")
    importlib.import_module("psycopg")
    # What is there now is never garbage, and its pages stay shared.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    warm()
    Forking().serve()
