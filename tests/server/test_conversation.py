"""Whole conversations with the server, over the network and against real runs."""

import asyncio
import hashlib
import json
from typing import Any
from uuid import uuid4

import httpx

from gatewright.adk import Gateway
from gatewright.server import Security, create_app
from tests.server.conftest import Served, served
from tests.server.pipelines import COUNTED, RELEASED
from tests.server.talk import Talk, answer, asked, text
from tests.temporal.conversation import until


async def test_a_session_from_its_opening_to_its_end(talk: Talk) -> None:
    """The calls that ADK's quickstart makes, one after the other."""
    made = await talk.begin()
    opened = await talk.run(text(talk.session))
    [interrupt_id] = asked(opened.json())
    done = await talk.run(answer(interrupt_id, approved=True))

    assert (200, talk.session, []) == (made.status_code, made.json()["id"], made.json()["events"])
    assert "review" == interrupt_id
    assert f"plan for {talk.session}" == opened.json()[0]["output"]["plan"]
    assert "approved by alice" == done.json()[-1]["output"]
    assert 1 == COUNTED[talk.session]
    shown = await talk.events()
    assert [talk.session] == [part["text"] for part in shown[0]["content"]["parts"]]
    assert opened.json()[0]["id"] in {event["id"] for event in shown}


async def test_a_stream_tells_the_same_events_as_an_array(talk: Talk) -> None:
    """Line for line what the session shows afterwards, but for what the user said."""
    await talk.begin()
    streamed = await talk.stream(text(talk.session))
    streamed += await talk.stream(answer("review", approved=False))
    streamed += await talk.stream(answer("review~2", approved=True))

    assert ["review", "review~2"] == asked(streamed)
    assert [event for event in await talk.events() if event["author"] != "user"] == streamed


async def test_snake_case_is_read_as_well(talk: Talk) -> None:
    """Whatever ADK reads; what it does not know is left out."""
    await talk.begin()
    message = {"role": "user", "parts": [{"text": talk.session}]}
    body = {"app_name": "planned", "user_id": "alice", "session_id": talk.session, "new_message": message, "extra": 1}
    opened = await talk.client.post("/run", json=body)
    response = {"function_response": {"id": "review", "name": "any", "response": {"approved": True}}}
    done = await talk.client.post("/run", json={**body, "new_message": {"parts": [response]}})

    assert ["review"] == asked(opened.json())
    assert "approved by alice" == done.json()[-1]["output"]


async def test_a_refused_answer_is_told_and_its_form_comes_back(talk: Talk) -> None:
    """On a stream as a frame and the gate under another id, which is then answered; as a body with a status otherwise."""
    await talk.begin()
    await talk.run(text(talk.session))
    before = await talk.events()
    error, again = await talk.stream(answer("review", approved="maybe"))
    told = await talk.run(answer("review", approved="maybe"))

    assert error["error"].startswith("WorkflowDataError: Validation failed for interrupt review: ")
    assert ("invalid", True) == (error["code"], error["gate"]["armed"])
    [alias] = asked([again])
    assert alias != "review"
    assert before == await talk.events()
    assert (422, "invalid", ["$.approved"]) == (
        told.status_code,
        told.json()["code"],
        [fault["path"] for fault in told.json()["faults"]],
    )
    assert "approved by alice" == (await talk.stream(answer(alias, approved=True)))[-1]["output"]


async def test_text_beside_an_answer_is_refused_in_words_of_adk(talk: Talk) -> None:
    """422 on `/run`, a frame on `/run_sse`; the gate still waits."""
    await talk.begin()
    await talk.run(text(talk.session))
    told = await talk.run(text("yes"), answer("review", approved=True))
    frame, *_ = await talk.stream(text("yes"), answer("review", approved=True))

    assert 422 == told.status_code
    assert told.json()["detail"].startswith("Message cannot contain both function responses and text.")
    assert "mixed_message" == frame["code"]
    assert 1 == COUNTED[talk.session]
    assert 200 == (await talk.run(answer("review", approved=True))).status_code


