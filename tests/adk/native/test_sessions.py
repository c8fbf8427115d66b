"""ADK's session service over runs."""

import time

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session

from gatewright.adk import Gateway
from gatewright.adk.native import TemporalRunner, TemporalSessionService
from tests.adk.conversing import response, text
from tests.adk.native.test_runner import say


@pytest.fixture
def service(gateway: Gateway) -> TemporalSessionService:
    """The service, over nobody's runs."""
    return TemporalSessionService(gateway)


async def test_made_read_listed_and_deleted(service: TemporalSessionService) -> None:
    made = await service.create_session(app_name="gated", user_id="ada", session_id="mine", state={"a": 1})
    other = await service.create_session(app_name="gated", user_id="ada")

    assert (made.id, made.app_name, made.user_id, made.state, made.events) == ("mine", "gated", "ada", {"a": 1}, [])
    assert await service.get_session(app_name="gated", user_id="ada", session_id=" mine ") == made
    with pytest.raises(AlreadyExistsError, match="Session already exists: mine"):
        await service.create_session(app_name="gated", user_id="ada", session_id="mine")
    listed = await service.list_sessions(app_name="gated", user_id="ada")
    assert [session.id for session in listed.sessions] == ["mine", other.id]
    await service.delete_session(app_name="gated", user_id="ada", session_id="mine")
    assert await service.get_session(app_name="gated", user_id="ada", session_id="mine") is None
    elsewhere = await service.create_session(app_name="gated", user_id="bob")
    everybodys = await service.list_sessions(app_name="gated")
    assert [(session.user_id, session.id) for session in everybodys.sessions] == [
        ("ada", other.id),
        ("bob", elsewhere.id),
    ]
    with pytest.raises(ValueError, match="Agent not found: 'nope'"):
        await service.get_session(app_name="nope", user_id="ada", session_id="mine")


async def test_what_is_read_can_be_bounded(runner: TemporalRunner) -> None:
    service = runner.session_service
    session = (await service.create_session(app_name="gated", user_id="u", state={"a": 1})).id
    await say(runner, session, text("x"))
    await say(runner, session, response("plan-gate-1", {"approved": True}))

    async def read(**config: float) -> Session:
        found = await service.get_session(
            app_name="gated", user_id="u", session_id=session, config=GetSessionConfig.model_validate(config)
        )
        assert found is not None
        assert found.state == {"a": 1, "profiled": True}
        return found

    events = (await read()).events
    assert len(events) == 6
    assert (await read(num_recent_events=0)).events == []
    assert (await read(num_recent_events=2)).events == events[-2:]
    assert (await read(num_recent_events=100)).events == events
    assert (await read(after_timestamp=events[3].timestamp)).events == events[3:]
    assert (await read(after_timestamp=time.time() + 60)).events == []


async def test_a_change_of_state_is_appended(service: TemporalSessionService) -> None:
    session = await service.create_session(app_name="gated", user_id="ada", state={"a": 1})
    event = Event(author="user", invocation_id="p-1", actions=EventActions(state_delta={"b": 2, "temp:t": 3}))

    await service.append_event(session, event)

    assert session.state == {"a": 1, "b": 2, "temp:t": 3}
    kept = await service.get_session(app_name="gated", user_id="ada", session_id=session.id)
    assert kept is not None
    assert kept.state == {"a": 1, "b": 2}
    assert [(each.id, each.actions.state_delta) for each in kept.events] == [(event.id, {"b": 2})]


@pytest.mark.parametrize(
    "event",
    [
        Event(author="user", invocation_id="i"),
        Event(author="model", invocation_id="i", content={"role": "model", "parts": [{"text": "hi"}]}),
        Event(author="user", invocation_id="i", output=1, actions=EventActions(state_delta={"b": 2})),
        Event(author="user", actions=EventActions(state_delta={"b": 2}, rewind_before_invocation_id="i")),
    ],
    ids=["nothing", "words", "an output", "a rewind"],
)
async def test_nothing_else_is_appended(service: TemporalSessionService, event: Event) -> None:
    session = await service.create_session(app_name="gated", user_id="ada")

    with pytest.raises(ValueError, match=r"Only a change of state can be appended .* run_async"):
        await service.append_event(session, event)

    assert await service.get_session(app_name="gated", user_id="ada", session_id=session.id) == session


async def test_a_partial_event_is_never_kept(service: TemporalSessionService) -> None:
    session = await service.create_session(app_name="gated", user_id="ada")
    event = Event(author="model", invocation_id="i", partial=True)

    assert await service.append_event(session, event) is event
    assert session.events == []


async def test_a_session_with_an_open_run_is_not_deleted(runner: TemporalRunner) -> None:
    session = (await runner.session_service.create_session(app_name="gated", user_id="u")).id
    await say(runner, session, text("x"))

    with pytest.raises(ValueError, match="it waits at plan-gate-1") as refused:
        await runner.session_service.delete_session(app_name="gated", user_id="u", session_id=session)

    assert vars(refused.value)["rejection"].code == "session_busy"
