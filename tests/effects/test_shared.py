"""An expensive step that is declared once is not dispatched again by another run on the same input."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError

from gatewright.store import SessionKey, Store
from gatewright.temporal import GateClient

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import step
    from gatewright.temporal import Frame

RAN: Counter[str] = Counter()
"""How often the step ran, by its argument."""

HOLD: dict[str, asyncio.Event] = {}


def product(order: dict[str, Any]) -> str:
    """The business key of an order is its product."""
    return str(order["product"])


def nothing(_order: dict[str, Any]) -> Any:
    """A business key that is none."""
    return None


@step(once="session", attempts=3)
async def survey(order: dict[str, Any]) -> dict[str, Any]:
    """Shared by the runs of a session on the same order; stumbles at first where it is told to."""
    name = order["name"]
    RAN[name] += 1
    if name in HOLD:
        await HOLD[name].wait()
    if order.get("stumble") and RAN[name] == 1:
        msg = "once more"
        raise ValueError(msg)
    return {"name": name, "run": RAN[name]}


@step(once=product)
def model(order: dict[str, Any]) -> str:
    """Shared by all runs on the same product."""
    RAN[order["name"]] += 1
    return f"model of {order['product']} for {order['name']}"


@step(once=nothing, on_failure="fail")
def keyless(order: dict[str, Any]) -> str:
    """Never runs: it has no key."""
    RAN[order["name"]] += 1
    return "ran"


@step(once="session", on_failure="fail")
async def sketch(order: dict[str, Any]) -> Any:
    """Returns what nobody can be told, the first time."""
    RAN[order["name"]] += 1
    return object() if RAN[order["name"]] == 1 else "a sketch"


STEPS = {"sketch": sketch, "survey": survey, "model": model, "keyless": keyless}


@workflow.defn
class Sharing:
    """Performs one shared step."""

    @workflow.init
    def __init__(self, given: dict[str, Any]) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, given: dict[str, Any]) -> Any:
        return await self.frame.perform(STEPS[given["step"]], given["order"])


@pytest.fixture
async def share(gates: GateClient, client: Client, working: Any) -> Any:
    """`await share("survey", order, session="s")` opens a run of a session and returns its result."""

    async def one(step: str, session: str, **order: Any) -> Any:
        key = SessionKey(app="Sharing", user="ada", session=session)
        started = await gates.start("Sharing", {"step": step, "order": order}, session=key, on_text="open")
        return await client.get_workflow_handle(started.workflow_id).result()

    async with working([Sharing], list(STEPS.values())):
        yield one


async def test_another_run_of_the_session_is_given_the_first_ones_result(share: Any) -> None:
    assert await share("survey", "s1", name="bridge") == {"name": "bridge", "run": 1}
    assert await share("survey", "s1", name="bridge") == {"name": "bridge", "run": 1}
    assert RAN["bridge"] == 1


async def test_other_arguments_and_other_sessions_share_nothing(share: Any) -> None:
    await share("survey", "s2", name="tower")
    await share("survey", "s2", name="tower", floors=3)
    await share("survey", "s3", name="tower")
    assert RAN["tower"] == 3


async def test_two_runs_at_once_dispatch_it_once(share: Any) -> None:
    """The second one waits for the first one's attempt."""
    HOLD["dam"] = asyncio.Event()
    both = [asyncio.create_task(share("survey", "s4", name="dam")) for _ in range(2)]
    while not RAN["dam"]:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    HOLD["dam"].set()

    assert await asyncio.gather(*both) == [{"name": "dam", "run": 1}] * 2
    assert RAN["dam"] == 1


async def test_a_failed_attempt_is_tried_again(share: Any) -> None:
    assert await share("survey", "s5", name="road", stumble=True) == {"name": "road", "run": 2}


async def test_a_business_key_is_shared_by_all_runs(share: Any, store: Store) -> None:
    """Whatever the other arguments are: who gives the key says that they do not matter."""
    assert await share("model", "s6", name="first", product="pump") == "model of pump for first"
    assert await share("model", "s7", name="second", product="pump") == "model of pump for first"
    assert (RAN["first"], RAN["second"]) == (1, 0)
    assert [entry.kind for entry in store.ledger.entries()] == ["once"]


async def test_a_result_that_cannot_be_told_is_shared_with_nobody(share: Any) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await share("sketch", "s9", name="hall")
    assert "cannot be written as JSON" in str(failed.value.cause.__cause__)
    assert await share("sketch", "s9", name="hall") == "a sketch"


async def test_a_business_key_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await share("keyless", "s8", name="none")
    assert "returns a business key" in str(failed.value.cause.__cause__)
    assert RAN["none"] == 0


def test_only_a_session_or_a_function_can_say_it() -> None:
    with pytest.raises(TypeError, match='once="session"'):
        step(once="run")  # type: ignore[arg-type]
