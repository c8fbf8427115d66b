"""
Published releases: a folder that is there completely or not at all.

    <data>/releases/<name>-<12 digits of the key>/
        data.parquet  manifest.json  NOTES.md

The folder is made beside its place under a temporary name, flushed, and renamed. Its name derives from the key of the
call that publishes it and its manifest holds that key, so a second attempt finds the first one's work, and the question
"did it happen?" has an answer.
"""

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from activities.errors import ReleaseUnclear, TransformRejected
from activities.files import CHUNK, digest_of, flush, write_durably
from activities.models import Manifest, Notes, Release, TransformPlan, TransformResult


def published(
    plan: TransformPlan,
    transform: TransformResult,
    notes: Notes,
    review: dict[str, Any],
    confirmed_by: str,
    *,
    key: str,
    releases: Path,
) -> Release:
    """
    Publish a transform's file under a key, or return the release that was published under it before.

    Nothing has been published when this raises: `TransformRejected` with type `transform_changed` if the file is not
    the one that was confirmed, `ReleaseUnclear` if something else stands in the release's place.
    """
    if (before := found(plan, key=key, releases=releases)) is not None:
        return before
    place = release_folder(plan, key=key, releases=releases)
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _copy(transform, partial / "data.parquet")
        manifest = Manifest(
            key=key,
            source=plan.source,
            source_sha256=plan.sha256,
            sha256=transform.sha256,
            bytes=transform.bytes,
            rows=transform.rows,
            columns=transform.columns,
            dropped=plan.drop,
            masked=plan.mask,
            round=plan.round,
            notes=notes,
            review=review,
            confirmed_by=confirmed_by,
        )
        write_durably(partial / "manifest.json", manifest.model_dump_json(indent=2) + "\n")
        write_durably(partial / "NOTES.md", notes.text.rstrip("\n") + "\n")
        # mkdtemp makes folders for one user only; a release is for reading.
        partial.chmod(0o755)
        flush(partial)
        _move(partial, place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _sweep(place)
    release = found(plan, key=key, releases=releases)
    if release is None:
        raise ReleaseUnclear(f"{place} was published and is gone again. Find out who removes releases.")
    return release


def found(plan: TransformPlan, *, key: str, releases: Path) -> Release | None:
    """
    The release that was published under a key, or nothing if there is none.

    Raises `ReleaseUnclear` if its place is taken by something that is not provably that release.
    """
    place = release_folder(plan, key=key, releases=releases)
    if not place.exists():
        return None
    recorded, data = place / "manifest.json", place / "data.parquet"
    try:
        manifest = Manifest.model_validate_json(recorded.read_text("utf-8"))
        if manifest.key != key:
            raise ReleaseUnclear(f"{place} holds a release with another key, {manifest.key}. Move it away.")
        if digest_of(data) != manifest.sha256:
            raise ReleaseUnclear(f"{data} is not the file that {recorded} describes. Restore it or remove {place}.")
    except (OSError, ValidationError) as error:
        raise ReleaseUnclear(f"{place} is there but is not a whole release ({type(error).__name__}).") from error
    return Release(
        parquet=str(data), manifest=str(recorded), rows=manifest.rows, sha256=manifest.sha256, key=manifest.key
    )


def release_folder(plan: TransformPlan, *, key: str, releases: Path) -> Path:
    """Where the release with this key stands, whether it is there or not."""
    name = re.sub(r"\W+", "-", Path(plan.source).stem).strip("-_")[:60] or "dataset"
    # A key may begin with its version (`gw1-`), which tells nothing apart.
    digits = re.sub(r"\W", "", key.rpartition("-")[2])[:12]
    return releases.resolve() / f"{name}-{digits}"


def _sweep(place: Path) -> None:
    """Remove what attempts that died have left beside a published release."""
    for leftover in place.parent.iterdir():
        if leftover.name.startswith(f".{place.name}."):
            shutil.rmtree(leftover, ignore_errors=True)


def _copy(transform: TransformResult, target: Path) -> None:
    """Copy the transform's file, judging the very bytes that are copied."""
    hasher = hashlib.sha256()
    try:
        file = Path(transform.path).open("rb")  # noqa: SIM115 - a target that is missing must not be taken for this
    except FileNotFoundError as error:
        raise TransformRejected(
            "transform_changed", f"{transform.path} is gone. Revise the release, so that it is transformed again."
        ) from error
    with file, target.open("wb") as copy:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    if hasher.hexdigest() != transform.sha256:
        raise TransformRejected(
            "transform_changed",
            f"{transform.path} is no longer the file that was confirmed. Revise the release to transform it again.",
        )


def _move(partial: Path, place: Path) -> None:
    try:
        partial.rename(place)
    except OSError:
        # Another attempt with this key was faster; a folder with files in it is never replaced.
        if not place.exists():
            raise
        return
    flush(place.parent)
