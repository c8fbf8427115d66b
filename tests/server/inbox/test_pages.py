"""The pages over HTTP, as somebody without JavaScript uses them: nothing typed is lost, and the first answer counts."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import httpx
import pytest

from gatewright.protocol.answer import Answer
from gatewright.protocol.entries import Refused
from gatewright.server import Settings, create_app
from gatewright.store import GateRow
from gatewright.temporal import GateClient
from tests.server.conftest import Served, served
from tests.server.inbox.conftest import Person, gate_path, hidden_field, listed
from tests.server.inbox.pipelines import SCRIPT

SignIn = Callable[[str], Awaitable[Person]]
StoppedAt = Callable[..., Awaitable[GateRow]]

GOOD = {
    "a:/approved": "true",
    "a:/size": "1",
    "a:/name": "Ada",
    "a:/count": "3",
    "a:/ratio": "2.5",
    "a:/day": "2026-12-07",
    "a:/comment": "two\r\nlines",
    "a:/home/street": "Main",
    "a:/home/number": "7",
    "u:/second": "1",
    "a:/second/street": "Side",
    "a:/second/number": "8",
    "c:/tags": "2",
    "a:/tags/0": "first",
    "a:/tags/1": "second",
    "c:/stops": "1",
    "a:/stops/0/street": "Stop",
    "a:/stops/0/number": "1",
    "c:/colours": "",
    "a:/colours": "2",
    "v:/paying": "1",
    "a:/paying/days": "30",
    "a:/extra": '{"any": [1, null]}',
}
VALUE = {
    "approved": True,
    "size": "large",
    "name": "Ada",
    "count": 3,
    "ratio": 2.5,
    "day": "2026-12-07",
    "urgent": False,
    "comment": "two\nlines",
    "home": {"street": "Main", "number": 7},
    "second": {"street": "Side", "number": 8},
    "tags": ["first", "second"],
    "stops": [{"street": "Stop", "number": 1}],
    "colours": ["blue"],
    "paying": {"kind": "invoice", "days": 30},
    "extra": {"any": [1, None]},
}


async def test_every_kind_of_field_is_filled_in_and_counts(
    person: SignIn, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """The value is in the index, with who gave it by which way, and the page says so."""
    ada, row = await person("ada"), await stopped_at("Asking", "asking")

    sent = await ada.fill(row, GOOD)
    answered = gates.store.gate(row.workflow_id, row.interrupt_id)
    page = await ada.get(sent.headers["location"])

    assert 303 == sent.status_code
    assert answered is not None
    assert VALUE == answered.response
    assert ("answered", "ada", "inbox") == (answered.state, answered.principal, answered.channel)
    assert "Your answer counts." in page.text
    assert str(answered.receipt_digest) in page.text
    assert 'id="answer"' not in page.text


async def test_what_is_wrong_is_said_at_its_field_and_nothing_typed_is_lost(
    person: SignIn, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """The run judges; the refusal is seen by everybody; the corrected form counts."""
    ada, row = await person("ada"), await stopped_at("Asking", "asking")
    wrong = GOOD | {"a:/count": "eleven", "a:/home/street": "M", "a:/name": "", "a:/tags/1": "much too long"}
    del wrong["a:/approved"]

    refused = await ada.fill(row, wrong)
    again = await ada.fill(row, GOOD, refused.text)

    assert 422 == refused.status_code
    for field, fault in {
        "/count": "got &#34;eleven&#34;, wanted a whole number",
        "/home/street": "wanted 2 or more characters",
        "/name": "is missing; it is required",
        "/tags/1": "wanted 6 or fewer characters",
        "/approved": "is missing; it is required",
    }.items():
        said = re.search(rf'<p class="fault" id="fault{field}">([^<]*)', refused.text)
        assert said, field
        assert fault in said[1]
    for typed in ("eleven", "much too long", "Side", "two\nlines", "{&#34;any&#34;: [1, null]}"):
        assert typed in refused.text
    assert 303 == again.status_code
    async with asyncio.timeout(10):
        while not (refusals := gates.store.refusals(run=row.workflow_id)):
            await asyncio.sleep(0.05)
    row_after = gates.store.gate(row.workflow_id, row.interrupt_id)
    assert row_after is not None
    assert (1, "answered") == (row_after.refusals, row_after.state)
    assert [("invalid", "ada", "run")] == [(each.refusal, each.principal, each.recorded_by) for each in refusals]
    assert "1 answer was refused" in (await ada.get(row)).text
    assert [row.interrupt_id] == [each.interrupt_id for each in gates.store.gates(run=row.workflow_id, refused=True)]


async def test_items_are_added_and_removed_and_the_rest_stays(person: SignIn, stopped_at: StoppedAt) -> None:
    """By buttons that send the form and nothing to the run."""
    ada, row = await person("ada"), await stopped_at("Asking", "asking")

    added = await ada.fill(row, GOOD | {"do": "add:/tags"})
    removed = await ada.fill(row, GOOD | {"do": "remove:/tags/0"}, added.text)

    assert (200, 200) == (added.status_code, removed.status_code)
    assert 'name="c:/tags" value="3"' in added.text
    assert 'name="a:/tags/1" value="second"' in added.text
    assert 'name="a:/tags/0" value="second"' in removed.text
    assert "first" not in re.findall(r'name="a:/tags/\d" value="([^"]*)"', removed.text)
    assert 'name="a:/second/street" value="Side"' in removed.text


async def test_json_always_goes_and_what_is_none_comes_back(person: SignIn, stopped_at: StoppedAt) -> None:
    """With where it is wrong."""
    ada, row = await person("ada"), await stopped_at("Asking", "asking")

    wrong = await ada.fill(row, GOOD | {"as": "json", "raw": '{"approved": nope}'})
    misfit = await ada.fill(row, {"as": "json", "raw": json.dumps(VALUE | {"count": 11})}, wrong.text)
    right = await ada.fill(row, {"as": "json", "raw": json.dumps(VALUE)}, misfit.text)

    assert 422 == wrong.status_code
    assert "This is not JSON: Expecting value: line 1 column 14" in wrong.text
    assert "{&#34;approved&#34;: nope}" in wrong.text
    assert 'value="Side"' in wrong.text
    assert 422 == misfit.status_code
    assert '<p class="fault" id="raw-fault">$.count: got 11, wanted at most 10</p>' in misfit.text
    assert 'id="fault/count"' not in misfit.text
    assert 303 == right.status_code


async def test_the_second_sees_who_was_first_and_keeps_what_they_typed(person: SignIn, stopped_at: StoppedAt) -> None:
    """And the same form sent twice by one person counts once."""
    ada, bob, row = await person("ada"), await person("bob"), await stopped_at("Going", "going")
    of_ada, of_bob = (await ada.get(row)).text, (await bob.get(row)).text
    choice = {"a:/approved": "true", "a:/comment": "from ada"}

    both = await asyncio.gather(ada.fill(row, choice, of_ada), ada.fill(row, choice, of_ada))
    late = await bob.fill(row, {"a:/approved": "false", "a:/comment": "from bob"}, of_bob)

    assert [303, 303] == [sent.status_code for sent in both]
    assert 409 == late.status_code
    assert "ada was first" in late.text
    assert "from ada" in late.text
    assert "&#34;comment&#34;: &#34;from bob&#34;" in late.text
    assert 'id="answer"' not in late.text


async def test_the_next_round_shows_what_changed_and_what_was_answered(
    person: SignIn, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """Place by place, with the picture of the run, the commands that do the same, and Temporal's page."""
    ada, first = await person("ada"), await stopped_at("Going", "going")
    await ada.fill(first, {"a:/approved": "false", "a:/comment": "shorter please"})
    second = await listed(gates, first.workflow_id, other_than=first.interrupt_id)
    page = (await ada.get(second)).text

    assert "round 2" in page
    assert "<del>draft 1 of text</del> <ins>draft 2 of text</ins>" in page
    assert '<span class="add">+ two</span>' in page
    assert "$.payload.same" not in page
    assert "shorter please" in page
    assert "● review ×2" in page
    assert "gatewright answer going/user/" in page
    assert "/run&#39;" in page or "/run \\" in page
    assert "http://127.0.0.1:8233/namespaces/default/workflows/going%2Fuser%2F" in page


