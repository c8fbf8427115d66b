"""A release is there completely, once for its key, or not at all."""

import json
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from activities.errors import ReleaseUnclear, TransformRejected
from activities.models import Manifest, Notes, Release, TransformPlan, TransformResult
from activities.releases import found, published, release_folder

KEY = "gw1-0123456789abcdef0123"
NOTES = Notes(text="# Orders", by="template")
PLAN = TransformPlan(source="/srv/Orders of May.csv", sha256="ab" * 32, drop=["city"], mask=["email"], round=2)
REVIEW = {"drop": ["city"], "mask": ["email"], "comment": "Łódź"}


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    return tmp_path / "data" / "releases"


@pytest.fixture
def transform(tmp_path: Path) -> TransformResult:
    data = tmp_path / "data.parquet"
    data.write_bytes(b"PAR1 as good as any")
    return TransformResult(
        path=str(data),
        rows=3,
        columns=["id", "email"],
        bytes=data.stat().st_size,
        sha256=sha256(data.read_bytes()).hexdigest(),
    )


def publish(transform: TransformResult, releases: Path, *, key: str = KEY) -> Release:
    return published(PLAN, transform, NOTES, REVIEW, "anna@example.org", key=key, releases=releases)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_release_is_its_data_its_manifest_and_its_notes(transform: TransformResult, releases: Path) -> None:
    """Under a name that a person recognises and a key makes unique; readable by others; nothing else beside it."""
    release = publish(transform, releases)

    folder = releases / "Orders-of-May-0123456789ab"
    assert (
        Release(
            parquet=str(folder / "data.parquet"),
            manifest=str(folder / "manifest.json"),
            rows=3,
            sha256=transform.sha256,
            key=KEY,
        )
        == release
    )
    assert ["Orders-of-May-0123456789ab"] == names(releases)
    assert ["NOTES.md", "data.parquet", "manifest.json"] == names(folder)
    assert Path(transform.path).read_bytes() == (folder / "data.parquet").read_bytes()
    assert "# Orders\n" == (folder / "NOTES.md").read_text("utf-8")
    assert 0o755 == folder.stat().st_mode & 0o777


def test_the_manifest_says_what_was_done_and_who_confirmed_it(transform: TransformResult, releases: Path) -> None:
    """But not where the job worked: its folder's name is the salt of the masks."""
    manifest = json.loads(Path(publish(transform, releases).manifest).read_text("utf-8"))

    assert {
        "key": KEY,
        "source": PLAN.source,
        "source_sha256": PLAN.sha256,
        "sha256": transform.sha256,
        "bytes": transform.bytes,
        "rows": 3,
        "columns": ["id", "email"],
        "dropped": ["city"],
        "masked": ["email"],
        "round": 2,
        "notes": {"text": "# Orders", "by": "template", "model": None},
        "review": REVIEW,
        "confirmed_by": "anna@example.org",
    } == manifest


def test_publishing_twice_returns_the_first_release(transform: TransformResult, releases: Path) -> None:
    """Nothing is written a second time, not even when the job's file is gone by then."""
    first = publish(transform, releases)
    stamp = Path(first.manifest).stat().st_mtime_ns
    Path(transform.path).unlink()

    assert first == publish(transform, releases)
    assert stamp == Path(first.manifest).stat().st_mtime_ns


def test_many_attempts_at_once_publish_one_release(transform: TransformResult, releases: Path) -> None:
    """All of them return it, and no temporary folder is left."""
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: _patient(transform, releases), range(8)))

    assert 1 == len(set(map(Release.model_dump_json, results)))
    assert 1 == len(names(releases))


def _patient(transform: TransformResult, releases: Path) -> Release:
    """As Temporal does: an attempt whose temporary folder was swept by a faster one is tried again."""
    try:
        return publish(transform, releases)
    except FileNotFoundError:
        return publish(transform, releases)


def test_another_key_is_another_release(transform: TransformResult, releases: Path) -> None:
    """Of the same file, too."""
    publish(transform, releases)
    publish(transform, releases, key="gw1-ffff456789abcdef0123")

    assert 2 == len(names(releases))


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_transform_that_is_not_the_confirmed_one_is_not_published(
    transform: TransformResult, releases: Path, change: str
) -> None:
    """Not even in part."""
    if change == "replaced":
        Path(transform.path).write_bytes(b"PAR1 something else")
    else:
        Path(transform.path).unlink()

    with pytest.raises(TransformRejected) as rejected:
        publish(transform, releases)

    assert ("transform_changed", []) == (rejected.value.type, names(releases))


def test_what_was_not_published_is_not_found(releases: Path) -> None:
    """The folder of all releases need not exist."""
    assert found(PLAN, key=KEY, releases=releases) is None


def test_what_was_published_is_found_by_its_key(transform: TransformResult, releases: Path) -> None:
    """By another worker, after a crash."""
    assert publish(transform, releases) == found(PLAN, key=KEY, releases=releases)


@pytest.mark.parametrize("damage", ["no manifest", "broken manifest", "other key", "other data", "no data"])
def test_what_is_not_provably_the_release_is_unclear(transform: TransformResult, releases: Path, damage: str) -> None:
    """Neither happened nor did not: a person must look, and nothing is overwritten."""
    release = publish(transform, releases)
    manifest, data = Path(release.manifest), Path(release.parquet)
    match damage:
        case "no manifest":
            manifest.unlink()
        case "broken manifest":
            manifest.write_text("{", encoding="utf-8")
        case "other key":
            other = Manifest.model_validate_json(manifest.read_text("utf-8")).model_copy(update={"key": "other"})
            manifest.write_text(other.model_dump_json(), encoding="utf-8")
        case "other data":
            data.write_bytes(b"tampered")
        case _:
            data.unlink()
    before = names(data.parent)

    with pytest.raises(ReleaseUnclear):
        found(PLAN, key=KEY, releases=releases)
    with pytest.raises(ReleaseUnclear):
        publish(transform, releases)

    assert before == names(data.parent)


def test_leftovers_of_attempts_that_died_are_swept(transform: TransformResult, releases: Path) -> None:
    """Those of this release only."""
    place = release_folder(PLAN, key=KEY, releases=releases)
    (releases / f".{place.name}.dead").mkdir(parents=True)
    (releases / ".another-0000.alive").mkdir()
    publish(transform, releases)

    assert [".another-0000.alive", place.name] == names(releases)


@pytest.mark.parametrize("source", ["/srv/../..csv", "/srv/...", "/", "/srv/日本語.csv", "/srv/" + "x" * 250 + ".csv"])
def test_no_source_name_leads_out_of_the_releases(releases: Path, source: str) -> None:
    """Whatever a file is called, its release is one folder below."""
    place = release_folder(PLAN.model_copy(update={"source": source}), key=KEY, releases=releases)

    assert releases == place.parent
    assert len(place.name.encode()) < 250
    assert not place.name.startswith((".", "-"))
