"""`gatewright receipts --history`: receipts checked against an exported history, with no server to ask."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gatewright.cli.embedded import find_binary
from gatewright.protocol import Answer
from gatewright.temporal import GateClient
from tests.cli.conftest import Gatewright
from tests.temporal.conversation import PATIENCE
from tests.temporal.histories import find, replaced

AWAY = {"TEMPORAL_ADDRESS": "127.0.0.1:1"}
"""Where no Temporal is."""


async def export(run: str, address: str, file: Path) -> dict[str, Any]:
    """Write the run's history as the `temporal` command prints it."""
    command = [str(find_binary()), "workflow", "show", "--workflow-id", run, "--output", "json", "--address", address]
    with file.open("wb") as opened:
        process = await asyncio.create_subprocess_exec(*command, stdout=opened)
        assert await process.wait() == 0
    history: dict[str, Any] = json.loads(file.read_text())
    return history


@pytest.fixture
async def over(gates: GateClient, run: str, address: str, tmp_path: Path) -> str:
    """A run that is over after two answers; its history is in `history.json`."""
    for interrupt_id, decision in (("review", "no"), ("review~2", "yes")):
        answer = Answer(interrupt_id=interrupt_id, response={"decision": decision}, principal="alice")
        await gates.answer(run, answer, patience=PATIENCE)
    await gates.client.get_workflow_handle(run).result()
    await export(run, address, tmp_path / "history.json")
    return run


async def test_a_run_that_is_over_is_checked_with_no_server_to_ask(gatewright: Gatewright, over: str) -> None:
    checked = await gatewright("receipts", over, "--verify", "--history", "history.json", env=AWAY)

    assert (0, "") == (checked.code, checked.err)
    first, *lines, last = checked.out.splitlines()
    assert f"{over}, first execution " in first
    assert "1 execution in the given history" in first
    assert [None, "1", "2"] == [None if line.split()[0] == "chain" else line.split()[0] for line in lines]
    assert all("confirmed" in line for line in lines)
    assert "review~2 answered by alice" in lines[2]
    assert last == "confirmed by the history: 3 confirmed, 0 contradicted, 0 not covered"
    asked = await gatewright("receipts", over, "--verify", env=AWAY)
    assert (4, "cannot be reached") == (asked.code, asked.err[asked.err.index("cannot") :][:17])


async def test_with_json_the_report_stands_beside_the_receipts(gatewright: Gatewright, over: str) -> None:
    checked = await gatewright("receipts", over, "--history", "history.json", "-o", "json", env=AWAY)

    assert (0, "") == (checked.code, checked.err)
    report = checked.json["history"]
    assert (True, 3, 0, 0) == (report["ok"], report["confirmed"], report["contradicted"], report["not_covered"])
    assert [None, 1, 2] == [finding["number"] for finding in report["findings"]]
    assert over == report["workflow_id"]
    assert {"holds": True, "count": 2, "head": checked.json["receipts"][-1]["digest"]} == checked.json["verified"]


async def test_receipts_in_a_file_need_neither_temporal_nor_the_store(
    gatewright: Gatewright, over: str, tmp_path: Path
) -> None:
    saved = await gatewright("receipts", over, "-o", "json")
    (tmp_path / "receipts.json").write_text(saved.out)
    nothing = AWAY | {"GATEWRIGHT_STORE": str(tmp_path / "nowhere" / "store.db")}
    checked = await gatewright("receipts", "receipts.json", "--history", "history.json", env=nothing)
    verified = await gatewright("receipts", "receipts.json", "--verify", env=nothing)

    assert (0, "") == (checked.code, checked.err)
    assert "3 confirmed, 0 contradicted" in checked.out
    assert (0, True) == (verified.code, "verified: 2 receipts hold" in verified.out)

    altered = json.loads(saved.out)
    altered["receipts"][1]["responder"]["principal"] = "eve"
    (tmp_path / "receipts.json").write_text(json.dumps(altered))
    named = await gatewright("receipts", "receipts.json", "--history", "history.json", env=nothing)

    assert named.code == 1
    assert "broken at receipt 2" in named.out
    assert "principal 'alice', and the receipt 'eve'" in named.out
    assert named.out.splitlines()[-1].startswith("CONTRADICTED: ")


async def test_what_the_history_contradicts_is_named_and_the_exit_code_says_so(
    gatewright: Gatewright, over: str, tmp_path: Path
) -> None:
    history = json.loads((tmp_path / "history.json").read_text())
    replaced(find(history["events"], "WORKFLOW_EXECUTION_UPDATE_ACCEPTED", nth=1), "yes", "no!")
    (tmp_path / "other.json").write_text(json.dumps(history))
    text = await gatewright("receipts", over, "--verify", "--history", "other.json", env=AWAY)
    document = await gatewright("receipts", over, "--history", "other.json", "-o", "json", env=AWAY)

    assert (1, 1) == (text.code, document.code)
    [line] = [line for line in text.out.splitlines() if line.split()[0] == "2"]
    assert "contradicted" in line
    assert "no update brought answer" in line
    assert text.out.splitlines()[-1] == "CONTRADICTED: 2 confirmed, 1 contradicted, 0 not covered"
    assert (False, 1) == (document.json["history"]["ok"], document.json["history"]["contradicted"])
    assert document.json["verified"]["holds"] is True


async def test_a_run_that_is_going_on_is_asked_for_its_receipts(
    gatewright: Gatewright, gates: GateClient, run: str, address: str, tmp_path: Path
) -> None:
    """Its archive is not in the store yet."""
    answer = Answer(interrupt_id="review", response={"decision": "no"}, principal="alice")
    await gates.answer(run, answer, patience=PATIENCE)
    await export(run, address, tmp_path / "history.json")
    checked = await gatewright("receipts", run, "--history", "history.json")
    away = await gatewright("receipts", run, "--history", "history.json", env=AWAY)

    assert checked.code == 0
    assert "2 confirmed, 0 contradicted" in checked.out
    assert (4, True) == (away.code, "cannot be reached" in away.err)


async def test_each_file_that_is_no_use_is_named_in_one_line(
    gatewright: Gatewright, over: str, gates: GateClient, address: str, tmp_path: Path
) -> None:
    """Exit 2, nothing on stdout, never a traceback."""
    other = (await gates.start("Approve", 1)).workflow_id
    await export(other, address, tmp_path / "others.json")
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "text.json").write_text("Progress:")
    (tmp_path / "wrong.json").write_text('{"anchor": {"number": 0, "digest": null}, "receipts": [{"number": "x"}]}')
    mistakes = [
        ([over, "--history", "nowhere.json"], "nowhere.json cannot be read"),
        ([over, "--history", "empty.json"], "empty.json is empty; export the history again: temporal workflow show"),
        ([over, "--history", "text.json"], "text.json is not JSON"),
        ([over, "--history", "others.json"], f"others.json is of {other}, and the receipts are of {over}"),
        ([over, "--history", "history.json", "--history", "others.json"], "give the histories of one run"),
        ([over, "--history", "history.json", "--history", "history.json"], "are the same execution"),
        (["text.json", "--history", "history.json"], "text.json: it holds no receipts as JSON; give a run, or a file"),
        (["wrong.json", "--history", "history.json"], "wrong.json: 0."),
    ]
    for arguments, words in mistakes:
        ended = await gatewright("receipts", *arguments, env=AWAY)
        assert (2, "") == (ended.code, ended.out), arguments
        assert words in ended.err
        assert len(ended.err.strip().splitlines()) == 1, ended.err
