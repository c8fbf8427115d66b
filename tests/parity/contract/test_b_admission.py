"""B. What a message may be, and what it then does."""

import re
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from google.adk.events.event import Event
from google.genai import types

from gatewright.protocol.errors import GateError
from gatewright.store import SessionKey
from gatewright.temporal import Gate
from tests.parity.contract.saying import Saying, gate_of, outputs, response, text

Begin = Callable[..., Awaitable[Saying]]

MIXED = (
    "Message cannot contain both function responses and text. Function responses resume an existing invocation while "
    "text starts a new one."
)


def unknown(interrupt_id: str) -> str:
    """ADK's words for an id that nobody asked for."""
    return (
        f"Function call not found for function response ids: {{'{interrupt_id}'}}. Ensure each function response ID "
        "matches an existing function call in the session history."
    )


async def test_b01_a_response_resumes(paused: Begin) -> None:
    """
    B01, mirrored.

    ADK: A message of functionResponses resumes its invocation: what ran before does not run again, what follows runs once, and only new events are yielded.
    """
    session = await paused("bare")
    before = (await session.read()).events

    shown = await session.say(response("g", "yes"))

    after = (await session.read()).events
    assert session.took() == [("d", "yes")]
    assert outputs(shown) == [("p@1/d@1", "d:yes")]
    assert after[: len(before)] == before
    assert [(event.author, event.node_info.path) for event in after[len(before) :]] == [
        ("user", ""),
        ("p", "p@1/d@1"),
    ]
    assert len({event.invocation_id for event in after}) == 1


@pytest.mark.parametrize("first", ["text", "response"])
async def test_b02_text_beside_a_response_is_refused(paused: Begin, first: str) -> None:
    """
    B02, mirrored.

    ADK: Text and a functionResponse in one message, in any order, is `ValueError('Message cannot contain both ...')`; nothing runs, nothing is kept, the gate can still be answered.
    """
    session = await paused("bare")
    parts = [text("ok"), response("g", 1)]

    error = await session.refused(*(parts if first == "text" else reversed(parts)))

    assert (type(error), str(error)) == (ValueError, MIXED)
    await session.say(response("g", "y"))
    assert session.took() == [("d", "y")]


@pytest.mark.parametrize(
    "beside",
    [text(""), types.Part(inline_data=types.Blob(mime_type="image/png", data=b"x"))],
    ids=["empty text", "a picture"],
)
async def test_b03_an_empty_text_or_another_part_beside_it_is_taken(paused: Begin, beside: types.Part) -> None:
    """
    B03, mirrored.

    ADK: An empty text part beside the functionResponse is tolerated, and so is a part that is not text.
    """
    session = await paused("bare")

    await session.say(beside, response("g", "y"))

    assert session.took() == [("d", "y")]


async def test_b04_an_unknown_id_is_refused(paused: Begin) -> None:
    """
    B04, mirrored.

    ADK: An id that was never asked for is `ValueError("Function call not found for function response ids: {'nope'}. ...")`, and a known id in the same message falls with it.
    """
    session = await paused("bare")

    for parts in ([response("nope", 1)], [response("g", 1), response("nope", 1)]):
        error = await session.refused(*parts)
        assert (type(error), str(error)) == (ValueError, unknown("nope"))


async def test_b05_a_response_without_id_is_refused(paused: Begin) -> None:
    """
    B05, differs.

    ADK: A functionResponse without id starts a fresh invocation from the start: all nodes run again.

    Gatewright: It is refused by name; nothing is kept and nothing runs.
    """
    session = await paused("bare")

    error = await session.refused(response(None, 1))

    assert str(error) == "Function response id is required to resume an invocation."
    assert vars(error)["rejection"].code == "missing_id"


async def test_b06_responses_to_two_invocations_are_refused(paused: Begin) -> None:
    """
    B06, mirrored.

    ADK: Answers to two invocations in one message are `ValueError('Function responses resolve to multiple invocations: {...}. ...')`; nothing is kept.
    """
    session = await paused("bare", on_text="open")
    second = gate_of(await session.open("bare")).id
    session.took()

    error = await session.refused(response("g", 1), response(second, 2))

    assert re.fullmatch(
        r"Function responses resolve to multiple invocations: {'e-.+', 'e-.+'}\. All function responses in a single "
        r"message must belong to the same invocation\.",
        str(error),
    )
    await session.say(response("g", "late"))
    assert session.took() == [("d", "late")]


async def test_b07_a_gate_of_two_invocations_has_two_ids(paused: Begin) -> None:
    """
    B07, differs.

    ADK: The same interrupt id open in two invocations: every answer goes to the newest, and the older can never be answered.

    Gatewright: An interrupt id is unique in the session (`g`, then `g@2`), so each answer reaches the run that asked.
    """
    session = await paused("bare", on_text="open")
    second = gate_of(await session.open("bare")).id
    session.took()

    assert second == "g@2"
    await session.say(response("g", "A"))
    await session.say(response("g@2", "B"))
    assert session.took() == [("d", "A"), ("d", "B")]


@pytest.mark.parametrize(
    ("name", "role"), [("zzz", "user"), (None, "user"), ("adk_request_input", "model")], ids=["name", "none", "role"]
)
async def test_b08_name_and_role_are_ignored(paused: Begin, name: str | None, role: str) -> None:
    """
    B08, mirrored.

    ADK: The functionResponse's name is ignored, and the message's role is forced to `user`.
    """
    session = await paused("bare")

    await session.say(response("g", "y", name=name), role=role)

    assert session.took() == [("d", "y")]
    said = (await session.read()).events[-2].content
    assert said is not None
    assert said.role == "user"


