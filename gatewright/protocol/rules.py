"""
The rules of admission: what speaks against an answer, in the order in which it is asked.

Each rule looks at one case and either has nothing to say or gives its reason in
words. The tables at the end bind rules to refusals; their order is part of the
protocol.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from .answer import MAX_MESSAGE_BYTES, Answer, Evidence, Message
from .book import Book
from .canonical import NotJson, check_json
from .decoding import Fault, Undecodable, decode
from .entries import Refusal
from .errors import IdentityError
from .gate import GateKind
from .identity import Occurrence, Standing
from .record import GateRecord


@dataclass(frozen=True)
class Case:
    """What the rules look at: one message, one of its answers, and the occurrence that it means."""

    book: Book
    message: Message
    evidence: Evidence
    at: datetime
    answer: Answer = field(default_factory=Answer)
    meant: GateRecord | None = None

    @property
    def waiting(self) -> str:
        """The open gates in words, for the end of a reason."""
        ids = [record.interrupt_id for record in self.book.open]
        if not ids:
            return "No gate is open now."
        shown = ", ".join(ids[:10]) + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
        return f"Open now: {shown}."


Reason = str | tuple[str, tuple[Fault, ...]]
Rule = Callable[[Case], Reason | None]


def _too_large(case: Case) -> Reason | None:
    if case.evidence.size <= MAX_MESSAGE_BYTES:
        return None
    return (
        f"the message has {case.evidence.size:,} bytes, at most {MAX_MESSAGE_BYTES:,} are read. "
        "Put large evidence elsewhere and answer with a reference to it."
    )


def _mixed_message(case: Case) -> Reason | None:
    if not case.message.text or not case.message.answers:
        return None
    return (
        "Message cannot contain both function responses and text. Function responses resume an existing invocation "
        "while text starts a new one. Send the answer alone."
    )


def _not_an_answer(case: Case) -> Reason | None:
    author = case.message.author
    if author not in {"user", "system"}:
        return f"it was authored by {author!r}; only somebody outside the run can answer a gate (author user or system)"
    for answer in case.message.answers:
        if answer.principal.partition(":")[0] in {"agent", "model", "engine"}:
            return f"principal {answer.principal!r} is the run's own side; only somebody outside can answer a gate"
    return None


def _no_answer(case: Case) -> Reason | None:
    if case.message.answers:
        return None
    return f"the message carries no answer. Send interruptId and response. {case.waiting}"


def _missing_id(case: Case) -> Reason | None:
    if case.answer.interrupt_id or case.answer.gate:
        return None
    return f"the answer names no interrupt id, so it is not known what it answers. {case.waiting}"


def _unportable(case: Case) -> Reason | None:
    """Judged early, because what is not JSON has no digest by which to recognise a repeat."""
    try:
        check_json(case.answer.response)
        # Text elsewhere in the answer may hold half a surrogate pair too.
        check_json([case.answer.interrupt_id, case.answer.gate, case.answer.principal, case.answer.supersedes])
        check_json([case.answer.answer_id, case.answer.channel, case.answer.digest])
        check_json(case.answer.failure.model_dump() if case.answer.failure else None)
    except NotJson as wrong:
        words = f"the response is not portable JSON: {wrong.path}: {wrong.reason}"
        return (words, (Fault(path=wrong.path, message=wrong.reason),))
    return None


def _conflict(case: Case) -> Reason | None:
    first = case.book.answered_as(case.answer.name)
    if first is None or first.content_digest == case.answer.content_digest:
        return None
    return (
        f"answer id {case.answer.name!r} was used before, for {first.interrupt_id} with other content"
        f"{_by(first)}. A new answer needs an id of its own."
    )


def _duplicate_in_message(case: Case) -> Reason | None:
    seen = [answer for answer in case.message.answers if _means(case.book, answer) == _means(case.book, case.answer)]
    if len(seen) > 1:
        return f"{len(seen)} answers of this message are for {_means(case.book, case.answer)}. Send one."
    named = case.answer.answer_id
    if named and sum(answer.answer_id == named for answer in case.message.answers) > 1:
        return f"two answers of this message share the answer id {named!r}"
    return None


def _frame_closed(case: Case) -> Reason | None:
    if case.book.standing is Standing.OPEN:
        return None
    answered = (
        f" {case.meant.interrupt_id} was answered{_by(case.meant)}." if case.meant and _answered(case.meant) else ""
    )
    return f"the run is {case.book.standing.value}; it takes no more answers.{answered}"


def _ambiguous_gate(case: Case) -> Reason | None:
    if case.answer.gate and case.meant is not None and case.meant.occurrence.gate != case.answer.gate:
        return (
            f"{case.meant.interrupt_id} is not an occurrence of the gate {case.answer.gate!r}. Name the one you mean."
        )
    if case.answer.interrupt_id or case.meant is not None or not case.book.visits[case.answer.gate]:
        return None
    ids = [record.interrupt_id for record in case.book.open if record.occurrence.gate == case.answer.gate]
    shown = ", ".join(ids) if ids else "none of them is open"
    return (
        f"{case.answer.gate!r} names a gate that was reached {case.book.visits[case.answer.gate]} times, not one occurrence "
        f"({shown}). Answer the interrupt id."
    )


def _not_open_yet(case: Case) -> Reason | None:
    if case.meant is not None:
        return None
    book, name = case.book, case.answer.gate
    if case.answer.interrupt_id:
        occurrence = _occurrence(case.answer.interrupt_id)
        if occurrence is None or occurrence.run != book.run:
            return None
        name = occurrence.gate
    if name in book.declared or name in book.visits or not book.gates:
        what = case.answer.interrupt_id or name
        return f"{what} has not been asked yet, and an answer is never held for later. Send it once it is listed. {case.waiting}"
    return None


def _unknown_gate(case: Case) -> Reason | None:
    if case.meant is not None:
        return None
    occurrence = _occurrence(case.answer.interrupt_id)
    if occurrence is not None and occurrence.run != case.book.run:
        return (
            f"{case.answer.interrupt_id} belongs to run {occurrence.run} of the session, and this is run {case.book.run}. "
            f"{case.waiting}"
        )
    return f"this run never asked {case.answer.interrupt_id or case.answer.gate!r}. {case.waiting}"


def _superseded(case: Case) -> Reason | None:
    if case.meant is None or case.meant.state != "superseded":
        return None
    return f"{case.meant.interrupt_id} no longer waits: {case.meant.reason or 'it was superseded'}. {case.waiting}"


def _may_not_supersede(case: Case) -> Reason | None:
    if case.answer.supersedes is None:
        return None
    return (
        f"this gate does not take a change of mind, so the answer cannot replace {case.answer.supersedes!r}. "
        f"{case.waiting}"
    )


def _already_answered(case: Case) -> Reason | None:
    if case.meant is None or not _answered(case.meant):
        return None
    return (
        f"{case.meant.interrupt_id} was answered{_by(case.meant)}; the first admitted answer is final. {case.waiting}"
    )


def _expired(case: Case) -> Reason | None:
    meant = case.meant
    if meant is None:
        return None
    deadline = meant.gate.deadline if meant.gate else None
    if meant.state == "expired" or (deadline is not None and case.at >= deadline):
        when = f" at {_time(deadline)}" if deadline else ""
        return f"the deadline of {meant.interrupt_id} passed{when}. {case.waiting}"
    return None


def _not_invited(case: Case) -> Reason | None:
    gate = case.meant.gate if case.meant else None
    if gate is None:
        return None
    who = case.answer.principal or "an answer without a principal"
    if gate.policy.invited and case.answer.principal not in gate.policy.invited:
        return f"{who} may not answer {gate.name!r}; invited: {', '.join(gate.policy.invited)}"
    if not gate.policy.separate_from:
        # The cost of an answer must not grow with the number of gates that were answered before.
        return None
    for record in case.book.gates.values():
        if record.stands_for in gate.policy.separate_from and record.principal == case.answer.principal:
            return f"{who} answered {record.interrupt_id}, and {gate.name!r} must be answered by somebody else"
    for other in case.message.answers:
        meant = record_meant(case.book, other)
        if meant and meant.stands_for in gate.policy.separate_from and other.principal == case.answer.principal:
            return f"{who} answers {meant.interrupt_id} as well, and {gate.name!r} must be answered by somebody else"
    return None


def _stale_digest(case: Case) -> Reason | None:
    if case.meant is None or case.answer.digest is None or case.answer.digest == case.meant.shown:
        return None
    return (
        f"the answer is to something else than {case.meant.interrupt_id} shows (it was given for {case.answer.digest[:80]}, "
        f"shown is {case.meant.shown}). Read the gate again."
    )


def _invalid(case: Case) -> Reason | None:
    gate = case.meant.gate if case.meant else None
    if gate is None:
        return None
    if case.answer.failure is not None:
        if case.answer.response is not None:
            return "the answer carries a response and a failure. Send one of them"
        if gate.kind is GateKind.SYSTEM:
            return None
        return f"{gate.name!r} asks a person, who answers with a response; a failure is for system gates"
    ruling = decode(case.answer.response, gate.response_schema, strict=gate.policy.strict)
    if isinstance(ruling, Undecodable):
        words = "; ".join(f"{fault.path}: {fault.message}" for fault in ruling.faults[:5])
        more = f"; and {len(ruling.faults) - 5} more" if len(ruling.faults) > 5 else ""
        return (f"the response does not fit what {gate.name!r} asks: {words}{more}", ruling.faults)
    return None


MESSAGE_RULES: tuple[tuple[Refusal, Rule], ...] = (
    # Refuse with...                ...when
    (Refusal.TOO_LARGE, _too_large),
    (Refusal.MIXED_MESSAGE, _mixed_message),
    (Refusal.NOT_AN_ANSWER, _not_an_answer),
    (Refusal.NO_ANSWER, _no_answer),
)

BEFORE_REPEAT: tuple[tuple[Refusal, Rule], ...] = (
    (Refusal.MISSING_ID, _missing_id),
    (Refusal.INVALID, _unportable),
    (Refusal.DUPLICATE_IN_MESSAGE, _duplicate_in_message),
)
"""Judged before a repeat is looked for: what has no id or no digest cannot be recognised as one."""

ANSWER_RULES: tuple[tuple[Refusal, Rule], ...] = (
    (Refusal.CONFLICT, _conflict),
    (Refusal.FRAME_CLOSED, _frame_closed),
    (Refusal.AMBIGUOUS_GATE, _ambiguous_gate),
    (Refusal.NOT_OPEN_YET, _not_open_yet),
    (Refusal.UNKNOWN_GATE, _unknown_gate),
    (Refusal.SUPERSEDED, _superseded),
    (Refusal.MAY_NOT_SUPERSEDE, _may_not_supersede),
    (Refusal.ALREADY_ANSWERED, _already_answered),
    (Refusal.EXPIRED, _expired),
    (Refusal.NOT_INVITED, _not_invited),
    (Refusal.STALE_DIGEST, _stale_digest),
    (Refusal.INVALID, _invalid),
)
"""Judged after it: a resend is recognised even when the gate is closed and the deadline passed."""


def record_meant(book: Book, answer: Answer) -> GateRecord | None:
    """
    The occurrence that an answer means.

    A gate's bare name means an occurrence only where it cannot mean another:
    the gate was reached once, or the digest seen is that of one open
    occurrence (or, where none of them is open, of one that was). Otherwise a
    late answer could land in the wrong round (H02).
    """
    if answer.interrupt_id:
        return book.gates.get(answer.interrupt_id)
    if not answer.gate:
        return None
    records = [record for record in book.gates.values() if record.occurrence.gate == answer.gate]
    if len(records) == 1 and book.visits[answer.gate] == 1:
        return records[0]
    shown = [record for record in records if record.shown == answer.digest]
    shown = [record for record in shown if record.state == "open"] or shown
    return shown[0] if len(shown) == 1 else None


def _means(book: Book, answer: Answer) -> str:
    meant = record_meant(book, answer)
    return meant.interrupt_id if meant else answer.interrupt_id or f"gate {answer.gate}"


def _occurrence(interrupt_id: str) -> Occurrence | None:
    try:
        return Occurrence.parse(interrupt_id)
    except IdentityError:
        return None


def _answered(record: GateRecord) -> bool:
    return record.state == "answered"


def _by(record: GateRecord) -> str:
    who = f" by {record.principal}" if record.principal else ""
    return f"{who} at {_time(record.closed_at)}" if record.closed_at else who


def _time(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""
