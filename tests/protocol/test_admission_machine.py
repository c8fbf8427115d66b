"""Whatever is asked, said, repeated and carried over in whatever order: admission rules as a naive model does."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatewright.protocol.admission import Admitted, Repeated, admit_default
from gatewright.protocol.answer import Answer, Message
from gatewright.protocol.entries import Closed, Expired, Refused, Superseded
from gatewright.protocol.gate import Default, Gate, Policy
from gatewright.protocol.identity import Standing
from gatewright.protocol.receipt import Receipt, Verified, verify
from tests.protocol.builders import ask, carried, empty, judge, later, reread

HOUR = timedelta(hours=1)
GATES: dict[str, dict[str, Any]] = {
    "review": {},
    "confirm": {"deadline": HOUR, "on_deadline": Default(False)},
    "approve": {"deadline": HOUR, "policy": Policy(invited=("ada", "bob"), separate_from=("review",))},
}
DRAFTS = ("first draft", "second draft")
SHOWN = {
    (name, draft): Gate(name, answer=bool, message=draft, **fields)
    for name, fields in GATES.items()
    for draft in DRAFTS
}
ELSEWHERE = ("review~9", "nope", "review@2", "publish", "")


@dataclass(frozen=True)
class Said:
    """One answer as the naive model sees it: `to` is an interrupt id, or a gate's name where `by_name`."""

    name: str
    to: str
    by_name: bool
    says: Any
    who: str
    seen: str | None = None
    instead_of: str | None = None

    @property
    def content(self) -> tuple[Any, ...]:
        return (self.to, self.by_name, repr(self.says), self.who, self.instead_of, self.seen if self.by_name else None)

    @property
    def key(self) -> Any:
        return self.name or self.content

    def answer(self, channel: str = "cli") -> Answer:
        return Answer(
            answer_id=self.name,
            interrupt_id="" if self.by_name else self.to,
            gate=self.to if self.by_name else "",
            response=self.says,
            principal=self.who,
            channel=channel,
            digest=self.seen,
            supersedes=self.instead_of,
        )


@dataclass
class Round:
    """One arrival at one gate, as the naive model remembers it."""

    gate: str
    shown: str
    closes: float
    state: str = "open"
    who: str | None = None


class Naive:
    """The rules in plain words over dicts, written without a look at the kernel."""

    def __init__(self) -> None:
        self.rounds: dict[str, Round] = {}
        self.used: dict[Any, tuple[Any, ...]] = {}
        self.over = False

    def means(self, said: Said) -> str:
        if not said.by_name:
            return said.to
        rounds = {key: each for key, each in self.rounds.items() if each.gate == said.to}
        seen = [key for key, each in rounds.items() if each.shown == said.seen]
        still = [key for key in seen if rounds[key].state == "open"] or seen
        chosen = list(rounds) if len(rounds) == 1 else still
        return chosen[0] if len(chosen) == 1 else f"the gate {said.to}"

    def objection(self, said: Said, message: list[Said], minute: float) -> str | None:  # noqa: PLR0911
        means = self.means(said)
        if not said.to:
            return "missing_id"
        if [self.means(other) for other in message].count(means) > 1:
            return "duplicate_in_message"
        if said.name and [other.name for other in message].count(said.name) > 1:
            return "duplicate_in_message"
        if said.key in self.used:
            if self.used[said.key] != said.content:
                return "conflict"
            if not said.by_name or means in self.rounds:
                return None
        if self.over:
            return "frame_closed"
        at = self.rounds.get(means)
        if at is None:
            return self.missing(said)
        if at.state == "superseded":
            return "superseded"
        if said.instead_of:
            return "may_not_supersede"
        if at.state == "answered":
            return "already_answered"
        if at.state == "expired" or minute >= at.closes:
            return "expired"
        if at.gate == "approve" and not self.may_approve(said, message):
            return "not_invited"
        if said.seen not in (None, at.shown):
            return "stale_digest"
        return None if isinstance(said.says, bool) else "invalid"

    def missing(self, said: Said) -> str:
        reached = any(each.gate == said.to for each in self.rounds.values())
        if said.by_name and reached:
            return "ambiguous_gate"
        known = said.to.partition("~")[0] in {*GATES, "publish"}
        # Before the first gate it is not known what the run will ask; another run's id is never its own.
        early = not self.rounds and (said.by_name or "@" not in said.to)
        return "not_open_yet" if known or early else "unknown_gate"

    def may_approve(self, said: Said, message: list[Said]) -> bool:
        reviewers = {each.who for each in self.rounds.values() if each.gate == "review"}
        also = {
            other.who for other in message if self.means(other).partition("~")[0] == "review" and self.reviews(other)
        }
        return said.who in ("ada", "bob") and said.who not in reviewers | also

    def reviews(self, said: Said) -> bool:
        return self.means(said) in self.rounds

    def verdict(self, message: list[Said], minute: float) -> str:
        objections = [self.objection(said, message, minute) for said in message]
        if first := next(filter(None, objections), None):
            return first
        fresh = [said for said in message if said.key not in self.used]
        for said in fresh:
            self.used[said.key] = said.content
            at = self.rounds[self.means(said)]
            at.state, at.who = "answered", said.who
        return "admitted" if fresh else "repeated"


