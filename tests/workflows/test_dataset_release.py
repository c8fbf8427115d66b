"""The dataset release on a real server, with its real job in a process of its own."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from temporalio.client import WorkflowFailureError

from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release
from gatewright.protocol import Refusal, Verified, verify
from gatewright.temporal import GateClient
from gatewright.testing import ScriptedPerson
from tests.temporal.conversation import Conversation, until
from workflows import DatasetRelease

SAMPLE = Path(__file__).parents[2] / "activities" / "sample" / "orders.csv"
STEPS = [profile_dataset, draft_notes, dispatch_transform, publish_release]
Opener = Callable[..., Awaitable[Conversation]]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> Path:
    """A data folder of the test's own; the job's process finds server and store by the environment."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    monkeypatch.setenv("GATEWRIGHT_STORE", f"sqlite:///{tmp_path}/gatewright.db")
    monkeypatch.setenv("GATEWRIGHT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GATEWRIGHT_MODEL", raising=False)
    return tmp_path / "data"


@pytest.fixture
async def opener(data: Path, gates: GateClient, working: Any) -> AsyncIterator[Opener]:
    """`await opener(source)` opens a release, with a worker living."""
    async with working([DatasetRelease], STEPS):

        async def one(source: Path | str = SAMPLE, **more: Any) -> Conversation:
            started = await gates.start("DatasetRelease", {"source": str(source), **more})
            return Conversation(gates, started.workflow_id)

        yield one


@pytest.mark.parametrize("cached", [1000, 0], ids=["cached", "replayed at every task"])
async def test_a_release_from_the_file_to_the_parquet(cached: int, data: Path, gates: GateClient, working: Any) -> None:
    """Reviewed, confirmed, published; masked values are pseudonyms, dropped columns are gone, the chain verifies."""
    async with working([DatasetRelease], STEPS, max_cached_workflows=cached):
        started = await gates.start("DatasetRelease", {"source": str(SAMPLE)})
        script: dict[str, list[Any]] = {
            "review_profile": [{"drop": ["notes"], "mask": ["email"], "comment": "Pseudonymous."}],
            "confirm_release": [{"decision": "release"}],
        }
        await ScriptedPerson(gates, script, principal="ann").play(started.workflow_id)
        result = await gates.client.get_workflow_handle(started.workflow_id).result()

        assert (result["status"], result["by"]) == ("released", "ann")
        rows = duckdb.read_parquet(result["release"]["parquet"])
        assert "notes" not in rows.columns
        emails = {row[0] for row in rows.project("email").fetchall() if row[0] is not None}
        assert emails
        assert all("@" not in email for email in emails)
        manifest = json.loads(Path(result["release"]["manifest"]).read_text())
        assert (manifest["rows"], manifest["dropped"], manifest["masked"], manifest["confirmed_by"]) == (
            200,
            ["notes"],
            ["email"],
            "ann",
        )
        assert "no model is configured" in manifest["notes"]["text"]
        receipts = (await gates.receipts(started.workflow_id)).receipts
        assert isinstance(verify(receipts), Verified)
        assert [receipt.effect.name for receipt in receipts if receipt.kind == "effect"] == ["publish_release"]


async def test_a_revision_is_a_new_occurrence_and_the_old_job_cannot_reach_it(opener: Opener) -> None:
    """The first round's job calls back late and is refused as superseded; nothing of it is in the release."""
    run = await opener()
    await run.opened("review_profile")
    await run.admitted("review_profile", {"mask": ["email"]})
    await run.opened("confirm_release")
    await run.admitted("confirm_release", {"decision": "revise", "comment": "the city, too"}, principal="bob")
    again = await run.opened("review_profile~2")
    assert "Revision asked for by bob: the city, too" in str(again.message)
    assert (await run.refused("review_profile", {"mask": []}, answer_id="late")).refusal is Refusal.ALREADY_ANSWERED
    await run.admitted("review_profile~2", {"mask": ["email"], "drop": ["city"]})
    await run.opened("confirm_release~2")
    await run.admitted("confirm_release~2", {"decision": "release"})
    result = await run.result()

    assert "city" not in json.loads(Path(result["release"]["manifest"]).read_text())["columns"]
    gates = {gate.interrupt_id: gate.state for gate in await run.gates.gates(run.id)}
    assert gates["transform~2"] == "answered"
    assert gates["transform"] in {"answered", "superseded"}
    calls = [entry["call_id"] for entry in (await run.gates.transcript(run.id)).entries if entry["kind"] == "performed"]
    assert calls.count("profile_dataset#1") == 1


async def test_a_rejected_release_publishes_nothing(opener: Opener, data: Path) -> None:
    """It ends with who rejected it and why."""
    run = await opener()
    await run.opened("review_profile")
    await run.admitted("review_profile", {})
    await run.opened("confirm_release")
    await run.admitted("confirm_release", {"decision": "reject", "comment": "not now"}, principal="bob")

    assert await run.result() == {"status": "rejected", "release": None, "by": "bob", "comment": "not now"}
    assert not (data / "releases").exists()