async def test_text_at_a_gate_restarts_nothing(talk: Talk) -> None:
    """409, and which gates are open."""
    await talk.begin()
    await talk.run(text(talk.session))
    busy = await talk.run(text("start again"))

    assert (409, "session_busy", ["review"]) == (
        busy.status_code,
        busy.json()["code"],
        [gate["interruptId"] for gate in busy.json()["open"]],
    )
    assert 1 == COUNTED[talk.session]


async def test_what_is_not_there_is_told_before_a_stream_begins(talk: Talk) -> None:
    """404 as JSON, also on `/run_sse`, in ADK's words."""
    for path in ("/run", "/run_sse"):
        nowhere = await talk.client.post(path, json=talk.body(text("hello")))
        talk.app = "nope"
        nobody = await talk.client.post(path, json=talk.body(text("hello")))
        talk.app = "planned"

        assert (404, f"Session not found: {talk.session}") == (nowhere.status_code, nowhere.json()["detail"])
        assert 404 == nobody.status_code
        assert nobody.json()["detail"].startswith("Agent not found: 'nope'.")


async def test_a_client_that_leaves_in_the_middle_changes_nothing(talk: Talk, serving: Served) -> None:
    """Neither of `/run` nor of `/run_sse`; ADK would seal the run with INVOCATION_ABORTED."""
    talk.app = "held"
    await talk.begin()
    await talk.run(text(talk.session))
    sent = talk.body(answer("before", approved=True))
    async with talk.client.stream("POST", "/run_sse", json=sent) as response:
        assert 200 == response.status_code
    again = talk.client.build_request("POST", "/run", json=sent, timeout=0.5)
    try:
        await talk.client.send(again)
    except httpx.ReadTimeout:
        pass
    else:
        raise AssertionError("the step was not held")
    await until(lambda: _none_follows(serving), "nothing is followed any more")
    RELEASED[talk.session].set()
    after = await until(lambda: _asks(talk, "after"), "the run asks again")

    assert "INVOCATION_ABORTED" not in json.dumps(after)
    assert f"held {talk.session}" == (await talk.run(answer("after", approved=True))).json()[-1]["output"]


async def _none_follows(serving: Served) -> bool:
    return not serving.app.state.streams.followed


async def _asks(talk: Talk, gate: str) -> Any:
    events = await talk.events()
    return events if gate in asked(events) else None


async def test_the_same_click_twice_is_one_answer(talk: Talk) -> None:
    """Both get the events of the continuation."""
    await talk.begin()
    await talk.run(text(talk.session))
    one, two = await asyncio.gather(*(talk.run(answer("review", approved=True)) for _ in range(2)))

    assert [200, 200] == [one.status_code, two.status_code]
    assert one.json() == two.json()
    assert "approved by alice" == one.json()[-1]["output"]


async def test_of_two_different_clicks_one_counts(talk: Talk) -> None:
    """The other is told that the gate is answered."""
    await talk.begin()
    await talk.run(text(talk.session))
    both = await asyncio.gather(
        *(talk.run(answer("review", approved=True, comment=comment)) for comment in ("one", "two"))
    )

    assert [200, 409] == sorted(each.status_code for each in both)
    [late] = [each.json() for each in both if each.status_code == 409]
    assert late["code"] in {"already_answered", "frame_closed"}


async def test_a_key_names_the_opening_for_ever(talk: Talk) -> None:
    """The same request finds its run; another text under the same key is a conflict."""
    await talk.begin()
    key = {"Idempotency-Key": f"k-{uuid4().hex}"}
    first = await talk.run(text(talk.session), headers=key)
    second = await talk.run(text(talk.session), headers=key)
    other = await talk.run(text("something else"), headers=key)

    assert first.json() == second.json()
    assert 1 == COUNTED[talk.session]
    assert (409, "conflict") == (other.status_code, other.json()["code"])


async def test_a_run_that_fails_says_so_in_json(talk: Talk) -> None:
    """500 with a body on `/run`; an error frame after its event on `/run_sse`."""
    talk.app = "spoiled"
    await talk.begin()
    await talk.run(text(talk.session))
    event, frame = (await talk.stream(answer("before", approved=True)))[-2:]
    talk.session += "-2"
    await talk.begin()
    await talk.run(text(talk.session))
    failed = await talk.run(answer("before", approved=True))

    assert "nothing can be made of" in event["errorMessage"]
    assert "run_failed" == frame["code"]
    assert (500, "run_failed") == (failed.status_code, failed.json()["code"])
    assert "Traceback" not in failed.text


