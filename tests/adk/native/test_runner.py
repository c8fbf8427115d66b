"""A `Runner` over runs: what it yields, what it raises, and that looking away changes nothing."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from google.adk.agents.run_config import RunConfig
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.runners import InMemoryRunner, Runner
from google.genai import types

from gatewright.adk import App, Gateway, Rejection, RunFailed
from gatewright.adk.native import TemporalRunner
from gatewright.adk.native.errors import raised
from gatewright.adk.native.runner import Elsewhere
from tests.adk.conversing import gists, response, text
from tests.adk.pipelines import RUNS

GOOD = {"approved": True}


def message(*parts: types.Part) -> types.Content:
    """A user's message."""
    return types.Content(role="user", parts=list(parts))


def shown(events: list[Event]) -> list[str]:
    """Events in a few words each."""
    return gists([event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in events])


async def say(runner: Runner, session: str, *parts: types.Part, **options: Any) -> list[Event]:
    """Send a message; the events of the turn."""
    said = message(*parts) if parts else None
    return [e async for e in runner.run_async(user_id="u", session_id=session, new_message=said, **options)]


async def begun(runner: TemporalRunner) -> str:
    """A session."""
    return (await runner.session_service.create_session(app_name=runner.app_name, user_id="u")).id


async def test_a_whole_conversation(runner: TemporalRunner) -> None:
    session = await begun(runner)

    opened = await say(runner, session, text("hello"))
    first = await say(runner, session, response("plan-gate-1", GOOD))
    second = await say(runner, session, response("name-gate-1", "q3"))

    assert shown(opened)[-1] == "gated@1/plan_gate@1?plan-gate-1"
    assert opened[-1].long_running_tool_ids == {"plan-gate-1"}
    assert shown(first)[-1] == "gated@1/name_gate@1?name-gate-1"
    assert second[-1].output == {"report": "q3"}
    read = await runner.session_service.get_session(app_name="gated", user_id="u", session_id=session)
    assert read is not None
    assert [event for event in read.events if event.author != "user"] == [*opened, *first, *second]


async def test_the_users_own_event_comes_first_where_it_is_asked_for(runner: TemporalRunner) -> None:
    session = await begun(runner)

    opened = await say(runner, session, text("hello"), yield_user_message=True)
    answered = await say(
        runner,
        session,
        response("plan-gate-1", GOOD),
        yield_user_message=True,
        state_delta={"who": "me"},
        run_config=RunConfig(custom_metadata={"ticket": "T1"}),
    )

    assert shown(opened[:1]) == ["user : hello"]
    assert shown(answered[:1]) == ["user:plan-gate-1={'approved': True}"]
    assert answered[0].actions.state_delta == {"who": "me"}
    assert {event.author: event.custom_metadata for event in answered} == {
        "user": {"ticket": "T1"},
        "gated": {"ticket": "T1"},
    }
    again = await say(runner, session, response("plan-gate-1", GOOD), yield_user_message=True)
    assert again == answered


async def test_the_blocking_interface_works_too(runner: TemporalRunner) -> None:
    session = await begun(runner)

    def run() -> list[Event]:
        return list(runner.run(user_id="u", session_id=session, new_message=message(text("hello"))))

    assert shown(await asyncio.to_thread(run))[-1] == "gated@1/plan_gate@1?plan-gate-1"


@pytest.mark.parametrize("how", ["closed", "cancelled", "aborted"])
async def test_who_looks_on_may_go_away(gateway: Gateway, workers: None, how: str) -> None:
    """The step that takes its time runs to its end, once, and the gate behind it opens."""
    runner, signal = TemporalRunner(gateway, "slow"), asyncio.Event()
    session = await begun(runner)
    following = runner.run_async(
        user_id="u", session_id=session, new_message=message(text(session)), abort_signal=signal
    )
    assert isinstance(following, AsyncGenerator)
    looking = asyncio.ensure_future(anext(following, None))
    async with asyncio.timeout(20):
        while not RUNS[f"slow start {session}"]:
            await asyncio.sleep(0.02)

    if how == "aborted":
        signal.set()
        assert await looking is None
    else:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        if how == "closed":
            await following.aclose()

    assert RUNS[f"slow end {session}"] == 0
    async with asyncio.timeout(20):
        while len(events := (await gateway.session("slow", "u", session))["events"]) < 3:
            await asyncio.sleep(0.1)
    assert gists(events)[-1] == "slow@1/gate@1?g"
    assert (RUNS[f"slow start {session}"], RUNS[f"slow end {session}"]) == (1, 1)


