"""
One receipt of an answer, held against what was delivered: the same words, by that door, not later, and so ruled.

An answer that the engine gave at a deadline is looked for as the timer that
fired and the default that was recorded with the gate.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from gatewright.protocol.answer import Answer, EvidenceClass
from gatewright.protocol.errors import IdentityError
from gatewright.protocol.identity import Occurrence
from gatewright.protocol.receipt import OccurrenceFact, Receipt, ResponderFact

from .history_facts import Delivery, Facts, Fired, content_of

Outcome = Literal["confirmed", "contradicted", "not_covered"]

INEXACT = timedelta(milliseconds=1)
"""How far the time of a receipt and that of its event may lie apart: an export may round."""

ENGINE_DOOR = "engine"
DEADLINE = "engine:deadline"


class Saying(NamedTuple):
    """What a history says of something, in words."""

    outcome: Outcome
    words: str


def confirmed(words: str) -> Saying:
    """The history has it."""
    return Saying("confirmed", words)


def contradicted(words: str) -> Saying:
    """The history has something else, or lacks what it would have to have."""
    return Saying("contradicted", words)


def not_covered(words: str) -> Saying:
    """The history cannot say."""
    return Saying("not_covered", words)


def together(sayings: Iterable[Saying]) -> Saying:
    """Several sayings about one thing: as bad as the worst of them, whose words come first."""
    order: tuple[Outcome, ...] = ("contradicted", "not_covered", "confirmed")
    ranked = sorted(sayings, key=lambda saying: order.index(saying.outcome))
    worst = ranked[0].outcome
    told = [saying.words for saying in ranked if worst != "contradicted" or saying.outcome == worst]
    return Saying(worst, "; ".join(dict.fromkeys(filter(None, told))))


def answer_in(facts: Facts, receipt: Receipt) -> Saying:
    """What the history says of a continuation: its answer was delivered, admitted, and given to what was shown."""
    responder, occurrence = receipt.responder, receipt.occurrence
    if responder is None or occurrence is None:
        return contradicted("it names nobody who answered, and continues all the same")
    if responder.door == ENGINE_DOOR:
        return together([*_occurrence(occurrence), _deadline(facts, receipt, responder, occurrence)])
    return together([*_occurrence(occurrence), _delivered(facts, receipt, responder, occurrence)])


def not_shown(facts: Facts, occurrence: OccurrenceFact) -> Saying | None:
    """What speaks against it that the gate showed what the receipt says, in a history that has all that it showed."""
    digests = [gate.digest for gate in facts.shown if gate.name == occurrence.gate]
    if not digests or occurrence.digest in digests or facts.veiled:
        return None
    return contradicted(f"the gate {occurrence.gate} never showed {occurrence.digest}, but {', '.join(digests[:3])}")


def _occurrence(occurrence: OccurrenceFact) -> Iterator[Saying]:
    """An occurrence is what its interrupt id says."""
    try:
        read = Occurrence.parse(occurrence.interrupt_id)
    except IdentityError as wrong:
        yield contradicted(str(wrong))
        return
    if (read.gate, read.run, read.visit) != (occurrence.gate, occurrence.run, occurrence.visit):
        yield contradicted(
            f"{occurrence.interrupt_id} is not visit {occurrence.visit} of run {occurrence.run} at the gate {occurrence.gate}"
        )


# By a door


def _delivered(facts: Facts, receipt: Receipt, responder: ResponderFact, occurrence: OccurrenceFact) -> Saying:
    found = [
        (delivery, answer)
        for delivery in facts.deliveries
        for answer in delivery.answers
        if content_of(answer) == responder.content_digest and _means(answer, occurrence)
    ]
    if not found:
        return _missing(facts, receipt, responder, occurrence)
    doors = [delivery.door for delivery, _ in found]
    found = [(delivery, answer) for delivery, answer in found if delivery.door == responder.door]
    if not found:
        return contradicted(f"the answer came by {doors[0]}, and not by {responder.door or 'no door'}")
    quoted = [(delivery, list(_misquoted(delivery, answer, responder))) for delivery, answer in found]
    right = [delivery for delivery, wrong in quoted if not wrong]
    if not right:
        delivery, wrong = quoted[0]
        return contradicted(f"{delivery.where} has {'; '.join(wrong)}")
    in_time = [delivery for delivery in right if delivery.there_by <= receipt.at + INEXACT]
    if not in_time:
        return contradicted(
            f"the answer was delivered at {_time(right[0].there_by)} ({right[0].where}), "
            f"after the receipt says that it was admitted ({_time(receipt.at)})"
        )
    return _ruled(in_time, receipt, responder)


def _means(answer: Answer, occurrence: OccurrenceFact) -> bool:
    if answer.interrupt_id:
        return answer.interrupt_id == occurrence.interrupt_id
    return answer.gate == occurrence.gate


def _misquoted(delivery: Delivery, answer: Answer, responder: ResponderFact) -> Iterator[str]:
    channel = answer.channel or delivery.door
    for what, said, stated in (
        ("answer id", answer.name, responder.answer_id),
        ("principal", answer.principal, responder.principal),
        ("channel", channel, responder.channel),
    ):
        if said != stated:
            yield f"{what} {said!r}, and the receipt {stated!r}"


def _missing(facts: Facts, receipt: Receipt, responder: ResponderFact, occurrence: OccurrenceFact) -> Saying:
    """No such answer: perhaps another one under its name, perhaps one that cannot be read."""
    for delivery in facts.deliveries:
        for answer in delivery.answers:
            if content_of(answer) is not None and answer.name == responder.answer_id:
                return contradicted(
                    f"{delivery.where} brought answer {responder.answer_id} with other content than the receipt states"
                )
    if any(
        delivery.veiled and delivery.door == responder.door and delivery.there_by <= receipt.at + INEXACT
        for delivery in facts.deliveries
    ):
        return not_covered(f"no readable {responder.door} brought this answer, and others are encrypted")
    return contradicted(
        f"no {responder.door or 'door'} brought answer {responder.answer_id} to {occurrence.interrupt_id} with this content"
    )


def _ruled(delivered: list[Delivery], receipt: Receipt, responder: ResponderFact) -> Saying:
    """What was ruled on the delivered answer; nobody is told the verdict of a signal."""
    refused = []
    for delivery in delivered:
        given = receipts_given(delivery)
        if any(digest == receipt.digest for _, digest, _ in given):
            return confirmed(f"{delivery.where} brought the answer, and its verdict is this receipt")
        if other := next((each for each in given if each[2] == responder.answer_id), None):
            return contradicted(
                f"{delivery.where} brought the answer, and its verdict is another receipt (number {other[0]}, {other[1]})"
            )
        if isinstance(delivery.verdict, dict) and delivery.verdict.get("verdict") == "refused":
            refused.append(delivery)
    open_ones = [delivery for delivery in delivered if delivery not in refused]
    if not open_ones:
        return contradicted(f"{refused[0].where} brought the answer, and the run refused it")
    if responder.evidence is not EvidenceClass.ASSERTED:
        return not_covered(
            f"{open_ones[0].where} brought the answer; that who answered is {responder.evidence.value} is not in the history"
        )
    return confirmed(f"{open_ones[0].where} brought the answer")


def receipts_given(delivery: Delivery) -> list[tuple[int, str, str | None]]:
    """The receipts in the verdict of an update that was admitted or repeated: number, digest, answer id."""
    match delivery.verdict:
        case {"verdict": "admitted" | "repeated", "receipts": list(receipts)}:
            return [given for each in receipts if (given := _given(each)) is not None]
        case _:
            return []


def _given(receipt: Any) -> tuple[int, str, str | None] | None:
    match receipt:
        case {"number": int(number), "digest": str(digest), "responder": {"answer_id": str(answer_id)}}:
            return number, digest, answer_id
        case {"number": int(number), "digest": str(digest)}:
            return number, digest, None
        case _:
            return None


# By the engine


def _deadline(facts: Facts, receipt: Receipt, responder: ResponderFact, occurrence: OccurrenceFact) -> Saying:
    if responder.principal != DEADLINE:
        return contradicted(f"the engine answers as {DEADLINE}, and not as {responder.principal!r}")
    fired = _timer(facts.fired, receipt, occurrence)
    if fired is None:
        if _went_on_late(facts, receipt.at):
            return not_covered("its deadline had passed before this execution began, so that no timer was needed")
        return contradicted(f"no timer of {occurrence.interrupt_id}'s deadline had fired by {_time(receipt.at)}")
    if fired.veiled:
        return not_covered(f"{fired.where} is a timer that fired, and what for cannot be read")
    recorded = [gate for gate in facts.shown if gate.name == occurrence.gate and gate.digest == occurrence.digest]
    if not recorded:
        return not_covered(f"{fired.where} is its deadline; what its default is, no given history says")
    for gate in recorded:
        default = Answer(
            interrupt_id=occurrence.interrupt_id, response=gate.default, principal=DEADLINE, digest=occurrence.digest
        )
        known = responder.answer_id in {f"deadline-of-{occurrence.interrupt_id}", default.name}
        if gate.on_deadline == "default" and known and default.content_digest == responder.content_digest:
            return confirmed(f"{fired.where} is its deadline, and the answer is the gate's default")
    return contradicted(f"{fired.where} is its deadline, and the answer is not the default that the gate had")


def _timer(fired: list[Fired], receipt: Receipt, occurrence: OccurrenceFact) -> Fired | None:
    in_time = [timer for timer in fired if timer.at <= receipt.at + INEXACT]
    named = [timer for timer in in_time if timer.summary == f"deadline of {occurrence.interrupt_id}"]
    return next(iter(named + [timer for timer in in_time if timer.veiled]), None)


def _went_on_late(facts: Facts, at: datetime) -> bool:
    """Whether this is the first task of an execution that went on from another."""
    return any(span.continued and span.times and abs(span.times[0] - at) <= INEXACT for span in facts.spans)


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


__all__ = [
    "INEXACT",
    "Outcome",
    "Saying",
    "answer_in",
    "confirmed",
    "contradicted",
    "not_covered",
    "not_shown",
    "receipts_given",
    "together",
]
