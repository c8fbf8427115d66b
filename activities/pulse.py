"""
A step's pulse: heartbeats while a long call runs, and an end to the call when the step is cancelled.

DuckDB works for minutes inside one call, in which Python sees neither the clock nor Temporal's cancellation. A second
thread keeps both: it sends a heartbeat every few seconds and interrupts the guarded connection once cancellation was
requested. Outside an activity a pulse does nothing, so the same code runs in a job's own process and in tests.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import TracebackType
from typing import Self

import duckdb
from temporalio import activity
from temporalio.exceptions import CancelledError

LOOK_EVERY = 0.2
"""Seconds between two looks at cancellation."""


class Pulse:
    """Beats from entry to exit; `guard` names the connection to interrupt when the activity is cancelled."""

    def __init__(self, *, every: float = 5.0) -> None:
        """Beat once at entry and then every so many seconds."""
        self._every = every
        self._over = threading.Event()
        self._interrupt: Callable[[], None] | None = None
        self._interrupting = threading.Lock()
        self._cancelled = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if activity.in_activity():
            # Temporal finds the activity through context variables, which a new thread does not inherit.
            context = copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._beat,), name="pulse", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._cancelled and isinstance(error, duckdb.InterruptException):
            raise CancelledError("The step was cancelled while DuckDB worked.") from error

    @contextmanager
    def guard(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Interrupt whatever this connection is doing within the block once the activity is cancelled."""
        self._interrupt = connection.interrupt
        try:
            yield
        finally:
            # Under the lock, for a connection that is closed after the block refuses to be interrupted.
            with self._interrupting:
                self._interrupt = None

    def _beat(self) -> None:
        beaten = -self._every
        while True:
            if activity.is_cancelled():
                self._cancelled = True
                with self._interrupting:
                    # Again at every look: an interrupt between two queries is lost.
                    if self._interrupt is not None:
                        self._interrupt()
            elif time.monotonic() - beaten >= self._every:
                activity.heartbeat()
                beaten = time.monotonic()
            if self._over.wait(LOOK_EVERY):
                return
