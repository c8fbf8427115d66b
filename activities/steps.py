"""
The dataset release as Temporal sees it: three steps and one effect, each a thin cover for a plain function.

    profile_dataset      what is in the file                              step: once for all runs on the same file
    draft_notes          what to say about it                             step
    dispatch_transform   start the transform in a process of its own      step: repeating it starts nothing twice
    publish_release      make it public                                   effect: once per key
"""

import json
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from activities import settings
from activities.errors import ReleaseUnclear, TransformRejected
from activities.files import digest_of
from activities.jobs import dispatched
from activities.models import Callback, JobOrder, Notes, Profile, Release, TransformJob, TransformPlan, TransformResult
from activities.notes import written_notes
from activities.profiling import profile_csv
from activities.releases import found, published
from gatewright.effects import (
    Call,
    CannotTell,
    DidNotHappen,
    Happened,
    NotPerformed,
    Reconciliation,
    current_call,
    effect,
    receipt,
    step,
)


def same_file(source: str) -> str:
    """Which file it is, by place and content: every run on it shares one profile."""
    path, profiles = Path(source).resolve(), (settings.data_dir() / "profiles").resolve()
    try:
        # Something that is no file, or cannot be read, has nothing to share: the step says what is wrong with it.
        content = digest_of(path) if path.is_file() else secrets.token_hex(16)
    except OSError:
        content = secrets.token_hex(16)
    return json.dumps([str(path), content, str(profiles)])


@step(timeout=timedelta(minutes=30), attempts=3, once=same_file)
def profile_dataset(source: str) -> Profile:
    """Profile the CSV file at a path on the worker's machine; `DatasetError` if it is not one that can be released."""
    return profile_csv(source, profiles=settings.data_dir() / "profiles")


@step(timeout=timedelta(minutes=2), attempts=5)
def draft_notes(profile: Profile, dropped: list[str], masked: list[str], comment: str | None) -> Notes:
    """Draft the release notes with the configured model, or from the template if none is configured."""
    return written_notes(profile, dropped=dropped, masked=masked, comment=comment)


@step(timeout=timedelta(minutes=1), attempts=5)
def dispatch_transform(plan: TransformPlan, callback: Callback) -> TransformJob:
    """Start the transform in a process of its own and return at once; the process answers the gate `callback` names."""
    absolute = plan.model_copy(update={"source": str(Path(plan.source).resolve())})
    order = JobOrder(key=current_call().key, plan=absolute, callback=callback)
    return dispatched(order, jobs=settings.data_dir() / "jobs")


def reconcile_release(call: Call, plan: TransformPlan, *_: object) -> Reconciliation:
    """Whether an earlier attempt published: its folder is asked for, which only a complete release has."""
    try:
        release = found(plan, key=call.key, releases=settings.data_dir() / "releases")
    except ReleaseUnclear as unclear:
        return CannotTell(unclear.message)
    return DidNotHappen() if release is None else Happened(release, receipt=_proof(release))


@effect(
    kind="reconcilable",
    reconcile=reconcile_release,
    timeout=timedelta(minutes=10),
    attempts=5,
)
def publish_release(
    plan: TransformPlan, transform: TransformResult, notes: Notes, review: dict[str, Any], confirmed_by: str
) -> Release:
    """Publish the confirmed transform with its manifest and notes, once for the call's key."""
    key, releases = current_call().key, settings.data_dir() / "releases"
    try:
        release = published(plan, transform, notes, review, confirmed_by, key=key, releases=releases)
    except TransformRejected as rejected:
        raise NotPerformed(rejected.message) from rejected
    receipt(_proof(release))
    return release


def _proof(release: Release) -> JsonValue:
    """What proves that a release was published: the manifest, which holds the key, and the digest of its file."""
    return {"manifest": release.manifest, "sha256": release.sha256}
