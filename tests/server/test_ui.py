"""ADK's developer UI over our server: what a person does with it at the gates of ADK's own samples."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest
from playwright.async_api import Browser, expect
from temporalio.client import Client

from gatewright.temporal import GateClient
from tests.adk.pipelines import RUNS
from tests.server.conftest import Served
from tests.server.ui import MISSING, PATIENCE, DevUI, browsing, serving_samples

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

BLANK = "Validation failed for interrupt g: $.name: got null, wanted text"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all pages."""
    async with browsing() as opened:
        yield opened


@pytest.fixture
async def samples(client: Client, gates: GateClient, queue: str) -> AsyncIterator[Served]:
    """The samples, served."""
    async with serving_samples(client, gates, queue) as running:
        yield running


@pytest.fixture
async def ui(browser: Browser, samples: Served) -> AsyncIterator[DevUI]:
    """A page of ADK's UI; nothing that it asked for was an error, and nothing in it broke."""
    shown = await DevUI.begin(browser, samples.url)
    yield shown
    await shown.page.close()
    assert not shown.trouble


@pytest.fixture
def words() -> str:
    """A text that opens this test's run and no other's."""
    return f"orders {uuid4().hex[:8]}"


async def test_a_run_is_opened_and_answered_to_its_end(ui: DevUI, words: str) -> None:
    """Each gate has its form; a reload keeps the answer that was given and the form that waits."""
    await ui.open("gated")
    await ui.say(words)
    await expect(ui.forms).to_contain_text("Approve the plan?", timeout=PATIENCE)
    await expect(ui.graph).to_contain_text("plan_gate")

    await ui.fill(approved=True, limit="5")
    await ui.submit()
    await expect(ui.forms).to_contain_text("What shall the report be named?", timeout=PATIENCE)

    await ui.reload()
    await expect(ui.answered).to_have_count(1, timeout=PATIENCE)
    await expect(ui.asked).to_have_count(2)
    await expect(ui.forms).to_have_count(1)
    await expect(ui.forms).to_contain_text("What shall the report be named?")
    await ui.reply(words)

    await expect(ui.page.get_by_text(f"Report named '{words}' is done")).to_be_visible(timeout=PATIENCE)
    await expect(ui.forms).to_have_count(0)
    await expect(ui.answered).to_have_count(2)
    assert 1 == RUNS[f"gated profile {words}"] == RUNS[f"gated finish {words}"]


async def test_a_blank_field_is_refused_and_its_form_comes_back(ui: DevUI, words: str) -> None:
    """ADK's form checks nothing and sends null; on ADK itself the session is dead from then on."""
    await ui.open("strict")
    await ui.say(words)
    await expect(ui.forms).to_contain_text("fill in", timeout=PATIENCE)
    await ui.submit()
    await expect(ui.error).to_contain_text(f"WorkflowDataError: {BLANK}", timeout=PATIENCE)
    await expect(ui.forms).to_have_count(1)
    await expect(ui.forms).to_contain_text(f"fill in (not accepted: {BLANK})")

    await ui.fill(name="atlas")
    await ui.submit()

    await expect(ui.page.get_by_text('"atlas"')).to_be_visible(timeout=PATIENCE)
    await expect(ui.forms).to_have_count(0)
    assert 1 == RUNS[f"strict work {words}"]


async def test_a_refused_form_is_there_after_a_reload(ui: DevUI, words: str) -> None:
    """The session keeps nothing of the refusal."""
    await ui.open("strict")
    await ui.say(words)
    await expect(ui.forms).to_contain_text("fill in", timeout=PATIENCE)
    await ui.submit()
    await expect(ui.error).to_contain_text(BLANK, timeout=PATIENCE)

    await ui.reload()
    await expect(ui.forms).to_contain_text("fill in", timeout=PATIENCE)
    await expect(ui.answered).to_have_count(0)
    await expect(ui.forms).not_to_contain_text("not accepted")
    await ui.fill(name="globe")
    await ui.submit()
    await expect(ui.page.get_by_text('"globe"')).to_be_visible(timeout=PATIENCE)


async def test_each_round_of_a_loop_has_its_form(ui: DevUI, words: str) -> None:
    """adk-python#5617: with one id for every round, ADK's UI shows no second form, live or after a reload."""
    drafts = RUNS["loop draft"]
    await ui.open("loop")
    await ui.say(words)
    await expect(ui.forms).to_contain_text(f"ok? {{'draft': '{words}'}}", timeout=PATIENCE)
    await ui.reply("shorter")
    await expect(ui.forms).to_contain_text("ok? {'draft': 'shorter'}", timeout=PATIENCE)
    await expect(ui.forms).to_have_count(1)

    await ui.reload()
    await expect(ui.forms).to_contain_text("ok? {'draft': 'shorter'}", timeout=PATIENCE)
    await expect(ui.asked).to_have_count(2)
    await expect(ui.answered).to_have_count(1)
    await ui.reply("yes")

    await expect(ui.page.get_by_text('"finished"')).to_be_visible(timeout=PATIENCE)
    await expect(ui.answered).to_have_count(2)
    assert drafts + 2 == RUNS["loop draft"]


async def test_text_at_a_gate_is_refused_and_the_gate_is_named(ui: DevUI, words: str) -> None:
    """ADK would begin again from the top; here the run waits on, and the form beside the text still counts."""
    await ui.open("gated")
    await ui.say(words)
    await expect(ui.forms).to_contain_text("Approve the plan?", timeout=PATIENCE)
    await ui.say("looks good to me")
    await expect(ui.error).to_contain_text("is open (it waits at plan-gate-1)", timeout=PATIENCE)
    await expect(ui.forms).to_have_count(1)

    await ui.fill(approved=True)
    await ui.submit()

    await expect(ui.forms).to_contain_text("What shall the report be named?", timeout=PATIENCE)
    assert 1 == RUNS[f"gated profile {words}"]
    assert 0 == RUNS["gated profile looks good to me"]


@pytest.mark.parametrize("leave", [DevUI.stop, DevUI.close], ids=["stop button", "closed page"])
async def test_whoever_stops_looking_stops_nothing(
    ui: DevUI, words: str, leave: Callable[[DevUI], Awaitable[None]]
) -> None:
    """W03: ADK cancels the run when the stream is cut, by its stop button or with the page."""
    await ui.open("slow")
    await ui.say(words)
    async with asyncio.timeout(PATIENCE / 1000):
        while not RUNS[f"slow start {words}"]:
            await asyncio.sleep(0.05)
    await leave(ui)
    assert 0 == RUNS[f"slow end {words}"]

    async with asyncio.timeout(PATIENCE / 1000):
        while not RUNS[f"slow end {words}"]:
            await asyncio.sleep(0.05)
    await ui.reload()
    await expect(ui.forms).to_contain_text("go on?", timeout=PATIENCE)
    await ui.reply("yes")
    await expect(ui.answered).to_have_count(1)
    await expect(ui.forms).to_have_count(0)
    assert 1 == RUNS[f"slow start {words}"] == RUNS[f"slow end {words}"]
