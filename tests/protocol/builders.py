"""A run that waits at a gate, and an answer that would be admitted there: to be varied or spoilt by a test."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from gatewright.protocol.admission import Admission, Admitted, admit
from gatewright.protocol.answer import Answer, Evidence, Message
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Asked, Closed, DeadLettered, Expired, Objection, Refusal, Refused, Superseded
from gatewright.protocol.gate import Gate, Policy
from gatewright.protocol.identity import BranchPath, FrameIdentity, FrameState, Occurrence, Standing
from gatewright.protocol.receipt import Anchor, EffectFact, EffectState, OccurrenceFact, Receipt, ResponderFact

NOON = datetime(2031, 5, 4, 12, tzinfo=UTC)
IDENTITY = FrameIdentity(namespace="default", workflow_id="datasets/ada/s1/1", first_execution_run_id="e1")
ROOT = BranchPath().child("release", 1)

REVIEW = Gate("review", answer=bool, message="Is the profile right?", payload={"rows": 3})
CONFIRM = Gate("confirm", answer={"type": "string", "enum": ["release", "reject"]}, deadline=timedelta(hours=1))

INVITING = Gate("review", answer=bool, policy=Policy(invited=("ada", "bob")))


def later(minutes: float = 1) -> datetime:
    """So many minutes after noon."""
    return NOON + timedelta(minutes=minutes)


def empty(**changes: Any) -> Book:
    """Open the book of a run that has asked nothing yet."""
    return Book(IDENTITY, **{"declared": ("review", "confirm", "publish")} | changes)


def ask(book: Book, gate: Gate[Any], *, at: datetime = NOON) -> str:
    """Open the gate and give the interrupt id at which it waits."""
    occurrence = book.next_occurrence(gate.name)
    branch = ROOT.child(gate.name, occurrence.visit)
    book.write(Asked(at=at, occurrence=occurrence, branch=branch, gate=gate.pin(opened_at=at)))
    return occurrence.interrupt_id


def waiting_at(*gates: Gate[Any], **changes: Any) -> Book:
    """Open the book of a run that waits at these gates (`review` if none is named) since noon."""
    book = empty(**changes)
    for gate in gates or (REVIEW,):
        ask(book, gate)
    return book


def answer(**changes: Any) -> Answer:
    """Build an answer that `review` admits."""
    return Answer(
        **{"answer_id": "a1", "interrupt_id": "review", "response": True, "principal": "ada", "channel": "cli"}
        | changes
    )


CONFIRMING = answer(answer_id="c1", interrupt_id="confirm", response="release")
"""An answer that `confirm` admits."""


def judge(
    book: Book, *said: Answer | Message, at: datetime | None = None, size: int = 100, door: str = "update"
) -> Admission:
    """Judge one message (or the message of these answers) a minute after noon, writing nothing."""
    message = said[0] if isinstance(said[0], Message) else Message(answers=tuple(said))
    return admit(book, message, Evidence(size=size, door=door), at=at or later())


def say(book: Book, *said: Answer | Message, at: datetime | None = None) -> Admission:
    """Judge as `judge` does and write what follows, as a run does."""
    ruling = judge(book, *said, at=at)
    if isinstance(ruling, Admitted):
        book.write(*ruling.entries)
    elif isinstance(ruling, Refused):
        book.write(ruling)
    return ruling


def answered(*answers: Answer, gates: Iterable[Gate[Any]] = (REVIEW,)) -> Book:
    """Open the book of a run whose gates were given these answers (`answer()` if none is named)."""
    book = waiting_at(*gates)
    assert "admitted" == say(book, *(answers or (answer(),))).verdict
    return book


def superseded(interrupt_id: str = "review", book: Book | None = None) -> Book:
    """Let the pipeline go another way at two past noon."""
    book = book or waiting_at()
    occurrence = Occurrence.parse(interrupt_id)
    book.write(Superseded(at=later(2), occurrence=occurrence, reason="the pipeline went another way"))
    return book


def expired(book: Book, interrupt_id: str) -> Book:
    """Let the deadline pass unanswered."""
    book.write(Expired(at=later(60), occurrence=Occurrence.parse(interrupt_id), outcome="fail"))
    return book


def carried(book: Book) -> Book:
    """Carry the book through continue-as-new: compacted, written as JSON text and read back."""
    return Book.from_json(json.loads(json.dumps(book.compacted().to_json())))


def reread(book: Book) -> Book:
    """Write the book as JSON text and read it back."""
    return Book.from_json(json.loads(json.dumps(book.to_json())))


def sealed(previous: Receipt | Anchor | None, **changes: Any) -> Receipt:
    """Seal the receipt of one continuation, with all five facts known."""
    facts: dict[str, Any] = {
        "at": NOON,
        "frame": FrameState(identity=IDENTITY),
        "occurrence": OccurrenceFact(interrupt_id="review", gate="review", run=1, visit=1, digest="sha256:1"),
        "branch": ROOT.child("review", 1),
        "responder": ResponderFact(
            principal="ada",
            channel="cli",
            door="update",
            evidence="asserted",
            answer_id="a1",
            content_digest="sha256:2",
        ),
        "effect": EffectFact(state=EffectState.PERFORMED, name="publish", key="gw1-1", receipt={"rows": 3}),
    }
    return Receipt.seal(previous, **facts | changes)


def chain(count: int) -> list[Receipt]:
    """Seal so many receipts, one minute apart."""
    receipts: list[Receipt] = []
    for number in range(count):
        receipts.append(sealed(receipts[-1] if receipts else None, at=later(number)))
    return receipts


def closed(book: Book, standing: Standing = Standing.COMPLETED) -> Book:
    """Let the run end at half past noon."""
    book.write(Closed(at=later(30), standing=standing))
    return book


def asked_twice() -> Book:
    """Build a run whose gate was answered and is open again, with another draft."""
    book = answered(answer(answer_id="a0"))
    ask(book, Gate("review", answer=bool, message="And now?"), at=later(2))
    return book


def refused(book: Book, *said: Answer | Message, at: datetime | None = None, size: int = 100) -> Refused:
    """Judge what must be refused."""
    ruling = judge(book, *said, at=at, size=size)
    assert isinstance(ruling, Refused), ruling
    return ruling


def refusal(book: Book, *said: Answer | Message, at: datetime | None = None) -> Refusal:
    """Give the name under which it is refused."""
    return refused(book, *said, at=at).refusal


def refusal_of(interrupt_id: str | None = "review", reason: str = "no", **changes: Any) -> Refused:
    """Record a refusal."""
    objection = Objection(refusal=Refusal.INVALID, reason=reason, interrupt_id=interrupt_id)
    return Refused(**{"at": NOON, "objections": (objection,), "principal": "eve"} | changes)


def dead_letter(number: int = 0, **changes: Any) -> DeadLettered:
    """Record something unreadable."""
    given = {"at": later(number), "door": "signal", "name": "answer", "reason": "it is not JSON", "size": 3}
    return DeadLettered(**given | {"preview": "{x}"} | changes)
