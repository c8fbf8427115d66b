"""
The inbox in a real browser: live, by keyboard, in two windows at once, and without JavaScript.

With `GATEWRIGHT_SCREENSHOTS=docs/images` the pictures of the documentation are
taken on the way (`make screenshots`).
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright, expect

from gatewright.protocol.answer import Answer
from gatewright.store import GateRow
from gatewright.temporal import GateClient
from tests.server.conftest import Served
from tests.server.inbox.conftest import TOKENS, gate_path, listed
from tests.server.inbox.test_pages import VALUE
from tests.temporal.test_ui import CHROMIUM, FLAGS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")

StoppedAt = Callable[..., Awaitable[GateRow]]
Window = Callable[..., Awaitable[Page]]


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A browser."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
async def window(browser: Browser, serving: Served) -> AsyncIterator[Window]:
    """`await window("ada")` is a window of a person who is signed in; nothing may go wrong on its console."""
    wrong: list[str] = []

    async def opened(name: str, **options: Any) -> Page:
        context = await browser.new_context(viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options)
        page = await context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        await page.goto(f"{serving.url}/inbox?token={TOKENS[name]}")
        assert "token" not in page.url
        return page

    yield opened
    assert [] == wrong


async def shoot(page: Page, name: str, *, full: bool = True) -> None:
    """Take pictures for the documentation, light, dark and on a telephone, where that is wanted."""
    folder = os.environ.get("GATEWRIGHT_SCREENSHOTS")
    if not folder:
        return
    size = page.viewport_size
    assert size is not None
    for look, width in (("light", 1280), ("dark", 1280), ("phone", 390)):
        await page.emulate_media(color_scheme="dark" if look == "dark" else "light")
        await page.set_viewport_size({"width": width, "height": 800})
        await asyncio.sleep(0.4)
        await page.screenshot(path=Path(folder) / f"inbox-{name}-{look}.png", full_page=full)
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size(size)


async def accessible(page: Page) -> None:
    """No rule of WCAG A and AA that a machine can check is broken, in light and dark."""
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
        found = await Axe().run(page, options=rules)
        assert 0 == found.violations_count, found.generate_report()
    await page.emulate_media(color_scheme="light")


async def test_two_windows_race_and_the_second_sees_who_was_first(
    window: Window, serving: Served, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """Both have the form open; one answer counts, and the other is still there to be read."""
    row = await stopped_at("Going", "going")
    ada, bob = await window("ada"), await window("bob")
    for page, words in ((ada, "ada says yes"), (bob, "bob says no")):
        await page.goto(serving.url + gate_path(row))
        await page.get_by_label("Yes" if page is ada else "No", exact=True).check()
        await page.get_by_label("Comment").fill(words)

    await asyncio.gather(
        *(page.get_by_role("button", name="Send the answer").click(no_wait_after=True) for page in (ada, bob))
    )
    for page in (ada, bob):
        await expect(page.locator("#notice")).to_be_visible(timeout=15_000)
    said = [await page.locator("#notice h2").inner_text() for page in (ada, bob)]
    answered = gates.store.gate(row.workflow_id, row.interrupt_id)

    assert answered is not None
    assert ["Your answer counts.", "Your answer did not count."] == sorted(said)
    loser, words = (bob, "bob says no") if answered.principal == "ada" else (ada, "ada says yes")
    await expect(loser.locator("#notice")).to_contain_text(f"{answered.principal} was first")
    await expect(loser.locator(".unsent")).to_contain_text(words)
    await accessible(loser)
    await shoot(loser, "conflict")


async def test_every_field_is_filled_in_by_hand_and_corrected(
    window: Window, serving: Served, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """First wrongly: the faults stand at their fields, and nothing typed is lost."""
    row = await stopped_at("Asking", "asking")
    page = await window("ada")
    await page.goto(serving.url + gate_path(row))
    await accessible(page)
    assert (
        0
        == await page.locator(
            "#answer input[type=radio][value=true]:checked, #answer input[value=false]:checked"
        ).count()
    )
    await page.get_by_role("group", name="Approved").get_by_label("Yes", exact=True).check()
    await page.get_by_role("group", name="Size").get_by_label("large").check()
    await page.get_by_label("Name").fill("Ada")
    await page.get_by_label("Count").fill("eleven")
    await page.get_by_label("Ratio").fill("2.5")
    await page.get_by_label("Day").fill("2026-12-07")
    await page.get_by_label("Comment").fill("two\nlines")
    home = page.get_by_role("group", name="Home")
    await home.get_by_label("Street").fill("M")
    await home.get_by_label("Number").fill("7")
    await page.get_by_role("group", name="Second").get_by_label("Fill it in").check()
    await page.get_by_role("group", name="Second").get_by_role("button", name="Show its fields").click()
    await page.get_by_role("group", name="Second").get_by_label("Street").fill("Side")
    await page.get_by_role("group", name="Second").get_by_label("Number").fill("8")
    for text in ("first", "second"):
        await page.get_by_role("button", name="Add one to Tags").click()
        await page.get_by_role("group", name="Tags").locator("input[type=text]").last.fill(text)
    await page.get_by_role("button", name="Add one to Stops").click()
    await page.get_by_role("group", name="Stops").get_by_label("Street").fill("Stop")
    await page.get_by_role("group", name="Stops").get_by_label("Number").fill("1")
    await page.get_by_label("blue").check()
    await page.get_by_role("group", name="Paying").get_by_label("Invoice").check()
    await page.get_by_role("group", name="Paying").get_by_role("button", name="Show its fields").click()
    await page.get_by_label("Days").fill("30")
    await page.get_by_label("Extra").fill('{"any": [1, null]}')
    await page.get_by_role("button", name="Send the answer").click()

    await expect(page.locator("#notice")).to_contain_text("Correct what is marked")
    await expect(page.get_by_label("Count")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("Count")).to_have_value("eleven")
    await expect(page.locator("[id='fault/home/street']")).to_contain_text("2 or more characters")
    await expect(page.get_by_label("Comment")).to_have_value("two\nlines")
    await accessible(page)
    await shoot(page, "refused")
    await page.get_by_label("Count").fill("3")
    await page.get_by_role("group", name="Home").get_by_label("Street").fill("Main")
    await page.get_by_role("button", name="Send the answer").click()

    await expect(page.locator("#notice")).to_contain_text("Your answer counts.")
    answered = gates.store.gate(row.workflow_id, row.interrupt_id)
    assert answered is not None
    assert VALUE == answered.response


async def test_an_answer_from_elsewhere_appears_by_itself(
    window: Window, serving: Served, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """In the list and on the gate's page; what was being typed there stays, and cannot be sent."""
    row = await stopped_at("Going", "going")
    page, gate = await window("ada"), await window("bob")
    await expect(page.locator("#live")).to_have_text("live", timeout=10_000)
    await expect(page.get_by_text("Is draft 1 good?")).to_be_visible()
    await gate.goto(serving.url + gate_path(row))
    await gate.get_by_label("Comment").fill("half a sen")
    await expect(gate.locator("#live")).to_have_text("live", timeout=10_000)

    await gates.answer(
        row.workflow_id,
        Answer(interrupt_id=row.interrupt_id, response={"approved": False}, principal="carol", channel="cli"),
    )

    await expect(page.get_by_text("Is draft 2 good?")).to_be_visible(timeout=10_000)
    await expect(page.get_by_text("Is draft 1 good?")).to_be_hidden()
    await expect(gate.get_by_role("heading", name="Answered by carol")).to_be_visible(timeout=10_000)
    await expect(gate.get_by_label("Comment")).to_have_value("half a sen")
    await expect(gate.get_by_role("button", name="Send the answer")).to_be_disabled()
    await accessible(page)


