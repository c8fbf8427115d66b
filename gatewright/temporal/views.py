"""
What a run tells about itself: the answers to queries, as values.

The same views are rendered from a live run, from its archive and, in tests,
from a book that was built by hand.
"""

import json
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from gatewright.protocol.book import Book
from gatewright.protocol.canonical import digest
from gatewright.protocol.entries import Answered, Asked, Consumed, DeadLettered, Expired, Performed, Refused, Superseded
from gatewright.protocol.gate import GateKind, Policy
from gatewright.protocol.identity import FrameState
from gatewright.protocol.receipt import Anchor, Receipt
from gatewright.protocol.record import GateRecord, GateState
from gatewright.protocol.schema import JsonSchema
from gatewright.protocol.word import Told

PAGE_BYTES = 1024 * 1024
"""About how much one page of a view may hold: a query's reply must stay below gRPC's 4 MiB."""


class AnswerView(Told):
    """Who answered a gate, when, with what."""

    answer_id: str
    principal: str
    channel: str
    at: datetime
    value: JsonValue = None
    failure: dict[str, Any] | None = None
    receipt: str


class PolicyView(Policy):
    """A gate's policy as it is shown; a rule of a later release is not known here, and kept there."""

    model_config = ConfigDict(extra="ignore")


class GateView(Told):
    """One occurrence as a person needs to see it: what is asked, or who answered."""

    interrupt_id: str
    gate: str
    visit: int
    branch: str
    kind: GateKind
    state: GateState
    message: str | None = None
    payload: JsonValue = None
    response_schema: JsonSchema | None = None
    digest: str
    policy: PolicyView = PolicyView()
    opened_at: datetime
    deadline: datetime | None = None
    on_deadline: Literal["fail", "default"] = "fail"
    default: JsonValue = None
    closed_at: datetime | None = None
    reason: str | None = None
    answer: AnswerView | None = None
    consumed_by: tuple[str, ...] = ()
    refusals: int = 0


class GatesPage(Told):
    """In the order of opening; `next` is where the following page begins (None: this was the last)."""

    frame: FrameState
    gates: tuple[GateView, ...]
    next: int | None = None


class TranscriptPage(Told):
    """
    Entries of a run from a cursor on. `next` is the cursor of what will come; `closed` says that nothing will.

    `waiting` says that nothing will until a gate is answered, as far as the
    frame knows: a timer or an activity that the pipeline started by itself is
    not seen. `dropped` is how many entries the execution that runs now has left
    out when it continued as new.
    """

    entries: tuple[dict[str, Any], ...]
    next: int
    closed: bool
    waiting: bool = False
    dropped: int = 0


class ReceiptsPage(Told):
    """Receipts of a run from a number on, and the anchor before the first one that the run itself still keeps."""

    anchor: Anchor
    receipts: tuple[Receipt, ...]
    next: int | None = None


class BookPart(Told):
    """A piece of a book's JSON text. Pieces belong together only where their stamps are equal."""

    stamp: str
    parts: int
    text: str


class RefusalsView(Told):
    """What was refused and what could not be read: kept in full for the first and last 20 per gate, counted beyond."""

    refused: tuple[Refused, ...]
    left_out: int = 0
    counts: dict[str, dict[str, int]] = Field(description="by interrupt id ('' for no gate of the run), then by name")
    dead_letters: tuple[DeadLettered, ...]
    dead_letter_count: int


class CallUnderWay(Told):
    """An activity of a run that has not ended: a step, an effect, or what the run asks of the ledger."""

    activity_id: str
    activity_type: str
    state: str = Field(description="Temporal's word: scheduled, started, cancel_requested, paused, ...")
    attempt: int
    last_failure: str | None = Field(default=None, description="why the attempt before failed")
    waits_for: str | None = Field(default=None, description="what this attempt waits for, as it reported itself")
    next_attempt_at: datetime | None = None


class RunView(Told):
    """One run: where it stands and what it waits for."""

    workflow_id: str
    pipeline: str
    status: str = Field(description="Temporal's word: running, completed, failed, canceled, terminated, ...")
    frame: FrameState | None = None
    opened_at: datetime | None = None
    closed_at: datetime | None = None
    gates: tuple[GateView, ...] = ()
    calls: tuple[CallUnderWay, ...] = ()
    """What Temporal has under way for a run that goes on, the one scheduled first before the others."""
    result: JsonValue = None
    failure: str | None = None
    trouble: str | None = Field(
        default=None, description="why the worker cannot go on with it: its last task's failure"
    )
    source: Literal["run", "archive", "index"] = "run"
    """`index`: no worker answered, so this is what the store last heard."""


class Delivered(Told):
    """
    The answer lies in Temporal as a signal, and no worker has judged it yet.

    It is not lost and will be judged once, under the same answer id.
    """

    verdict: Literal["delivered"] = "delivered"
    answer_ids: tuple[str, ...]
    reason: str


