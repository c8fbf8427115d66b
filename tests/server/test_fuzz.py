"""Thousands of requests that nobody would send, made from our own OpenAPI, against a run that waits."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.server.conftest import Served
from tests.server.fuzz_hooks import GATE, SESSION, USER
from tests.server.pipelines import COUNTED
from tests.server.talk import Talk, answer, text

SECONDS = int(os.environ.get("GATEWRIGHT_FUZZ", "20"))
"""For how long; all endpoints are tried where it is longer than a minute."""

TALKING = r"^/(run|run_sse|apps/[^/]+/users/[^/]+/sessions(/[^/]+)?)$"
"""What reaches the gateway."""

CHECKS = "not_a_server_error,no_bare_error"


# google-genai warns of an enum's unknown value and takes it; a warning is an error in these tests only.
@pytest.mark.filterwarnings("ignore:.* is not a valid:UserWarning")
async def test_nothing_that_can_be_sent_breaks_the_server(talk: Talk, serving: Served, tmp_path: Path) -> None:
    """No 500, no bare error; the session goes on as if nothing had happened, and its first step ran once."""
    talk.user, talk.session = USER, SESSION
    await talk.begin()
    words = f"fuzz {serving.url}"
    await talk.run(text(words))
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{serving.url}/openapi.json", "--checks", CHECKS]
    options = ["--phases", "coverage,fuzzing", "--max-time", str(SECONDS), "--exclude-method", "DELETE", "--no-color"]
    process = await asyncio.create_subprocess_exec(
        *command,
        *options,
        *(["--include-path-regex", TALKING] if SECONDS <= 60 else []),
        cwd=tmp_path,
        env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.server.fuzz_hooks", "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(2 * SECONDS + 60):
        out, _ = await process.communicate()
    told = out.decode()

    print(told)
    assert 0 == process.returncode, told
    assert "no_bare_error" not in told
    assert 1 == COUNTED[words]
    assert 200 == (await talk.run(answer(GATE, approved=True))).status_code
