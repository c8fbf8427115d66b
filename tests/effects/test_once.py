"""Intent and receipt: a retried activity whose effect is recorded returns the recorded result."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity, workflow

from gatewright.protocol import Call
from gatewright.store import Store

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import (
        CannotTell,
        DidNotHappen,
        Happened,
        NotPerformed,
        Reconciliation,
        current_call,
        effect,
        heartbeat,
        step,
    )
    from gatewright.temporal import Frame

DONE: Counter[str] = Counter()
"""What the outside counted, by effect and name."""

OUTSIDE: dict[str, Any] = {}
"""What the outside remembers, by key."""


class Lost(Exception):  # noqa: N818
    """The attempt ends after the outside call and before anything is recorded, as in a crash."""


@effect(kind="keyed")
async def keyed(name: str) -> str:
    """An outside that honours our key: the first attempt's word gets lost."""
    key = current_call().key
    if key not in OUTSIDE:
        OUTSIDE[key] = f"done {name}"
        DONE[f"keyed {name}"] += 1
        raise Lost
    return str(OUTSIDE[key])


def ask_outside(call: Call, name: str) -> Reconciliation:
    """The outside can be asked by key."""
    if name == "mute":
        return CannotTell("the outside is mute")
    return Happened(OUTSIDE[call.key]) if call.key in OUTSIDE else DidNotHappen()


@effect(kind="reconcilable", reconcile=ask_outside, call_timeout=timedelta(milliseconds=100))
def reconcilable(name: str) -> str:
    """An outside that can be asked; `lost after` loses the word after the deed, `lost before` before it."""
    if name == "lost before" and not DONE["tried before"]:
        DONE["tried before"] += 1
        raise Lost
    OUTSIDE[current_call().key] = f"done {name}"
    DONE[f"reconcilable {name}"] += 1
    if name in {"lost after", "mute"}:
        raise Lost
    return f"done {name}"


@effect(kind="opaque")
async def opaque(name: str) -> str:
    """An outside that can neither be asked nor told a repeat."""
    DONE[f"opaque {name}"] += 1
    raise Lost


@effect(kind="opaque")
async def declined(name: str) -> str:
    """An effect that is known not to have happened on its first attempt."""
    DONE[f"declined {name}"] += 1
    if DONE[f"declined {name}"] == 1:
        msg = "the outside said no"
        raise NotPerformed(msg)
    return "done"


@step()
def asks_for_its_call() -> str:
    """A sync step knows its call too."""
    call = current_call()
    return f"{call.id} {call.branch}"


@effect(kind="keyed")
async def precise(name: str) -> dict[str, Any]:
    """A result that plain JSON clients would round, and whose first attempt is lost."""
    key = current_call().key
    OUTSIDE[key] = {"transaction": 2**60 + 1}
    DONE[f"precise {name}"] += 1
    if DONE[f"precise {name}"] == 1:
        raise Lost
    return dict(OUTSIDE[key])


@step(heartbeat=timedelta(seconds=1))
async def resumes() -> list[Any]:
    """Reports how far it has come, and dies; the second attempt says nothing for longer than a heartbeat, and dies too."""
    told = list(activity.info().heartbeat_details)
    attempt = activity.info().attempt
    if attempt == 1:
        heartbeat("half way", 50)
        await asyncio.sleep(0.1)
        raise Lost
    if attempt == 2:
        await asyncio.sleep(1)
        raise Lost
    return told


EFFECTS: dict[str, Callable[..., Any]] = {
    "precise": precise,
    "keyed": keyed,
    "reconcilable": reconcilable,
    "opaque": opaque,
    "declined": declined,
    "asks": asks_for_its_call,
    "resumes": resumes,
}


@workflow.defn
class Performs:
    """Performs one effect once."""

    @workflow.init
    def __init__(self, which: str, name: str) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, which: str, name: str) -> str:
        args = [] if which in {"asks", "resumes"} else [name]
        return str(await self.frame.perform(EFFECTS[which], *args))


