"""`gatewright serve` and the HTTP API of `gatewright dev`, as processes of their own."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gatewright.cli.apps import read_apps
from gatewright.cli.exits import Stop
from tests.cli.conftest import GATEWRIGHT, PATIENCE, ROOT, Gatewright, environment, gatewright, plain_environment
from tests.server.pipelines import RELEASED
from tests.server.talk import Talk, answer, asked, text

__all__ = ["environment", "gatewright"]  # fixtures of the command's own tests

APPS = ("--app", "planned=Planned", "--app", "held=Held")


@asynccontextmanager
async def process(*arguments: str, env: dict[str, str], cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command while it runs; it has ended in the end."""
    running = await asyncio.create_subprocess_exec(
        *GATEWRIGHT,
        *arguments,
        env=env,
        cwd=cwd,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.communicate()


async def greeting(running: asyncio.subprocess.Process) -> Any:
    """The one document that it prints once it serves."""
    assert running.stdout is not None
    async with asyncio.timeout(PATIENCE):
        line = await running.stdout.readline()
    if not line:
        assert running.stderr is not None
        raise AssertionError((await running.stderr.read()).decode())
    return json.loads(line)


async def test_serve_holds_a_conversation_and_stops_when_it_is_told_to(
    environment: dict[str, str], tmp_path: Path, worker: None
) -> None:
    """A stream that is open ends with a word about it, within seconds, and the exit code is 0."""
    async with process("serve", "--port", "0", *APPS, "-o", "json", env=environment, cwd=tmp_path) as running:
        greeted = await greeting(running)
        async with httpx.AsyncClient(base_url=greeted["url"], timeout=60) as client:
            talk = Talk(client, session=f"s{os.getpid()}", app="held")
            await talk.begin()
            opened = await talk.run(text(f"serve {tmp_path}"))
            health = await client.get("/health?deep=1")
            streaming = asyncio.create_task(talk.stream(answer("before", approved=True)))
            await asyncio.sleep(1)
            running.send_signal(signal.SIGTERM)
            async with asyncio.timeout(8):
                frames = await streaming
                code = await running.wait()
    RELEASED[f"serve {tmp_path}"].set()

    assert {"planned": "Planned", "held": "Held"} == greeted["apps"]
    assert not greeted["authenticates"]
    assert greeted["ui"] == f"{greeted['url']}/dev-ui/"
    assert ["before"] == asked(opened.json())
    assert {"status": "ok", "temporal": "ok", "store": "ok"} == health.json()
    assert ("stopping", 0) == (frames[-1]["code"], code)


async def test_serve_says_in_words_what_it_serves_and_how_it_knows_people(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """And settings may come from the environment, as containers want it."""
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-some-length alice\n")
    tokens.chmod(0o644)
    settings = {"GATEWRIGHT_HOST": "0.0.0.0", "GATEWRIGHT_PORT": "0", "GATEWRIGHT_TOKEN_FILE": str(tokens)}  # noqa: S104
    async with process("serve", "--no-ui", *APPS, env=environment | settings, cwd=tmp_path) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        async with asyncio.timeout(PATIENCE):
            lines = [(await running.stdout.readline()).decode().strip() for _ in range(5)]
        url = lines[1].split()[1]
        async with httpx.AsyncClient(base_url=url) as client:
            unknown = await client.get("/list-apps", headers={"Host": "gates.example.com"})
            alice = {"Authorization": "Bearer a-token-of-some-length"}
            known = await client.get("/list-apps", headers=alice)
        running.send_signal(signal.SIGINT)
        _, err = await running.communicate()

    assert [f"inbox     {url}/inbox", f"serving   {url}"] == lines[:2]
    assert ["app       planned: Planned", "app       held: Held"] == lines[2:4]
    assert "callers   bearer tokens (1)" == lines[4]
    assert (401, 200, 0) == (unknown.status_code, known.status_code, running.returncode)
    assert b"warning: others can read the token file" in err


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        ({"apps": ("planned",)}, 2, "write NAME=PIPELINE or NAME=PIPELINE@TASK_QUEUE"),
        ({"apps": ("planned=Planned@",)}, 2, "write NAME=PIPELINE or NAME=PIPELINE@TASK_QUEUE"),
        ({"apps": ("one=Planned", "one=Held")}, 2, "two apps are called one"),
        ({"attributes": ("nowhere:APPS",)}, 2, "there is no module nowhere below"),
        ({"attributes": ("mine.nowhere:APPS",)}, 2, "there is no module mine.nowhere"),
        ({"attributes": ("mine",)}, 2, "write MODULE:ATTRIBUTE"),
        ({"attributes": ("mine:NOPE",)}, 2, "the module mine has no attribute NOPE"),
        ({"attributes": ("mine:WORDS",)}, 2, "holds a str: it must be a gatewright.adk.App"),
        ({"attributes": ("mine:NUMBER",)}, 2, "holds a int: it must be a gatewright.adk.App"),
        ({"attributes": ("mine:NOTHING",)}, 2, "is empty"),
        ({"attributes": ("needy:APPS",)}, 2, "needy needs the module nowhere_at_all"),
        ({"attributes": ("broken:APPS",)}, 1, "importing it failed: ZeroDivisionError"),
    ],
)
def test_what_is_wrong_with_apps_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], code: int, said: str
) -> None:
    """Which of them, and what to write."""
    (tmp_path / "mine.py").write_text("WORDS = ['one']\nNUMBER = 1\nNOTHING = []\n")
    (tmp_path / "needy.py").write_text("import nowhere_at_all\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    with pytest.raises(Stop) as stopped:
        read_apps(wanted.get("apps", ()), wanted.get("attributes", ()))

    assert (code, True) == (stopped.value.code, said in stopped.value.message), stopped.value.message


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((*APPS, "--host", "0.0.0.0"), 2, "whoever reaches 0.0.0.0 could answer every gate"),  # noqa: S104
        ((*APPS, "--token-file", "none"), 2, "the token file none cannot be read"),
        ((*APPS, "--principal-header", "X-User"), 2, "belong together"),
        ((*APPS, "--host", "192.0.2.1", "--insecure"), 4, "cannot listen on 192.0.2.1"),
        ((*APPS, "--host", "no.such.host.invalid", "--insecure"), 4, "cannot listen on no.such.host.invalid"),
    ],
)
async def test_what_is_wrong_is_said_before_anything_listens(
    gatewright: Gatewright, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """In one line; never with a traceback."""
    ended = await gatewright("serve", "--port", "0", *arguments)

    assert (code, True) == (ended.code, said in ended.err), ended.err
    assert "Traceback" not in ended.err


async def test_a_port_that_is_taken_is_named(gatewright: Gatewright) -> None:
    """And what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = await gatewright("serve", "--port", port, *APPS, "-o", "json")

    assert (4, "port_taken") == (ended.code, ended.json["error"])
    assert f"port {port} of 127.0.0.1 is taken" in ended.err


async def test_apps_of_a_module_are_served_from_the_current_folder(environment: dict[str, str], tmp_path: Path) -> None:
    """One, or a list of them, below an attribute of an attribute too."""
    (tmp_path / "mine.py").write_text(
        "from gatewright.adk import App\nclass My:\n    APP = App('one', 'Planned')\nAPPS = [App('two', 'Planned')]\n"
    )
    arguments = ("serve", "--port", "0", "--apps", "mine:My.APP", "--apps", "mine:APPS", "-o", "json")
    async with process(*arguments, env=environment, cwd=tmp_path) as running:
        assert {"one": "Planned", "two": "Planned"} == (await greeting(running))["apps"]


async def documented(kind: str, url: str) -> str:
    """What the example of docs/adk.md in this language that talks to `URL` prints."""
    examples = re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / "adk.md").read_text(), re.DOTALL)
    example = next(each for each in reversed(examples) if "URL" in each)
    command = ["bash", "-e", "-c"] if kind == "sh" else [sys.executable, "-c"]
    ran = await asyncio.create_subprocess_exec(
        *command, example, cwd=ROOT, env=os.environ | {"URL": url}, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, _ = await ran.communicate()
    assert 0 == ran.returncode, out.decode()
    return out.decode()


async def test_dev_serves_the_apps_of_the_checkout(tmp_path: Path) -> None:
    """A release is opened by its path, and stops for its review; the sessions of docs/adk.md run as they stand there."""
    csv = tmp_path / "people.csv"
    csv.write_text("name,age\nAda,36\nAlan,41\n")
    arguments = ("dev", "--port", "17233", "--ui-port", "18233", "--serve-port", "18000", "--data-dir", str(tmp_path))
    async with process(*arguments, "-o", "json", env=plain_environment(), cwd=ROOT) as running:
        greeted = await greeting(running)
        async with httpx.AsyncClient(base_url=greeted["http"], timeout=60) as client:
            talk = Talk(client, session="one", app="dataset_release")
            await talk.begin()
            refused = await talk.run(text('{"source": 1}'))
            opened = await talk.run(text(str(csv)))
        shown, printed = [await documented(kind, greeted["http"]) for kind in ("sh", "python")]
        running.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            code = await running.wait()

    assert (422, "bad_opening") == (refused.status_code, refused.json()["code"])
    assert ["review_profile"] == asked(opened.json())
    assert '"status":"released"' in shown
    assert "'status': 'released'" in printed
    assert 130 == code


async def test_dev_leaves_the_http_api_out_where_it_is_told_to(tmp_path: Path) -> None:
    """Nothing listens then."""
    arguments = (
        "dev",
        "--no-serve",
        "--no-worker",
        "--port",
        "17333",
        "--ui-port",
        "18333",
        "--data-dir",
        str(tmp_path),
    )
    async with process(*arguments, "-o", "json", env=plain_environment(), cwd=ROOT) as running:
        greeted = await greeting(running)
        running.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE):
            code = await running.wait()

    assert (None, 130) == (greeted["http"], code)
