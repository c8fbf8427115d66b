"""What cannot be known is asked, what failed is asked, and nothing but the call that was named is made again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from gatewright.protocol import verify
from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.effects.outside import CALLS, FUNCTIONS, HEALED, KEYS, Doing
from tests.temporal.conversation import Conversation

Does = Callable[..., Awaitable[Conversation]]


@pytest.fixture
async def does(gates: GateClient, client: Client, queue: str, working: Any) -> AsyncIterator[Does]:
    """`await does("transfer", "name")` opens a run that performs one thing, and gives the conversation with it."""

    async def one(what: str, name: str, **options: Any) -> Conversation:
        workflow_id = f"{what}-{name}-{queue}"
        await client.start_workflow("Doing", args=[what, name, options], id=workflow_id, task_queue=queue)
        return Conversation(gates, workflow_id)

    async with working([Doing], list(FUNCTIONS.values())):
        yield one


async def aborted(run: Conversation) -> ApplicationError:
    """How a run that was aborted has failed."""
    with pytest.raises(WorkflowFailureError) as failed:
        await run.result()
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


async def entries(run: Conversation, kind: str) -> list[dict[str, Any]]:
    """The transcript's entries of one kind."""
    return [entry for entry in (await run.gates.transcript(run.id)).entries if entry["kind"] == kind]


async def reset(run: Conversation, task: int = 4) -> None:
    """Begin the run anew from one of its tasks, as `temporal workflow reset` does."""
    described = await run.handle.describe()
    await run.gates.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=run.gates.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=described.run_id),
            workflow_task_finish_event_id=task,
            reason="once more",
            request_id=f"reset-{run.id}",
        )
    )


