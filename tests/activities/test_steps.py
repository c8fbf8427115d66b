"""As Temporal calls them: steps find their folders and their key, and the effect can be asked whether it happened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from temporalio.testing import ActivityEnvironment

from activities.jobs import JobFolder
from activities.models import Notes, TransformPlan, TransformResult
from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release, reconcile_release
from activities.transforming import transformed
from gatewright.effects import Call, CannotTell, DidNotHappen, Happened, NotPerformed, declaration_of, running
from gatewright.protocol.identity import BranchPath, FrameIdentity
from tests.activities.builders import CALLBACK, ORDERS, plan_of

IDENTITY = FrameIdentity(namespace="default", workflow_id="app/user/session/1", first_execution_run_id="run-1")
NOTES = Notes(text="# Orders", by="template")


def call_of(function: Callable[..., Any]) -> Call:
    """The first call of a step or effect in a run."""
    declared = declaration_of(function)
    return Call.at(IDENTITY, BranchPath.parse("release@1"), declared.name, 1, effect=declared.effect)


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a step or effect returns inside an activity, for the first call of it in a run."""
    with running(call_of(function)):
        return ActivityEnvironment().run(function, *arguments)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder that the environment names."""
    monkeypatch.setenv("GATEWRIGHT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GATEWRIGHT_MODEL", raising=False)
    return tmp_path / "data"


@pytest.fixture
def plan(csv_file: Path) -> TransformPlan:
    csv_file.write_text(ORDERS, encoding="utf-8")
    return plan_of(csv_file)


@pytest.fixture
def transform(plan: TransformPlan, scratch: Path) -> TransformResult:
    return transformed(plan, salt="key", target=scratch / "data.parquet")


def test_each_is_declared_for_what_it_is() -> None:
    """Three steps may be repeated; the effect can be reconciled."""
    kinds = {
        declaration_of(function).name: declaration_of(function).kind
        for function in (profile_dataset, draft_notes, dispatch_transform, publish_release)
    }

    assert {
        "profile_dataset": None,
        "draft_notes": None,
        "dispatch_transform": None,
        "publish_release": "reconcilable",
    } == kinds


def test_a_release_goes_through_its_steps(plan: TransformPlan, transform: TransformResult, data: Path) -> None:
    """From the profile to the published folder, which lies where the environment says."""
    profile = called(profile_dataset, plan.source)
    notes = called(draft_notes, profile, plan.drop, plan.mask, None)
    release = called(publish_release, plan, transform, notes, {}, "anna@example.org")

    assert (plan.sha256, "template") == (profile.sha256, notes.by)
    assert data / "releases" == Path(release.parquet).parents[1]
    assert call_of(publish_release).key == release.key


def test_a_complete_profile_is_kept_in_the_data_folder(csv_file: Path, data: Path) -> None:
    """Where somebody who wants to see all columns finds it."""
    csv_file.write_text(",".join(f"c{n}" for n in range(300)) + "\n", encoding="utf-8")

    assert data / "profiles" == Path(called(profile_dataset, str(csv_file)).full_profile).parent


def test_dispatching_twice_for_one_call_starts_one_job(
    plan: TransformPlan, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the call is the key of the job; a relative source is the worker's, not the job's."""
    monkeypatch.setenv("GATEWRIGHT_DATA_DIR", str(jobs.parent))
    monkeypatch.chdir(Path(plan.source).parent)
    relative = plan.model_copy(update={"source": Path(plan.source).name})

    first = called(dispatch_transform, relative, CALLBACK)
    again = called(dispatch_transform, relative, CALLBACK)

    assert (True, False) == (first.started, again.started)
    assert call_of(dispatch_transform).key == first.key
    ordered = JobFolder(Path(first.folder)).order()
    assert ordered is not None
    assert plan == ordered.plan


def test_outside_a_call_nothing_is_dispatched(plan: TransformPlan, data: Path) -> None:
    """Without a key there is no job that could be found again."""
    with pytest.raises(LookupError, match=r"Frame\.perform"):
        dispatch_transform(plan, CALLBACK)

    assert not data.exists()


def test_a_release_that_was_published_happened(plan: TransformPlan, transform: TransformResult) -> None:
    """The recorded release is the result."""
    release = called(publish_release, plan, transform, NOTES, {}, "anna")

    proof: JsonValue = {"manifest": release.manifest, "sha256": release.sha256}
    assert Happened(release, proof) == reconcile_release(call_of(publish_release), plan, transform, NOTES, {}, "anna")


def test_a_release_that_was_not_published_did_not_happen(plan: TransformPlan, transform: TransformResult) -> None:
    """A folder that is there only when it is complete makes that certain."""
    assert DidNotHappen() == reconcile_release(call_of(publish_release), plan, transform, NOTES, {}, "anna")


def test_of_a_damaged_release_nobody_can_tell(plan: TransformPlan, transform: TransformResult) -> None:
    """A person is asked, with the reason."""
    release = called(publish_release, plan, transform, NOTES, {}, "anna")
    Path(release.manifest).unlink()

    match reconcile_release(call_of(publish_release), plan, transform, NOTES, {}, "anna"):
        case CannotTell(reason):
            assert "not a whole release" in reason
        case other:
            pytest.fail(f"it was told: {other}")


def test_a_transform_that_changed_is_known_not_to_be_published(plan: TransformPlan, transform: TransformResult) -> None:
    """The ledger records a failure, not an unknown."""
    Path(transform.path).write_bytes(b"tampered")

    with pytest.raises(NotPerformed, match="no longer the file that was confirmed"):
        called(publish_release, plan, transform, NOTES, {}, "anna")
