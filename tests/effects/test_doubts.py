"""What one attempt knows is not taken for what is known of the call: attempts that end in different ways, one after the other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy

from gatewright.store import Store
from gatewright.temporal import GateClient
from tests.effects.outside import Lost
from tests.temporal.conversation import Conversation

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import NotPerformed, current_call, effect, fence
    from gatewright.temporal import Frame

ACTS: dict[str, list[Callable[[], Any]]] = {}
"""What each attempt does once the outside was called, by name, the first one first; when it is used up, attempts succeed."""

REACHED: dict[str, list[str]] = {}
"""The keys with which the outside was called, by name."""


def says(ended: Exception) -> Callable[[], Any]:
    """An act that ends the attempt like this."""

    def act() -> Any:
        raise ended

    return act


def _called(name: str) -> str:
    fence()
    REACHED.setdefault(name, []).append(current_call().key)
    acts = ACTS.get(name, [])
    return str(acts.pop(0)()) if acts else f"{name} done"


@effect(kind="keyed")
async def letter(name: str) -> str:
    """An outside that honours the key."""
    return _called(name)


EFFECTS: dict[str, Callable[..., Any]] = {"letter": letter}


@workflow.defn
class Once:
    """Performs one effect once, attempted as often as it is told."""

    @workflow.init
    def __init__(self, what: str, name: str, attempts: int) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, what: str, name: str, attempts: int) -> Any:
        retries = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=attempts)
        return await self.frame.perform(EFFECTS[what], name, retry_policy=retries)


Does = Callable[..., Awaitable[Conversation]]


@pytest.fixture
async def does(gates: GateClient, client: Client, queue: str, working: Any) -> AsyncIterator[Does]:
    """`await does("letter", "name", says(Lost()))` opens a run whose effect's attempts end like this."""

    async def one(what: str, name: str, *acts: Callable[[], Any], attempts: int = 2) -> Conversation:
        ACTS[name] = list(acts)
        run = f"{what}-{name}-{queue}"
        await client.start_workflow("Once", args=[what, name, attempts], id=run, task_queue=queue)
        return Conversation(gates, run)

    async with working([Once], list(EFFECTS.values())):
        yield one


async def test_an_attempt_that_did_nothing_does_not_speak_for_one_that_was_lost(does: Does, store: Store) -> None:
    """The first may have been heard: the outside tells the repeat, which needs the same key."""
    run = await does("letter", "lost first", says(Lost()), says(NotPerformed("the period is closed")))
    gate = await run.opened("failed:letter")

    assert isinstance(gate.payload, dict)
    assert gate.payload["known_not_to_have_happened"] is False
    [entry] = store.ledger.entries(run=run.id)
    assert (entry.state, entry.holder, entry.error) == ("intended", None, "the period is closed")
    await run.admitted("failed:letter", {"decision": "retry"})
    assert await run.result() == "lost first done"
    assert len(REACHED["lost first"]) == 3
    assert len(set(REACHED["lost first"])) == 1


async def test_attempts_that_all_did_nothing_are_known_not_to_have_happened(does: Does, store: Store) -> None:
    """Then the call is made again under a key of its own."""
    closed = says(NotPerformed("the period is closed"))
    run = await does("letter", "never", closed, closed)
    gate = await run.opened("failed:letter")

    assert isinstance(gate.payload, dict)
    assert gate.payload["known_not_to_have_happened"] is True
    await run.admitted("failed:letter", {"decision": "retry"})
    assert await run.result() == "never done"
    assert len(set(REACHED["never"])) == 2