async def test_a_step_that_fails_asks_what_follows(talk: Talk) -> None:
    """ADK's clients see the error, and the gate as they see any other, and answer it as any other."""
    talk.app = "mended"
    await talk.begin()
    await talk.run(text(talk.session))
    failed = await talk.run(answer("before", approved=True))
    mended = await talk.run(answer("failed:spoil", decision="skip"))

    assert 200 == failed.status_code
    error, asked = failed.json()
    assert "nothing can be made of" in error["errorMessage"]
    assert ["failed:spoil"] == asked["longRunningToolIds"]
    assert "went on without it" == mended.json()[-1]["output"]


async def test_a_stream_ends_when_the_server_stops(talk: Talk, serving: Served) -> None:
    """With a word about it, within seconds; a turn by `/run` gets 503."""
    talk.app = "held"
    await talk.begin()
    await talk.run(text(talk.session))
    streaming = asyncio.create_task(talk.stream(answer("before", approved=True)))
    running = asyncio.create_task(talk.run(answer("before", approved=True)))
    await until(lambda: _two_follow(serving), "both are followed")
    async with asyncio.timeout(5):
        await serving.stop()
    frame = (await streaming)[-1]
    told = await running
    RELEASED[talk.session].set()

    assert ("stopping", 503, "stopping") == (frame["code"], told.status_code, told.json()["code"])


async def _two_follow(serving: Served) -> bool:
    return bool(serving.app.state.streams.followed == 2)


async def test_sessions_are_made_listed_changed_and_deleted(talk: Talk) -> None:
    """In ADK's shapes and with its statuses."""
    made = await talk.client.post(talk.path, json={"topic": "maps"})
    twice = await talk.begin()
    patched = await talk.client.patch(talk.path, json={"stateDelta": {"seen": True}})
    listed = await talk.client.get(talk.path.rpartition("/")[0])
    deleted = [await talk.client.delete(talk.path) for _ in range(2)]
    gone = await talk.client.get(talk.path)
    unnamed = await talk.client.post(talk.path.rpartition("/")[0])

    assert {"topic": "maps"} == made.json()["state"]
    assert (409, f"Session already exists: {talk.session}") == (twice.status_code, twice.json()["detail"])
    assert {"topic": "maps", "seen": True} == patched.json()["state"]
    assert [(talk.session, [])] == [(each["id"], each["events"]) for each in listed.json()]
    assert [(200, "null"), (200, "null")] == [(each.status_code, each.text) for each in deleted]
    assert (404, "Session not found") == (gone.status_code, gone.json()["detail"])
    assert unnamed.json()["id"]


async def test_gates_cannot_be_smuggled_into_a_new_session(talk: Talk) -> None:
    """400 in ADK's words."""
    call = {"functionCall": {"id": "x", "name": "adk_request_input", "args": {}}}
    events = [{"author": "planned", "content": {"role": "model", "parts": [call]}}]
    refused = await talk.client.post(talk.path.rpartition("/")[0], json={"events": events})

    assert 400 == refused.status_code
    assert "cannot include ADK protocol function calls" in refused.json()["detail"]


async def test_whoever_has_a_token_answers_under_their_own_name(gateway: Gateway, worker: None) -> None:
    """Whatever user the session is of, and whatever the message says of itself."""
    tokens = {hashlib.sha256(b"a-token-of-some-length").digest(): "carol"}
    carol = {"Authorization": "Bearer a-token-of-some-length"}
    async with (
        served(create_app(gateway, security=Security(tokens=tokens))) as running,
        httpx.AsyncClient(base_url=running.url, timeout=60, headers=carol) as client,
    ):
        talk = Talk(client, session=f"s-{uuid4().hex[:8]}")
        await talk.begin()
        await talk.run(text(talk.session))
        done = await talk.run(answer("review", approved=True), customMetadata={"principal": "mallory"})

    assert "approved by carol" == done.json()[-1]["output"]
