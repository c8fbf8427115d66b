"""Awkward moments and unusual applications: found by somebody who tried to break it, each stated once and for all."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import SearchAttributeKey
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.protocol import Admitted, Refusal
from gatewright.store import SessionKey, Store
from gatewright.temporal import Delivered, GateClient, GatewrightPlugin, NoWorkerError, SetupError
from tests.conftest import ATTRIBUTES, binary
from tests.temporal.conversation import Conversation, until
from tests.temporal.pipelines import ALL, COUNTED, STEPS


async def test_a_cancelled_run_with_two_open_gates_ends_at_once(open_run: Any, working: Any) -> None:
    """Nothing is left running when it ends: a local activity that is cut off would hold its task for ten seconds."""
    async with working(ALL, STEPS):
        for _ in range(5):
            run = await open_run("TwoGates")
            await run.opened("left")
            await run.opened("right")
            await run.gates.cancel(run.id, reason="stop")
            with pytest.raises(WorkflowFailureError):
                await run.result()
            events = [event async for event in run.handle.fetch_history_events()]

            assert not any(event.HasField("workflow_task_timed_out_event_attributes") for event in events)
            states = {row.state for row in await run.gates.list(run=run.id, states=None)}
            assert states <= {"superseded", "closed"}


async def test_an_effect_that_has_begun_is_seen_through_and_then_the_run_is_cancelled(
    open_run: Any, working: Any, store: Store
) -> None:
    """The book and the ledger agree that it happened; `failed, cancelled` would be a lie."""
    async with working(ALL, STEPS, max_cached_workflows=0):
        run = await open_run("Pays", "seen through")

        async def begun() -> bool:
            return COUNTED["seen through begun"] == 1

        await until(begun, "the effect begins")
        await run.gates.cancel(run.id, reason="too late")
        with pytest.raises(WorkflowFailureError):
            await run.result()
        performed = [e for e in (await run.gates.transcript(run.id)).entries if e["kind"] == "performed"]

        assert [(entry["outcome"], entry["output"]) for entry in performed] == [("done", "paid")]
        assert (COUNTED["seen through begun"], COUNTED["seen through done"]) == (1, 1)
        assert [entry.state for entry in store.ledger.entries(run=run.id)] == ["performed"]
        record = store.run(run.id)
        assert record is not None
        assert record.standing == "cancelled"


async def test_a_gate_that_is_open_when_the_run_continues_as_new_is_waited_for_again(
    open_run: Any, working: Any
) -> None:
    """The same occurrence, with what it showed: an answer to it is received by somebody."""
    async with working(ALL, STEPS):
        run = await open_run("CarriesOpen")
        await run.opened("side")
        await run.opened("roll")
        await run.admitted("roll")
        await run.opened("side")
        await run.admitted("side", "hello")

        assert await run.result() == "side hello"


async def test_a_strict_model_takes_what_json_can_say(open_run: Any, working: Any) -> None:
    """A date is text in JSON; a strict model takes it from there."""
    async with working(ALL, STEPS):
        run = await open_run("Typed", "strict")
        await run.opened("typed")
        assert (await run.refused("typed", {"when": "tomorrow"})).refusal is Refusal.INVALID
        await run.admitted("typed", {"when": "2026-03-02"})

        assert await run.result() == "when=datetime.date(2026, 3, 2)"


async def test_a_validator_that_raises_anything_at_all_wedges_nothing(open_run: Any, working: Any) -> None:
    """By update it is a refusal, by signal the gate asks again."""
    async with working(ALL, STEPS):
        run = await open_run("Typed", "odd")
        await run.opened("typed")
        refused = await run.refused("typed", {"name": "mallory"})
        assert "KeyError" in refused.reason
        await run.admitted("typed", {"name": "mallory"}, signal=True)
        await run.opened("failed:typed")
        await run.admitted("failed:typed", {"name": "alice"})

        assert await run.result() == "name='alice'"


async def test_four_eyes_are_not_got_round_by_a_bad_answer(open_run: Any, working: Any) -> None:
    """Who answered in the place of a gate answered that gate."""
    async with working(ALL, STEPS):
        run = await open_run("FourEyes")
        await run.opened("number")
        await run.admitted("number", {"number": 1}, principal="bob", signal=True)
        await run.opened("failed:number")
        await run.admitted("failed:number", {"number": 2}, principal="alice")
        await run.opened("confirm")

        assert (await run.refused("confirm", True, principal="alice")).refusal is Refusal.NOT_INVITED
        assert (await run.refused("confirm", True, principal="bob")).refusal is Refusal.NOT_INVITED
        await run.admitted("confirm", True, principal="carol")
        assert await run.result() == "carol"


async def test_a_run_that_no_worker_can_go_on_with_says_why(gates: GateClient, working: Any) -> None:
    """A pipeline that is not registered, input of another shape, a door that is shadowed: the task's failure is told."""
    async with working(ALL, STEPS):
        for pipeline, given, told in (
            ("NoSuch", 1, "NoSuch is not registered"),
            ("ByDeadline", "not an object", "Failed decoding arguments"),
            ("OwnDoor", None, "named 'answer' of its own"),
        ):
            started = await gates.start(pipeline, given)

            async def trouble(workflow_id: str = started.workflow_id) -> str | None:
                return (await gates.get(workflow_id)).trouble

            assert told in await until(trouble, f"{pipeline} is in trouble")
            with pytest.raises(NoWorkerError, match="the worker cannot go on"):
                await gates.gates(started.workflow_id)
            from datetime import timedelta

            from gatewright.protocol import Answer

            ruling = await gates.answer(started.workflow_id, Answer(interrupt_id="x"), patience=timedelta(seconds=0.5))
            assert isinstance(ruling, Delivered)
            assert told in ruling.reason
            await gates.abandon(started.workflow_id, reason="it never could")


