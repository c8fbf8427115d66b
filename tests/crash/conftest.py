"""A Temporal server on a database file, and the release that nothing disturbed."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from gatewright.cli.embedded import EmbeddedServer
from tests.crash.release import see_through
from tests.crash.world import World, world


@pytest.fixture(scope="session")
def crash_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where it listens."""
    with EmbeddedServer(tmp_path_factory.mktemp("server") / "temporal.db") as server:
        yield server.address


class NewWorld(Protocol):
    """Makes a world."""

    def __call__(self, name: str, *, minutes: float = 15) -> AbstractAsyncContextManager[World]:
        """`async with new_world(name) as made:` a run of the release is open, and no worker lives yet."""
        ...


@pytest.fixture(scope="session")
def new_world(crash_server: str, tmp_path_factory: pytest.TempPathFactory) -> NewWorld:
    """Worlds on one server, each with files of its own."""
    folder = tmp_path_factory.mktemp("worlds")
    source = folder / "orders.csv"
    source.write_text("id,email,city\n1,zoe@example.org,Zürich\n2,,Łódź\n3,max@example.org,\n", encoding="utf-8")

    def make(name: str, *, minutes: float = 15) -> AbstractAsyncContextManager[World]:
        return world(crash_server, folder / name, source, minutes=minutes)

    return make


@dataclass(frozen=True)
class Undisturbed:
    """What a release comes to when nothing dies."""

    lanes: dict[str, list[str]]
    receipts: int
    rows: int
    masked: list[str]


@pytest.fixture(scope="session")
async def undisturbed(new_world: NewWorld) -> AsyncIterator[Undisturbed]:
    """One release without a crash."""
    async with new_world("undisturbed") as made:
        await see_through(made, ())
        result: dict[str, Any] = await made.result()
        yield Undisturbed(
            await made.lanes(), await made.receipts(), result["release"]["rows"], manifest(made)["masked"]
        )


def manifest(made: World) -> dict[str, Any]:
    """What the one release says about itself."""
    (release,) = made.releases
    read: dict[str, Any] = json.loads((release / "manifest.json").read_text("utf-8"))
    return read


@pytest.fixture
def full(request: pytest.FixtureRequest) -> None:
    """Skips the test unless the full tier is asked for."""
    if not request.config.getoption("--full-crash", default=False):
        pytest.skip("a part of --full-crash")
