"""Records that are right in every respect, to be spoilt or varied by a test, and processes to write them at once."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any, TypeVar

from gatewright.store import GateRow, LedgerConflict, Plan, RefusalRow, RunRecord, SessionKey, SessionOpen, Store

NOON = datetime(2031, 5, 4, 12, 0, 0, 123456, tzinfo=UTC)
SESSION = SessionKey(app="datasets", user="ada", session="s1")
RUN = SESSION.workflow_id(1)
PLAN = Plan(effect="publish", kind="keyed", workflow_id=RUN, branch="release@1/publish@1", visit=1, generation=0)

T = TypeVar("T")


def later(minutes: int = 1) -> datetime:
    """So many minutes after noon."""
    return NOON + timedelta(minutes=minutes)


def allocate(store: Store, **changes: Any) -> tuple[RunRecord, bool]:
    """Open a run of the session as a client would."""
    arguments: dict[str, Any] = {
        "opening_id": "o1",
        "pipeline": "DatasetRelease",
        "task_queue": "gates",
        "input_digest": "sha256:1",
        "at": NOON,
        "refuse_if_open": False,
    }
    session = changes.pop("session", SESSION)
    return store.allocate_run(session, **arguments | changes)


def run_record(**changes: Any) -> RunRecord:
    """Describe the session's first run, as a reindex finds it."""
    session = changes.get("session", SESSION)
    number = changes.get("number", 1)
    fields: dict[str, Any] = {
        "workflow_id": session.workflow_id(number),
        "session": session,
        "number": number,
        "opening_id": "o1",
        "pipeline": "DatasetRelease",
        "task_queue": "gates",
        "input_digest": "sha256:1",
        "standing": "open",
        "first_execution_run_id": "e1",
        "opened_at": NOON,
    }
    return RunRecord(**fields | changes)


def gate_row(**changes: Any) -> GateRow:
    """Describe an open gate of the session's first run."""
    fields: dict[str, Any] = {
        "workflow_id": RUN,
        "interrupt_id": "review",
        "gate": "review",
        "visit": 1,
        "kind": "human",
        "pipeline": "DatasetRelease",
        "branch": "release@1/review@1",
        "message": "Which columns shall be dropped?",
        "payload": {"columns": ["name", "email"], "rows": 3},
        "response_schema": {"type": "object"},
        "digest": "sha256:2",
        "dangerous": True,
        "opened_at": NOON,
        "deadline": later(60),
    }
    return GateRow(**fields | changes)


def refusal_row(**changes: Any) -> RefusalRow:
    """Describe an answer that was refused at the gate `review`."""
    fields: dict[str, Any] = {
        "workflow_id": RUN,
        "interrupt_id": "review",
        "answer_id": "a1",
        "refusal": "stale",
        "reason": "the gate has changed since you read it",
        "principal": "ada",
        "channel": "signal",
        "at": NOON,
        "recorded_by": "run",
        "detail": {"digest": "sha256:0"},
    }
    return RefusalRow(**fields | changes)


def planned(**changes: Any) -> dict[str, Any]:
    """Give the arguments of `Ledger.plan` for one call of `publish`."""
    fields: dict[str, Any] = {"key": "k1", **dict(PLAN)}
    return fields | changes


def attempt(**changes: Any) -> dict[str, Any]:
    """Give the arguments of `Ledger.begin`, behind the key, for an attempt that nobody else may meet for an hour."""
    fields: dict[str, Any] = {
        "holder": "h1",
        "lease": 3600.0,
        "call_seconds": 0.0,
        "arguments_digest": "sha256:3",
        "arguments": [{"rows": 3}],
        "alone": False,
    }
    return fields | changes


def until(condition: Callable[[], T | None], seconds: float = 30) -> T:
    """Ask again until there is something other than None, and give it."""
    give_up = time.monotonic() + seconds
    while (found := condition()) is None:
        assert time.monotonic() < give_up, "it did not come about"
        time.sleep(0.005)
    return found


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Call all in threads that start together; an exception is a result."""
    barrier = Barrier(len(calls))

    def one(call: Callable[[], object]) -> object:
        barrier.wait(timeout=30)
        try:
            return call()
        except (SessionOpen, LedgerConflict) as error:
            return error

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(one, calls))


def in_processes(count: int, script: str, *arguments: str) -> list[Any]:
    """
    Run the script in so many processes, held at one line until all have reached it; give what each printed as JSON.

    The script finds its arguments in `sys.argv[1:]`, its own number in front,
    and calls `begin()` where the race is to start.
    """
    head = "import json, sys\ndef begin():\n    print('ready', flush=True)\n    sys.stdin.readline()\n"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", head + script, str(number), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise AssertionError(process.communicate()[1])
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        printed = []
        for process in processes:
            output, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
            printed.append(json.loads(output))
        return printed
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
