"""D. A response schema: what it refuses, and that a refusal harms nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from gatewright.store import SessionKey
from tests.parity.contract.pipelines import Decision
from tests.parity.contract.saying import Saying, response, text

Begin = Callable[..., Awaitable[Saying]]
GOOD = {"approved": True}
BAD = {"approved": "perhaps"}
FULL = {"approved": True, "note": "dflt", "level": 1}


def workflow_id(session: Saying) -> str:
    """The run's."""
    return SessionKey(app="contract", user="u", session=session.session).workflow_id(1)


async def test_d01_an_invalid_answer_is_refused_and_not_kept(paused: Begin) -> None:
    """
    D01, differs.

    ADK: An invalid answer is `WorkflowDataError('Validation failed for interrupt <id>: ...')`, a ValueError; it is kept in the session all the same.

    Gatewright: The same exception, which says what is wrong where; nothing is kept, and the gate stays armed.
    """
    session = await paused("decision")

    error = await session.refused(response("g", BAD))

    assert type(error).__name__ == "WorkflowDataError"
    assert isinstance(error, ValueError)
    assert str(error) == 'Validation failed for interrupt g: $.approved: got "perhaps", wanted true or false'
    assert vars(error)["rejection"].gate == {"interruptId": "g", "armed": True}


async def test_d02_after_invalid_answers_a_valid_one_counts(paused: Begin) -> None:
    """
    D02, differs.

    ADK: The invocation is then poisoned: every later answer, also a valid one, raises the same error.

    Gatewright: After any number of invalid answers a valid one counts, and what follows runs once.
    """
    session = await paused("decision")
    for _ in range(3):
        await session.refused(response("g", BAD))

    assert await session.say(invocation_id=(await session.read()).events[0].invocation_id) == []
    await session.say(response("g", GOOD))

    assert session.took() == [("d", FULL)]


async def test_d03_after_an_invalid_answer_the_gate_is_listed_as_open(paused: Begin) -> None:
    """
    D03, differs.

    ADK: After an invalid answer the gate no longer counts as open: it looks answered.

    Gatewright: It is listed as open, by the run and by the store.
    """
    session = await paused("bool")
    await session.refused(response("g", "perhaps"))

    client = session.runner.gateway.client
    assert [(gate.interrupt_id, gate.state) for gate in await client.gates(workflow_id(session))] == [("g", "open")]
    assert [row.interrupt_id for row in client.store.gates(run=workflow_id(session), states={"open"})] == ["g"]


async def test_d04_an_invalid_answer_harms_no_other_gate(paused: Begin) -> None:
    """
    D04, differs.

    ADK: One invalid answer poisons the invocation's other gates too.

    Gatewright: A message counts whole or not at all, and a refused one affects no gate.
    """
    session = await paused("both-int")

    error = await session.refused(response("a", 1), response("b", "bad"))
    assert str(error) == 'Validation failed for interrupt b: $: got "bad", wanted a whole number'

    await session.say(response("a", 1))
    await session.say(response("b", 2))
    assert session.took() == [("d", {"a": 1, "b": 2})]


async def test_d05_there_is_nothing_to_escape_from(paused: Begin) -> None:
    """
    D05, differs.

    ADK: A poisoned invocation is escaped by fresh text, which runs everything again, or by `rewind_async`, which removes the gate.

    Gatewright: There is no poison; what a run did is not rewound, and the attempt is refused and changes nothing.
    """
    session = await paused("decision")
    await session.refused(response("g", BAD))
    before = await session.read()

    with pytest.raises(ValueError, match="Only a change of state can be appended"):
        await session.runner.rewind_async(
            user_id="u",
            session_id=session.session,
            rewind_before_invocation_id=before.events[0].invocation_id,
        )

    assert await session.read() == before
    await session.say(response("g", GOOD))
    assert session.took() == [("d", FULL)]


@pytest.mark.parametrize("given", ["42", "true", "null", "[]", "1.5"])
async def test_d06_text_that_was_asked_for_stays_text(paused: Begin, given: str) -> None:
    """
    D06, differs.

    ADK: With `response_schema=str`, `'42'` is read as a number first and then refused as not being text; the invocation is poisoned.

    Gatewright: Text is delivered as it was given.
    """
    session = await paused("str")

    await session.say(response("g", given))

    assert session.took() == [("d", given)]