async def test_a_column_that_does_not_exist_is_refused_where_it_is_typed(opener: Opener) -> None:
    """The gate's schema knows the columns."""
    run = await opener()
    await run.opened("review_profile")
    refused = await run.refused("review_profile", {"drop": ["order_id", "emial"]})

    assert [fault.path for fault in refused.objections[0].faults] == ["$.drop[1]"]
    await run.gates.abandon(run.id, reason="the test is over")


async def test_a_job_that_fails_says_so_and_a_person_decides(opener: Opener, tmp_path: Path) -> None:
    """The source changed under the run: the failure is typed, and nothing is published until somebody says how to go on."""
    source = tmp_path / "orders.csv"
    shutil.copy(SAMPLE, source)
    run = await opener(source)
    await run.opened("review_profile")
    source.write_text(source.read_text() + "99999,2026-01-01 00:00:00,Late,late@example.com,Oslo,1.00,,\n")
    await run.admitted("review_profile", {})
    failed = await run.opened("transform_failed")
    assert "source_changed" in str(failed.message)
    shutil.copy(SAMPLE, source)
    await run.admitted("transform_failed", {"decision": "retry"})
    confirm = await run.opened("confirm_release~2")
    assert confirm.visit == 2
    await run.admitted("confirm_release~2", {"decision": "release"})

    assert (await run.result())["status"] == "released"


async def test_a_job_that_dies_silently_meets_its_deadline(opener: Opener, data: Path) -> None:
    """kill -9 of the job's process: the gate expires, a person is asked, and the retry runs in a new job."""
    stopped = asyncio.create_task(_kill_the_first_job(data))
    run = await opener(transform_minutes=0.05)
    await run.opened("review_profile")
    await run.admitted("review_profile", {})
    failed = await run.opened("transform_failed")
    await stopped
    assert "deadline" in str(failed.message)
    await run.admitted("transform_failed", {"decision": "reject"}, principal="bob")

    assert (await run.result())["status"] == "rejected"
    states = {gate.interrupt_id: gate.state for gate in await run.gates.gates(run.id)}
    assert states["transform"] == "expired"


async def _kill_the_first_job(data: Path) -> None:
    async def pid() -> int | None:
        for path in data.glob("jobs/*/pid"):
            if text := path.read_text().strip():
                return int(text)
        return None

    os.kill(await until(pid, "the job starts", seconds=60), signal.SIGKILL)


async def test_a_file_that_is_none_asks_what_follows(opener: Opener, tmp_path: Path) -> None:
    """Not after five retries, and not with a traceback; once the file is there the run goes on."""
    run = await opener(tmp_path / "nowhere.csv")
    gate = await run.opened("failed:profile_dataset")
    assert "nowhere.csv" in str(gate.message)
    shutil.copy(SAMPLE, tmp_path / "nowhere.csv")
    await run.admitted("failed:profile_dataset", {"decision": "retry"})

    await run.opened("review_profile")
    await run.gates.cancel(run.id, reason="seen enough")


async def test_a_file_that_is_none_can_be_given_up(opener: Opener, tmp_path: Path) -> None:
    """The run fails with what is wrong, and with who said so."""
    run = await opener(tmp_path / "nowhere.csv")
    await run.opened("failed:profile_dataset")
    await run.admitted("failed:profile_dataset", {"decision": "abort"}, principal="ann")
    with pytest.raises(WorkflowFailureError):
        await run.result()

    view = await run.gates.get(run.id)
    assert "nowhere.csv" in str(view.failure)
    assert "aborted by ann" in str(view.failure)
    assert view.status == "failed"


async def test_a_second_run_on_the_same_file_does_not_profile_it_again(
    opener: Opener, tmp_path: Path, gates: GateClient
) -> None:
    """Refused, stale and stray messages do not, either; a file that has changed is another file."""
    source = tmp_path / "orders.csv"
    shutil.copy(SAMPLE, source)
    first = await opener(source)
    await first.opened("review_profile")
    await first.refused("review_profile", {"mask": ["emial"]})
    await first.refused("review_profile~2", {"mask": []})
    await first.handle.signal("answer")
    second = await opener(source)
    await second.opened("review_profile")
    [profiled] = gates.store.ledger.entries(effect="profile_dataset")
    assert (profiled.kind, profiled.attempts, profiled.workflow_id) == ("once", 1, first.id)

    source.write_text(source.read_text() + source.read_text().splitlines()[1] + "\n")
    third = await opener(source)
    await third.opened("review_profile")
    assert [entry.attempts for entry in gates.store.ledger.entries(effect="profile_dataset")] == [1, 1]
    for run in (first, second, third):
        await gates.cancel(run.id, reason="seen enough")