def gate_view(book: Book, record: GateRecord) -> GateView:
    """One occurrence of a book; what was shown is left out once it is over."""
    gate, answered, settled = record.gate, record.answered, record.settled
    answer = None
    if answered is not None:
        said = answered.answer
        answer = AnswerView(
            answer_id=said.answer_id,
            principal=said.principal,
            channel=said.channel,
            at=answered.at,
            value=answered.value,
            failure=said.failure.model_dump(mode="json") if said.failure else None,
            receipt=answered.receipt.digest,
        )
    elif settled is not None and settled.answer_id is not None:
        answer = AnswerView(
            answer_id=settled.answer_id,
            principal=settled.principal or "",
            channel=settled.channel or "",
            at=settled.at,
            receipt=settled.receipt_digest or "",
        )
    is_open = record.state == "open"
    return GateView(
        interrupt_id=record.interrupt_id,
        gate=record.occurrence.gate,
        visit=record.occurrence.visit,
        branch=str(record.branch),
        kind=gate.kind if gate else GateKind.HUMAN,
        state=record.state,
        message=gate.message if gate else None,
        payload=gate.payload if gate and is_open else None,
        response_schema=gate.response_schema if gate and is_open else None,
        digest=record.shown,
        policy=PolicyView.model_validate(gate.policy.model_dump()) if gate else PolicyView(),
        opened_at=record.opened_at,
        deadline=gate.deadline if gate else None,
        on_deadline=gate.on_deadline if gate else "fail",
        default=gate.default if gate else None,
        closed_at=record.closed_at,
        reason=record.reason,
        answer=answer,
        consumed_by=tuple(consumed.by for consumed in record.consumed),
        refusals=book.tally(record.interrupt_id).count,
    )


def gates_page(book: Book, start: int = 0) -> GatesPage:
    """The gates of a book from the `start`-th on."""
    # In the order in which they opened, which does not change while somebody turns the pages.
    records = list(book.gates.values())
    views: list[GateView] = []
    size = 0
    for record in records[start:]:
        view = gate_view(book, record)
        size += len(view.model_dump_json().encode())
        if views and size > PAGE_BYTES:
            return GatesPage(frame=book.frame, gates=tuple(views), next=start + len(views))
        views.append(view)
    return GatesPage(frame=book.frame, gates=tuple(views))


def book_part(book: Book, part: int = 0) -> BookPart:
    """The `part`-th piece of a book's JSON, counted from 0."""
    text = json.dumps(book.to_json())
    parts = range(0, len(text), PAGE_BYTES)
    start = parts[part] if part < len(parts) else len(text)
    return BookPart(stamp=digest(text), parts=len(parts), text=text[start : start + PAGE_BYTES])


def transcript_page(book: Book, after: int = 0) -> TranscriptPage:
    """The transcript of a book from cursor `after` on; what compaction dropped is in the archive only."""
    start = max(after - book.dropped, 0)
    entries: list[dict[str, Any]] = []
    size = 0
    for entry in book.entries[start:]:
        line = entry.model_dump(mode="json")
        if isinstance(entry, Asked | Answered | Consumed | Expired | Superseded):
            line["interrupt_id"] = entry.occurrence.interrupt_id
        if isinstance(entry, Performed):
            line["call_id"] = entry.call.id
        size += len(entry.model_dump_json().encode())
        if entries and size > PAGE_BYTES:
            break
        entries.append(line)
    end = book.dropped + start + len(entries)
    at_end = end == book.cursor
    closed = at_end and book.standing != "open"
    return TranscriptPage(entries=tuple(entries), next=end, closed=closed, dropped=book.dropped)


def receipts_page(book: Book, after: int = 0) -> ReceiptsPage:
    """The receipts of a book whose number is greater than `after`."""
    wanted = [receipt for receipt in book.receipts if receipt.number > after]
    page = tuple(wanted[:500])
    return ReceiptsPage(anchor=book.anchor, receipts=page, next=page[-1].number if len(wanted) > len(page) else None)


def refusals_view(book: Book) -> RefusalsView:
    """What was refused in a run, and by whom; where that is too much for one reply, the latest of it."""
    refused: list[Refused] = []
    size = 0
    kept = sorted((entry for tally in book.refusals.values() for entry in tally.kept), key=lambda entry: entry.at)
    for entry in reversed(kept):
        size += len(entry.model_dump_json().encode())
        if refused and size > PAGE_BYTES:
            break
        refused.append(entry)
    return RefusalsView(
        refused=tuple(reversed(refused)),
        left_out=len(kept) - len(refused),
        counts={key: dict(tally.by_name) for key, tally in book.refusals.items()},
        dead_letters=tuple(book.dead_letters.kept),
        dead_letter_count=book.dead_letters.count,
    )
