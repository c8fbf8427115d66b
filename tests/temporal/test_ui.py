"""Temporal's own UI, in a real browser: a person without any tool of ours reads a gate there and answers it."""

import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.conftest import ATTRIBUTES, binary
from tests.temporal.conversation import Conversation
from tests.temporal.pipelines import ALL, STEPS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page of a browser of its own."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield await browser.new_page(viewport={"width": 1400, "height": 1000})
        await browser.close()


@pytest.fixture
def ui_port() -> int:
    """A free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
async def run(tmp_path: Path, ui_port: int) -> AsyncIterator[Conversation]:
    """A run paused at its gate, on a server with its UI."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"),
        ip="127.0.0.1",
        ui=True,
        ui_port=ui_port,
        dev_server_log_level="never",
        search_attributes=ATTRIBUTES,
    ) as server:
        with Store.open(str(tmp_path / "gatewright.db")) as store:
            client = await Client.connect(
                server.client.service_client.config.target_host, plugins=[GatewrightPlugin(store)]
            )
            gates = GateClient(client, store, task_queue="ui")
            async with Worker(client, task_queue="ui", workflows=ALL, activities=STEPS):
                started = await gates.start("Reviewed", "ui")
                conversation = Conversation(gates, started.workflow_id)
                await conversation.opened("review")
                yield conversation


async def test_a_gate_is_read_and_answered_in_temporals_own_ui(run: Conversation, page: Page, ui_port: int) -> None:
    """User Metadata shows the gate and how to answer it; Send a Signal offers `answer`; plain JSON does it."""
    await page.goto(f"http://127.0.0.1:{ui_port}/namespaces/default/workflows/")
    await page.locator("a[href*='Reviewed']").first.click()
    await page.get_by_role("tab", name="User Metadata").click()
    await expect(page.frame_locator("iframe").last.get_by_text("Approve ui?")).to_be_visible(timeout=15_000)
    await page.get_by_role("button", name="More Actions").click()
    await page.get_by_role("menuitem", name="Send a Signal").click()
    dialog: Any = page.locator("dialog[open]")
    # The select is a styled button around an input that takes no clicks.
    await dialog.locator("#signal-select").click(force=True)
    await page.get_by_role("option").filter(has_text="Answer a gate").locator("visible=true").first.click()
    await dialog.get_by_role("textbox", name="Data").click()
    await page.keyboard.insert_text('{"interruptId": "review", "response": {"approved": true, "level": 2}}')
    # Leaving the editor formats the JSON, which moves the button from under a click: the keyboard finds it.
    submit = dialog.get_by_role("button", name="Submit")
    await submit.focus()
    await submit.press("Enter")

    await expect(dialog).to_be_hidden()
    assert await run.result() == "paid 2"
