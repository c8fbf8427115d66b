"""The operator's walk in docs/effects.md is played as it stands there: same commands, same output."""

import asyncio
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Gatewright

DOCUMENT = Path(__file__).parents[2] / "docs" / "effects.md"

KEY = re.compile(r"gw1-[0-9a-f]{64}|gw1-[0-9a-f]{12}(?![0-9a-f])")
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(Z| UTC)"), "(time)"),
    (re.compile(r"sha256:[0-9a-f]+…?"), "(digest)"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "(ledger)"),
]


def spoken(document: str) -> Iterator[tuple[str, str]]:
    """The commands of the walk, each with the output that the document shows."""
    walk = document.split("## An operator's walk", 1)[1]
    for block in re.findall(r"```console\n(.*?)```", walk, re.DOTALL):
        for said in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = said.partition("\n")
            yield command, output


def alike(text: str) -> str:
    """The text without what is another one in every run."""
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


@pytest.mark.timeout(600)
async def test_the_walk_is_what_really_happens(
    tmp_path: Path, gatewright: Gatewright, working: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times, digests and ledger ids aside; keys are others, and the same ones in the same places."""
    document = DOCUMENT.read_text()
    [pipeline] = re.findall(r"```python\n(\"\"\"Pay an invoice.*?)```", document, re.DOTALL)
    (tmp_path / "payments.py").write_text(pipeline)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import payments  # type: ignore[import-not-found]

    keys: dict[str, str] = {}

    def here(text: str) -> str:
        return KEY.sub(lambda key: keys.get(key.group(), key.group()), text)

    try:
        async with working([payments.PayInvoice], [payments.wire_money, payments.post_entry]):
            for command, shown in spoken(document):
                came = await said(here(command), gatewright, tmp_path)
                keys |= dict(zip(KEY.findall(shown), KEY.findall(came), strict=False))
                assert alike(came) == alike(here(shown)), command
    finally:
        del sys.modules["payments"]
    assert len(keys) >= 4


async def said(command: str, gatewright: Gatewright, folder: Path) -> str:
    """What a terminal shows of one command."""
    name, *arguments = shlex.split(command)
    if name == "gatewright":
        ended = await gatewright(*arguments)
        return ended.err + ended.out
    process = await asyncio.create_subprocess_exec(name, *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, command
    return out.decode()
