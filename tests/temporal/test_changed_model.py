"""A run paused on today's gate model resumes after the model behind it changed: what was shown is what counts."""

from typing import Any

from gatewright.protocol import Refusal
from tests.temporal.pipelines import COUNTED, STEPS
from tests.temporal.versions import Before, PassedBefore, PassedStricter, Stricter, WithMore

OLD_SCHEMA_FIELDS = {"approved", "level"}


async def test_a_field_added_with_a_default_is_filled_in(open_run: Any, working: Any) -> None:
    """The answer to the old form is admitted by the old schema, and arrives in the new type."""
    async with working([Before], STEPS):
        run = await open_run("Versioned")
        await run.opened("review")
    async with working([WithMore], STEPS):
        gate = await run.opened("review")
        assert gate.response_schema is not None
        assert set(gate.response_schema["properties"]) == OLD_SCHEMA_FIELDS
        await run.admitted("review", {"approved": True, "level": 5})

        assert await run.result() == '{"approved":true,"level":5,"urgent":false}'
        assert COUNTED[run.id] == 1


async def test_what_the_new_type_no_longer_takes_is_asked_for_again(open_run: Any, working: Any) -> None:
    """Nobody is refused for a rule that was not shown: the answer stands, and a `failed:` gate asks for the rest."""
    async with working([Before], STEPS):
        run = await open_run("Versioned")
        await run.opened("review")
    async with working([Stricter], STEPS):
        await run.admitted("review", {"approved": True, "level": 5}, principal="alice")
        again = await run.opened("failed:review")
        assert again.response_schema is not None
        assert again.response_schema["required"] == ["approved", "reason"]
        assert isinstance(again.payload, dict)
        assert again.payload["answer"] == {"approved": True, "level": 5}
        assert (await run.refused("failed:review", {"approved": True, "level": 5})).refusal is Refusal.INVALID
        await run.admitted("failed:review", {"approved": True, "level": 3, "reason": "as agreed"}, principal="alice")

        assert await run.result() == '{"approved":true,"level":3,"reason":"as agreed"}'
        assert COUNTED[run.id] == 1


async def test_verdicts_given_under_the_old_model_stay_what_they_were(open_run: Any, working: Any) -> None:
    """Refused under the old schema, admitted by none: the replay under the new code rules the same and continues."""
    async with working([Before], STEPS):
        run = await open_run("Versioned")
        await run.opened("review")
        await run.refused("review", {"approved": True, "level": 9})
        await run.refused("review", {"approved": "no idea"})
    async with working([WithMore], STEPS, max_cached_workflows=0):
        assert (await run.gates.refusals(run.id)).counts == {"review": {"invalid": 2}}
        await run.admitted("review", {"approved": False})
        assert await run.result() == '{"approved":false,"level":1,"urgent":false}'


async def test_a_run_that_passed_the_gate_goes_on_with_what_it_was_given(open_run: Any, working: Any) -> None:
    """Whether the answer fits was recorded with the gate: the replay under a stricter type goes the same way."""
    async with working([PassedBefore], STEPS):
        run = await open_run("Passed")
        await run.opened("review")
        await run.admitted("review", {"approved": True, "level": 5})
        await run.opened("end")
    async with working([PassedStricter], STEPS, max_cached_workflows=0):
        await run.admitted("end")
        assert await run.result() == "True 5"
        assert COUNTED[run.id] == 1
