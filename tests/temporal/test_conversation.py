"""One real conversation per behaviour: what is said to a paused run counts once, or is refused by name."""

from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from gatewright.protocol import Refusal, Repeated, Verified, verify
from gatewright.store import Store
from tests.temporal.pipelines import ALL, COUNTED, STEPS


async def test_a_run_goes_from_its_first_step_to_its_effect(open_run: Any, working: Any, store: Store) -> None:
    """Answers admitted: one. Steps run: once each. Receipts: a chain of three, the effect's with its key."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "plain-sailing")
        await run.opened("review")
        await run.admitted("review", {"approved": True, "level": 3}, principal="alice")

        assert await run.result() == "paid 3"
        assert (COUNTED["plain-sailing"], COUNTED["plain-sailing paid"]) == (1, 1)
        receipts = (await run.gates.receipts(run.id)).receipts
        assert isinstance(verify(receipts), Verified)
        assert [receipt.kind for receipt in receipts] == ["continuation", "authorisation", "effect"]
        for receipt in receipts:
            assert receipt.responder is not None
            assert receipt.responder.principal == "alice"
        [entry] = store.ledger.entries(run=run.id)
        assert (entry.key, entry.state) == (receipts[2].effect.key, "performed")
        assert receipts[1].effect.key == entry.key


async def test_after_any_number_of_invalid_answers_a_valid_one_counts(open_run: Any, working: Any) -> None:
    """D02: nothing is poisoned. Every schema error is named with its path, and the gate stays listed as open (D03)."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "invalid-thrice")
        await run.opened("review")
        for _ in range(3):
            refused = await run.refused("review", {"approved": "perhaps", "level": 9})
            assert refused.refusal is Refusal.INVALID
            assert {fault.path for fault in refused.objections[0].faults} == {"$.approved", "$.level"}
            assert refused.objections[0].armed
            [row] = await run.gates.list(run=run.id)
            assert row.interrupt_id == "review"
        await run.admitted("review", {"approved": True})

        assert await run.result() == "paid 1"
        assert COUNTED["invalid-thrice"] == 1


async def test_the_first_admitted_answer_is_final(open_run: Any, working: Any) -> None:
    """Said again in the same words it earns its first receipt; in other words it is refused, with who and when."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "final")
        await run.opened("review")
        first = await run.admitted("review", {"approved": False}, answer_id="a1", principal="alice")
        again = await run.say("review", {"approved": False}, answer_id="a1", principal="alice")
        other = await run.refused("review", {"approved": True}, answer_id="a1", principal="alice")
        late = await run.refused("review", {"approved": True}, answer_id="a2", principal="bob")

        assert isinstance(again, Repeated)
        assert again.receipts == first.receipts
        assert other.refusal is Refusal.CONFLICT
        assert late.refusal is Refusal.ALREADY_ANSWERED
        assert "alice" in late.reason
        await run.opened("review~2")
        await run.admitted("review~2", {"approved": True})
        await run.result()


async def test_a_redelivered_answer_never_reaches_the_next_round(open_run: Any, working: Any) -> None:
    """H02: the answer to round one, sent again while round two is open, returns its own receipt and moves nothing."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "rounds")
        await run.opened("review")
        await run.admitted("review", {"approved": False})
        await run.opened("review~2")

        assert isinstance(await run.say("review", {"approved": False}), Repeated)
        assert (await run.opened("review~2")).refusals == 0
        early = await run.refused("review~3", {"approved": True})
        assert early.refusal is Refusal.NOT_OPEN_YET
        await run.admitted("review~2", {"approved": True})
        assert await run.result() == "paid 1"
        assert COUNTED["rounds"] == 1


async def test_two_gates_open_at_once_each_take_their_own_answer(open_run: Any, working: Any) -> None:
    """F3: each answer changes the occurrence that it names. A string gate keeps `42` as text (D06)."""
    async with working(ALL, STEPS):
        run = await open_run("TwoGates")
        await run.opened("left")
        await run.opened("right")
        await run.admitted("right", {"result": "42"})
        assert (await run.opened("left")).state == "open"
        await run.admitted("left", {"result": 7})

        assert await run.result() == [7, "42"]


