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

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from .answer import Answer, Evidence, Message
from .book import Book
from .canonical import NotJson
from .decoding import Undecodable, decode
from .entries import Answered, Objection, Refusal, Refused
from .errors import IdentityError
from .faults import MAX_FAULTS
from .identity import Standing
from .receipt import Anchor, EffectFact, Receipt, ResponderFact
from .record import GateRecord
from .rules import ANSWER_RULES, BEFORE_REPEAT, MESSAGE_RULES, Case, Reason, Rule, record_meant
from .word import Told

MAX_OBJECTIONS = 20
"""How many answers of one message are told what is wrong with them; between them they are told 51 faults."""

MAX_REASON = 2_000
"""The longest reason, in characters."""


class Admitted(Told):
    """Every answer of the message counts; `entries` are what the book records of it."""

    verdict: Literal["admitted"] = "admitted"
    receipts: tuple[Receipt, ...]
    cursor: int | None = Field(default=None, description="where the transcript goes on after it, as the run tells it")
    entries: tuple[Answered, ...] = Field(default=(), exclude=True)


class Repeated(Told):
    """This was said before, in the same words: here is what it earned then. Nothing changes."""

    verdict: Literal["repeated"] = "repeated"
    receipts: tuple[Receipt, ...]


class Pending(Told):
    """The answer counts towards a quorum that is not complete (reserved)."""

    verdict: Literal["pending"] = "pending"
    interrupt_ids: tuple[str, ...]
    missing: int


Admission = Admitted | Repeated | Pending | Refused
Verdict = Annotated[Admission, Field(discriminator="verdict")]
"""What the sender is told: tagged JSON, the same by every channel."""


def admit(book: Book, message: Message, evidence: Evidence, *, at: datetime) -> Admission:
    """
    Judge one message against the book, changing nothing.

    The caller writes what it is given: `Admitted.entries`, or the `Refused`
    itself. Judging without writing is a dry run.
    """
    case = Case(book, message, evidence, at)
    if objection := _object(MESSAGE_RULES, case):
        return _refused(case, [objection])
    rulings = [_judge(replace(case, answer=answer, meant=record_meant(book, answer))) for answer in message.answers]
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
                entry = _answered_entry(ruling, head, part=len(entries))
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
    if not case.answer.interrupt_id and case.meant is None:
        # A gate's bare name that may mean a later occurrence by now is no repeat of what it meant then.
        return None
    if record.content_digest != case.answer.content_digest:
        return None
    if record.answered is not None:
        return record.answered.receipt
    settled = record.settled
    if settled is None:
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
        occurrence=record.fact,
        branch=record.branch,
        responder=None,
        effect=EffectFact(),
        digest=settled.receipt_digest,
    )


def _answered_entry(case: Case, head: Receipt | Anchor | None, *, value: JsonValue = None, part: int = 0) -> Answered:
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
        occurrence=record.fact,
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
    return Answered(
        at=case.at,
        occurrence=record.occurrence,
        answer=named,
        value=value,
        receipt=receipt,
        part=part,
        # Once for a message: what belongs to it as a whole must not be kept again with every one of its answers.
        note=case.message.note if part == 0 else None,
    )


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
