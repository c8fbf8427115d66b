"""What the steps of the dataset release take and return. Every model travels through Temporal as JSON."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """A value: frozen, and read tolerantly so that an older worker can read a newer one's record."""

    model_config = ConfigDict(frozen=True)


class ColumnProfile(Model):
    """One column as a person sees it; values are text, shortened to 80 characters or fewer."""

    name: str
    type: str
    """DuckDB's type name, taken only if every value survives the cast: VARCHAR otherwise."""
    nulls: int
    distinct: int
    """Approximate number of distinct values (HyperLogLog, a few per cent off)."""
    minimum: str | None
    maximum: str | None
    examples: list[str]


class Profile(Model):
    """
    What a CSV file holds, small enough to be shown at a gate: always below 128 KiB as JSON.

    `columns` has at most 200 entries, fewer when names and values are long. `truncated` says that columns or values were
    left out here; `full_profile` is then the path of a JSON file with all of them.
    """

    source: str
    """The file's absolute path."""
    rows: int
    bytes: int
    encoding: str
    delimiter: str
    columns: list[ColumnProfile]
    column_count: int
    truncated: bool
    full_profile: str | None
    sha256: str
    """Of the file's bytes as they were read."""


class TransformPlan(Model):
    """
    What a person decided to do with a source: columns by their exact names in the profile.

    A column that is both dropped and masked is dropped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    sha256: str
    """Of the source when it was profiled; a source that has changed since is not transformed."""
    drop: list[str] = Field(default_factory=list)
    mask: list[str] = Field(default_factory=list)
    round: int = 1
    """How many times the profile has been reviewed, from 1."""


class TransformResult(Model):
    """The Parquet file that a transform made."""

    path: str
    rows: int
    columns: list[str]
    bytes: int
    sha256: str


class Callback(Model):
    """Where a job says that it is done: one open gate of one run, and the id of the one answer it will give."""

    address: str
    namespace: str
    workflow_id: str
    interrupt_id: str
    answer_id: str


class TransformJob(Model):
    """A dispatched job."""

    key: str
    folder: str
    """Holds job.json, log, and in the end result.json and data.parquet."""
    started: bool
    """Whether this dispatch started a process; false if one was alive or had finished already."""


class JobOrder(Model):
    """What a job's process is told, by way of job.json."""

    key: str
    plan: TransformPlan
    callback: Callback


class JobFailure(Model):
    """Why a transform could not be done. `type` is a name (`source_changed`, `unknown_columns`, ...)."""

    type: str
    message: str


class JobOutcome(Model):
    """How a job ended: a result or a failure, never both."""

    result: TransformResult | None = None
    failure: JobFailure | None = None


class Notes(Model):
    """Release notes, and who wrote them."""

    text: str
    by: Literal["model", "template"]
    model: str | None = None


class Manifest(Model):
    """What a release says about itself, as manifest.json beside the data."""

    key: str
    source: str
    source_sha256: str
    sha256: str
    """Of data.parquet."""
    bytes: int
    rows: int
    columns: list[str]
    dropped: list[str]
    masked: list[str]
    round: int
    notes: Notes
    review: dict[str, Any]
    confirmed_by: str


class Release(Model):
    """A published release: where its two files are, and the key of the call that published it."""

    parquet: str
    manifest: str
    rows: int
    sha256: str
    key: str