class TestBlocked:
    async def test_the_handoff_shows_the_call_its_arguments_and_what_is_known(self, does: Does) -> None:
        run = await does("transfer", "shown")
        gate = await run.opened("blocked:transfer")

        assert gate.policy.dangerous
        assert "not known whether transfer#1 happened" in str(gate.message)
        payload = gate.payload
        assert isinstance(payload, dict)
        assert payload["arguments"] == {"name": "shown"}
        assert payload["key"] == KEYS["shown"][0]
        assert (payload["call"], payload["kind"], payload["attempts"]) == ("transfer#1", "opaque", 1)
        assert "Lost" in str(payload["known"])
        assert CALLS["shown"] == 1

    async def test_what_happened_is_gone_on_with_and_recorded(self, does: Does, store: Store) -> None:
        run = await does("transfer", "happened")
        await run.opened("blocked:transfer")
        result = {"id": 7, "name": "by hand"}
        await run.admitted(
            "blocked:transfer",
            {"decision": "happened", "receipt": "bank statement 12", "result": result},
            principal="ada",
        )

        assert await run.result() == result
        assert CALLS["happened"] == 1
        [entry] = store.ledger.entries(run=run.id)
        assert (entry.state, entry.result, entry.receipt) == ("performed", result, "bank statement 12")
        assert (entry.resolved_by, entry.resolution) == ("ada", "happened")
        receipts = (await run.gates.receipts(run.id)).receipts
        assert [(receipt.kind, receipt.effect.state.value) for receipt in receipts] == [
            ("effect", "unknown"),
            ("continuation", "not_attempted"),
            ("effect", "performed"),
        ]
        proof = receipts[-1].effect.receipt
        assert isinstance(proof, dict)
        assert (proof["source"], proof["outside"]) == ("ada", "bank statement 12")
        verify(receipts)

    async def test_what_did_not_happen_is_done_again_under_the_next_generation(self, does: Does, store: Store) -> None:
        run = await does("transfer", "again")
        await run.opened("blocked:transfer")
        await run.admitted(
            "blocked:transfer", {"decision": "did_not_happen", "comment": "looked it up"}, principal="ada"
        )

        assert await run.result() == {"id": 2, "name": "again"}
        first, second = KEYS["again"]
        assert first != second
        found = {entry.key: entry for entry in store.ledger.entries(run=run.id)}
        assert (found[first].state, found[first].successor, found[first].generation) == ("failed", second, 0)
        assert (found[second].state, found[second].receipt) == ("performed", {"transaction": "t-2"})
        assert [entry["call"]["generation"] for entry in await entries(run, "performed")] == [0, 1]

    async def test_a_reset_finds_the_generation_that_was_decided_on(self, does: Does) -> None:
        """History forgets the decision, the ledger does not: nothing is asked and nothing done once more."""
        run = await does("transfer", "reset")
        await run.opened("blocked:transfer")
        await run.admitted("blocked:transfer", {"decision": "did_not_happen"})
        assert (await run.result())["id"] == 2
        await reset(run)

        assert await run.result() == {"id": 2, "name": "reset"}
        assert CALLS["reset"] == 2

    async def test_a_reset_to_after_the_plan_finds_it_too(self, does: Does) -> None:
        """History has planned the generation that was given up, and knows nothing of the one in its place."""
        run = await does("transfer", "half reset")
        await run.opened("blocked:transfer")
        await run.admitted("blocked:transfer", {"decision": "did_not_happen"})
        assert (await run.result())["id"] == 2
        events = (await run.handle.fetch_history()).events
        planned = next(event for event in events if event.HasField("activity_task_completed_event_attributes"))
        after = next(
            event.event_id
            for event in events
            if event.event_id > planned.event_id and event.HasField("workflow_task_completed_event_attributes")
        )
        await reset(run, after)

        assert await run.result() == {"id": 2, "name": "half reset"}
        assert CALLS["half reset"] == 2

    async def test_abort_ends_the_run_and_says_who_and_why(self, does: Does, store: Store) -> None:
        run = await does("transfer", "aborted")
        await run.opened("blocked:transfer")
        await run.admitted("blocked:transfer", {"decision": "abort", "comment": "order withdrawn"}, principal="ada")

        failure = await aborted(run)
        assert failure.type == "CallAborted"
        assert "transfer#1 was aborted by ada: order withdrawn" in failure.message
        assert failure.details[0]["known_not_to_have_happened"] is False
        assert [entry.state for entry in store.ledger.entries(run=run.id)] == ["unknown"]

    @pytest.mark.parametrize(
        ("answer", "names"),
        [
            ({"decision": "happened", "result": {"id": 1, "name": "x"}}, "receipt"),
            ({"decision": "happened", "receipt": "r"}, "result"),
            ({"decision": "happened", "receipt": "r", "result": {"id": "one"}}, "id"),
            ({"decision": "maybe"}, "maybe"),
        ],
    )
    async def test_a_word_without_what_it_needs_is_refused(
        self, answer: dict[str, Any], names: str, does: Does
    ) -> None:
        run = await does("transfer", f"refused {names}")
        await run.opened("blocked:transfer")
        refused = await run.refused("blocked:transfer", answer)

        assert names in refused.reason
        assert (await run.opened("blocked:transfer")).refusals <= 1

    async def test_only_operators_may_say_it(self, does: Does) -> None:
        run = await does("transfer", "operators", operators=["ops"])
        await run.opened("blocked:transfer")

        assert (
            await run.refused("blocked:transfer", {"decision": "abort"}, principal="eve")
        ).refusal.value == "not_invited"
        await run.admitted("blocked:transfer", {"decision": "abort"}, principal="ops")
        await aborted(run)

    async def test_another_ledger_is_named_and_never_taken_for_not_attempted(
        self, does: Does, store: Store, tmp_path: Any, address: str, queue: str, gates: GateClient
    ) -> None:
        """The run relies on one ledger; a worker with another asks before it does anything."""
        from temporalio.worker import Worker

        with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
            stranger = await Client.connect(address, plugins=[GatewrightPlugin(other)])
            workflow_id = f"other-{queue}"
            async with Worker(
                stranger, task_queue=f"{queue}-other", workflows=[Doing], activities=list(FUNCTIONS.values())
            ):
                await stranger.start_workflow(
                    "Doing",
                    args=["transfer", "quiet other", {"again": 2, "task_queue": queue}],
                    id=workflow_id,
                    task_queue=f"{queue}-other",
                )
                run = Conversation(gates, workflow_id)
                gate = await run.opened("blocked:transfer")
                assert str(store.ledger_id) in str(gate.message)
                assert str(other.ledger_id) in str(gate.message)
                assert CALLS["quiet other"] == 0
                await run.admitted("blocked:transfer", {"decision": "abort"})
                await aborted(run)

    async def test_an_emptied_ledger_is_found_out_before_anything_is_done(self, does: Does, store: Store) -> None:
        """The call was planned, its activity waits for a worker, and the ledger loses its entries."""
        run = await does("transfer", "quiet emptied", task_queue="nobody-yet")
        from tests.temporal.conversation import until

        async def planned() -> bool:
            return bool(store.ledger.entries(run=run.id))

        await until(planned, "the call is planned")
        with store._database.write("test") as connection:
            connection.exec_driver_sql("DELETE FROM ledger")
        from temporalio.worker import Worker

        async with Worker(run.gates.client, task_queue="nobody-yet", activities=list(FUNCTIONS.values())):
            gate = await run.opened("blocked:transfer")
            assert "emptied, or restored" in str(gate.message)
            assert CALLS["quiet emptied"] == 0
            await run.admitted("blocked:transfer", {"decision": "did_not_happen"})
            assert (await run.result())["id"] == 1
        assert CALLS["quiet emptied"] == 1


