"""What one attempt knows is not taken for what is known of the call: attempts that end in different ways, one after the other."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from pydantic import JsonValue
from temporalio import workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, CancelledError

from gatewright.store import EffectUnderWay, Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.effects.outside import Lost
from tests.temporal.conversation import Conversation, until

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import (
        Call,
        DidNotHappen,
        Happened,
        NotPerformed,
        Reconciliation,
        current_call,
        effect,
        fence,
        receipt,
    )
    from gatewright.temporal import Frame, Gate, deciding, planning

ACTS: dict[str, list[Callable[[], Any]]] = {}
"""What each attempt does once the outside was called, by name, the first one first; when it is used up, attempts succeed."""

REACHED: dict[str, list[str]] = {}
"""The keys with which the outside was called, by name."""


def says(ended: Exception) -> Callable[[], Any]:
    """An act that ends the attempt like this."""

    def act() -> Any:
        raise ended

    return act


CLOSED = says(NotPerformed("the period is closed"))
"""An act that says that it did nothing."""


def _called(name: str) -> str:
    fence()
    REACHED.setdefault(name, []).append(current_call().key)
    acts = ACTS.get(name, [])
    return str(acts.pop(0)()) if acts else f"{name} done"


@effect(kind="keyed")
async def letter(name: str) -> str:
    """An outside that honours the key."""
    return _called(name)


CALL_TIMEOUT = timedelta(seconds=1.5)
"""How long the slow outsides take for a call at most, whether anybody waits for the reply or not."""

ARRIVED: set[str] = set()
"""The keys of the calls that a slow outside has come to."""


def slowly(then: Callable[[], Any]) -> Callable[[], Any]:
    """An act: the outside comes to the call a second later, and meanwhile the attempt ends like this."""

    def act() -> Any:
        key = current_call().key
        asyncio.get_running_loop().call_later(1, ARRIVED.add, key)
        return then()

    return act


def look(call: Call, name: str) -> Reconciliation:
    """What the slow outside says: of a call that it has not come to, that it did not happen."""
    return Happened(f"{name} arrived") if call.key in ARRIVED else DidNotHappen()


@effect(kind="reconcilable", reconcile=look, call_timeout=CALL_TIMEOUT)
async def parcel(name: str) -> str:
    """A slow outside that can be asked; `hung` waits for its reply until it is cancelled."""
    done = _called(name)
    if done == "hung":
        await asyncio.sleep(60)
    return done


@effect(kind="opaque", call_timeout=CALL_TIMEOUT)
async def wire(name: str) -> str:
    """A slow outside that cannot be asked."""
    REACHED_AT.setdefault(name, []).append(time.monotonic())
    return _called(name)


@effect(kind="opaque", call_timeout=timedelta(milliseconds=100))
async def vault(name: str) -> Any:
    """Gives its proof, and comes back with what nobody can be told."""
    _called(name)
    receipt({"number": 7})
    return object()


@effect(kind="keyed")
async def safe(name: str) -> Any:
    """The same, and honours the key."""
    _called(name)
    receipt({"number": 7})
    return object()


HELD: dict[str, asyncio.Event] = {}
"""What `held` waits for before its attempt ends, by name."""


@effect(kind="reconcilable", reconcile=look, call_timeout=timedelta(milliseconds=100))
async def held(name: str) -> str:
    """An outside that can be asked, and keeps the attempt waiting."""
    fence()
    REACHED.setdefault(name, []).append(current_call().key)
    await HELD[name].wait()
    if name == "did it":
        ARRIVED.add(current_call().key)
    raise NotPerformed("no") if name == "said no" else Lost()


@effect(kind="opaque", call_timeout=timedelta(milliseconds=100))
async def pinned(name: str) -> str:
    """The same, and cannot be asked."""
    fence()
    REACHED.setdefault(name, []).append(current_call().key)
    await HELD[name].wait()
    raise Lost


ANSWERS: dict[str, Any] = {"none": None, "true": True, "object": Happened(object())}
"""What the outside of `odd` says, by name."""
ANSWERS["proof"] = Happened("x", cast("JsonValue", object()))


def oddly(_call: Call, name: str) -> Any:
    """What is no reconciliation, or none that can be written down."""
    return ANSWERS[name]


@effect(kind="reconcilable", reconcile=oddly, call_timeout=timedelta(milliseconds=100))
async def odd(name: str) -> str:
    """Its word is lost, and nobody understands what the outside says."""
    _called(name)
    raise Lost


CRANKY = [OSError("the line is down")]
"""What the outside of `cranky` ends with when it is asked, before it answers."""


def crankily(_call: Call, _name: str) -> Reconciliation:
    """It cannot be asked at first."""
    if CRANKY:
        raise CRANKY.pop()
    return DidNotHappen()


@effect(kind="reconcilable", reconcile=crankily, call_timeout=timedelta(milliseconds=100))
async def cranky(name: str) -> str:
    """The first attempt is lost, the second cannot ask, the third does it."""
    done = _called(name)
    if len(REACHED[name]) == 1:
        raise Lost
    return done


REACHED_AT: dict[str, list[float]] = {}
"""When `wire` was called, by name."""

EFFECTS: dict[str, Callable[..., Any]] = {
    "letter": letter,
    "parcel": parcel,
    "wire": wire,
    "vault": vault,
    "safe": safe,
    "held": held,
    "odd": odd,
    "cranky": cranky,
    "pinned": pinned,
}


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


@workflow.defn
class TwiceBegun:
    """Performs one effect and fails, for Temporal to begin it anew; the second time it ends well."""

    @workflow.init
    def __init__(self, name: str) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, name: str) -> Any:
        done = await self.frame.perform(wire, name)
        if workflow.info().attempt == 1:
            await self.frame.ask(Gate("go"))
            raise ApplicationError("once more")
        return done


@workflow.defn
class TwiceContinued:
    """The same, by continue-as-new without its book."""

    @workflow.init
    def __init__(self, name: str) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, name: str) -> Any:
        done = await self.frame.perform(wire, name)
        if workflow.info().continued_run_id is None:
            await self.frame.ask(Gate("go"))
            workflow.continue_as_new(name)
        return done


@workflow.defn
class InTwoBranches:
    """Continues as new while another branch performs; once it is told to, it waits for that before."""

    @workflow.init
    def __init__(self, name: str, carried: Any = None) -> None:
        self.frame = Frame(carried=carried)
        self.waits = False

    @workflow.signal
    def wait(self) -> None:
        """The pipeline is mended."""
        self.waits = True

    @workflow.run
    async def run(self, name: str, carried: Any = None) -> Any:
        branch = asyncio.create_task(self.frame.perform(wire, name))
        if carried is None:
            await self.frame.ask(Gate("go"))
            if self.waits:
                await branch
            workflow.continue_as_new(args=[name, self.frame.carry()])
        return await branch


@workflow.defn
class AnothersGate:
    """Is handed a gate about another call of the same name, and performs."""

    @workflow.init
    def __init__(self, name: str, carried: Any = None) -> None:
        self.frame = Frame(carried=carried)

    @workflow.run
    async def run(self, name: str, carried: Any = None) -> Any:
        if carried is None:
            shown = {"call": "letter#0", "key": "gw1-other"}
            self.other = asyncio.create_task(self.frame.ask(Gate("failed:letter", payload=shown)))
            await self.frame.ask(Gate("go"))
            workflow.continue_as_new(args=[name, self.frame.carry()])
        return await self.frame.perform(letter, name, retry_policy=RetryPolicy(maximum_attempts=1))


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
    run = await does("letter", "lost first", says(Lost()), CLOSED)
    gate = await run.opened("failed:letter")

    assert isinstance(gate.payload, dict)
    assert gate.payload["known_not_to_have_happened"] is False
    [entry] = store.ledger.entries(run=run.id)
    assert (entry.state, entry.holder, entry.error) == ("intended", None, "the period is closed")
    await run.admitted("failed:letter", {"decision": "retry"})
    assert await run.result() == "lost first done"
    assert len(REACHED["lost first"]) == 3
    assert len(set(REACHED["lost first"])) == 1


async def reset(run: Conversation) -> None:
    """Begin the run anew from its first task, as `temporal workflow reset` does."""
    described = await run.handle.describe()
    await run.gates.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=run.gates.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=described.run_id),
            workflow_task_finish_event_id=4,
            reason="once more",
            request_id=f"reset-{run.id}",
        )
    )


def brought_back(store: Store) -> None:
    """The ledger is that of a backup, made when an attempt had just said that it did nothing."""
    with store._database.write("test") as connection:
        connection.exec_driver_sql(
            "UPDATE ledger SET state = 'failed', result = NULL, receipt = NULL, error = 'the period is closed', attempts = 1"
        )


class TestRestored:
    async def test_a_backup_from_between_two_attempts_does_not_make_the_call_again(
        self, does: Does, store: Store
    ) -> None:
        """History knows of the second one, and a person decides."""
        run = await does("wire", "between", CLOSED)
        assert await run.result() == "between done"
        brought_back(store)
        await reset(run)

        run = Conversation(run.gates, run.id)
        gate = await run.opened("blocked:wire")
        assert "says that nothing has happened" in str(gate.message)
        await run.admitted("blocked:wire", {"decision": "happened", "receipt": "T-1", "result": "found"})
        assert await run.result() == "found"
        assert len(REACHED["between"]) == 2
        [entry] = store.ledger.entries(run=run.id)
        assert (entry.state, entry.result) == ("performed", "found")

    async def test_what_history_too_knows_not_to_have_happened_is_made_again(self, does: Does, store: Store) -> None:
        """Nobody is asked: ledger and history agree."""
        run = await does("wire", "agreed", CLOSED, CLOSED)
        await run.opened("failed:wire")
        await run.gates.abandon(run.id, reason="test")
        await reset(run)

        run = Conversation(run.gates, run.id)
        assert await run.result() == "agreed done"
        assert len(REACHED["agreed"]) == 3
        assert [entry.state for entry in store.ledger.entries(run=run.id)] == ["performed"]

    async def test_what_a_person_said_is_not_asked_again(self, does: Does, store: Store) -> None:
        """History says that the outside was reached; somebody has found out since."""
        run = await does("wire", "looked up", says(Lost()))
        await run.opened("blocked:wire")
        await run.gates.abandon(run.id, reason="test")
        [entry] = store.ledger.entries(run=run.id)

        async def said() -> bool:
            try:
                return bool(store.ledger.resolve(entry.key, by="ada", happened=False))
            except EffectUnderWay:
                return False

        await until(said, "the first call is surely over")
        await reset(run)

        run = Conversation(run.gates, run.id)
        assert await run.result() == "looked up done"

    async def test_a_word_wins_over_what_another_ledger_says(
        self, does: Does, store: Store, client: Client, queue: str, working: Any
    ) -> None:
        """The run did not rely on it: whoever is asked has found out."""
        run = await does("wire", "renewed", CLOSED, CLOSED)
        await run.opened("failed:wire")
        store.renew_ledger_id()
        await run.admitted("failed:wire", {"decision": "retry"})
        await run.opened("blocked:wire")
        await run.admitted("blocked:wire", {"decision": "happened", "receipt": "T-2", "result": "by hand"})

        assert await run.result() == "by hand"
        assert len(REACHED["renewed"]) == 2


class TestContinuedAsNew:
    async def test_a_run_does_not_continue_as_new_while_a_call_is_not_over(
        self, gates: GateClient, client: Client, store: Store, queue: str, working: Any
    ) -> None:
        """Its next execution would make the call again, under the key of the next visit."""
        ACTS["two"] = [says(Lost())]
        async with working([InTwoBranches], list(EFFECTS.values())):
            await client.start_workflow("InTwoBranches", "two", id=f"two-{queue}", task_queue=queue)
            run = Conversation(gates, f"two-{queue}")
            await run.opened("blocked:wire")
            await run.admitted("go", signal=True)

            async def refused() -> str | None:
                return (await gates.get(run.id)).trouble

            trouble = await until(refused, "it is refused")
            assert "wire#1 is not over" in trouble
            assert "await it before workflow.continue_as_new" in trouble
            assert len(REACHED["two"]) == 1
            await run.handle.terminate()

    async def test_it_does_once_the_call_is_over(
        self, gates: GateClient, client: Client, store: Store, queue: str, working: Any
    ) -> None:
        """The second execution makes a call of its own."""
        async with working([InTwoBranches], list(EFFECTS.values())):
            await client.start_workflow(
                "InTwoBranches", "one", id=f"one-{queue}", task_queue=queue, start_signal="wait"
            )
            run = Conversation(gates, f"one-{queue}")
            await run.opened("go")
            await run.admitted("go")
            assert await run.result() == "one done"
        assert len(set(REACHED["one"])) == 2

    async def test_a_gate_about_another_call_is_not_taken_for_its_own(
        self, gates: GateClient, client: Client, queue: str, working: Any
    ) -> None:
        """An answer to that one would decide about this one."""
        ACTS["anothers"] = [CLOSED]
        async with working([AnothersGate], list(EFFECTS.values())):
            await client.start_workflow("AnothersGate", "anothers", id=f"anothers-{queue}", task_queue=queue)
            run = Conversation(gates, f"anothers-{queue}")
            await run.opened("go")
            await run.admitted("go")
            gate = await run.opened("failed:letter~2")
            assert isinstance(gate.payload, dict)
            assert gate.payload["call"] == "letter#1"
            await run.admitted("failed:letter~2", {"decision": "retry"})
            assert await run.result() == "anothers done"


class TestBegunAnew:
    @pytest.mark.parametrize("pipeline", [TwiceBegun, TwiceContinued])
    @pytest.mark.parametrize("kept", [True, False])
    async def test_an_execution_that_is_begun_anew_does_nothing_again(
        self, pipeline: type, kept: bool, gates: GateClient, client: Client, store: Store, queue: str, working: Any
    ) -> None:
        """Whether the ledger knows of it or only Temporal's history does."""
        name = f"{pipeline.__name__} {kept}"
        async with working([pipeline], list(EFFECTS.values())):
            await client.start_workflow(
                pipeline.__name__,
                name,
                id=f"{name}-{queue}",
                task_queue=queue,
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2),
            )
            run = Conversation(gates, f"{name}-{queue}")
            await run.opened("go")
            if not kept:
                with store._database.write("test") as connection:
                    connection.exec_driver_sql("DELETE FROM ledger")
            await run.admitted("go")
            if not kept:
                await run.opened("blocked:wire")
                await run.admitted("blocked:wire", {"decision": "happened", "receipt": "T-3", "result": f"{name} done"})
            assert await run.result() == f"{name} done"
        assert len(REACHED[name]) == 1

    async def test_a_cron_schedule_is_refused(self, client: Client, queue: str, working: Any) -> None:
        """Every execution of it would have the keys of the first."""
        async with working([Once], list(EFFECTS.values())):
            handle = await client.start_workflow(
                "Once",
                args=["letter", "monthly", 1],
                id=f"cron-{queue}",
                task_queue=queue,
                cron_schedule="@every 1s",
            )
            first = client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)

            async def over() -> Any:
                last = (await first.fetch_history()).events[-1]
                return last if last.HasField("workflow_execution_failed_event_attributes") else None

            ended = await until(over, "the first execution is over")
            await handle.terminate()
        assert "Temporal Schedule" in ended.workflow_execution_failed_event_attributes.failure.message
        assert "monthly" not in REACHED