async def test_an_opening_that_temporal_refused_blocks_nobody(store: Store) -> None:
    """The search attributes are missing, then they are made: the session opens its next run at once."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"), ip="127.0.0.1", dev_server_log_level="never"
    ) as bare:
        client = await Client.connect(bare.client.service_client.config.target_host, plugins=[GatewrightPlugin(store)])
        gates = GateClient(client, store)
        key = SessionKey(app="a", user="u", session="phantom")
        with pytest.raises(SetupError, match="temporal operator search-attribute create"):
            await gates.start("Quick", session=key)
        assert isinstance(ATTRIBUTES[0], SearchAttributeKey)
        from temporalio.api.enums.v1 import IndexedValueType
        from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest

        keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                search_attributes={"GatewrightPipeline": keyword, "GatewrightSession": keyword}, namespace="default"
            )
        )

        async def opened() -> str | None:
            try:
                return (await gates.start("Quick", session=key)).workflow_id
            except SetupError:
                # The server takes a moment to know its own attributes.
                return None

        assert (await until(opened, "the session opens")).startswith("a/u/phantom/")


class SortedJson(DefaultPayloadConverter):
    """An application's own converter, which knows nothing of pydantic."""


async def test_an_application_keeps_a_payload_converter_of_its_own(address: str, store: Store, queue: str) -> None:
    """What we say to our own activities is plain JSON."""
    converter = DataConverter(payload_converter_class=SortedJson)
    client = await Client.connect(address, data_converter=converter, plugins=[GatewrightPlugin(store)])
    gates = GateClient(client, store, task_queue=queue)
    async with Worker(client, task_queue=queue, workflows=ALL, activities=STEPS):
        run = Conversation(gates, (await gates.start("Reviewed", "own converter")).workflow_id)
        await run.opened("review")
        await run.admitted("review", {"approved": True, "level": 2})

        assert await run.result() == "paid 2"


async def test_two_workers_on_one_client_each_have_their_threads(client: Client, store: Store, queue: str) -> None:
    """The second one's steps run when the first one is gone."""
    gates = GateClient(client, store, task_queue=f"{queue}-b")
    async with Worker(client, task_queue=f"{queue}-b", workflows=ALL, activities=STEPS):
        async with Worker(client, task_queue=f"{queue}-a", workflows=ALL, activities=STEPS):
            pass
        run = Conversation(gates, (await gates.start("Reviewed", "two workers")).workflow_id)
        await run.opened("review")
        await run.admitted("review", {"approved": True})

        assert await run.result() == "paid 1"


async def test_a_store_that_does_not_know_temporals_runs_adopts_none_of_them(
    client: Client, store: Store, queue: str, tmp_path: Any, working: Any
) -> None:
    """A new store starts its numbers at 1 again: what another one opened under that id is not what was asked for."""
    key = SessionKey(app="a", user="u", session=f"lost-{queue}")
    async with working(ALL, STEPS):
        first = await GateClient(client, store, task_queue=queue).start("Quick", session=key)
        with Store.open(str(tmp_path / "new.db")) as new:
            gates = GateClient(client, new, task_queue=queue)
            with pytest.raises(SetupError, match="gatewright reindex"):
                await gates.start("Reviewed", "other", session=key)

            async def reindexed() -> bool:
                return await gates.reindex(f"WorkflowId = '{first.workflow_id}'") == 1

            await until(reindexed, "the run is listed")
            second = await gates.start("Reviewed", "other", session=key, on_text="open")

        assert second.workflow_id == key.workflow_id(2)


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.03, 0.1])
async def test_what_is_answered_while_the_run_continues_as_new_counts_once(
    open_run: Any, working: Any, pause: float
) -> None:
    """Before the new execution has asked again, and by the door that needs no worker: the answer is neither lost nor asked for anew."""
    async with working(ALL, STEPS):
        run = await open_run("CarriesOpen")
        await run.opened("side")
        await run.admitted("roll", True)
        await asyncio.sleep(pause)
        ruling = await run.say("side", "S", answer_id="side-answer", signal=True)

        assert isinstance(ruling, Admitted), ruling
        assert await run.result() == "side S"
        assert [receipt.number for receipt in (await run.gates.receipts(run.id)).receipts][-1] == 2
