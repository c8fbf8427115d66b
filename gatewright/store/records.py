"""
What the store takes and gives: frozen records, compared by content.

Every time is a timezone-aware datetime and comes back in UTC, exact to the
microsecond.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self
from urllib.parse import quote, unquote

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from typing_extensions import TypedDict

RUN_OPEN: Final = frozenset({"allocated", "open"})
"""The standings of a run that may still go on."""

RUN_CLOSED: Final = frozenset({"completed", "failed", "cancelled", "abandoned", "superseded"})
"""The standings of a run that is over."""

GATE_STATES: Final = frozenset({"open", "answered", "expired", "superseded", "closed", "blocked"})
"""The states of a row of the gate index."""

MAX_WORKFLOW_ID: Final = 1000
"""Temporal's own limit on a workflow id, in bytes (`limit.maxIDLength`)."""

_MAX_NUMBER: Final = 10**15 - 1

Instant = Annotated[AwareDatetime, AfterValidator(lambda at: at.astimezone(UTC))]
"""A time as the store keeps it: aware, in UTC."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _speakable(part: str) -> str:
    if re.search("[\0\ud800-\udfff]", part):
        raise ValueError("a part of a session must be text without NUL and unpaired surrogates")
    return part


Part = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_speakable)]


class SessionKey(_Record):
    """
    ADK's conversation: app, user and session id.

    Each part has 1 to 200 characters. The three, escaped, must leave room for a
    run's number within Temporal's limit on workflow ids (1000 bytes).
    """

    app: Part
    user: Part
    session: Part

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.workflow_id(_MAX_NUMBER)) > MAX_WORKFLOW_ID:
            raise ValueError(f"app, user and session make a workflow id of over {MAX_WORKFLOW_ID} bytes; shorten one")
        return self

    @property
    def path(self) -> str:
        """`app/user/session`, each part percent-escaped; `//id` for a workflow that is not of our form."""
        if not self.app:
            return f"//{self.session}"
        return "/".join(quote(part, safe="") for part in (self.app, self.user, self.session))

    def workflow_id(self, number: int) -> str:
        """The workflow id of the session's run `number`: `app/user/session/number`."""
        return f"{self.path}/{number}" if self.app else self.session

    @classmethod
    def parse(cls, workflow_id: str) -> "tuple[SessionKey, int] | None":
        """Read `workflow_id(n)` back, or `None` for an id that no session and number have."""
        parts = workflow_id.split("/")
        if len(parts) != 4 or not re.fullmatch(r"[1-9][0-9]{0,14}", parts[3]):
            return None
        number = int(parts[3])
        try:
            key = cls(app=unquote(parts[0]), user=unquote(parts[1]), session=unquote(parts[2]))
        except ValidationError:
            return None
        # Another spelling of the same escapes is another workflow to Temporal.
        return (key, number) if key.workflow_id(number) == workflow_id else None

    @classmethod
    def of_workflow(cls, workflow_id: str) -> "tuple[SessionKey, int]":
        """As `parse`; a workflow of somebody's own naming is the only run of a session that bears its id."""
        return cls.parse(workflow_id) or (cls.model_construct(app="", user="", session=workflow_id), 1)

    @classmethod
    def of_path(cls, path: str) -> "SessionKey":
        """Read `path` back, as the store wrote it."""
        if path.startswith("//"):
            return cls.model_construct(app="", user="", session=path[2:])
        return cls.of_workflow(f"{path}/1")[0]


class Conversation(_Record):
    """
    A session as its user sees it: the state that it was made with, and which runs belong to it.

    Those with a number of at most `after` belonged to one that was deleted.
    """

    session: SessionKey
    state: dict[str, JsonValue]
    after: int = Field(ge=0)
    created_at: Instant
    updated_at: Instant


class Remark(_Record):
    """An event of a session that belongs to no run, in the shape of whoever recorded it."""

    at: Instant
    event: dict[str, JsonValue]


class RunRecord(_Record):
    """One run of a session, as it is listed: standing is `allocated`, one of `RUN_OPEN`, or one of `RUN_CLOSED`."""

    workflow_id: str
    session: SessionKey
    number: int = Field(ge=1)
    opening_id: str
    pipeline: str
    task_queue: str
    input_digest: str | None = None
    standing: str
    first_execution_run_id: str | None = None
    opened_at: Instant
    closed_at: Instant | None = None
    reason: str | None = None

    @property
    def cursor(self) -> str:
        """Where this run stands in a listing; `runs(before=...)` takes it to go on after this run."""
        return f"{self.opened_at.isoformat()} {self.number} {self.workflow_id}"