@pytest.mark.parametrize("what", ["vault", "safe"])
async def test_a_result_that_is_lost_is_asked_for_and_never_taken_for_none(what: str, does: Does, store: Store) -> None:
    """What the outside gave is shown, and kept."""
    run = await does(what, what)
    gate = await run.opened(f"blocked:{what}")
    assert '{"number":7}' in str(gate.message)
    [entry] = store.ledger.entries(run=run.id)
    assert (entry.state, entry.receipt, entry.holder) == ("unknown", {"number": 7}, None)
    await run.admitted(f"blocked:{what}", {"decision": "happened", "receipt": {"number": 7}, "result": "by hand"})

    assert await run.result() == "by hand"
    assert len(REACHED[what]) == 1


async def test_a_ledger_that_refuses_the_outcome_is_said_to_have_refused_it(does: Does, store: Store) -> None:
    """It has not lost its entry."""
    with store._database.write("test") as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE UPDATE ON ledger WHEN NEW.state = 'performed'"
            " BEGIN SELECT RAISE(ABORT, 'the disk is odd'); END"
        )
    run = await does("letter", "refused")
    gate = await run.opened("blocked:letter")

    assert "could not write down what came of it" in str(gate.message)
    assert "the disk is odd" in str(gate.message)
    assert "lost its entry" not in str(gate.message)


