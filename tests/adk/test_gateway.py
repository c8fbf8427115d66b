"""The adapter over real runs: text opens, functionResponses answer, everything else is rejected by name."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from google.genai import types

from gatewright.adk import Gateway, Rejection, RunFailed
from gatewright.protocol import Answer, Message
from gatewright.temporal import GateClient
from tests.adk.conversing import Talk, gists, response, text
from tests.adk.pipelines import RUNS, apps

Begin = Callable[..., Talk]
GOOD = {"approved": True}
MIXED = (
    "Message cannot contain both function responses and text. Function responses resume an existing invocation while "
    "text starts a new one."
)


def unknown(interrupt_id: str) -> str:
    """B04, for one id."""
    return (
        f"Function call not found for function response ids: {{'{interrupt_id}'}}. Ensure each function response ID "
        "matches an existing function call in the session history."
    )


async def test_a_whole_conversation(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin(state={"a": 1})

    opened = await gated.say(text("hello"))
    first = await gated.say(response("plan-gate-1", {"approved": True, "limit": 5}))
    second = await gated.say(response("name-gate-1", "q3"))
    session = await gated.read()

    approval = {"approved": True, "comment": "", "limit": 5, "level": "low"}
    assert gists(opened) == [
        "gated@1/profile@1={'plan': 'plan for hello', 'rows': 3}",
        "gated@1/plan_gate@1?plan-gate-1",
    ]
    assert gists(first) == [
        f"gated@1/discover@1={ {'discovered': ['a', 'b'], 'approval': approval} }",
        "gated@1/name_gate@1?name-gate-1",
    ]
    assert gists(second) == ["gated gated@1/finish@1: Report named 'q3' is done", "gated@1/finish@1={'report': 'q3'}"]
    assert second[-1]["nodeInfo"]["outputFor"] == ["gated@1/finish@1", "gated@1"]
    assert session["state"] == {"a": 1, "profiled": True}
    shown = [event for event in session["events"] if event["author"] != "user"]
    assert shown == [*opened, *first, *second]
    assert gists([event for event in session["events"] if event["author"] == "user"]) == [
        "user : hello",
        "user:plan-gate-1={'approved': True, 'limit': 5}",
        "user:name-gate-1={'result': 'q3'}",
    ]
    assert len({event["invocationId"] for event in session["events"]}) == 1
    assert session["lastUpdateTime"] == session["events"][-1]["timestamp"]


@pytest.mark.parametrize(
    ("parts", "code", "message"),
    [
        (
            [text("yes"), response("plan-gate-1", GOOD)],
            "mixed_message",
            MIXED,
        ),
        (
            [response("plan-gate-1", GOOD), text("yes")],
            "mixed_message",
            MIXED,
        ),
        (
            [response("nope", GOOD)],
            "unknown_gate",
            unknown("nope"),
        ),
        (
            [response("plan-gate-1", GOOD), response("nope@7", GOOD)],
            "unknown_gate",
            unknown("nope@7"),
        ),
        (
            [response("name-gate-1", "early")],
            "not_open_yet",
            unknown("name-gate-1"),
        ),
        ([response(None, GOOD)], "missing_id", "Function response id is required to resume an invocation."),
        ([response("", GOOD)], "missing_id", "Function response id is required to resume an invocation."),
        (
            [types.Part(function_call=types.FunctionCall(id="plan-gate-1", name="adk_request_input", args={}))],
            "function_call",
            "User message cannot contain function calls.",
        ),
        ([text("")], "no_message", "The message says nothing, so there is nothing to open a run with."),
        (
            [response("plan-gate-1", GOOD), response("plan-gate-1", {"approved": False})],
            "duplicate_in_message",
            "2 answers of this message are for plan-gate-1. Send one.",
        ),
        (
            [response("plan-gate-1", {"approved": "maybe"})],
            "invalid",
            'Validation failed for interrupt plan-gate-1: $.approved: got "maybe", wanted true or false',
        ),
        (
            [response("plan-gate-1", None)],
            "invalid",
            "Validation failed for interrupt plan-gate-1: $: got null, wanted an object",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
async def test_what_does_not_count_is_rejected_by_name_and_changes_nothing(
    talk: Begin, parts: list[types.Part], code: str, message: str
) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text(gated.session))
    before = await gated.read()

    with pytest.raises(Rejection) as rejected:
        await gated.submit(*parts)

    assert (rejected.value.code, rejected.value.status) == (
        code,
        409 if code in {"unknown_gate", "not_open_yet"} else 422,
    )
    assert rejected.value.message.startswith(message)
    assert rejected.value.todo
    assert await gated.read() == before
    assert gists(await gated.say(response("plan-gate-1", GOOD)))[-1] == "gated@1/name_gate@1?name-gate-1"
    assert RUNS[f"gated profile {gated.session}"] == 1


async def test_text_at_an_open_gate_is_refused_with_the_gates(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text(gated.session))

    with pytest.raises(Rejection, match="it waits at plan-gate-1") as rejected:
        await gated.submit(text("hello?"))

    assert (rejected.value.code, rejected.value.status) == ("session_busy", 409)
    assert rejected.value.open == [
        {"interruptId": "plan-gate-1", "gate": "plan-gate-1", "message": "Approve the plan?"}
    ]
    refusals = gated.gateway.store.refusals(run=rejected.value.workflow_id)
    assert [row.refusal for row in refusals] == ["session_busy"]
    assert RUNS[f"gated profile {gated.session}"] == 1


async def test_text_may_open_a_run_beside_it_and_both_are_answered_by_their_own_ids(
    talk: Begin, gates: GateClient, queue: str
) -> None:
    both = Gateway(gates, apps(queue), on_text="open")
    gated = talk("gated", gateway=both)
    await gated.begin()
    await gated.say(text("one"))
    second = await gated.say(text("two"))

    assert gists(second)[-1] == "gated@1/plan_gate@1?plan-gate-1@2"
    with pytest.raises(Rejection, match=r"resolve to multiple invocations: {'e-") as rejected:
        await gated.submit(response("plan-gate-1", GOOD), response("plan-gate-1@2", GOOD))
    assert rejected.value.code == "several_runs"
    assert gists(await gated.say(response("plan-gate-1@2", GOOD)))[-1].endswith("?name-gate-1@2")
    assert gists(await gated.say(response("plan-gate-1", GOOD)))[-1].endswith("?name-gate-1")


async def test_the_same_click_twice_is_one_answer_and_another_is_refused(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text("x"))

    first = await gated.say(response("plan-gate-1", GOOD), event_id="e1")
    again = await gated.say(response("plan-gate-1", GOOD), event_id="e1")

    assert again == first
    with pytest.raises(Rejection, match="plan-gate-1 was answered by user at") as rejected:
        await gated.submit(response("plan-gate-1", {"approved": False}), event_id="e1")
    assert (rejected.value.code, rejected.value.status) == ("already_answered", 409)


async def test_a_repeat_is_shown_its_own_turn_and_not_the_next_one(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text("x"))
    first = await gated.say(response("plan-gate-1", GOOD))
    await gated.say(response("name-gate-1", "n"))

    assert await gated.say(response("plan-gate-1", GOOD)) == first


async def test_two_clicks_at_once_with_different_answers_have_one_winner(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text("x"))
    await gated.say(response("plan-gate-1", GOOD))
    name = f"n-{gated.session}"

    outcomes = await asyncio.gather(
        gated.say(response("name-gate-1", name)),
        gated.say(response("name-gate-1", f"{name}-other")),
        return_exceptions=True,
    )

    refused = [each for each in outcomes if isinstance(each, Rejection)]
    assert [each.code for each in refused] in (["already_answered"], ["frame_closed"])
    assert RUNS[f"gated finish {name}"] + RUNS[f"gated finish {name}-other"] == 1


async def test_parallel_gates_one_by_one_and_both_at_once(talk: Begin) -> None:
    one = talk("par")
    await one.begin()
    assert gists(await one.say(text("x"))) == ["par@1/a@1?gate-a", "par@1/b@1?gate-b"]
    assert await one.say(response("gate-a", "A!")) == []
    done = ["par@1/join@1={'b': 7, 'a': 'A!'}", "par@1/fin@1={'joined': {'b': 7, 'a': 'A!'}}"]
    assert gists(await one.say(response("gate-b", 7))) == done

    both = talk("par")
    await both.begin()
    await both.say(text("x"))
    assert gists(await both.say(response("gate-a", "A!"), response("gate-b", 7))) == done
    said = [event for event in (await both.read())["events"] if event["author"] == "user"]
    assert [len(event["content"]["parts"]) for event in said] == [1, 2]


async def test_each_round_of_a_loop_has_an_id_of_its_own(talk: Begin) -> None:
    loop = talk("loop")
    await loop.begin()

    assert gists(await loop.say(text("x")))[-1] == "loop@1/review@1?review"
    again = await loop.say(response("review", "no"))

    assert gists(again) == ["loop@1/decide@1=no", "loop@1/draft@2={'draft': 'no'}", "loop@1/review@2?review~2"]
    assert again[0]["actions"]["route"] == "again"
    with pytest.raises(Rejection) as rejected:
        await loop.submit(response("review", "yes"))
    assert rejected.value.code == "already_answered"
    assert gists(await loop.say(response("review~2", "yes"))) == ["loop@1/decide@2=yes", "loop@1/fin@1=finished"]


async def test_a_run_that_fails_says_where_and_why(talk: Begin) -> None:
    boom = talk("boom")
    await boom.begin()
    await boom.say(text("x"))
    looking = boom.gateway.follow(await boom.submit(response("g", "a")))
    events = [await anext(looking)]

    with pytest.raises(RunFailed, match="kaboom a") as failed:
        await anext(looking)

    assert (failed.value.error_type, failed.value.code) == ("RuntimeError", "run_failed")
    assert [(event["nodeInfo"]["path"], event["errorCode"], event["errorMessage"]) for event in events] == [
        ("boom@1/boom@1", "RuntimeError", "kaboom a")
    ]
    assert (await boom.read())["events"][-1] == events[-1]


async def test_a_rejected_answers_form_comes_back_under_an_alias_that_is_taken(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    asked = (await gated.say(text("x")))[-1]
    with pytest.raises(Rejection) as rejected:
        await gated.submit(response("plan-gate-1", {"approved": "maybe"}))

    [again] = await gated.gateway.rearm(rejected.value)

    call = again["content"]["parts"][0]["functionCall"]
    assert again["id"] != asked["id"]
    assert again["longRunningToolIds"] == [call["id"]] != asked["longRunningToolIds"]
    assert call["args"]["response_schema"] == asked["content"]["parts"][0]["functionCall"]["args"]["response_schema"]
    assert "not accepted: Validation failed" in call["args"]["message"]
    assert len((await gated.read())["events"]) == 3
    assert gists(await gated.say(response(call["id"], GOOD)))[-1].endswith("?name-gate-1")


async def test_a_poke_shows_what_is_still_to_come(talk: Begin) -> None:
    slow = talk("slow")
    await slow.begin()
    accepted = await slow.submit(text(slow.session))  # and the client goes away

    rest = await slow.say(invocation_id=accepted.invocation)

    assert gists(rest)[-1] == "slow@1/gate@1?g"
    assert RUNS[f"slow start {slow.session}"] == RUNS[f"slow end {slow.session}"] == 1
    assert await slow.say(invocation_id=accepted.invocation) == []


async def test_who_looks_on_may_go_away(talk: Begin) -> None:
    slow = talk("slow")
    await slow.begin()
    looking = slow.gateway.follow(await slow.submit(text(slow.session)))
    step = asyncio.ensure_future(anext(looking))
    await asyncio.sleep(0.3)
    step.cancel()
    await asyncio.gather(step, return_exceptions=True)

    await asyncio.sleep(2.5)

    assert gists((await slow.read())["events"]) == [f"user : {slow.session}", "slow@1/work@1=w", "slow@1/gate@1?g"]
    assert RUNS[f"slow end {slow.session}"] == 1


async def test_metadata_and_state_go_with_the_turn(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text("x"))

    shown = await gated.say(
        response("plan-gate-1", GOOD), metadata={"principal": "alice"}, state_delta={"who": "me", "temp:x": 1}
    )
    session = await gated.read()

    assert [event["customMetadata"] for event in shown] == [{"principal": "alice"}] * 2
    assert session["events"][3]["customMetadata"] == {"principal": "alice"}
    assert session["events"][3]["actions"]["stateDelta"] == {"who": "me"}
    assert session["state"] == {"profiled": True, "who": "me"}
    assert session["events"][4:] == shown


@pytest.mark.parametrize("given", [{"invocation_id": "e-unknown"}, {}])
async def test_no_message_and_no_known_invocation_is_rejected(talk: Begin, given: dict[str, str]) -> None:
    gated = talk("gated")
    await gated.begin()

    with pytest.raises(Rejection) as rejected:
        await gated.submit(**given)

    assert rejected.value.code == ("unknown_invocation" if given else "no_message")
    assert (await gated.read())["events"] == []


async def test_text_for_an_invocation_is_rejected_and_a_wrong_invocation_beside_an_answer_ignored(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    opened = await gated.say(text("x"))

    with pytest.raises(Rejection) as rejected:
        await gated.submit(text("hi"), invocation_id=opened[0]["invocationId"])
    assert rejected.value.code == "text_with_invocation"
    assert gists(await gated.say(response("plan-gate-1", GOOD), invocation_id="e-wrong"))[-1].endswith("?name-gate-1")


async def test_other_parts_beside_an_answer_are_kept_and_an_empty_text_is_not(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text("x"))
    blob = types.Part(inline_data=types.Blob(data=b"hi", mime_type="text/plain"))

    await gated.say(text(""), response("plan-gate-1", GOOD), blob)

    parts = (await gated.read())["events"][3]["content"]["parts"]
    assert [next(iter(part)) for part in parts] == ["functionResponse", "inlineData"]
    assert parts[1] == {"inlineData": {"data": "aGk=", "mimeType": "text/plain"}}


async def test_after_the_end_answers_are_refused_and_text_opens_the_next_run(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    await gated.say(text("x"))
    await gated.say(response("plan-gate-1", GOOD))
    await gated.say(response("name-gate-1", "n"))

    with pytest.raises(Rejection, match="the run is completed") as rejected:
        await gated.submit(response("name-gate-1", "other"))
    assert (rejected.value.code, rejected.value.status) == ("frame_closed", 409)
    assert gists(await gated.say(text("again")))[-1] == "gated@1/plan_gate@1?plan-gate-1@2"
    assert len((await gated.read())["events"]) == 12


async def test_an_idempotency_key_names_an_opening(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()

    first = await gated.say(text(gated.session), key="k1")
    again = await gated.say(text(gated.session), key="k1")

    assert again == first
    assert RUNS[f"gated profile {gated.session}"] == 1
    with pytest.raises(Rejection) as rejected:
        await gated.submit(text("other"), key="k1")
    assert rejected.value.code == "conflict"
    with pytest.raises(Rejection, match="1 to 150 characters"):
        await gated.submit(text("other"), key="k" * 151)


async def test_a_cancelled_run_takes_its_forms_away(talk: Begin) -> None:
    gated = talk("gated")
    await gated.begin()
    accepted = await gated.submit(text("x"))
    [event async for event in gated.gateway.follow(accepted)]

    await gated.gateway.client.cancel(accepted.workflow_id, reason="not needed")
    await gated.gateway.client.client.get_workflow_handle(accepted.workflow_id).describe()
    async with asyncio.timeout(30):
        while len(events := (await gated.read())["events"]) == 3:
            await asyncio.sleep(0.1)

    assert gists(events)[-2:] == [
        "gated:plan-gate-1={'error': 'the run was cancelled not needed'}",
        "gated@1!RUN_CANCELLED",
    ]


class TestSessions:
    async def test_made_changed_listed_and_deleted(self, gateway: Gateway) -> None:
        made = await gateway.create_session("gated", "ada", "mine", state={"a": 1, "temp:t": 2})
        patched = await gateway.patch_session("gated", "ada", "mine", {"b": 2})
        other = await gateway.create_session("gated", "ada")

        assert made == {
            "id": "mine",
            "appName": "gated",
            "userId": "ada",
            "state": {"a": 1},
            "events": [],
            "lastUpdateTime": made["lastUpdateTime"],
        }
        assert patched["state"] == {"a": 1, "b": 2}
        assert [event["actions"]["stateDelta"] for event in patched["events"]] == [{"b": 2}]
        assert patched["events"][0]["invocationId"].startswith("p-")
        assert [each["id"] for each in await gateway.sessions("gated", "ada")] == ["mine", other["id"]]
        await gateway.delete_session("gated", "ada", "mine")
        await gateway.delete_session("gated", "ada", "mine")
        assert [each["id"] for each in await gateway.sessions("gated", "ada")] == [other["id"]]
        with pytest.raises(Rejection, match=r"^Session not found$") as rejected:
            await gateway.session("gated", "ada", "mine")
        assert rejected.value.status == 404

    async def test_one_with_an_open_run_is_not_deleted(self, talk: Begin) -> None:
        gated = talk("gated")
        await gated.begin()
        await gated.say(text("x"))

        with pytest.raises(Rejection, match=r"it waits at plan-gate-1.*cannot be deleted") as rejected:
            await gated.gateway.delete_session("gated", "user", gated.session)

        assert rejected.value.code == "session_busy"
        assert len((await gated.read())["events"]) == 3

    async def test_a_gate_is_opened_by_a_run_alone(self, gateway: Gateway) -> None:
        reply = {"functionResponse": {"id": "x", "name": "adk_request_input", "response": {}}}
        said = {"author": "user", "content": {"role": "user", "parts": [{"text": "hi"}]}}

        made = await gateway.create_session("gated", "ada", "with", events=[said])

        assert gists(made["events"]) == ["user : hi"]
        with pytest.raises(Rejection, match="event 1 cannot include ADK protocol function calls") as rejected:
            await gateway.create_session(
                "gated", "ada", "without", events=[said, {"content": {"role": "user", "parts": [reply]}}]
            )
        assert rejected.value.status == 400

    @pytest.mark.parametrize(
        ("app", "user", "session", "code"),
        [
            ("nope", "ada", "s", "unknown_app"),
            ("gated", "", "s", "bad_name"),
            ("gated", "u" * 201, "s", "bad_name"),
            ("gated", "a\0b", "s", "bad_name"),
        ],
    )
    async def test_bad_names_are_told(self, gateway: Gateway, app: str, user: str, session: str, code: str) -> None:
        with pytest.raises(Rejection) as rejected:
            await gateway.create_session(app, user, session)

        assert rejected.value.code == code


async def test_without_a_worker_nothing_is_lost_and_the_client_is_told(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.adk.gateway.WORKER_PATIENCE", 0.5)
    gateway.client._patience = gateway.client._patience / 10
    gated = Talk(gateway, "gated", "user", "nobody-works")
    await gated.begin()

    with pytest.raises(Rejection, match="no worker answered") as rejected:
        await gated.say(text("x"))

    assert (rejected.value.code, rejected.value.status) == ("no_worker", 503)
    with pytest.raises(Rejection, match="session is open"):
        await gated.submit(text("x"))


async def test_a_note_of_any_shape_spoils_no_session(talk: Begin) -> None:
    """It may come from anybody who may call Temporal."""
    gated = talk("gated")
    await gated.begin()
    accepted = await gated.submit(text("x"))
    await gated.say(invocation_id=accepted.invocation)
    odd = {"beside": [["x", {}], 5, [0, {"text": "hi"}]], "custom_metadata": 3, "state_delta": [1]}
    answer = Answer(interrupt_id="plan-gate-1", response=GOOD)

    await gated.gateway.client.answer(accepted.workflow_id, Message(answers=(answer,), note=odd))

    said = [event for event in (await gated.read())["events"] if event["author"] == "user"]
    assert [next(iter(part)) for part in said[1]["content"]["parts"]] == ["text", "functionResponse"]


async def test_a_key_stays_the_same_opening_although_the_state_changed(
    talk: Begin, gates: GateClient, queue: str
) -> None:
    """What was said tells a repeat, not what the app makes of it."""
    named = Gateway(gates, [replace(app, opens=lambda words, state: f"{words} {state}") for app in apps(queue)])
    gated = talk("gated", gateway=named)
    await gated.begin(state={"a": 1})

    first = await gated.say(text("x"), key="k")
    await named.patch_session(gated.app, gated.user, gated.session, {"a": 2})

    assert await gated.say(text("x"), key="k") == first
    assert first[0]["output"] == {"plan": "plan for x {'a': 1}", "rows": 3}
    with pytest.raises(Rejection) as rejected:
        await gated.submit(text("x"), key="k", state_delta={"other": True})
    assert rejected.value.code == "conflict"


async def test_an_app_opens_with_what_the_runs_before_made_of_the_state(
    talk: Begin, gates: GateClient, queue: str
) -> None:
    """Also with what the pipeline itself wrote."""
    named = Gateway(gates, [replace(app, opens=lambda _words, state: str(sorted(state))) for app in apps(queue)])
    gated = talk("gated", gateway=named)
    await gated.begin(state={"a": 1})
    await gated.say(text("x"))
    await gated.say(response("plan-gate-1", GOOD), state_delta={"who": "me"})
    await gated.say(response("name-gate-1", "n"))

    assert (await gated.say(text("x")))[0]["output"]["plan"] == "plan for ['a', 'profiled', 'who']"


async def test_a_run_that_was_terminated_is_over_for_the_session_too(talk: Begin) -> None:
    """Temporal tells nobody; whoever comes next finds out."""
    gated = talk("gated")
    await gated.begin()
    accepted = await gated.submit(text("x"))
    await gated.say(invocation_id=accepted.invocation)
    await gated.gateway.client.client.get_workflow_handle(accepted.workflow_id).terminate("by hand")

    with pytest.raises(Rejection, match="the run is abandoned") as rejected:
        await gated.submit(response("plan-gate-1", GOOD))

    assert (rejected.value.code, rejected.value.open) == ("frame_closed", [])
    assert gists((await gated.read())["events"])[-1] == "gated@1!RUN_ABANDONED"