async def test_with_the_keyboard_alone(window: Window, stopped_at: StoppedAt, gates: GateClient) -> None:
    """From the list to a gate that is answered, and back."""
    rows = [await stopped_at("Going", "going"), await stopped_at("Asking", "asking")]
    page = await window("ada")
    await expect(page.locator("#keys-button")).to_be_visible()  # the script listens
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("/")
    await page.keyboard.type("Is draft")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"q=Is\+draft"))
    await expect(page.locator("#keys-button")).to_be_visible()  # the script listens
    await page.keyboard.press("j")
    await expect(page.locator("tr.chosen")).to_contain_text("Is draft 1 good?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="review")).to_be_visible()
    await expect(page.locator("#keys-button")).to_be_visible()  # the script listens
    await page.keyboard.press("a")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Tab")
    await page.keyboard.type("typed")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#notice")).to_contain_text("Your answer counts.")
    await expect(page.locator("#keys-button")).to_be_visible()  # the script listens
    await page.keyboard.press("u")
    await expect(page.locator("table.list")).to_be_visible()

    answered = gates.store.gate(rows[0].workflow_id, rows[0].interrupt_id)
    assert answered is not None
    assert {"approved": True, "comment": "typed"} == answered.response


async def test_without_javascript(window: Window, stopped_at: StoppedAt, gates: GateClient) -> None:
    """Everything but the news."""
    row = await stopped_at("Going", "going")
    page = await window("ada", java_script_enabled=False)
    await page.get_by_label("Search in message, gate and run").fill("draft 1")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="Is draft 1 good?").click()
    await page.get_by_role("button", name="Send the answer").click()
    await expect(page.locator("[id='fault/approved']")).to_contain_text("it is required")
    await page.get_by_label("Yes", exact=True).check()
    await page.get_by_role("button", name="Send the answer").click()
    await expect(page.locator("#notice")).to_contain_text("Your answer counts.")
    await page.get_by_role("link", name=row.workflow_id).click()
    await expect(page.get_by_text("1 receipt holds")).to_be_visible()