async def test_a_gate_that_the_pipeline_left_is_superseded(open_run: Any, working: Any) -> None:
    """A late answer to it is refused; the index and the transcript say why."""
    async with working(ALL, STEPS):
        run = await open_run("FirstOfTwo")
        await run.opened("left")
        await run.opened("right")
        await run.admitted("left", "a")
        await run.opened("end")

        assert (await run.refused("right", "b")).refusal is Refusal.SUPERSEDED
        await run.admitted("end")
        assert await run.result() == "a"
        states = {row.interrupt_id: row.state for row in await run.gates.list(run=run.id, states=None)}
        assert states == {"left": "answered", "right": "superseded", "end": "answered"}


async def test_a_rule_that_no_schema_expresses_is_checked_before_anything_is_recorded(
    open_run: Any, working: Any
) -> None:
    """By update the type itself turns the answer away; by signal it is asked for again under a name of its own."""
    async with working(ALL, STEPS):
        run = await open_run("Checked")
        await run.opened("number")
        refused = await run.refused("number", {"number": 3})
        assert refused.refusal is Refusal.INVALID
        assert "even" in refused.reason

        await run.admitted("number", {"number": 5}, signal=True)
        again = await run.opened("failed:number")
        assert "even" in str(again.payload)
        await run.admitted("failed:number", {"number": 4})
        assert await run.result() == 4


async def test_a_job_answers_its_own_gate_and_nobody_else_does(open_run: Any, working: Any) -> None:
    """A system gate invites its job; a person is refused by name."""
    async with working(ALL, STEPS):
        run = await open_run("Job")
        await run.opened("job")

        assert (await run.refused("job", "done", principal="alice")).refusal is Refusal.NOT_INVITED
        await run.admitted("job", "done", principal="system:job")
        assert await run.result() == "done"


async def test_a_job_that_fails_says_so_through_its_gate(open_run: Any, working: Any) -> None:
    """The pipeline is given the typed failure and decides."""
    async with working(ALL, STEPS):
        run = await open_run("Job")
        await run.opened("job")
        await run.admitted("job", principal="system:job", failure={"type": "disk_full", "message": "no room"})

        assert await run.result() == "failed: disk_full"


async def test_a_run_that_fails_closes_its_book(open_run: Any, working: Any, store: Store) -> None:
    """The archive has its standing, and later answers are refused as closed."""
    async with working(ALL, STEPS):
        run = await open_run("Fails")
        await run.opened("go")
        await run.admitted("go")
        with pytest.raises(WorkflowFailureError):
            await run.result()

        assert (await run.refused("go", answer_id="other")).refusal is Refusal.FRAME_CLOSED
        record = store.run(run.id)
        assert record is not None
        assert record.standing == "failed"


async def test_a_book_travels_through_continue_as_new(open_run: Any, working: Any) -> None:
    """Numbers never go back, the receipts' chain holds, and an old answer is still known for a repeat."""
    async with working(ALL, STEPS):
        run = await open_run("Rolling", 3)
        await run.opened("round")
        first = await run.admitted("round", 1, answer_id="r1")
        await run.opened("round~2")
        assert isinstance(again := await run.say("round", 1, answer_id="r1"), Repeated)
        assert again.receipts == first.receipts
        assert (await run.refused("round", 2, answer_id="r1")).refusal is Refusal.CONFLICT
        await run.admitted("round~2", 2)
        await run.opened("round~3")
        await run.admitted("round~3", 3)

        assert await run.result() == 3
        assert COUNTED[run.id] == 3
        receipts = await run.gates.receipts(run.id)
        assert verify(receipts.receipts, receipts.anchor) == Verified(3, receipts.receipts[-1].digest)


async def test_a_workflow_without_gates_is_left_alone(client: Any, queue: str, working: Any) -> None:
    """The plugin in anybody's application: a workflow that hosts no frame runs as before."""
    async with working(ALL, STEPS):
        assert await client.execute_workflow("Plain", id=f"plain-{queue}", task_queue=queue) == "plain"
