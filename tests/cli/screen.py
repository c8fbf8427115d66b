"""A person at a terminal: a command under a pseudo-terminal, what it shows, and what is typed."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 45.0


class Screen:
    """A command at a terminal of its own; `seen` is all that it has shown, without colours."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=env | {"TERM": "xterm", "COLUMNS": "200"},
            start_new_session=True,
        )
        os.close(theirs)
        self._raw = b""
        self._from = 0

    @property
    def seen(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self._raw.decode("utf-8", "replace"))

    def expect(self, text: str) -> None:
        """Wait until `text` is shown, after whatever was expected before."""
        if not self._shows(text, PATIENCE):
            raise AssertionError(f"{text!r} was not shown after:\n{self.seen}")

    def _shows(self, text: str, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while (at := self.seen.find(text, self._from)) < 0:
            if time.monotonic() > ends or not self._read(1):
                return False
        self._from = at + len(text)
        return True

    def enter(self, line: str) -> None:
        """Type a line and Enter."""
        os.write(self._ours, line.encode() + b"\n")

    def press_ctrl_c(self, text: str) -> None:
        """
        Press Ctrl-C (SIGINT to the whole group in the foreground) and wait until `text` is shown.

        A person who sees nothing happen presses again: readline misses a signal
        that comes between its prompt and its wait for a key.
        """
        self._again(lambda: os.killpg(self._process.pid, signal.SIGINT), text)

    def terminate(self, text: str) -> None:
        """Send it SIGTERM and wait until `text` is shown; again where readline has missed it, as it may Ctrl-C."""
        self._again(self._process.terminate, text)

    def _again(self, send: Callable[[], None], text: str) -> None:
        for _ in range(3):
            send()
            if self._shows(text, PATIENCE / 3):
                return
        raise AssertionError(f"a signal, three times, did not show {text!r} after:\n{self.seen}")

    def end(self) -> int:
        """Wait until the command is over; its exit code."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and self._read(1):
            pass
        return self._process.wait(PATIENCE)

    def _read(self, seconds: float) -> bool:
        """Read what there is; whether the command may still say something."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            return False
        self._raw += piece
        return bool(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(PATIENCE)
        os.close(self._ours)