async def test_what_the_documentation_shows(
    window: Window, serving: Served, stopped_at: StoppedAt, gates: GateClient
) -> None:
    """A list, a gate in its second round, a run, one that is blocked, and a dangerous gate: all of them accessible."""
    first = await stopped_at("Going", "going")
    await stopped_at("Asking", "asking")
    stuck = await stopped_at("Mended", "mended")
    yes, no = {"approved": True}, {"approved": False, "comment": "shorter, please"}
    await gates.answer(
        stuck.workflow_id, Answer(interrupt_id=stuck.interrupt_id, response=yes, principal="bob", channel="cli")
    )
    failed = await listed(gates, stuck.workflow_id, other_than=stuck.interrupt_id)
    await gates.answer(
        first.workflow_id,
        Answer(interrupt_id=first.interrupt_id, response={"approved": "perhaps"}, principal="bob", channel="adk"),
    )
    await gates.answer(
        first.workflow_id, Answer(interrupt_id=first.interrupt_id, response=no, principal="bob", channel="cli")
    )
    second = await listed(gates, first.workflow_id, other_than=first.interrupt_id)
    other = await stopped_at("Going", "going")
    await gates.answer(
        other.workflow_id, Answer(interrupt_id=other.interrupt_id, response=yes, principal="bob", channel="cli")
    )
    await listed(gates, other.workflow_id, "wipe")

    page = await window("ada")
    await expect(page.locator("tr.row")).to_have_count(4)
    await accessible(page)
    await shoot(page, "list", full=False)
    await page.goto(f"{serving.url}{gate_path(second)}")
    await expect(page.get_by_text("round 2").first).to_be_visible()
    await page.get_by_text("Changed since round 1").click()
    await accessible(page)
    await shoot(page, "gate")
    await page.goto(f"{serving.url}/inbox?view=blocked")
    await expect(page.locator("tr.row")).to_have_count(1)
    await page.goto(f"{serving.url}{gate_path(failed)}")
    await accessible(page)
    await shoot(page, "blocked")
    await page.goto(f"{serving.url}/inbox/run?run={first.workflow_id}")
    await expect(page.get_by_text("1 receipt holds")).to_be_visible()
    await accessible(page)
    await shoot(page, "run")
    narrow = await window("ada", viewport={"width": 390, "height": 800})
    for path in ("/inbox", gate_path(second), f"/inbox/run?run={first.workflow_id}"):
        await narrow.goto(serving.url + path)
        assert await narrow.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
