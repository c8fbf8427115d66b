"""Whatever is delivered to a paused run, by whichever door, is judged or kept as a dead letter; nothing wedges it."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.service import RPCError

from gatewright.protocol import Refusal
from tests.conftest import binary
from tests.temporal.conversation import until
from tests.temporal.pipelines import ALL, COUNTED, STEPS


def raw(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


UNREADABLE: dict[str, list[Any]] = {
    "no argument": [],
    "two arguments": [{"interruptId": "review"}, {"approved": True}],
    "a text": ["approve"],
    "a list": [[{"interruptId": "review"}]],
    "null": [None],
    "not JSON": [raw(b"{interruptId: review}")],
    "bytes": [raw(b"\x00\xff\x80", b"binary/plain")],
    "an encoding nobody knows": [raw(b"{}", b"json/encrypted")],
    "no encoding": [RawValue(Payload(data=b"{}"))],
    "a misspelt field": [{"interruptId": "review", "respones": {"approved": True}}],
    "a wrong type": [{"interruptId": {"is": "review"}, "response": True}],
    "an unknown evidence": [{"interruptId": "review", "evidence": "notarised"}],
    "a key twice": [raw(b'{"interruptId": "review", "response": true, "response": false}')],
    "nested to the bottom of the stack": [raw(b"[" * 100_000)],
    "half a name": [raw(b'{"interruptId": "review", "principal": "\\ud800"}')],
    "too many answers": [{"answers": [{"interruptId": f"g{n}"} for n in range(101)]}],
}

REFUSED: dict[str, tuple[Any, Refusal]] = {
    "text beside it": ({"text": "ok", "interruptId": "review", "response": True}, Refusal.MIXED_MESSAGE),
    "no id": ({"response": {"approved": True}}, Refusal.MISSING_ID),
    "an empty id": ({"interruptId": "", "response": {"approved": True}}, Refusal.MISSING_ID),
    "an agent's word": ({"author": "planner", "interruptId": "review"}, Refusal.NOT_AN_ANSWER),
    "nothing": ({}, Refusal.NO_ANSWER),
    "another gate": ({"interruptId": "payment", "response": 1}, Refusal.UNKNOWN_GATE),
    "another run's gate": ({"interruptId": "review@7", "response": 1}, Refusal.UNKNOWN_GATE),
    "a gate to come": ({"interruptId": "review~2", "response": {"approved": True}}, Refusal.NOT_OPEN_YET),
    "another digest": ({"interruptId": "review", "response": {"approved": True}, "digest": "x"}, Refusal.STALE_DIGEST),
    "NaN": (raw(b'{"interruptId": "review", "response": NaN}'), Refusal.INVALID),
    "half a character": (raw(b'{"interruptId": "review", "response": "\\ud800"}'), Refusal.INVALID),
    "a nesting of 200": (raw(b'{"interruptId":"review","response":' + b"[" * 200 + b"]" * 200 + b"}"), Refusal.INVALID),
    "a change of mind": (
        {"interruptId": "review", "response": {"approved": True}, "supersedes": "a0"},
        Refusal.MAY_NOT_SUPERSEDE,
    ),
    "twice in one message": (
        {"answers": [{"interruptId": "review", "response": 1}, {"interruptId": "review", "response": 2}]},
        Refusal.DUPLICATE_IN_MESSAGE,
    ),
    "300 KiB": ({"interruptId": "review", "response": {"approved": True, "x": "y" * 300_000}}, Refusal.TOO_LARGE),
}


@pytest.mark.parametrize("door", ["signal", "update"])
async def test_what_cannot_be_read_is_a_dead_letter_and_the_gate_stays_open(
    door: str, open_run: Any, working: Any
) -> None:
    """Every form of it, by both doors; then one good answer finishes the run, whose first step ran once."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", f"unreadable by {door}")
        await run.opened("review")
        for what, args in UNREADABLE.items():
            if door == "signal":
                await run.handle.signal("answer", args=args)
            else:
                verdict = await run.handle.execute_update("answer", args=args, id=uuid4().hex)
                assert (verdict["verdict"], verdict["objections"][0]["refusal"]) == ("refused", "unreadable"), what

        refusals = await run.gates.refusals(run.id)
        assert refusals.dead_letter_count == len(UNREADABLE)
        assert refusals.counts[""] == {"unreadable": len(UNREADABLE)}
        await run.opened("review")
        await run.admitted("review", {"approved": True})
        assert await run.result() == "paid 1"
        assert COUNTED[f"unreadable by {door}"] == 1


@pytest.mark.parametrize("door", ["signal", "update"])
async def test_what_is_refused_is_refused_by_name_at_either_door(door: str, open_run: Any, working: Any) -> None:
    """The same message earns the same name, whichever way it came in."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", f"refused by {door}")
        await run.opened("review")
        for what, (message, refusal) in REFUSED.items():
            if door == "signal":
                await run.handle.signal("answer", message)
                continue
            try:
                verdict = await run.handle.execute_update("answer", message, id=uuid4().hex)
            except Exception as turned_away:
                verdict = turned_away.cause.details[0]  # type: ignore[attr-defined]
            assert verdict["objections"][0]["refusal"] == refusal.value, what
        counted: dict[str, int] = {}
        for by_name in (await run.gates.refusals(run.id)).counts.values():
            for name, number in by_name.items():
                counted[name] = counted.get(name, 0) + number
        expected: dict[str, int] = {}
        for _, refusal in REFUSED.values():
            expected[refusal.value] = expected.get(refusal.value, 0) + 1
        if door == "update":
            # Turned away before it could be recorded: an oversized update would otherwise stay in history.
            del expected["too_large"]

        assert expected == counted
        await run.admitted("review", {"approved": True})
        assert await run.result() == "paid 1"
        assert COUNTED[f"refused by {door}"] == 1


async def test_misnamed_signals_and_updates_are_kept_and_move_nothing(open_run: Any, working: Any) -> None:
    """A signal of another name is OK for Temporal; the run says that nobody listens to it."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "misnamed")
        await run.opened("review")
        await run.handle.signal("aprove", {"interruptId": "review", "response": {"approved": True}})
        verdict = await run.handle.execute_update("approve", {"interruptId": "review", "response": True}, id="u")

        assert verdict["objections"][0]["refusal"] == "unreadable"
        assert "answer" in verdict["objections"][0]["reason"]
        letters = (await run.gates.refusals(run.id)).dead_letters
        assert ["aprove", "approve"] == [letter.name for letter in letters]
        await run.opened("review")
        await run.admitted("review", {"approved": True})
        await run.result()