@pytest.mark.parametrize(
    ("what", "name", "state", "outcome"),
    [
        ("held", "said no", "failed", "failed"),
        ("held", "did nothing", "failed", "failed"),
        ("held", "did it", "performed", "done"),
        ("pinned", "kept silent", "unknown", "failed"),
    ],
)
async def test_a_run_that_is_cancelled_while_an_effect_fails_records_it_and_is_cancelled(
    what: str, name: str, state: str, outcome: str, does: Does, store: Store
) -> None:
    """Nobody is asked what follows: nothing does."""
    HELD[name] = asyncio.Event()
    run = await does(what, name, attempts=1)

    async def reached() -> bool:
        return name in REACHED

    await until(reached, "the outside is reached")
    await run.gates.cancel(run.id, reason="enough")

    async def heard() -> bool:
        return "workflow_execution_cancel_requested" in str((await run.handle.fetch_history()).events[-4:])

    await until(heard, "the run has heard it")
    await asyncio.sleep(0.3)
    HELD[name].set()

    with pytest.raises(WorkflowFailureError) as failed:
        await run.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert [entry.state for entry in store.ledger.entries(run=run.id)] == [state]
    assert await run.gates.gates(run.id) == ()
    transcript = (await run.gates.transcript(run.id)).entries
    assert [entry["outcome"] for entry in transcript if entry["kind"] == "performed"] == [outcome]


