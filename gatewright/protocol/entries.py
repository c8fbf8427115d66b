"""
What a book records: facts, in the past tense, each with the time at which it became one.

Entries are tagged JSON (`kind`), so that a book written today is read by a
later release. A field may be added with a default; none is ever renamed,
retyped or removed.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue

from .answer import Answer
from .call import Call
from .decoding import Fault
from .gate import PinnedGate
from .identity import Branch, Occurrence, Standing
from .receipt import Receipt
from .word import Told, Word

MAX_KEPT_BYTES = 4096
"""Up to which size, as JSON, a refusal is kept word for word."""


KEPT_TEXT = 500
"""How many characters of a text stay in a record that had to be made smaller."""


class Refusal(StrEnum):
    """Why an answer did not count. The names are part of the protocol: clients switch on them."""

    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    MIXED_MESSAGE = "mixed_message"
    NOT_AN_ANSWER = "not_an_answer"
    NO_ANSWER = "no_answer"
    DUPLICATE_IN_MESSAGE = "duplicate_in_message"
    MISSING_ID = "missing_id"
    CONFLICT = "conflict"
    FRAME_CLOSED = "frame_closed"
    UNKNOWN_GATE = "unknown_gate"
    NOT_OPEN_YET = "not_open_yet"
    AMBIGUOUS_GATE = "ambiguous_gate"
    SUPERSEDED = "superseded"
    MAY_NOT_SUPERSEDE = "may_not_supersede"
    ALREADY_ANSWERED = "already_answered"
    EXPIRED = "expired"
    NOT_INVITED = "not_invited"
    STALE_DIGEST = "stale_digest"
    INVALID = "invalid"


Note = dict[str, JsonValue] | None
"""What the channel wants kept beside what was said, such as ADK's `customMetadata`; no rule looks at it."""


class _Entry(Word):
    at: datetime

    def heavy(self) -> Any:
        """The parts of this entry that may be large; None where there are none."""
        return None

    def thin(self) -> Self:
        """The entry without them."""
        return self


class Opened(_Entry):
    """The run was opened: ADK's text, or the input of a pipeline that was started by other means."""

    kind: Literal["opened"] = "opened"
    pipeline: str
    text: str | None = None
    input: JsonValue = None
    note: Note = None

    def heavy(self) -> Any:
        """See base class."""
        return [self.text, self.input, self.note]

    def thin(self) -> Self:
        """See base class."""
        return self.model_copy(update={"text": self.text and self.text[:KEPT_TEXT], "input": None, "note": None})


class Asked(_Entry):
    """A gate opened. The run waits at it until it is answered, expires, is superseded, or the run ends."""

    kind: Literal["asked"] = "asked"
    occurrence: Occurrence
    branch: Branch
    gate: PinnedGate

    def heavy(self) -> Any:
        """See base class."""
        return [self.gate.message, self.gate.payload, self.gate.response_schema]

    def thin(self) -> Self:
        """See base class; what was shown stays known by its digest, and in the gate index."""
        message = self.gate.message and self.gate.message[:KEPT_TEXT]
        update = {"message": message, "payload": None, "response_schema": None}
        return self.model_copy(update={"gate": self.gate.model_copy(update=update)})


class Answered(_Entry):
    """An answer was admitted: what was said, the value that the run continues with, and the receipt."""

    kind: Literal["answered"] = "answered"
    occurrence: Occurrence
    answer: Answer
    value: JsonValue = None
    receipt: Receipt
    part: int = Field(default=0, ge=0, description="its position among the answers that one message brought")
    note: Note = None

    def heavy(self) -> Any:
        """See base class."""
        return [self.answer.response, self.value, self.note]

    def thin(self) -> Self:
        """See base class; the content stays known by its digest, in the receipt."""
        response = {"answer": self.answer.model_copy(update={"response": None}), "value": None}
        return self.model_copy(update={**response, "note": None})


class Objection(Told):
    """What is wrong with one answer of a message, and what its sender can do."""

    refusal: Refusal
    reason: str
    interrupt_id: str | None = None
    answer_id: str | None = None
    faults: tuple[Fault, ...] = ()
    armed: bool = Field(default=False, description="whether the gate that was meant still takes an answer")
    open: tuple[str, ...] = Field(default=(), description="interrupt ids that are open now, where that helps")