async def test_a_message_whose_sender_goes_away_at_once_is_said_all_the_same(runner: TemporalRunner) -> None:
    session = await begun(runner)
    saying = asyncio.ensure_future(say(runner, session, text(session)))
    await asyncio.sleep(0)
    saying.cancel()
    await asyncio.gather(saying, return_exceptions=True)

    async with asyncio.timeout(20):
        while len(events := (await runner.gateway.session("gated", "u", session))["events"]) < 3:
            await asyncio.sleep(0.05)

    assert gists(events)[-1] == "gated@1/plan_gate@1?plan-gate-1"


async def test_an_abort_before_the_first_word_sends_nothing(runner: TemporalRunner) -> None:
    session = await begun(runner)
    signal = asyncio.Event()
    signal.set()

    assert await say(runner, session, text("hello"), abort_signal=signal) == []

    assert (await runner.gateway.session("gated", "u", session))["events"] == []


async def test_a_signal_that_is_never_set_changes_nothing(runner: TemporalRunner) -> None:
    session = await begun(runner)

    events = await say(runner, session, text("hello"), abort_signal=asyncio.Event())

    assert shown(events)[-1] == "gated@1/plan_gate@1?plan-gate-1"


async def test_a_run_that_fails_raises_what_it_failed_with(gateway: Gateway, workers: None) -> None:
    runner = TemporalRunner(gateway, "boom")
    session = await begun(runner)
    await say(runner, session, text("x"))
    following = runner.run_async(user_id="u", session_id=session, new_message=message(response("g", "a")))
    event = await anext(following)

    with pytest.raises(RuntimeError) as failed:
        await anext(following)

    assert (type(failed.value), str(failed.value)) == (RuntimeError, "kaboom a")
    assert (event.error_code, event.error_message) == ("RuntimeError", "kaboom a")
    assert isinstance(vars(failed.value)["rejection"], RunFailed)
    assert failed.value.__notes__ == ["Send text to open another run."]


@pytest.mark.parametrize(
    ("reason", "kind", "words"),
    [
        ("ValueError: bad", ValueError, "bad"),
        ("KeyError: 'x'", RuntimeError, "'x'"),
        ("UnicodeDecodeError: no", RuntimeError, "no"),
        ("OutOfPaper: tray 2", RuntimeError, "tray 2"),
        ("SystemExit: 1", RuntimeError, "1"),
        ("it was terminated", RuntimeError, "it was terminated"),
    ],
)
def test_what_a_run_failed_with_keeps_its_name_and_words(reason: str, kind: type[Exception], words: str) -> None:
    error = raised(RunFailed(reason, workflow_id="w"))

    assert isinstance(error, kind)
    assert str(error) == words
    assert type(error).__name__ == (reason.partition(":")[0] if ":" in reason else "RuntimeError")


async def test_an_unknown_session_is_adks_error_or_is_made(gateway: Gateway, workers: None) -> None:
    with pytest.raises(SessionNotFoundError, match="Session not found: nowhere"):
        await say(TemporalRunner(gateway, "gated"), "nowhere", text("x"))

    made = await say(TemporalRunner(gateway, "gated", auto_create_session=True), "made", text("x"))

    assert shown(made)[-1] == "gated@1/plan_gate@1?plan-gate-1"