@pytest.mark.parametrize("attempts", [1, 2])
@pytest.mark.parametrize("name", sorted(ANSWERS))
async def test_an_outside_that_nobody_understands_is_asked_of_a_person(name: str, attempts: int, does: Does) -> None:
    """Not for ever: asking again would bring the same."""
    reached = len(REACHED.get(name, []))
    run = await does("odd", name, attempts=attempts)
    gate = await run.opened("blocked:odd")

    assert "reconcile= returned" in str(gate.message) or "cannot be written as JSON" in str(gate.message)
    assert len(REACHED[name]) == reached + 1


class NotFoundError(Exception):
    """The outside's own error, named as Temporal's for an activity that no worker has."""


class TestLastAttempt:
    async def test_an_error_that_is_named_as_one_before_the_ledger_does_not_deny_the_call(
        self, does: Does, store: Store
    ) -> None:
        """The ledger has an intent: the outside was reached."""
        run = await does("letter", "not found", says(NotFoundError()), attempts=1)
        gate = await run.opened("failed:letter")

        assert isinstance(gate.payload, dict)
        assert gate.payload["known_not_to_have_happened"] is False
        await run.admitted("failed:letter", {"decision": "retry"})
        assert await run.result() == "not found done"
        assert len(set(REACHED["not found"])) == 1

    async def test_nor_is_the_outside_left_unasked(self, does: Does) -> None:
        """It can be asked, so nobody else is."""
        run = await does("parcel", "came late", slowly(says(NotFoundError())), attempts=1)

        assert await run.result() == "came late arrived"
        assert len(REACHED["came late"]) == 1

    async def test_an_effect_that_no_worker_has_is_known_not_to_have_happened(
        self, gates: GateClient, client: Client, queue: str, working: Any, store: Store
    ) -> None:
        """The ledger has a plan, and no attempt."""
        async with working([Once], [letter]):
            await client.start_workflow("Once", args=["wire", "nowhere", 2], id=f"nowhere-{queue}", task_queue=queue)
            run = Conversation(gates, f"nowhere-{queue}")
            gate = await run.opened("failed:wire")
        assert isinstance(gate.payload, dict)
        assert (gate.payload["error_type"], gate.payload["known_not_to_have_happened"]) == ("NotFoundError", True)
        assert [entry.state for entry in store.ledger.entries(run=run.id)] == ["planned"]

    async def test_a_call_that_an_execution_before_has_made_is_not_denied_by_a_worker_without_a_store(
        self, gates: GateClient, client: Client, address: str, queue: str, working: Any
    ) -> None:
        """It has not asked the ledger: a person decides, and whoever has the ledger goes by it."""
        async with working([Once], [wire]):
            await client.start_workflow("Once", args=["wire", "made", 1], id=f"made-{queue}", task_queue=queue)
            run = Conversation(gates, f"made-{queue}")
            assert await run.result() == "made done"
        await reset(run)
        bare = await Client.connect(address, plugins=[GatewrightPlugin(None)])
        run = Conversation(gates, run.id)
        async with working([Once], [wire], client=bare):
            gate = await run.opened("blocked:wire")
        assert "this worker has no store" in str(gate.message)
        async with working([Once], [wire]):
            await run.admitted("blocked:wire", {"decision": "did_not_happen"})
            assert await run.result() == "made done"
        assert len(REACHED["made"]) == 1

    async def test_what_no_worker_had_is_made_after_a_reset_and_nobody_is_asked(
        self, gates: GateClient, client: Client, queue: str, working: Any
    ) -> None:
        """History says that the ledger was looked into, and had no attempt."""
        async with working([Once], [letter]):
            await client.start_workflow("Once", args=["wire", "had not", 2], id=f"had-{queue}", task_queue=queue)
            run = Conversation(gates, f"had-{queue}")
            await run.opened("failed:wire")
            await gates.abandon(run.id, reason="test")
        await reset(run)
        async with working([Once], [wire]):
            assert await asyncio.wait_for(Conversation(gates, run.id).result(), 15) == "had not done"
        assert len(REACHED["had not"]) == 1

    async def test_a_ledger_that_takes_long_is_waited_for(
        self, does: Does, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a reset long histories are read; the worker says all the while that it lives."""
        monkeypatch.setattr(deciding, "LEDGER_HEARTBEAT", timedelta(seconds=1), raising=False)
        monkeypatch.setattr(planning, "BEAT", 0.2, raising=False)
        looked = []

        async def slowly_made(*_: Any) -> str:
            looked.append(1)
            await asyncio.sleep(2.5)
            return "no"

        monkeypatch.setattr(planning, "made_elsewhere", slowly_made)
        run = await does("wire", "long", CLOSED, attempts=1)
        await run.opened("failed:wire")
        await run.gates.abandon(run.id, reason="test")
        await reset(run)
        run = Conversation(run.gates, run.id)
        assert await run.result() == "long done"
        assert len(looked) == 1
        [plan] = [
            event.activity_task_scheduled_event_attributes
            async for event in run.handle.fetch_history_events()
            if event.activity_task_scheduled_event_attributes.activity_type.name == "gatewright_plan_effect"
        ]
        assert plan.start_to_close_timeout.ToTimedelta() == timedelta(minutes=10)


class TestAskedAgain:
    async def test_a_word_that_the_ledger_does_not_take_is_asked_for_again(self, does: Does, store: Store) -> None:
        run = await does("wire", "not taken", says(Lost()))
        await run.opened("blocked:wire")
        with store._database.write("test") as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER odd BEFORE UPDATE ON ledger WHEN NEW.resolution IS NOT NULL"
                " BEGIN SELECT RAISE(ABORT, 'the disk is odd'); END"
            )
        word = {"decision": "happened", "receipt": "T-4", "result": "by hand"}
        await run.admitted("blocked:wire", word, principal="ada")
        gate = await run.opened("blocked:wire~2")
        assert "happened, as ada said, could not be written down" in str(gate.message)
        with store._database.write("test") as connection:
            connection.exec_driver_sql("DROP TRIGGER odd")
        await run.admitted("blocked:wire~2", word)

        assert await run.result() == "by hand"
        assert len(REACHED["not taken"]) == 1

    async def test_what_is_gone_as_soon_as_it_is_recorded_is_asked_for_again(self, does: Does, store: Store) -> None:
        run = await does("wire", "gone", says(Lost()))
        await run.opened("blocked:wire")
        with store._database.write("test") as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER odd AFTER UPDATE ON ledger WHEN NEW.resolution IS NOT NULL"
                " BEGIN DELETE FROM ledger; END"
            )
        word = {"decision": "happened", "receipt": "T-5", "result": "by hand"}
        await run.admitted("blocked:wire", word)
        await run.opened("blocked:wire~2")
        with store._database.write("test") as connection:
            connection.exec_driver_sql("DROP TRIGGER odd")
        await run.admitted("blocked:wire~2", word)

        assert await run.result() == "by hand"
        assert len(REACHED["gone"]) == 1

    async def test_a_ledger_that_does_not_take_what_was_found_out_is_not_asked_for_ever(
        self, does: Does, store: Store
    ) -> None:
        """The store's refusal is not one that passes."""
        with store._database.write("test") as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER odd BEFORE UPDATE ON ledger WHEN NEW.state = 'unknown'"
                " BEGIN SELECT RAISE(ABORT, 'the disk is odd'); END"
            )
        run = await does("odd", "true", attempts=1)
        gate = await run.opened("blocked:odd")

        assert "the disk is odd" in str(gate.message)


