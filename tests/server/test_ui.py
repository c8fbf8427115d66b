"""ADK's developer UI, unchanged, in a real browser: what a person does with it at a gate, over our server."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.server.conftest import Served
from tests.server.pipelines import COUNTED
from tests.temporal.test_ui import CHROMIUM, FLAGS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a browser of its own."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield await browser.new_page(viewport={"width": 1400, "height": 1000})
        await browser.close()


async def test_a_gate_is_answered_in_adks_own_ui(page: Page, serving: Served) -> None:
    """A blank form is refused and comes back; the good answer counts; after a reload everything is still there."""
    words = f"ui {serving.url}"
    await page.goto(f"{serving.url}/dev-ui/?app=named")
    box = page.locator("textarea").last
    await box.fill(words)
    await box.press("Enter")
    await expect(page.get_by_text("Which name?")).to_be_visible(timeout=15_000)
    await expect(page.get_by_text("? naming")).to_be_visible()

    await page.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("not accepted: Validation failed for interrupt naming")).to_be_visible(timeout=15_000)
    name = page.get_by_role("textbox").and_(page.locator("input")).last
    await name.fill("atlas")
    await page.get_by_role("button", name="Submit").click()
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
    await page.get_by_role("textbox").and_(page.locator("input")).last.fill("globe")
    await page.get_by_role("button", name="Submit").click()
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
    assert 1 == COUNTED[words]