class GateRow(_Record):
    """One occurrence in the gate index: what was shown, how it stands, and how it was settled."""

    workflow_id: str
    interrupt_id: str
    gate: str
    visit: int
    kind: str
    state: str = "open"
    pipeline: str
    branch: str
    message: str
    payload: JsonValue = None
    response_schema: JsonValue = None
    digest: str
    dangerous: bool = False
    invited: tuple[str, ...] = ()
    """Who may answer; empty: anyone. Of a gate that an earlier release listed, it is empty too."""
    opened_at: Instant
    deadline: Instant | None = None
    on_deadline: Literal["fail", "default"] = "fail"
    default_response: JsonValue = None
    """The answer that counts when nobody gave one before the deadline."""
    closed_at: Instant | None = None
    answer_id: str | None = None
    principal: str | None = None
    channel: str | None = None
    response: JsonValue = None
    receipt_digest: str | None = None
    refusals: int = Field(default=0, ge=0)
    """How many answers were refused here, those included that the store no longer keeps."""


class GateFilter(TypedDict, total=False):
    """Which gates are meant; what is left out, or `None`, does not narrow it."""

    run: str | None
    session: SessionKey | None
    app: str | None
    pipeline: str | None
    gate: str | None
    prefixes: Collection[str] | None
    """The gate's name begins with one of these."""
    states: Collection[str] | None
    invited: str | None
    """This principal is invited by name."""
    refused: bool
    """An answer was refused there."""
    search: str | None
    """This text, whatever its case, is in message, gate or workflow id."""


class RefusalRow(_Record):
    """One refused answer, recorded by the run itself or, where no run could, by the client."""

    workflow_id: str
    interrupt_id: str | None = None
    answer_id: str | None = None
    refusal: str
    reason: str
    principal: str | None = None
    channel: str
    at: Instant
    recorded_by: Literal["run", "client"]
    detail: dict[str, JsonValue] = Field(default_factory=dict)


class LedgerEntry(_Record):
    """
    What is remembered of one call of one effect.

    `planned`: about to be made, nothing was attempted. `intended`: begun,
    outcome not yet known. `performed`: it happened, for ever. `failed`: known
    not to have happened. `unknown`: nobody knows.
    """

    key: str
    effect: str
    workflow_id: str
    branch: str
    visit: int
    generation: int
    kind: str | None = None
    """`keyed`, `reconcilable`, `opaque`, or `once` for a step's shared result; None where an earlier release wrote it."""
    arguments: JsonValue = None
    """As people may read them: of long ones, the beginning."""
    arguments_digest: str | None = None
    state: Literal["planned", "intended", "performed", "failed", "unknown"]
    attempts: int = 0
    """How often the call was begun."""
    result: JsonValue = None
    receipt: JsonValue = None
    error: str | None = None
    planned_at: Instant
    intended_at: Instant | None = None
    """When the latest attempt began."""
    settled_at: Instant | None = None
    holder: str | None = None
    """Which attempt has the lease; None where it was given back."""
    lease_until: Instant | None = None
    call_seconds: float = 0
    """How long after its lease a call of the outside may still be under way."""
    resolved_by: str | None = None
    resolution: Literal["happened", "did_not_happen"] | None = None
    resolved_at: Instant | None = None
    successor: str | None = None
    """The key of the generation that was decided on in its place."""
    contradicted: bool = False
    """It was performed although a person had said that it was not, or another generation was decided on in its place."""

    @property
    def said_by(self) -> str | None:
        """The person whose word this state rests on; None where it is a fact."""
        by_word = {"happened": "performed", "did_not_happen": "failed"}
        if self.resolution is None or self.state != by_word[self.resolution]:
            return None
        return self.resolved_by or "(unnamed)"


class Plan(_Record):
    """Which call an entry is about, for one that has to be made on the spot."""

    effect: str
    kind: str | None
    workflow_id: str
    branch: str
    visit: int
    generation: int


class Begun(_Record):
    """An attempt may go on. `before` is the state that it found; `taken` is false where the effect is performed already."""

    entry: LedgerEntry
    before: str
    taken: bool


class Busy(_Record):
    """Another attempt may be under way for so many seconds more."""

    remaining: float
    holder: str


NoticeType = Literal["gate.opened", "gate.blocked", "gate.expired", "gate.answered"]
"""What is told of a gate; `gate.blocked` is the opening of one that asks about an effect or a failure."""


class Notice(_Record):
    """
    What is to be told to one endpoint about one gate, and what came of it.

    `pending`: not told yet. `delivered`: taken by whoever listens there.
    `failed`: given up.
    """

    endpoint: str
    id: str
    """The same at every attempt and for every endpoint, so that whoever listens can know one again."""
    workflow_id: str
    interrupt_id: str
    type: NoticeType
    at: Instant
    """When it happened, by the run's clock."""
    data: dict[str, JsonValue]
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    """How many attempts have failed."""
    next_at: Instant
    holder: str | None = None
    """Who is telling it at the moment; None where nobody is."""
    claimed_until: Instant | None = None
    error: str | None = None
    noted_at: Instant
    settled_at: Instant | None = None
    """When it was delivered or given up."""


def cursor_parts(cursor: str) -> tuple[datetime, int, str]:
    """Read `RunRecord.cursor` back; `ValueError` for anything else."""
    opened_at, number, workflow_id = cursor.split(" ", 2)
    at = datetime.fromisoformat(opened_at)
    if at.tzinfo is None:
        raise ValueError("a cursor's time has a zone")
    return at, int(number), workflow_id