async def test_an_app_that_is_not_served_is_named(gateway: Gateway) -> None:
    with pytest.raises(ValueError, match="Agent not found: 'nope'") as refused:
        TemporalRunner(gateway, "nope")

    assert "Apps that are served: boom, gated" in refused.value.__notes__[0]


class TestA2A:
    """With `a2a`, a turn ends with the gates that wait, also one whose message was rejected."""

    @pytest.fixture
    def again(self, gateway: Gateway, workers: None) -> TemporalRunner:
        return TemporalRunner(gateway, "gated", a2a=True)

    @pytest.mark.parametrize(
        ("parts", "why"),
        [
            ([text("hello?")], "is open (it waits at plan-gate-1)"),
            ([text("yes"), response("plan-gate-1", GOOD)], "Message cannot contain both"),
            ([response("nope", GOOD)], "Function call not found"),
            ([response("plan-gate-1", {"approved": "maybe"})], 'got "maybe", wanted true or false'),
        ],
        ids=["text", "mixed", "unknown", "invalid"],
    )
    async def test_at_an_open_gate(self, again: TemporalRunner, parts: list[types.Part], why: str) -> None:
        session = await begun(again)
        await say(again, session, text(session))
        before = await again.gateway.session("gated", "u", session)

        [event] = await say(again, session, *parts)

        [call] = event.get_function_calls()
        assert call.id is not None
        assert call.args is not None
        assert call.id.startswith("plan-gate-1#again-")
        assert event.long_running_tool_ids == {call.id}
        assert why in call.args["message"]
        assert await again.gateway.session("gated", "u", session) == before
        answered = await say(again, session, response(call.id, GOOD))
        assert shown(answered)[-1] == "gated@1/name_gate@1?name-gate-1"
        assert RUNS[f"gated profile {session}"] == 1

    async def test_of_gates_that_wait_together_each_turn_tells_all(self, gateway: Gateway, workers: None) -> None:
        par = TemporalRunner(gateway, "par", a2a=True)
        session = await begun(par)

        [both] = await say(par, session, text("x"))
        [rest] = await say(par, session, response("gate-b", 7))
        [why] = await say(par, session, response("gate-b", 8))
        done = await say(par, session, response("gate-a", "A!"))

        assert [call.id for call in both.get_function_calls()] == ["gate-a", "gate-b"]
        assert both.long_running_tool_ids == {"gate-a", "gate-b"}
        assert [call.id for call in rest.get_function_calls()] == ["gate-a"]
        [call] = why.get_function_calls()
        assert call.args is not None
        assert (call.args["interruptId"], "gate-b was answered by u" in call.args["message"]) == ("gate-a", True)
        assert done[-1].output == {"joined": {"b": 7, "a": "A!"}}

    async def test_where_no_gate_waits_it_is_raised(self, again: TemporalRunner) -> None:
        session = await begun(again)

        with pytest.raises(ValueError, match="Function call not found"):
            await say(again, session, response("plan-gate-1", GOOD))


class TestElsewhere:
    async def test_adk_itself_does_not_run_it(self, runner: TemporalRunner) -> None:
        """Instead of a run that silently does nothing, there is an error that says where the pipeline runs."""
        stock = InMemoryRunner(node=Elsewhere.of(App("gated", "gated", description="d")))
        await stock.session_service.create_session(app_name="InMemoryRunner", user_id="u", session_id="s")

        with pytest.raises(NotImplementedError, match="gated runs on Temporal: call run_async of a TemporalRunner"):
            await say(stock, "s", text("x"))

    def test_a_name_that_adk_does_not_take_is_replaced(self) -> None:
        assert Elsewhere.of(App("a", "dataset-release")).name == "pipeline"
        assert Elsewhere.of(App("a", "p", root="DatasetRelease")).name == "DatasetRelease"


def test_a_rejection_of_any_code_is_a_value_error() -> None:
    error = raised(Rejection("no_worker", "nobody"))

    assert (type(error), str(error)) == (ValueError, "nobody")
