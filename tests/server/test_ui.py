"""
ADK's developer UI, unchanged, in a real browser: what a person does with it at a gate, over our server.

With `GATEWRIGHT_SCREENSHOTS=docs/images` the pictures of the documentation are
taken on the way (`make screenshots`).
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, async_playwright, expect

from tests.server.conftest import Served
from tests.server.pipelines import COUNTED, RELEASED
from tests.temporal.test_ui import CHROMIUM, FLAGS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a browser of its own."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        # Fonts and icons of the bundle are elsewhere, and nothing here leaves the machine.
        await page.route(lambda url: "127.0.0.1" not in url, lambda route: route.abort())
        yield page
        await browser.close()


async def shoot(page: Page, name: str) -> None:
    """Take a picture for the documentation, where that is wanted."""
    if folder := os.environ.get("GATEWRIGHT_SCREENSHOTS"):
        await asyncio.sleep(1)  # what moves has come to rest
        await page.screenshot(path=Path(folder) / f"adk-{name}.png")


async def say(page: Page, words: str) -> None:
    """Type into the chat box and send it."""
    box = page.locator("textarea").last
    await box.fill(words)
    await box.press("Enter")


def form(page: Page, words: str) -> Locator:
    """The gate's form that says these words, with its fields and its button."""
    return page.get_by_text(words).last.locator("xpath=ancestor::*[.//button[contains(., 'Submit')]][1]")


async def test_a_gate_is_answered_in_adks_own_ui(page: Page, serving: Served) -> None:
    """A blank form is refused and comes back; the good answer counts; after a reload everything is still there."""
    words = f"ui {serving.url}"
    await page.goto(f"{serving.url}/dev-ui/?app=named")
    box = page.locator("textarea").last
    await box.fill(words)
    await box.press("Enter")
    await expect(page.get_by_text("Which name?")).to_be_visible(timeout=15_000)
    await expect(page.get_by_text("? naming")).to_be_visible()
    await shoot(page, "gate")

    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("not accepted: Validation failed for interrupt naming")).to_be_visible(timeout=15_000)
    await shoot(page, "refused")
    again = form(page, "not accepted: Validation failed for interrupt naming")
    await again.get_by_role("textbox").fill("atlas")
    await again.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("named atlas by user")).to_be_visible(timeout=15_000)
    await page.reload()
    await expect(page.get_by_text("named atlas by user")).to_be_visible(timeout=15_000)
    assert 1 == COUNTED[words]


async def test_a_refused_form_is_there_again_after_a_reload(page: Page, serving: Served) -> None:
    """The session keeps nothing of the refusal."""
    await page.goto(f"{serving.url}/dev-ui/?app=named")
    box = page.locator("textarea").last
    await box.fill(f"ui-reload {serving.url}")
    await box.press("Enter")
    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("not accepted")).to_be_visible(timeout=15_000)
    await page.reload()
    await expect(page.get_by_text("Which name?")).to_be_visible(timeout=15_000)
    again = form(page, "Which name?")
    await again.get_by_role("textbox").fill("globe")
    await again.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("named globe by user")).to_be_visible(timeout=15_000)


async def test_text_at_a_gate_is_told_to_whoever_typed_it(page: Page, serving: Served) -> None:
    """The chat box stays usable in ADK's UI; nothing is started again."""
    words = f"ui-text {serving.url}"
    await page.goto(f"{serving.url}/dev-ui/?app=planned")
    box = page.locator("textarea").last
    for said in (words, "looks good to me"):
        await box.fill(said)
        await box.press("Enter")
        await expect(page.get_by_text("Approve the plan?")).to_be_visible(timeout=15_000)

    await expect(page.get_by_text("is open (it waits at review)").first).to_be_visible(timeout=15_000)
    await shoot(page, "text")
    assert 1 == COUNTED[words]


async def test_each_round_of_a_loop_has_its_form_and_a_reload_keeps_both(page: Page, serving: Served) -> None:
    """adk-python#5617: with one id for every round, ADK's UI shows no second form, live or after a reload."""
    words = f"ui-loop {serving.url}"
    await page.goto(f"{serving.url}/dev-ui/?app=planned")
    await say(page, words)
    chips = page.get_by_role("button", name="adk_request_input")  # one for each gate, one for each answer
    await expect(chips).to_have_count(1, timeout=15_000)
    await page.get_by_role("button", name="Submit").click()  # not ticked: no
    await expect(chips).to_have_count(3, timeout=15_000)
    await expect(page.get_by_text("Approve the plan?")).to_be_visible()

    await page.reload()
    await expect(page.get_by_text("Approve the plan?")).to_be_visible(timeout=15_000)
    await expect(chips).to_have_count(3)
    await shoot(page, "reloaded")
    await page.get_by_role("checkbox").first.check()
    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("approved by user")).to_be_visible(timeout=15_000)
    assert 1 == COUNTED[words]


@pytest.mark.parametrize("way", ["stop button", "closed page"])
async def test_who_stops_looking_on_stops_nothing(way: str, page: Page, serving: Served) -> None:
    """W03: stock ADK cancels the run when the stream is cut; here only the looking on ends."""
    words = f"ui-{way} {serving.url}"
    await page.goto(f"{serving.url}/dev-ui/?app=held")
    await say(page, words)
    await expect(page.get_by_text("Begin?")).to_be_visible(timeout=15_000)
    await page.get_by_role("button", name="Submit").click()
    stop = page.locator("button:has(mat-icon:text-is('stop'))")  # it has no name to a screen reader
    await expect(stop).to_be_visible(timeout=15_000)  # the step holds, and the stream is open
    there = page.url
    if way == "stop button":
        await stop.click()
        await expect(stop).to_be_hidden()
    else:
        await page.goto("about:blank")
    RELEASED[words].set()

    await page.goto(there)
    await expect(page.get_by_text("Well?")).to_be_visible(timeout=15_000)
