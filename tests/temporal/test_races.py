"""Answers that meet: with each other, with a deadline, with the end of the run. One counts; nobody is lied to."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from gatewright.protocol import Admitted, Answer, Refusal, Refused, Repeated
from tests.temporal.conversation import until
from tests.temporal.pipelines import ALL, COUNTED, STEPS


async def test_of_many_answers_at_once_exactly_one_counts(open_run: Any, working: Any) -> None:
    """L05: contradictory answers at one moment; the effect happens once, with the value that was admitted."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "crowd")
        await run.opened("review")
        rulings = await asyncio.gather(
            *(
                run.say("review", {"approved": True, "level": 1 + n % 5}, answer_id=f"a{n}", signal=n % 3 == 0)
                for n in range(8)
            )
        )
        admitted = [ruling for ruling in rulings if isinstance(ruling, Admitted)]
        refused = [ruling for ruling in rulings if isinstance(ruling, Refused)]

        assert (len(admitted), len(refused)) == (1, 7)
        assert {ruling.refusal for ruling in refused} <= {Refusal.ALREADY_ANSWERED, Refusal.FRAME_CLOSED}
        responder = admitted[0].receipts[0].responder
        assert responder is not None
        level = 1 + int(responder.answer_id[1:]) % 5
        assert await run.result() == f"paid {level}"
        assert COUNTED["crowd paid"] == 1


async def test_the_same_click_from_many_hands_is_one_answer(open_run: Any, working: Any) -> None:
    """Equal id and content: one admission, and the others are given the same receipt, also when the run is over."""
    async with working(ALL, STEPS):
        run = await open_run("Quick")
        await run.opened("go")
        rulings = await asyncio.gather(*(run.say("go", 1, answer_id="click", principal="alice") for _ in range(8)))

        assert {"admitted", "repeated"} >= {ruling.verdict for ruling in rulings}
        receipts = {ruling.receipts[0].digest for ruling in rulings if isinstance(ruling, Admitted | Repeated)}
        assert len(receipts) == 1
        assert await run.result() == 1
        late = await run.say("go", 1, answer_id="click", principal="alice")
        assert isinstance(late, Repeated)
        assert {late.receipts[0].digest} == receipts


async def test_an_ok_is_never_followed_by_a_loss(open_run: Any, working: Any) -> None:
    """The run ends in the activation that brings its answer, forty times over, with a rival on its heels each time."""
    async with working(ALL, STEPS):
        for n in range(40):
            run = await open_run("Quick")
            await run.opened("go")
            one, two = await asyncio.gather(
                run.say("go", "one", answer_id="one"), run.say("go", "two", answer_id="two")
            )
            verdicts = sorted((one.verdict, two.verdict))
            assert verdicts == ["admitted", "refused"], f"round {n}: {one} {two}"
            winner = "one" if one.verdict == "admitted" else "two"
            assert await run.result() == winner


async def test_one_message_for_two_gates_is_admitted_whole_or_not_at_all(open_run: Any, working: Any) -> None:
    """D04: an invalid answer takes its neighbour with it, and both gates stay open for a good message."""
    async with working(ALL, STEPS):
        run = await open_run("TwoGates")
        await run.opened("left")
        await run.opened("right")
        from gatewright.protocol import Message

        spoiled = Message.of(
            Answer(interrupt_id="right", response="fine"), Answer(interrupt_id="left", response="not a number")
        )
        ruling = await run.gates.answer(run.id, spoiled)
        assert isinstance(ruling, Refused)
        assert [objection.interrupt_id for objection in ruling.objections] == ["left"]
        assert {gate.interrupt_id for gate in await run.gates.gates(run.id) if gate.state == "open"} == {
            "left",
            "right",
        }

        good = Message.of(Answer(interrupt_id="right", response="fine"), Answer(interrupt_id="left", response=3))
        assert isinstance(await run.gates.answer(run.id, good), Admitted)
        assert await run.result() == [3, "fine"]


@pytest.mark.parametrize("pipeline", ["Quick", "Later"])
async def test_an_answer_that_comes_with_the_task_that_opens_its_gate_is_admitted(
    pipeline: str, open_run: Any, working: Any
) -> None:
    """A worker that died in that task may have listed the gate; to the next one the answer is shown before the gate opens."""
    run = await open_run(pipeline)
    if pipeline == "Later":
        async with working(ALL, STEPS):
            await until(lambda: _timers(run.handle), "the run waits for its timer")
        await asyncio.sleep(2.5)
    saying = asyncio.create_task(run.admitted("go", 7))
    await asyncio.sleep(0.5)
    async with working(ALL, STEPS):
        await saying
        assert await run.result() == 7
        assert (await run.gates.refusals(run.id)).counts == {}


async def _timers(handle: Any) -> bool:
    return any(event.HasField("timer_started_event_attributes") for event in (await handle.fetch_history()).events)


@pytest.mark.parametrize("cached", [0, 100])
async def test_an_answer_to_no_gate_is_turned_away_once_at_most_and_refused_by_name(
    cached: int, open_run: Any, working: Any
) -> None:
    """Just after the run was taken over nobody knows whether the gate is about to open; a second time it is known."""
    run = await open_run("Quick")
    async with working(ALL, STEPS):
        await run.opened("go")
    async with working(ALL, STEPS, max_cached_workflows=cached):
        for again in range(2):
            message = {"interruptId": "payment", "response": again}
            with pytest.raises(WorkflowUpdateFailedError) as turned_away:
                await run.handle.execute_update("answer", message, id=uuid4().hex)
            assert isinstance(turned_away.value.cause, ApplicationError)
            assert turned_away.value.cause.type == "GatewrightBusy"
            verdict = await run.handle.execute_update("answer", message, id=uuid4().hex)
            assert verdict["objections"][0]["refusal"] == "unknown_gate"
            if cached:
                break
        refused = await run.refused("payment", "by a client")
        assert (refused.refusal, refused.door) == (Refusal.UNKNOWN_GATE, "update")
        assert (await run.gates.refusals(run.id)).counts == {"": {"unknown_gate": 2 if cached else 3}}