@pytest.fixture
async def performs(client: Any, queue: str, working: Any) -> Any:
    """`await performs("keyed", "name")` runs one effect in a run of its own and returns what it returned."""

    async def one(which: str, name: str = "", **options: Any) -> Any:
        async with working([Performs], list(EFFECTS.values()), **options):
            return await client.execute_workflow(
                "Performs", args=[which, name], id=f"{which}-{name}-{queue}", task_queue=queue
            )

    return one


async def test_a_retry_of_a_keyed_effect_is_told_by_its_key(performs: Any, store: Store) -> None:
    """Attempted twice, done once."""
    assert await performs("keyed", "letter") == "done letter"
    assert DONE["keyed letter"] == 1
    [entry] = store.ledger.entries()
    assert (entry.state, entry.attempts, entry.result) == ("performed", 2, "done letter")


async def test_a_reconcilable_effect_that_happened_is_not_repeated(performs: Any) -> None:
    """The outside is asked first."""
    assert await performs("reconcilable", "lost after") == "done lost after"
    assert DONE["reconcilable lost after"] == 1


async def test_a_reconcilable_effect_that_did_not_happen_is_performed(performs: Any) -> None:
    """The outside knows nothing of the key, so the retry does it."""
    assert await performs("reconcilable", "lost before") == "done lost before"
    assert DONE["reconcilable lost before"] == 1


async def test_an_effect_known_not_to_have_happened_may_be_repeated(performs: Any) -> None:
    """Even an opaque one: it said so itself."""
    assert await performs("declined", "order") == "done"
    assert DONE["declined order"] == 2


async def test_a_recorded_effect_is_never_attempted_again(
    performs: Any, client: Any, queue: str, working: Any, store: Store
) -> None:
    """The whole run is reset to its beginning: history forgets the effect, the ledger does not."""
    from temporalio.api.common.v1 import WorkflowExecution
    from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

    assert await performs("declined", "reset") == "done"
    before = DONE["declined reset"]
    workflow_id = f"declined-reset-{queue}"
    described = await client.get_workflow_handle(workflow_id).describe()
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=described.run_id),
            workflow_task_finish_event_id=4,
            reason="to the beginning",
            request_id=f"reset-{queue}",
        )
    )
    async with working([Performs], list(EFFECTS.values())):
        assert await client.get_workflow_handle(workflow_id).result() == "done"

    assert before == DONE["declined reset"]
    [entry] = store.ledger.entries()
    assert entry.state == "performed"


async def test_a_sync_step_knows_its_call(performs: Any) -> None:
    """Its readable id and its branch."""
    assert await performs("asks") == "asks_for_its_call#1 Performs@1/asks_for_its_call@1"


async def test_an_effect_waits_while_the_store_is_away(performs: Any, store: Store, tmp_path: Any) -> None:
    """It is never performed unrecorded: a locked database holds it up, and it goes on when the lock is gone."""
    import sqlite3
    import threading

    lock = sqlite3.connect(tmp_path / "gatewright.db", check_same_thread=False, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    released_at: list[datetime] = []

    def release() -> None:
        released_at.append(datetime.now(UTC))
        lock.execute("ROLLBACK")
        lock.close()

    timer = threading.Timer(1.5, release)
    timer.start()
    try:
        assert await performs("declined", "patience") == "done"
    finally:
        timer.join()
    [entry] = store.ledger.entries()
    assert entry.settled_at is not None
    assert entry.settled_at >= released_at[0] - timedelta(milliseconds=50)


async def test_a_result_is_recorded_as_it_is(performs: Any, store: Store) -> None:
    """A number of 19 digits stays that number, in the run and in the ledger."""
    assert await performs("precise", "number") == str({"transaction": 2**60 + 1})
    assert [entry.result for entry in store.ledger.entries()] == [{"transaction": 2**60 + 1}]


async def test_what_an_attempt_reported_is_kept_until_there_is_more_to_say(performs: Any) -> None:
    """The heartbeat that is sent by itself does not erase it."""
    assert await performs("resumes") == str(["half way", 50])