class Admission(RuleBasedStateMachine):
    """The kernel and the model beside each other, through one conversation."""

    @initialize()
    def start(self) -> None:
        self.book = empty(declared=(*GATES, "publish"))
        self.naive = Naive()
        self.minute = 0.0
        self.said: list[Said] = []
        self.receipts: dict[Any, Receipt] = {}
        self.earned: Counter[str] = Counter()

    def open(self) -> list[str]:
        return [key for key, each in self.naive.rounds.items() if each.state == "open" and not self.naive.over]

    def overdue(self) -> list[str]:
        return [key for key in self.open() if self.naive.rounds[key].closes <= self.minute]

    def draw(self, data: st.DataObject, *, to: list[str] | None = None) -> Said:
        """Draw an answer that is right more often than not."""
        to = to or [*self.open() * 6, *[*self.naive.rounds] * 3, *ELSEWHERE]
        aim = data.draw(st.sampled_from(to), label="to")
        by_name = data.draw(st.integers(0, 5), label="by name") == 5
        shown = sorted({each.shown for each in self.naive.rounds.values()})
        right = self.naive.rounds[aim].shown if aim in self.naive.rounds else None
        return Said(
            name=data.draw(st.sampled_from(["", *(f"a{number}" for number in range(12))]), label="name"),
            to=aim.partition("~")[0] if by_name else aim,
            by_name=by_name,
            says=data.draw(st.sampled_from([*[True] * 6, False, "perhaps"]), label="says"),
            who=data.draw(st.sampled_from(["ada", "ada", "bob", "bob", "eve"]), label="who"),
            seen=data.draw(st.sampled_from([None, None, None, right, right, *shown, "sha256:0"]), label="seen"),
            instead_of=data.draw(st.sampled_from([*[None] * 15, "a0"]), label="instead of"),
        )

    def deliver(self, message: list[Said], channel: str = "cli") -> None:
        expected = self.naive.verdict(message, self.minute)
        ruling = judge(
            self.book, Message(answers=tuple(said.answer(channel) for said in message)), at=later(self.minute)
        )
        self.said += message

        assert expected == (ruling.refusal.value if isinstance(ruling, Refused) else ruling.verdict)
        if isinstance(ruling, Admitted):
            self.book.write(*ruling.entries)
            self.earned.update(entry.occurrence.interrupt_id for entry in ruling.entries)
        elif isinstance(ruling, Refused):
            self.book.write(ruling)
        if isinstance(ruling, Admitted | Repeated):
            for said, receipt in zip(message, ruling.receipts, strict=True):
                assert self.receipts.setdefault(said.key, receipt) == receipt

    @precondition(lambda self: not self.naive.over)
    @rule(gate=st.sampled_from(sorted(GATES)), draft=st.sampled_from(DRAFTS))
    def asks(self, gate: str, draft: str) -> None:
        asked = SHOWN[gate, draft]
        count = sum(each.gate == gate for each in self.naive.rounds.values())
        interrupt_id = ask(self.book, asked, at=later(self.minute))

        assert (f"{gate}~{count + 1}" if count else gate) == interrupt_id
        closes = self.minute + 60 if asked.deadline else float("inf")
        self.naive.rounds[interrupt_id] = Round(gate, asked.digest, closes)

    @precondition(lambda self: not self.naive.rounds)
    @rule(data=st.data())
    def is_answered_before_it_asks(self, data: st.DataObject) -> None:
        self.deliver([self.draw(data)])

    @precondition(lambda self: self.naive.rounds)
    @rule(data=st.data())
    def answers(self, data: st.DataObject) -> None:
        self.deliver([self.draw(data)])

    @precondition(lambda self: self.open())
    @rule(data=st.data())
    def answers_what_is_open(self, data: st.DataObject) -> None:
        self.deliver([self.draw(data, to=self.open())])

    @precondition(lambda self: len(self.open()) > 1)
    @rule(data=st.data())
    def answers_several(self, data: st.DataObject) -> None:
        count: int = data.draw(st.integers(2, 3), label="count")
        self.deliver([self.draw(data, to=[*self.open() * 4, "nope"]) for _ in range(count)])

    @precondition(lambda self: self.said)
    @rule(data=st.data(), channel=st.sampled_from(["cli", "temporal"]))
    def repeats(self, data: st.DataObject, channel: str) -> None:
        again = data.draw(st.sampled_from(self.said[-8:]))
        beside: bool = data.draw(st.booleans(), label="beside another")
        self.deliver([again, self.draw(data)] if beside else [again], channel)

    @rule(minutes=st.sampled_from([0.5, 5, 60]))
    def time_passes(self, minutes: float) -> None:
        self.minute += minutes

    @precondition(lambda self: self.overdue())
    @rule(data=st.data())
    def expires(self, data: st.DataObject) -> None:
        record = self.book.gates[data.draw(st.sampled_from(self.overdue()))]
        assert record.gate
        at = later(self.minute)
        self.book.write(Expired(at=at, occurrence=record.occurrence, outcome=record.gate.on_deadline))
        if record.gate.on_deadline == "default":
            self.book.write(admit_default(self.book, record, at=at))
            self.earned[record.interrupt_id] += 1
        self.naive.rounds[record.interrupt_id].state = "answered" if self.earned[record.interrupt_id] else "expired"

    @precondition(lambda self: self.open())
    @rule(data=st.data())
    def goes_another_way(self, data: st.DataObject) -> None:
        record = self.book.gates[data.draw(st.sampled_from(self.open()))]
        self.book.write(Superseded(at=later(self.minute), occurrence=record.occurrence, reason="another way"))
        self.naive.rounds[record.interrupt_id].state = "superseded"

    @precondition(lambda self: len(self.naive.rounds) > 6 and not self.naive.over)
    @rule(standing=st.sampled_from([Standing.COMPLETED, Standing.ABANDONED]))
    def ends(self, standing: Standing) -> None:
        self.book.write(Closed(at=later(self.minute), standing=standing))
        self.naive.over = True

    @precondition(lambda self: not self.naive.over)
    @rule()
    def continues_as_new(self) -> None:
        self.book = carried(self.book)

    @rule()
    def is_read(self) -> None:
        again = reread(self.book)

        assert self.book.to_json() == again.to_json()
        self.book = again

    @invariant()
    def no_occurrence_is_answered_twice(self) -> None:
        assert all(count == 1 for count in self.earned.values())

    @invariant()
    def the_same_gates_are_open(self) -> None:
        assert self.open() == [record.interrupt_id for record in self.book.open]

    @invariant()
    def every_gate_stands_as_the_model_has_it(self) -> None:
        assert dict(self.states()) == {
            key: record.state for key, record in self.book.gates.items() if record.state != "closed"
        }

    def states(self) -> Iterator[tuple[str, str]]:
        for key, each in self.naive.rounds.items():
            if each.state != "open" or not self.naive.over:
                yield key, each.state

    @invariant()
    def the_chain_holds(self) -> None:
        assert isinstance(verify(self.book.receipts, self.book.anchor), Verified)


Admission.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    # Explaining a failure traces every line, and a machine has many.
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
TestAdmission = Admission.TestCase