class Refused(_Entry):
    """
    A message was refused, whole. It changed nothing but this record.

    Also the verdict that the sender is given (`verdict`): the record is the
    reply, or where that is long its `brief`.
    """

    model_config = ConfigDict(extra="ignore")

    kind: Literal["refused"] = "refused"
    verdict: Literal["refused"] = "refused"
    objections: tuple[Objection, ...] = Field(min_length=1)
    principal: str = ""
    channel: str = ""
    door: str = ""
    attempt: str = Field(default="", description="the delivery that was refused, where its sender named it")

    @property
    def refusal(self) -> Refusal:
        """The name of the first objection: what the message is refused as."""
        return self.objections[0].refusal

    @property
    def reason(self) -> str:
        """The first objection in words."""
        return self.objections[0].reason

    def brief(self) -> "Refused":
        """
        This refusal as the book keeps it: a long one by the beginning of its first objection.

        Forty of them must never make a book that cannot continue as new.
        """
        if len(self.model_dump_json()) <= MAX_KEPT_BYTES:
            return self
        first = self.objections[0]
        faults = tuple(Fault(path=each.path[:100], message=each.message[:200]) for each in first.faults[:3])
        cut = first.model_copy(update={"reason": first.reason[:800], "faults": faults, "open": ()})
        return self.model_copy(update={"objections": (cut,)})


class DeadLettered(_Entry):
    """Something was delivered that could not be read as a message; `preview` shows how it began."""

    kind: Literal["dead_lettered"] = "dead_lettered"
    door: str
    name: str
    reason: str
    size: int
    preview: str

    def brief(self) -> "DeadLettered":
        """This dead letter as the book keeps it: a long reason by its beginning."""
        cut = {"name": self.name[:200], "reason": self.reason[:800], "preview": self.preview[:400]}
        return self.model_copy(update=cut)


class Consumed(_Entry):
    """An admitted answer authorised a call: `by` is the call's readable id."""

    kind: Literal["consumed"] = "consumed"
    occurrence: Occurrence
    by: str
    key: str
    receipt: Receipt | None = Field(default=None, description="of what was authorised; effects only")


class Performed(_Entry):
    """A step or effect ended: with its output, failed after its retries, or passed over because somebody said so."""

    kind: Literal["performed"] = "performed"
    call: Call
    outcome: Literal["done", "failed", "skipped"] = "done"
    output: JsonValue = None
    output_digest: str | None = Field(default=None, description="of the output, which is left out where it is large")
    error: str | None = None
    error_type: str | None = Field(default=None, description="the class of the exception that ended it")
    state_delta: dict[str, JsonValue] | None = Field(default=None, description="what it changes in the session's state")
    route: JsonValue = Field(default=None, description="which way the pipeline goes on from here")
    receipt: Receipt | None = Field(default=None, description="effects only")

    def heavy(self) -> Any:
        """See base class."""
        return [self.output, self.state_delta]

    def thin(self) -> Self:
        """See base class; the change of state stays, because the session is read from it."""
        return self.model_copy(update={"output": None})


class Expired(_Entry):
    """A gate's deadline passed without an answer; with `default` an `Answered` by the engine follows."""

    kind: Literal["expired"] = "expired"
    occurrence: Occurrence
    outcome: Literal["fail", "default"]


class Superseded(_Entry):
    """A gate stopped waiting without an answer: the pipeline went another way, or a later decision replaced it."""

    kind: Literal["superseded"] = "superseded"
    occurrence: Occurrence
    reason: str


class Said(_Entry):
    """The pipeline said something to whoever reads the transcript."""

    kind: Literal["said"] = "said"
    text: str
    branch: Branch

    def heavy(self) -> Any:
        """See base class."""
        return self.text

    def thin(self) -> Self:
        """See base class."""
        return self.model_copy(update={"text": self.text[:KEPT_TEXT]})


class Closed(_Entry):
    """The run ended; no answer counts any more."""

    kind: Literal["closed"] = "closed"
    standing: Standing
    reason: str | None = None
    output: JsonValue = None


class Settled(_Entry):
    """
    What compaction leaves of an occurrence that is over: one line, kept for ever.

    It is what tells a repeat from a conflict and names who was first, however
    often the run continued as new since.
    """

    kind: Literal["settled"] = "settled"
    occurrence: Occurrence
    branch: Branch
    state: Literal["answered", "expired", "superseded"]
    shown: str
    stands_for: str | None = None
    answer_id: str | None = None
    content_digest: str | None = None
    principal: str | None = None
    channel: str | None = None
    receipt_number: int | None = None
    receipt_digest: str | None = None


Entry = Annotated[
    Opened
    | Asked
    | Answered
    | Refused
    | DeadLettered
    | Consumed
    | Performed
    | Expired
    | Superseded
    | Said
    | Closed
    | Settled,
    Field(discriminator="kind"),
]