async def test_b09_another_invocation_id_beside_an_answer_is_ignored(paused: Begin) -> None:
    """
    B09, mirrored.

    ADK: With an answer, the invocation that asked is resumed, whatever `invocation_id` says.
    """
    session = await paused("bare")

    await session.say(response("g", "y"), invocation_id="bogus")

    assert session.took() == [("d", "y")]


async def test_b10_a_poke_shows_nothing_and_text_is_never_dropped(paused: Begin) -> None:
    """
    B10, differs.

    ADK: An `invocation_id` without message does nothing at an open gate. Text with an `invocation_id` is silently dropped.

    Gatewright: Without message the same; text with an `invocation_id` is refused.
    """
    session = await paused("bare")
    before = await session.read()
    invocation = before.events[0].invocation_id

    assert await session.say(invocation_id=invocation) == []
    assert await session.read() == before
    error = await session.refused(text("hello"), invocation_id=invocation)
    assert str(error) == f"Text opens a run of its own, so it cannot belong to invocation {invocation}."
    assert session.took() == []


async def test_b11_nothing_said_opens_nothing(saying: Begin) -> None:
    """
    B11, differs.

    ADK: Neither message nor invocation starts a fresh run without input, and so does an unknown `invocation_id`, under that id.

    Gatewright: Both are refused.
    """
    session = await saying()

    assert str(await session.refused()) == "There is no new_message, so there is nothing to do."
    assert str(await session.refused(invocation_id="bogus")) == "This session has no invocation bogus."


async def test_b12_a_function_call_of_the_user_is_refused(paused: Begin) -> None:
    """
    B12, mirrored.

    ADK: A function call in a user's message is `ValueError('User message cannot contain function calls.')`.
    """
    session = await paused("bare")

    error = await session.refused(types.Part(function_call=types.FunctionCall(name="f", id="g", args={})))

    assert (type(error), str(error)) == (ValueError, "User message cannot contain function calls.")


async def test_b13_two_answers_to_one_gate_are_refused(paused: Begin) -> None:
    """
    B13, differs.

    ADK: Of two answers to one id in a message the last wins.

    Gatewright: The whole message is refused.
    """
    session = await paused("bare")

    error = await session.refused(response("g", 1), response("g", 2))

    assert str(error) == "2 answers of this message are for g. Send one."


async def test_b14_an_answer_cannot_come_before_its_gate(paused: Begin) -> None:
    """
    B14, mirrored.

    ADK: An id that has not been asked yet is unknown; answers are never queued.
    """
    session = await paused("two")

    assert str(await session.refused(response("b", 1))) == unknown("b")
    await session.say(response("a", 1))
    assert session.took() == [("m", 1)]


async def test_b15_who_answered_is_recorded(paused: Begin) -> None:
    """
    B15, differs.

    ADK: The kept answer's author is `user`, with no principal; `RunConfig.custom_metadata` is the only thing stamped on it.

    Gatewright: The author and the metadata the same; principal, channel, answer id and time of the answer are recorded with it, under a receipt.
    """
    session = await paused("bare")

    await session.say(response("g", "y"), metadata={"ticket": "T1"})

    said = (await session.read()).events[-2]
    assert (said.author, said.custom_metadata) == ("user", {"ticket": "T1"})
    workflow_id = SessionKey(app="contract", user="u", session=session.session).workflow_id(1)
    [gate] = await session.runner.gateway.client.gates(workflow_id)
    assert gate.answer is not None
    assert (gate.answer.principal, gate.answer.channel, gate.answer.value) == ("u", "adk", "y")
    assert gate.answer.answer_id.startswith("adk-")
    assert gate.answer.receipt.startswith("sha256:")
    assert gate.answer.at.timestamp() == said.timestamp


async def test_b16_state_goes_with_the_answer(paused: Begin) -> None:
    """
    B16, mirrored.

    ADK: A `state_delta` given with an answer is applied on the answer's event, before nodes run.
    """
    session = await paused("bare")

    await session.say(response("g", 1), state_delta={"ext": 9})

    read = await session.read()
    assert [event.actions.state_delta for event in read.events[-2:]] == [{"ext": 9}, {}]
    assert read.state == {"prepared": True, "ext": 9}


def test_b17_a_gate_without_a_name_cannot_be_written() -> None:
    """
    B17, differs.

    ADK: `interrupt_id=''` is accepted, and such a gate cannot be answered: the answer starts a fresh invocation.

    Gatewright: A gate without a name is refused where it is defined.
    """
    with pytest.raises(GateError, match="an empty interrupt id cannot be answered"):
        Gate("")


async def test_b18_nothing_appended_to_a_session_answers_a_gate(paused: Begin) -> None:
    """
    B18, differs.

    ADK: An answer that is appended straight to the session is taken when the invocation is resumed without message.

    Gatewright: Only a run takes answers: the append is refused, the gate stays open.
    """
    session = await paused("bare")
    before = await session.read()
    invocation = before.events[0].invocation_id
    appended = Event(
        author="user", invocation_id=invocation, content=types.Content(role="user", parts=[response("g", "A")])
    )

    with pytest.raises(ValueError, match="Only a change of state can be appended"):
        await session.runner.session_service.append_event(await session.read(), appended)

    assert await session.read() == before
    assert await session.say(invocation_id=invocation) == []
    assert session.took() == []
    await session.say(response("g", "B"))
    assert session.took() == [("d", "B")]