async def test_a_dangerous_gate_wants_its_name_and_only_the_invited(
    person: SignIn, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """The rule is the run's: bob may type what he likes."""
    ada, bob, review = await person("ada"), await person("bob"), await stopped_at("Going", "going")
    await ada.fill(review, {"a:/approved": "true"})
    row = await listed(gates, review.workflow_id, "wipe")
    page = (await ada.get(row)).text

    nameless = await ada.fill(row, {"a:/approved": "true", "a:/comment": "typed"})
    uninvited = await bob.fill(row, {"a:/approved": "true", "name": "wipe"})
    mine = (await ada.get("/inbox?view=mine")).text, (await bob.get("/inbox?view=mine")).text
    named = await ada.fill(row, {"a:/approved": "true", "name": "wipe"}, nameless.text)

    assert "Only ada may answer." in page
    assert "Then this counts by itself" in page
    assert 422 == nameless.status_code
    assert "Type wipe here." in nameless.text
    assert "typed" in nameless.text
    assert 403 == uninvited.status_code
    assert "not invited" in uninvited.text
    assert [True, False] == ["Wipe the old release?" in text for text in mine]
    assert 303 == named.status_code


async def test_the_list_finds_and_counts(person: SignIn, stopped_at: StoppedAt) -> None:
    """Search, filter and view are in the address, and say so when there is nothing."""
    ada, asking, going = await person("ada"), await stopped_at("Asking", "asking"), await stopped_at("Going", "going")

    everything = (await ada.get("/inbox")).text
    searched = (await ada.get("/inbox?q=DRAFT+1")).text
    filtered = (await ada.get("/inbox?pipeline=Asking")).text
    nothing = (await ada.get("/inbox?q=nowhere&view=mine")).text
    odd = await ada.get("/inbox?view=nope&page=%C2%B2&sort=1&dir=up&page=-3")

    assert asking.workflow_id in everything
    assert going.workflow_id in everything
    assert (False, True) == (asking.workflow_id in searched, going.workflow_id in searched)
    assert (True, False) == (asking.workflow_id in filtered, going.workflow_id in filtered)
    assert "Nothing found" in nothing
    assert 200 == odd.status_code
    assert asking.workflow_id in odd.text


async def test_what_a_pipeline_shows_cannot_act(person: SignIn, stopped_at: StoppedAt) -> None:
    """Its markdown is markdown and nothing more, and nothing of a page may come from elsewhere."""
    ada, row = await person("ada"), await stopped_at("Asking", "asking")

    for page in (await ada.get(row), await ada.get("/inbox"), await ada.get(f"/inbox/run?run={row.workflow_id}")):
        assert SCRIPT not in page.text
        assert "<img src=x" not in page.text
        assert "javascript:" not in re.sub(r"\(javascript:", "", page.text)
        assert "http://example.com" not in re.findall(r'(?:src|href)="([^"]*)', page.text)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert {"nosniff", "DENY", "same-origin", "no-store"} == {
            page.headers[name]
            for name in ("x-content-type-options", "x-frame-options", "referrer-policy", "cache-control")
        }
        assert not re.search(r"<(script|style)[^>]*>[^<]", page.text)
        assert not re.search(r"\son\w+=|\sstyle=", re.sub(r"&lt;.*?&gt;", "", page.text))
    assert "<em>everything</em>" in (await ada.get(row)).text


async def test_a_form_of_somebody_else_counts_for_nobody(person: SignIn, stopped_at: StoppedAt) -> None:
    """Neither without a seal, nor with another person's, nor from another site; and what was typed is still there."""
    ada, bob, row = await person("ada"), await person("bob"), await stopped_at("Going", "going")
    of_bob = (await bob.get(row)).text
    choice = {"a:/approved": "true", "a:/comment": "typed here"}

    unsealed = await ada.client.post(gate_path(row), data={"as": "form", **choice})
    bobs = await ada.fill(row, choice, of_bob)
    headers = {"Origin": "https://evil.example"}
    foreign = await ada.client.post(
        gate_path(row), data={"seal": hidden_field(of_bob, "seal"), **choice}, headers=headers
    )
    strange = await ada.client.post(gate_path(row), json=choice)
    ended = await ada.client.post(
        f"/inbox/run/end?run={row.workflow_id}", data={"how": "abandon", "reason": "x", "sure": "abandon"}
    )

    assert [403, 403, 403, 400, 422] == [each.status_code for each in (unsealed, bobs, foreign, strange, ended)]
    assert "Nothing was sent." in unsealed.text
    assert "typed here" in bobs.text
    assert "Your answer" in (await ada.get(row)).text


async def test_who_is_not_signed_in_sees_nothing_of_a_gate(serving: Served, stopped_at: StoppedAt) -> None:
    """Whatever is asked for in whatever way; and a token is worth what it says, once it is whole."""
    row = await stopped_at("Going", "going")
    async with httpx.AsyncClient(base_url=serving.url) as client:
        for path in (
            "/inbox",
            gate_path(row),
            f"/inbox/run?run={row.workflow_id}",
            "/inbox?token=wrong-token-0123456789",
        ):
            page = await client.get(path)
            assert page.status_code in {401, 403}
            assert "Sign in" in page.text
            assert row.message not in page.text
            assert "set-cookie" not in page.headers
        assert 401 == (await client.get("/inbox/events")).status_code
        assert 401 == (await client.get(gate_path(row), headers={"x-gatewright-part": "standing"})).status_code
        assert 401 == (await client.post(gate_path(row), data={"a:/approved": "true"})).status_code
        for path in (
            "/inbox/static/..%2Fsite.py",
            "/inbox/static/../../inbox/site.py",
            "/inbox/static/%2e%2e/gate.py",
            "/inbox/.env",
        ):
            assert 404 == (await client.get(path)).status_code
        entered = await client.post(
            "/inbox/sign-in", data={"token": "token-of-bob-0123456789", "target": "//evil.example/inbox"}
        )
        assert (303, "/inbox") == (entered.status_code, entered.headers["location"])
        cookie = entered.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=lax", "Path=/inbox"} <= {part.strip() for part in cookie.split(";")}
        assert "bob" not in cookie
        assert 200 == (await client.get("/inbox")).status_code


async def test_a_cookie_is_worth_nothing_elsewhere(person: SignIn, gateway: object, serving: Served) -> None:
    """Changed, after its token was taken away, or on a server with other tokens."""
    ada = await person("ada")
    name, value = next(iter(ada.client.cookies.items()))
    async with httpx.AsyncClient(base_url=serving.url) as client:
        for changed in (value[:-2], value.replace(".", "", 1), "x" * 9_000, ""):
            assert 401 == (await client.get("/inbox", headers={"cookie": f"{name}={changed}"})).status_code
    elsewhere = create_app(gateway, inbox=Settings(tokens={b"x" * 32: "ada"}))  # type: ignore[arg-type]
    async with served(elsewhere) as other, httpx.AsyncClient(base_url=other.url) as client:
        stolen = await client.get("/inbox", headers={"cookie": f"{name}={value}"})
        assert 401 == stolen.status_code


async def test_too_much_is_refused(person: SignIn, stopped_at: StoppedAt, serving: Served) -> None:
    """Whole, before anything acts on it; and too many fields."""
    ada, row = await person("ada"), await stopped_at("Going", "going")
    page = (await ada.get(row)).text
    # Over a network the answer comes before all of it is sent, which httpx takes for a failure.
    near = httpx.AsyncClient(
        transport=httpx.ASGITransport(serving.app), base_url="http://127.0.0.1", cookies=ada.client.cookies
    )

    large = await Person("ada", near).fill(row, {"a:/approved": "true", "a:/comment": "x" * (1 << 20)}, page)
    many = await ada.fill(row, {f"a:/{number}": "" for number in range(10_001)}, page)
    long = await ada.fill(row, {"a:/approved": "true", "a:/comment": "x" * 300_000}, page)

    assert [413, 400, 413] == [each.status_code for each in (large, many, long)]
    assert "x" * 300_000 in long.text
    assert "Your answer" in (await ada.get(row)).text


async def test_a_run_is_shown_whole_and_cancelled(person: SignIn, stopped_at: StoppedAt, gates: GateClient) -> None:
    """Its gates, transcript and receipts; ending it wants a reason, and abandoning it the word."""
    ada, review = await person("ada"), await stopped_at("Going", "going")
    await ada.fill(review, {"a:/approved": "false"})
    await listed(gates, review.workflow_id, other_than=review.interrupt_id)
    where = f"/inbox/run?run={review.workflow_id}"
    page = (await ada.get(where)).text
    seal = {"seal": hidden_field(page, "seal")}
    end = where.replace("/run?", "/run/end?")

    unsaid = await ada.client.post(end, data=seal | {"how": "cancel"})
    unsure = await ada.client.post(end, data=seal | {"how": "abandon", "reason": "a mistake"})
    asked = await ada.client.post(end, data=seal | {"how": "cancel", "reason": "a mistake"})
    async with asyncio.timeout(20):
        while (await gates.get(review.workflow_id)).status == "running":
            await asyncio.sleep(0.1)
    over = (await ada.get(where)).text

    assert "1 receipt holds" in page
    assert "by ada (asserted)" in page
    assert "<b>answered</b>" in page
    assert [422, 422, 303] == [each.status_code for each in (unsaid, unsure, asked)]
    assert "a mistake" in unsure.text
    assert "canceled" in over
    assert "End this run" not in over


async def test_a_step_that_failed_is_under_blocked_and_at_its_run(
    person: SignIn, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """With what it asks, and it goes on from there."""
    ada, before = await person("ada"), await stopped_at("Mended", "mended")
    await ada.fill(before, {"a:/approved": "true"})
    row = await listed(gates, before.workflow_id, other_than=before.interrupt_id)

    blocked = (await ada.get("/inbox?view=blocked")).text
    run = (await ada.get(f"/inbox/run?run={row.workflow_id}")).text

    assert row.gate.startswith("failed:")
    assert before.workflow_id in blocked
    assert "It cannot go on by itself" in run
    assert row.gate in run


async def test_a_link_to_nothing_says_so(person: SignIn) -> None:
    """404, in words."""
    ada = await person("ada")

    for path, words in {
        "/inbox/gate?run=no/such/run/1&id=x": "There is no such gate",
        "/inbox/gate": "There is no such gate",
        "/inbox/run?run=no/such/run/1": "There is no such run",
        "/inbox/run": "There is no such run",
    }.items():
        page = await ada.get(path)
        assert (404, True) == (page.status_code, words in page.text)


async def test_without_a_worker_an_answer_is_kept_and_the_page_says_so(
    app: object, gates: GateClient, stopped_at: StoppedAt, working: Callable[..., object]
) -> None:
    """It is judged once a worker comes back."""
    from tests.server.inbox.conftest import TOKENS
    from tests.server.inbox.pipelines import WORKFLOWS

    async with working(WORKFLOWS, []):  # type: ignore[attr-defined]
        row = await stopped_at("Going", "going")
    async with served(app) as serving, httpx.AsyncClient(base_url=serving.url, timeout=30) as client:  # type: ignore[arg-type]
        await client.get("/inbox", params={"token": TOKENS["ada"]})
        ada = Person("ada", client)
        sent = await ada.fill(row, {"a:/approved": "false", "a:/comment": "kept"})
        assert 202 == sent.status_code
        assert "Delivered, not judged yet." in sent.text
        assert "kept" in sent.text
        async with working(WORKFLOWS, []):  # type: ignore[attr-defined]
            second = await listed(gates, row.workflow_id, other_than=row.interrupt_id)
            late = Answer(interrupt_id=row.interrupt_id, response={"approved": True})
            refused = await gates.answer(row.workflow_id, late)
    assert 2 == second.visit
    assert isinstance(refused, Refused)


async def test_the_feed_polls_once_for_all_and_not_for_nobody(
    person: SignIn, stopped_at: StoppedAt, serving: Served
) -> None:
    """Every listener hears of the change; nobody is polled for when all have gone."""
    ada = await person("ada")
    feed = serving.app.state.inbox.feed
    told: list[str] = []

    async def listen() -> None:
        async with ada.client.stream("GET", "/inbox/events") as events:
            async for line in events.aiter_lines():
                if "going/user" in line:
                    told.append(line)
                    return

    async with asyncio.timeout(30):
        listeners = [asyncio.create_task(listen()) for _ in range(20)]
        while feed.listeners < 20 or feed.version is None:
            await asyncio.sleep(0.05)
        before, began = feed.polls, asyncio.get_running_loop().time()
        await asyncio.sleep(2)
        polls = (feed.polls - before) / (asyncio.get_running_loop().time() - began)
        await stopped_at("Going", "going")
        await asyncio.gather(*listeners)
        while feed.listeners:
            await asyncio.sleep(0.05)
    before = feed.polls
    await asyncio.sleep(1.5)

    assert 20 == len(told)
    assert polls <= 1.5
    assert before == feed.polls


@pytest.mark.parametrize("path", ["/inbox", "/inbox/gate?run=r&id=g"])
async def test_a_store_that_is_away_is_said_on_a_page(person: SignIn, gates: GateClient, path: str) -> None:
    """503, in words, and without a traceback."""
    ada = await person("ada")
    gates.store.close()

    page = await ada.get(path)

    assert 503 == page.status_code
    assert "The gate index is away" in page.text
    assert "Traceback" not in page.text
