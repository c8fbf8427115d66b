"""The dataset release goes as its twin on real ADK does: computed by the same functions, from the file to the Parquet."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release
from gatewright.adk import Gateway
from gatewright.protocol.call import Call
from gatewright.protocol.identity import BranchPath
from gatewright.store import SessionKey
from gatewright.temporal import GateClient
from tests.temporal.conversation import until
from worker.apps import RELEASE
from workflows import DatasetRelease

from .comparing import compared
from .playing import GatewaySide, RunnerSide, play
from .scripts import SCRIPTS
from .twin import Twin

SAMPLE = Path(__file__).parents[2] / "activities" / "sample" / "orders.csv"
STEPS = [profile_dataset, draft_notes, dispatch_transform, publish_release]
RELEASES = {name: script for name, script in SCRIPTS.items() if script.app == RELEASE.name}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> Path:
    """A data folder; the job's process finds server and store by the environment."""
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    monkeypatch.setenv("GATEWRIGHT_STORE", f"sqlite:///{tmp_path}/gatewright.db")
    monkeypatch.setenv("GATEWRIGHT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GATEWRIGHT_MODEL", raising=False)
    return tmp_path / "data"


@pytest.mark.parametrize("name", RELEASES)
async def test_a_release_goes_as_with_adk(name: str, data: Path, gates: GateClient, working: Any) -> None:
    """Profile, notes, pseudonyms, digests and paths included: both sides work in the same folder, one after the other."""
    session = f"s-{uuid4().hex[:12]}"
    workflow_id = SessionKey(app=RELEASE.name, user="user", session=session).workflow_id(1)
    done: list[str] = []

    async def job_has_answered() -> None:
        done.append("transform" + (f"~{len(done) + 1}" if done else ""))

        async def answered() -> bool:
            return any(g.interrupt_id == done[-1] and g.state == "answered" for g in await gates.gates(workflow_id))

        await until(answered, f"the job answers {done[-1]}", seconds=60)

    async with working([DatasetRelease], STEPS):
        side = GatewaySide(Gateway(gates, [RELEASE]), RELEASE.name, session, at_work=job_has_answered)
        ours = await play(side, RELEASES[name], source=str(SAMPLE))
        frame = (await gates.get(workflow_id)).frame
    assert frame is not None
    identity, root = frame.identity, BranchPath().child("DatasetRelease", 1)
    await until(lambda: _delivered(data, len(done)), "the jobs' processes have ended their work")
    data.rename(data.with_name("data-of-gatewright"))

    twin = Twin(lambda step, visit: Call.at(identity, root, step, visit, effect=False).key)
    adk = await play(
        RunnerSide(RELEASE.name, twin.workflow(), session, at_work=twin.at_work), RELEASES[name], source=str(SAMPLE)
    )

    wrong = compared(name, adk, ours)
    assert not wrong, "\n".join(wrong)


async def _delivered(data: Path, jobs: int) -> bool:
    await asyncio.sleep(0)
    return len(list(data.glob("jobs/*/delivered"))) == jobs
