"""A pulse beats while a step works, and ends the work when the step is cancelled."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest
from temporalio.exceptions import CancelledError
from temporalio.testing import ActivityEnvironment

from activities.pulse import Pulse

ENDLESS = "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b"


async def test_a_step_beats_while_it_works() -> None:
    """Beats come from the pulse: the step itself is inside one call."""
    beats, thrice = 0, threading.Event()
    environment = ActivityEnvironment()

    def beaten(*_: object) -> None:
        nonlocal beats
        beats += 1
        if beats == 3:
            thrice.set()

    def work() -> bool:
        with Pulse(every=0.01):
            return thrice.wait(20)

    environment.on_heartbeat = beaten

    assert await asyncio.to_thread(environment.run, work)


async def test_cancellation_ends_a_query_that_would_run_for_hours() -> None:
    """DuckDB is interrupted, and the step ends as cancelled."""
    environment, working = ActivityEnvironment(), threading.Event()

    def work() -> None:
        with Pulse() as pulse, duckdb.connect() as connection, pulse.guard(connection):
            working.set()
            connection.execute(ENDLESS)

    with ThreadPoolExecutor(1) as pool:
        ended = asyncio.get_running_loop().run_in_executor(pool, environment.run, work)
        await asyncio.to_thread(working.wait)
        environment.cancel()

        with pytest.raises(CancelledError):
            await asyncio.wait_for(ended, 20)


def test_outside_an_activity_a_pulse_is_still() -> None:
    """A job's process and a test use the same code as a step."""
    before = threading.active_count()

    with Pulse() as pulse, duckdb.connect() as connection, pulse.guard(connection):
        assert (before, (1,)) == (threading.active_count(), connection.execute("SELECT 1").fetchone())


def test_an_interrupt_that_nobody_asked_for_is_not_a_cancellation() -> None:
    """Only a cancelled step ends as cancelled."""
    with pytest.raises(duckdb.InterruptException), Pulse():
        raise duckdb.InterruptException("somebody else")