class TestFailed:
    async def test_a_call_that_did_not_happen_is_tried_again_when_somebody_says_so(
        self, does: Does, store: Store
    ) -> None:
        run = await does("decline", "declined")
        gate = await run.opened("failed:decline")
        assert "known not to have happened" in str(gate.message)
        assert isinstance(gate.payload, dict)
        assert (gate.payload["attempts"], gate.payload["error_type"]) == (2, "NotPerformed")
        HEALED.add("declined")
        await run.admitted("failed:decline", {"decision": "retry"})

        assert (await run.result())["name"] == "declined"
        assert [entry.generation for entry in store.ledger.entries(run=run.id)] == [1, 0]

    async def test_a_keyed_effect_goes_on_under_the_same_key(self, does: Does, store: Store) -> None:
        run = await does("keyed", "keyed")
        gate = await run.opened("failed:keyed")
        assert "attempting it again is safe" in str(gate.message)
        HEALED.add("keyed")
        await run.admitted("failed:keyed", {"decision": "retry"})

        assert (await run.result())["name"] == "keyed"
        assert len(set(KEYS["keyed"])) == 1
        assert [entry.attempts for entry in store.ledger.entries(run=run.id)] == [3]

    async def test_what_the_outside_knows_is_found_out_after_the_last_attempt(self, does: Does) -> None:
        """Nobody is asked: the outside says that it happened."""
        run = await does("asked", "asked")

        assert await run.result() == {"id": 1, "name": "asked"}
        assert CALLS["asked"] == 1
        [receipt] = (await run.gates.receipts(run.id)).receipts
        proof = receipt.effect.receipt
        assert isinstance(proof, dict)
        assert (proof["source"], proof["outside"]) == ("reconcile", {"asked": KEYS["asked"][0]})

    async def test_what_the_outside_does_not_know_did_not_happen(self, does: Does) -> None:
        run = await does("asked", "before")
        gate = await run.opened("failed:asked")
        assert "known not to have happened" in str(gate.message)
        HEALED.add("before")
        CALLS["before"] = 1
        await run.admitted("failed:asked", {"decision": "retry"})

        assert (await run.result())["id"] == 2

    async def test_an_outside_that_cannot_tell_is_asked_of_a_person(self, does: Does) -> None:
        run = await does("asked", "mute")
        gate = await run.opened("blocked:asked")

        assert "mute" in str(gate.message)
        await run.admitted("blocked:asked", {"decision": "abort"})
        await aborted(run)
        assert CALLS["mute"] == 1

    async def test_a_step_asks_and_is_tried_again(self, does: Does) -> None:
        run = await does("stumble", "leg")
        gate = await run.opened("failed:stumble")
        assert "stumble#1 failed after 2 attempts: ValueError: leg is broken" in str(gate.message)
        assert (await run.refused("failed:stumble", {"decision": "skip"})).refusal.value == "invalid"
        HEALED.add("leg")
        await run.admitted("failed:stumble", {"decision": "retry"})

        assert await run.result() == "leg done"
        assert CALLS["leg"] == 3

    async def test_a_step_that_can_be_done_without_is_skipped(self, does: Does) -> None:
        run = await does("stumble", "arm", on_skip="without")
        await run.opened("failed:stumble")
        await run.admitted("failed:stumble", {"decision": "skip"})

        assert await run.result() == "without"
        assert [entry["outcome"] for entry in await entries(run, "performed")] == ["failed", "skipped"]

    async def test_a_step_that_is_aborted_fails_the_run(self, does: Does) -> None:
        run = await does("stumble", "neck")
        await run.opened("failed:stumble")
        await run.admitted("failed:stumble", {"decision": "abort"}, principal="ada")

        assert "stumble#1 was aborted by ada" in (await aborted(run)).message

    @pytest.mark.parametrize(("what", "name"), [("stumble", "back"), ("decline", "no")])
    async def test_a_pipeline_can_choose_to_fail(self, what: str, name: str, does: Does) -> None:
        run = await does(what, name, on_failure="fail")

        with pytest.raises(WorkflowFailureError):
            await run.result()
        assert await run.gates.gates(run.id) == ()

    async def test_a_run_that_waits_at_a_failure_can_be_cancelled(self, does: Does) -> None:
        run = await does("transfer", "cancelled")
        await run.opened("blocked:transfer")
        await run.gates.cancel(run.id, reason="enough")

        with pytest.raises(WorkflowFailureError):
            await run.result()
        [gate] = await run.gates.gates(run.id)
        assert gate.state == "superseded"