async def test_d07_what_is_left_out_has_its_default(paused: Begin) -> None:
    """
    D07, differs.

    ADK: Optional fields that were left out are delivered as null, not as their defaults.

    Gatewright: They have the schema's defaults.
    """
    session = await paused("decision")

    await session.say(response("g", GOOD))

    assert session.took() == [("d", FULL)]


async def test_d08_a_typed_consumer_takes_it(paused: Begin) -> None:
    """
    D08, differs.

    ADK: Hence a node that takes the model itself fails when a field with a default was left out.

    Gatewright: It gets the model.
    """
    session = await paused("typed")

    await session.say(response("g", GOOD))

    assert session.took() == [("use", Decision(approved=True))]


@pytest.mark.parametrize(
    ("shape", "given", "wrong"),
    [
        ("decision", {"approved": True, "level": 99}, ["$.level: got 99, wanted at most 5"]),
        (
            "person",
            {"addr": "str", "kind": "zzz", "tags": ["q"]},
            ['$.addr: got "str", wanted an object', '$.kind: got "zzz"', '$.tags[0]: got "q", wanted a whole number'],
        ),
        ("enum", "zzz", ['got "zzz", wanted "a"']),
        ("minimum", 1, ["got 1, wanted at least 10"]),
        ("optional", "abc", ['got "abc", wanted a whole number or nothing']),
        ("ints", ["x"], ['$[0]: got "x", wanted a whole number']),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_d09_the_whole_schema_is_kept(paused: Begin, shape: str, given: Any, wrong: list[str]) -> None:
    """
    D09, differs.

    ADK: Only the outermost types are checked: limits, enums, list items, nested models and unions are not. Unknown keys are dropped.

    Gatewright: The whole schema is checked, and everything that is wrong is said. Unknown keys are dropped.
    """
    session = await paused(shape)

    said = str(await session.refused(response("g", given)))

    assert [each for each in wrong if each not in said] == []


async def test_d09_unknown_keys_are_dropped(paused: Begin) -> None:
    """The other half of D09."""
    session = await paused("decision")

    await session.say(response("g", GOOD | {"extra": 1}))

    assert session.took() == [("d", FULL)]


@pytest.mark.parametrize(
    ("shape", "given", "value"),
    [
        ("bool", "yes", True),
        ("bool", 1, True),
        ("bool", "on", True),
        ("int", "42", 42),
        ("int", True, 1),
        ("int", 4.0, 4),
    ],
)
async def test_d10_scalars_are_coerced(paused: Begin, shape: str, given: Any, value: Any) -> None:
    """
    D10, mirrored.

    ADK: Scalars are coerced by pydantic's lax rules: `'yes'` and 1 are true, `'42'`, true and 4.0 are whole numbers; `'maybe'` and 2 are no truth.
    """
    session = await paused(shape)
    if shape == "bool":
        await session.refused(response("g", "maybe"))
        await session.refused(response("g", 2))

    await session.say(response("g", given))

    [(_, got)] = session.took()
    assert (type(got), got) == (type(value), value)


@pytest.mark.parametrize(
    "given", [{"result": '{"approved": false}'}, {"result": {"approved": False}}, {"approved": False}]
)
async def test_d11_an_object_may_come_as_text(paused: Begin, given: dict[str, Any]) -> None:
    """
    D11, mirrored.

    ADK: Where the schema asks for an object, `{result: '<its JSON text>'}`, `{result: {...}}` and the bare object are one.
    """
    session = await paused("decision")

    await session.say(response("g", given))

    assert session.took() == [("d", FULL | {"approved": False})]


async def test_d05_text_is_no_escape_either(paused: Begin) -> None:
    """The other half of D05: text at an open gate runs nothing again."""
    session = await paused("decision")
    await session.refused(response("g", BAD))

    assert "it waits at g" in str(await session.refused(text(f"decision {session.session} again")))