async def test_a_signal_beyond_temporals_limit_is_refused_by_temporal(open_run: Any, working: Any) -> None:
    """2 MiB never reaches the run; the client refuses far below that, with a reason, and records it."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "oversized")
        await run.opened("review")
        with pytest.raises(RPCError, match="exceeds limit"):
            await run.handle.signal("answer", {"interruptId": "review", "response": "x" * 2_200_000})
        refused = await run.refused("review", "x" * 2_200_000)

        assert refused.refusal is Refusal.TOO_LARGE
        assert ["too_large"] == [row.refusal for row in run.gates.store.refusals(run=run.id)]
        await run.admitted("review", {"approved": True})
        await run.result()


async def test_refusals_beyond_those_kept_leave_no_history(open_run: Any, working: Any) -> None:
    """The first and last 20 per gate are evidence; what comes after costs the run nothing, and is still a verdict."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "bounded")
        await run.opened("review")
        for _ in range(40):
            await run.refused("review", "no")
        before = len((await run.handle.fetch_history()).events)
        for _ in range(15):
            refused = await run.refused("review", "no")
            assert refused.refusal is Refusal.INVALID

        assert before == len((await run.handle.fetch_history()).events)
        assert (await run.gates.refusals(run.id)).counts["review"] == {"invalid": 40}
        await run.admitted("review", {"approved": True})
        await run.result()


async def test_the_temporal_command_answers_a_gate_with_plain_json(open_run: Any, working: Any, address: str) -> None:
    """`temporal workflow signal --name answer --input '{"interruptId": ..., "response": ...}'` is all it takes."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "by command")
        await run.opened("review")
        body = json.dumps({"interruptId": "review", "response": {"approved": True, "level": 2}})
        command = ["workflow", "signal", "-w", run.id, "--name", "answer", "--input", body, "--address", address]
        process = await asyncio.create_subprocess_exec(
            binary("temporal"), *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()

        assert process.returncode == 0, output
        assert await run.result() == "paid 2"


async def test_an_application_keeps_the_dynamic_handler_that_it_had(open_run: Any, working: Any) -> None:
    """Signals that are not answers still go where they went before the frame came."""
    async with working(ALL, STEPS):
        run = await open_run("WithItsOwnDoor")
        await run.opened("go")
        await run.handle.signal("hello", 1)
        await run.admitted("go")

        assert await run.result() == ["hello"]


async def test_two_answers_in_one_activation_count_once(open_run: Any, working: Any) -> None:
    """Both lie in Temporal when the worker comes: the first in order is admitted, the other refused."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "one activation")
        await run.opened("review")
    for level in (2, 3):
        await run.handle.signal("answer", {"interruptId": "review", "response": {"approved": True, "level": level}})
    async with working(ALL, STEPS):
        assert await run.result() == "paid 2"
        counts = (await run.gates.refusals(run.id)).counts
        assert sum(sum(by_name.values()) for by_name in counts.values()) == 1


async def test_an_answer_before_the_run_began_is_refused_as_early(
    client: Any, queue: str, working: Any, gates: Any
) -> None:
    """Handlers run before `run` on the first activation; nothing is held, nothing is lost from the record."""
    workflow_id = f"early-{queue}"
    handle = await client.start_workflow(
        "Quick",
        id=workflow_id,
        task_queue=queue,
        start_signal="answer",
        start_signal_args=[{"interruptId": "go", "response": 1}],
    )
    async with working(ALL, STEPS):
        await until(lambda: _early(gates, workflow_id), "the early answer is refused")
        await until(lambda: _accepted(handle), "a later answer is admitted")

        assert await handle.result() == 2


async def _early(gates: Any, workflow_id: str) -> bool:
    return bool((await gates.refusals(workflow_id)).counts == {"": {"not_open_yet": 1}})


async def _accepted(handle: Any) -> bool:
    verdict = await handle.execute_update("answer", {"interruptId": "go", "response": 2}, id=uuid4().hex)
    return bool(verdict["verdict"] == "admitted")


async def test_temporals_ui_is_told_what_it_may_send_and_how(open_run: Any, working: Any) -> None:
    """Its dialogue offers only named signals and updates, and shows the open gates as the run's current details."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "metadata")
        await run.opened("review")
        from temporalio.api.sdk.v1 import WorkflowMetadata

        told = await run.handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)

        assert "answer" in {definition.name for definition in told.definition.signal_definitions}
        assert "answer" in {definition.name for definition in told.definition.update_definitions}
        assert '{"interruptId": "review", "response": "..."}' in told.current_details
        await run.admitted("review", {"approved": True})
        await run.result()