async def test_an_attempt_that_ends_before_the_outside_is_not_waited_for(does: Does) -> None:
    """Its lease would run for ten seconds; nothing of it is under way."""
    run = await does("cranky", "cranky", attempts=3)

    assert await asyncio.wait_for(run.result(), 8) == "cranky done"
    assert len(REACHED["cranky"]) == 2


async def test_attempts_that_all_did_nothing_are_known_not_to_have_happened(does: Does, store: Store) -> None:
    """Then the call is made again under a key of its own."""
    run = await does("letter", "never", CLOSED, CLOSED)
    gate = await run.opened("failed:letter")

    assert isinstance(gate.payload, dict)
    assert gate.payload["known_not_to_have_happened"] is True
    await run.admitted("failed:letter", {"decision": "retry"})
    assert await run.result() == "never done"
    assert len(set(REACHED["never"])) == 2


async def test_the_outside_is_not_asked_while_it_may_be_at_a_call_that_was_given_up(does: Does) -> None:
    """The client's time-out is over, and the outside comes to the call afterwards."""
    run = await does("parcel", "timed out", slowly(says(Lost())))

    assert await run.result() == "timed out arrived"
    assert len(REACHED["timed out"]) == 1


async def test_nor_while_it_may_be_at_a_call_whose_attempt_was_cancelled(
    gates: GateClient, client: Client, queue: str, working: Any
) -> None:
    """The worker is shut down meanwhile, and another takes over at once."""
    ACTS["shut down"] = [slowly(lambda: "hung")]
    async with working([Once], list(EFFECTS.values())):
        handle = await client.start_workflow(
            "Once", args=["parcel", "shut down", 2], id=f"down-{queue}", task_queue=queue
        )

        async def reached() -> bool:
            return "shut down" in REACHED

        await until(reached, "the outside is reached")
    async with working([Once], list(EFFECTS.values())):
        assert await handle.result() == "shut down arrived"
    assert len(REACHED["shut down"]) == 1


async def test_nothing_is_done_again_on_a_word_before_the_first_call_is_surely_over(does: Does) -> None:
    """Whoever looks at once sees nothing yet: the word is heard when the outside must have come to the call."""
    run = await does("wire", "looked too early", says(TimeoutError("no reply")))
    await run.opened("blocked:wire")
    await run.admitted("blocked:wire", {"decision": "did_not_happen"})

    assert await run.result() == "looked too early done"
    first, second = REACHED_AT["looked too early"]
    assert second - first >= CALL_TIMEOUT.total_seconds()
