"""
Admission: whether something is an answer to the question that was asked.

Someone reads a gate, goes to lunch, and presses *approve* at two. By then the
run may have moved on, asked again with a new draft, or crashed and replayed.
This module decides, from the book alone, whether the press still counts.

Four things hold throughout:

1. A refusal is a value, not an exception. Stale presses are traffic.
2. The clock is an argument.
3. A message is admitted whole or not at all (D04, L07).
4. The first rule to object wins. Their order is part of the protocol: a change
   to it changes how histories replay, and needs `workflow.patched`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .answer import MAX_MESSAGE_BYTES, Answer, Evidence, Message
from .book import Book, GateRecord
from .canonical import NotJson, check_json
from .decoding import Fault, Undecodable, decode
from .entries import Answered, Objection, Refusal, Refused
from .errors import IdentityError
from .faults import MAX_FAULTS
from .gate import GateKind
from .identity import Occurrence, Standing
from .receipt import Anchor, EffectFact, OccurrenceFact, Receipt, ResponderFact
from .word import Word

MAX_OBJECTIONS = 20
"""How many answers of one message are told what is wrong with them; between them they are told 51 faults."""

MAX_REASON = 2_000
"""The longest reason, in characters."""


class Admitted(Word):
    """Every answer of the message counts; `entries` are what the book records of it."""

    verdict: Literal["admitted"] = "admitted"
    receipts: tuple[Receipt, ...]
    entries: tuple[Answered, ...] = Field(default=(), exclude=True)


class Repeated(Word):
    """This was said before, in the same words: here is what it earned then. Nothing changes."""

    verdict: Literal["repeated"] = "repeated"
    receipts: tuple[Receipt, ...]


class Pending(Word):
    """The answer counts towards a quorum that is not complete (reserved)."""

    verdict: Literal["pending"] = "pending"
    interrupt_ids: tuple[str, ...]
    missing: int


Admission = Admitted | Repeated | Pending | Refused
Verdict = Annotated[Admission, Field(discriminator="verdict")]
"""What the sender is told: tagged JSON, the same by every channel."""


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
    if first is None:
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
        if record.occurrence.gate in gate.policy.separate_from and record.principal == case.answer.principal:
            return f"{who} answered {record.interrupt_id}, and {gate.name!r} must be answered by somebody else"
    for other in case.message.answers:
        meant = _meant(case.book, other)
        if meant and meant.occurrence.gate in gate.policy.separate_from and other.principal == case.answer.principal:
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


def admit(book: Book, message: Message, evidence: Evidence, *, at: datetime) -> Admission:
    """
    Judge one message against the book, changing nothing.

    The caller writes what it is given: `Admitted.entries`, or the `Refused`
    itself. Judging without writing is a dry run.
    """
    case = Case(book, message, evidence, at)
    if objection := _object(MESSAGE_RULES, case):
        return _refused(case, [objection])
    rulings = [_judge(replace(case, answer=answer, meant=_meant(book, answer))) for answer in message.answers]
    if objections := [ruling for ruling in rulings if isinstance(ruling, Objection)]:
        return _refused(case, objections)
    fresh = [ruling for ruling in rulings if isinstance(ruling, Case)]
    if not fresh:
        return Repeated(receipts=tuple(ruling for ruling in rulings if isinstance(ruling, Receipt)))
    receipts: list[Receipt] = []
    entries: list[Answered] = []
    head = book.head
    for ruling in rulings:
        match ruling:
            case Receipt():
                receipts.append(ruling)
            case Case():
                entry = _answered_entry(ruling, head)
                head = entry.receipt
                entries.append(entry)
                receipts.append(entry.receipt)
            case Objection():  # all of them were refused above
                continue
    return Admitted(receipts=tuple(receipts), entries=tuple(entries))


def admit_default(book: Book, record: GateRecord, *, at: datetime) -> Answered:
    """The entry by which the engine answers a gate whose deadline passed with its default, with a receipt that says so."""
    gate = record.gate
    if gate is None or gate.on_deadline != "default":
        msg = f"{record.interrupt_id} has no default"
        raise IdentityError(msg)
    named = f"deadline-of-{record.interrupt_id}"
    answer = Answer(
        # Named by its content where the name is too long, or somebody has taken it in order to disturb.
        answer_id=named if len(named) <= 200 and book.answered_as(named) is None else "",
        interrupt_id=record.interrupt_id,
        response=gate.default,
        principal="engine:deadline",
        channel="deadline",
        digest=record.shown,
    )
    case = Case(book, Message.of(answer), Evidence(size=0, door="engine"), at, answer, record)
    return _answered_entry(case, book.head, value=gate.default)


def unreadable(book: Book, reason: str, evidence: Evidence, *, at: datetime) -> Refused:
    """The refusal of something that could not be read as a message at all."""
    case = Case(book, Message(), evidence, at)
    why = (
        f"the message cannot be read: {reason[:800]}. Send one JSON object with interruptId and response "
        f'(or {{"answers": [...]}}). {case.waiting}'
    )
    return _refused(case, [_objection(Refusal.UNREADABLE, why, case)])


def _judge(case: Case) -> Objection | Receipt | Case:
    """One answer: what speaks against it, the receipt that it earned before, or the case for admitting it."""
    if objection := _object(BEFORE_REPEAT, case):
        return objection
    if receipt := _earned(case):
        return receipt
    return _object(ANSWER_RULES, case) or case


def _object(rules: tuple[tuple[Refusal, Rule], ...], case: Case) -> Objection | None:
    for refusal, rule in rules:
        if reason := rule(case):
            return _objection(refusal, reason, case)
    return None


def _objection(refusal: Refusal, reason: Reason, case: Case) -> Objection:
    words, faults = (reason, ()) if isinstance(reason, str) else reason
    return Objection(
        refusal=refusal,
        reason=_printable(words[:MAX_REASON]),
        interrupt_id=(case.meant.interrupt_id if case.meant else _printable(case.answer.interrupt_id)) or None,
        answer_id=_named(case.answer),
        faults=faults,
        armed=case.meant is not None and case.meant.state == "open" and case.book.standing is Standing.OPEN,
        open=tuple(record.interrupt_id for record in case.book.open[:50]),
    )


def _refused(case: Case, objections: list[Objection]) -> Refused:
    first = case.message.answers[0] if case.message.answers else Answer()
    told: list[Objection] = []
    room = MAX_FAULTS + 1
    # Bounded as a whole: a verdict that is too large for its channel would wedge the run that gives it.
    for objection in objections[:MAX_OBJECTIONS]:
        told.append(objection.model_copy(update={"faults": objection.faults[:room]}))
        room = max(room - len(objection.faults), 0)
    return Refused(
        at=case.at,
        objections=tuple(told),
        principal=_printable(first.principal),
        channel=_printable(first.channel) or case.evidence.door,
        door=case.evidence.door,
        attempt=_printable(case.message.attempt),
    )


def _earned(case: Case) -> Receipt | None:
    """The first receipt of an answer with this id and this content, wherever it is still kept."""
    record = case.book.answered_as(case.answer.name)
    if record is None:
        return None
    if record.answered is not None:
        same = record.answered.answer.content_digest == case.answer.content_digest
        return record.answered.receipt if same else None
    settled = record.settled
    if settled is None or settled.content_digest != case.answer.content_digest:
        return None
    for receipt in case.book.receipts:
        if receipt.digest == settled.receipt_digest:
            return receipt
    return _restated(case, record)


def _restated(case: Case, record: GateRecord) -> Receipt | None:
    """The receipt of a settled answer whose full form is in the archive: its facts as the book still knows them."""
    settled = record.settled
    if settled is None or settled.receipt_number is None or settled.receipt_digest is None:
        return None
    return Receipt(
        number=settled.receipt_number,
        previous=None,
        at=settled.at,
        frame=case.book.frame,
        occurrence=_occurrence_fact(record),
        branch=record.branch,
        responder=None,
        effect=EffectFact(),
        digest=settled.receipt_digest,
    )


def _answered_entry(case: Case, head: Receipt | Anchor | None, *, value: JsonValue = None) -> Answered:
    record, answer = case.meant, case.answer
    if record is None or record.gate is None:
        msg = f"{answer.interrupt_id} cannot be admitted: no such gate is open"
        raise IdentityError(msg)
    if case.evidence.door != "engine" and answer.failure is None:
        decoded = decode(answer.response, record.gate.response_schema, strict=record.gate.policy.strict)
        value = None if isinstance(decoded, Undecodable) else decoded.value
    named = answer.model_copy(update={"answer_id": answer.name, "channel": answer.channel or case.evidence.door})
    receipt = Receipt.seal(
        head,
        at=case.at,
        frame=case.book.frame,
        occurrence=_occurrence_fact(record),
        branch=record.branch,
        responder=ResponderFact(
            principal=answer.principal,
            channel=named.channel,
            door=case.evidence.door,
            # What the channel claims beyond what the receiver could establish is not recorded as if it were known.
            evidence=case.evidence.established,
            answer_id=named.answer_id,
            content_digest=answer.content_digest,
        ),
        effect=EffectFact(),
    )
    return Answered(at=case.at, occurrence=record.occurrence, answer=named, value=value, receipt=receipt)


def _occurrence_fact(record: GateRecord) -> OccurrenceFact:
    at = record.occurrence
    return OccurrenceFact(interrupt_id=at.interrupt_id, gate=at.gate, run=at.run, visit=at.visit, digest=record.shown)


def _meant(book: Book, answer: Answer) -> GateRecord | None:
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
    meant = _meant(book, answer)
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


def _named(answer: Answer) -> str | None:
    """How the sender can ask for this ruling again; None for nothing that was said, or said in no JSON."""
    if not answer.answer_id and not answer.interrupt_id and not answer.gate:
        return None
    try:
        return _printable(answer.name)
    except NotJson:
        return None


def _printable(text: str) -> str:
    """Text that any encoding can carry: half a surrogate pair is shown as its escape."""
    return text.encode("utf-8", "backslashreplace").decode()
