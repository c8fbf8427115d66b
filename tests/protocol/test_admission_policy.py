"""Whose answer counts at which gate, what a system may say, what stands in at a deadline, and what nobody can break."""

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.protocol.admission import Admitted, Repeated, admit_default, unreadable
from gatewright.protocol.answer import Answer, Evidence, EvidenceClass, Failure, Message
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Expired, Refusal, Refused
from gatewright.protocol.errors import IdentityError
from gatewright.protocol.gate import Default, Gate, GateKind, Policy
from gatewright.protocol.receipt import EffectState, Verified, verify
from tests.protocol.builders import CONFIRM, IDENTITY, REVIEW, answer, answered, carried, judge, later, say, waiting_at

DRAFT = Gate("draft", answer=bool)
APPROVE = Gate("approve", answer=bool, policy=Policy(separate_from=("draft",)))
JOB = Gate("job", answer={"type": "integer"}, kind=GateKind.SYSTEM)


def to(gate: str, **changes: Any) -> Answer:
    """Answer this gate."""
    return answer(**{"answer_id": f"a-{gate}", "interrupt_id": gate} | changes)


def refusal(book: Book, *said: Answer) -> Refusal:
    """Give the name under which it is refused."""
    ruling = judge(book, *said)
    assert isinstance(ruling, Refused), ruling
    return ruling.refusal


class TestInvitation:
    GATE = Gate("review", answer=bool, policy=Policy(invited=("ada", "bob")))

    @pytest.mark.parametrize(("principal", "verdict"), [("ada", "admitted"), ("bob", "admitted"), ("", "refused")])
    def test_only_who_is_invited_answers(self, principal: str, verdict: str) -> None:
        """An answer without a principal is nobody's."""
        assert verdict == judge(waiting_at(self.GATE), answer(principal=principal)).verdict

    @pytest.mark.parametrize("principal", ["Ada", "ada ", "adam", "ada,bob"])
    def test_a_name_is_compared_whole(self, principal: str) -> None:
        """Who is spelt otherwise is somebody else."""
        assert Refusal.NOT_INVITED == refusal(waiting_at(self.GATE), answer(principal=principal))

    def test_where_nobody_is_invited_anyone_answers(self) -> None:
        """Also without a name."""
        assert "admitted" == judge(waiting_at(REVIEW), answer(principal="")).verdict


class TestSeparationOfDuties:
    @pytest.mark.parametrize("carry", [False, True])
    def test_who_answered_one_gate_does_not_answer_the_other(self, carry: bool) -> None:
        """Also when the run continued as new in between; somebody else does."""
        book = answered(to("draft"), gates=(DRAFT, APPROVE))
        book = carried(book) if carry else book
        ruling = judge(book, to("approve"))

        assert isinstance(ruling, Refused)
        assert "ada answered draft, and 'approve' must be answered by somebody else" == ruling.reason
        assert "admitted" == judge(book, to("approve", principal="bob")).verdict

    @pytest.mark.parametrize("order", [("draft", "approve"), ("approve", "draft")])
    def test_one_message_does_not_get_round_it(self, order: tuple[str, str]) -> None:
        """Both gates are open, and one person answers both at once: neither counts."""
        book = waiting_at(DRAFT, APPROVE)

        assert Refusal.NOT_INVITED == refusal(book, *map(to, order))
        assert "admitted" == judge(book, to("draft"), to("approve", principal="bob")).verdict

    def test_nobody_twice_is_not_two_people(self) -> None:
        """Two answers without a principal may be one person's."""
        book = answered(to("draft", principal=""), gates=(DRAFT, APPROVE))

        assert Refusal.NOT_INVITED == refusal(book, to("approve", principal=""))

    def test_a_gate_that_nobody_answered_separates_nobody(self) -> None:
        """It is the answer that counts, not the asking."""
        assert "admitted" == judge(waiting_at(DRAFT, APPROVE), to("approve")).verdict


class TestSystemGate:
    FAILURE = Failure(type="OutOfMemory", message="killed at 3 GB", retryable=True)

    def test_a_job_says_that_it_failed(self) -> None:
        """The failure is the answer; the schema is for responses."""
        ruling = say(waiting_at(JOB), to("job", response=None, failure=self.FAILURE, principal="job:7"))

        assert isinstance(ruling, Admitted)
        assert self.FAILURE == ruling.entries[0].answer.failure
        assert ruling.entries[0].value is None

    def test_a_job_says_what_it_made(self) -> None:
        """Its response is checked like anybody's."""
        assert "admitted" == judge(waiting_at(JOB), to("job", response=7)).verdict
        assert Refusal.INVALID == refusal(waiting_at(JOB), to("job", response="seven"))

    def test_a_person_does_not_answer_with_a_failure(self) -> None:
        """A human gate asks for a response."""
        assert Refusal.INVALID == refusal(waiting_at(), answer(response=None, failure=self.FAILURE))

    def test_a_job_did_not_both_fail_and_succeed(self) -> None:
        """Neither half is dropped in silence."""
        assert Refusal.INVALID == refusal(waiting_at(JOB), to("job", response=7, failure=self.FAILURE))

    def test_a_failure_repeats_like_any_answer(self) -> None:
        """And another failure under its id is a conflict."""
        said = to("job", response=None, failure=self.FAILURE)
        book = answered(said, gates=(JOB,))
        other = said.model_copy(update={"failure": Failure(type="OutOfMemory", message="killed")})

        assert Repeated(receipts=tuple(book.receipts)) == judge(book, said)
        assert Refusal.CONFLICT == refusal(book, other)


class TestReceiptOfAnAnswer:
    def test_it_has_the_five_facts(self) -> None:
        """Frame, occurrence, branch, responder and effect, as the book knows them."""
        book = waiting_at()
        ruling = judge(book, answer(evidence=EvidenceClass.SIGNED), door="signal")
        assert isinstance(ruling, Admitted)
        receipt = ruling.receipts[0]
        assert receipt.occurrence
        assert receipt.responder

        assert IDENTITY == receipt.frame.identity
        assert ("review", 1, REVIEW.digest) == (
            receipt.occurrence.interrupt_id,
            receipt.occurrence.visit,
            receipt.occurrence.digest,
        )
        assert "release@1/review@1" == str(receipt.branch)
        assert ("ada", "cli", "signal") == (
            receipt.responder.principal,
            receipt.responder.channel,
            receipt.responder.door,
        )
        assert EffectState.NOT_ATTEMPTED == receipt.effect.state
        assert later() == receipt.at

    def test_what_a_sender_claims_is_not_recorded_as_known(self) -> None:
        """Evidence is what the receiver established; `signed` was only said."""
        ruling = judge(waiting_at(), answer(evidence=EvidenceClass.SIGNED))
        assert isinstance(ruling, Admitted)
        assert ruling.receipts[0].responder

        assert EvidenceClass.ASSERTED == ruling.receipts[0].responder.evidence

    def test_an_answer_without_a_channel_came_by_its_door(self) -> None:
        """A raw signal names none."""
        ruling = judge(waiting_at(), answer(channel=""), door="signal")
        assert isinstance(ruling, Admitted)

        assert "signal" == ruling.entries[0].answer.channel

    def test_the_value_is_what_the_schema_makes_of_the_response(self) -> None:
        """The response stays as it was sent; the run goes on with the value."""
        ruling = judge(waiting_at(), answer(response={"result": "true"}))
        assert isinstance(ruling, Admitted)

        assert ({"result": "true"}, True) == (ruling.entries[0].answer.response, ruling.entries[0].value)


class TestDefault:
    GATE = Gate("review", answer=bool, deadline=timedelta(hours=1), on_deadline=Default(False))

    def test_the_engine_answers_a_gate_whose_deadline_passed(self) -> None:
        """With a receipt that says so, next in the chain."""
        book = waiting_at(self.GATE)
        record = book.open[0]
        book.write(Expired(at=later(60), occurrence=record.occurrence, outcome="default"))
        book.write(admit_default(book, record, at=later(60)))
        assert record.answered

        assert ("answered", False, "engine:deadline") == (record.state, record.answered.value, record.principal)
        assert Verified(1, book.receipts[-1].digest) == verify(book.receipts)
        assert "deadline-of-review" == record.answered.answer.answer_id

    def test_a_person_who_comes_later_is_told_so(self) -> None:
        """Who was first: the deadline."""
        book = waiting_at(self.GATE)
        book.write(admit_default(book, book.open[0], at=later(60)))
        ruling = judge(book, answer(), at=later(61))

        assert isinstance(ruling, Refused)
        assert "review was answered by engine:deadline at 2031-05-04 13:00:00 UTC" in ruling.reason

    def test_a_gate_without_a_default_is_not_answered_by_the_engine(self) -> None:
        """Nothing is made up."""
        book = waiting_at(CONFIRM)

        with pytest.raises(IdentityError, match="confirm has no default"):
            admit_default(book, book.open[0], at=later(60))

    def test_an_id_that_somebody_took_does_not_stop_the_engine(self) -> None:
        """Their answer stays theirs, and a repeat of it a repeat."""
        taken = to("draft", answer_id="deadline-of-review")
        book = answered(taken, gates=(DRAFT, self.GATE))
        book.write(admit_default(book, book.open[0], at=later(60)))

        assert Repeated(receipts=(book.receipts[0],)) == judge(book, taken)
        assert ["answered", "answered"] == [record.state for record in book.gates.values()]

    def test_long_names_do_not_share_an_id(self) -> None:
        """Two rounds of a gate with the longest name are told apart."""
        book = waiting_at(*[Gate("x" * 200, deadline=timedelta(hours=1), on_deadline=Default(None))] * 2)
        for record in book.open:
            book.write(admit_default(book, record, at=later(60)))

        assert 2 == len(book.answer_ids)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["\ud800", math.nan]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
some_text = st.sampled_from(["", "review", "confirm", "job", "review~2", "nope", "a1", "sha256:0"]) | st.text(
    max_size=6
)
anything = st.builds(
    Message,
    answers=st.lists(
        st.builds(
            Answer,
            answer_id=some_text,
            interrupt_id=some_text,
            gate=some_text,
            response=json_values,
            failure=st.none() | st.builds(Failure, type=st.just("t"), message=st.text(max_size=4)),
            principal=some_text,
            digest=st.none() | some_text,
            supersedes=st.none() | some_text,
        ),
        max_size=3,
    ).map(tuple),
    author=st.sampled_from(["user", "system", "agent"]),
    text=st.none() | st.text(max_size=2),
)


def nested(levels: int) -> Any:
    """Build a list in a list in a list..."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


class TestNothingBreaksIt:
    @given(st.lists(anything, max_size=4))
    @settings(max_examples=150, deadline=None)
    def test_every_message_gets_a_verdict(self, messages: list[Message]) -> None:
        """An exception would leave the handler and wedge the run; and what was ruled can be written and read."""
        book = waiting_at(REVIEW, CONFIRM, JOB)
        for message in messages:
            ruling = say(book, message)

            assert ruling.model_dump_json()

        assert book.to_json() == Book.from_json(book.to_json()).to_json()
        assert isinstance(verify(book.receipts), Verified)

    @pytest.mark.parametrize(("levels", "verdict"), [(63, "admitted"), (64, "admitted"), (65, "refused")])
    def test_a_response_may_be_as_deep_as_json_is_read(self, levels: int, verdict: str) -> None:
        """At the very limit it is admitted or refused, and never an error."""
        assert verdict == say(waiting_at(Gate("review")), answer(response=nested(levels))).verdict

    def test_a_verdict_is_never_too_large_for_its_channel(self) -> None:
        """Temporal takes 2 MiB; a message of 256 KiB with a hundred wrong answers is told about twenty of them."""
        gates = [Gate(f"{number:03}" + "x" * 197, answer=list[bool]) for number in range(100)]
        wrong = [
            to(gate.name, answer_id=f"{number:03}" + "😀" * 197, response=[[0]] * 100)
            for number, gate in enumerate(gates)
        ]
        ruling = judge(waiting_at(*gates), *wrong)

        assert isinstance(ruling, Refused)
        assert 20 == len(ruling.objections)
        assert 51 == sum(len(objection.faults) for objection in ruling.objections)
        assert len(ruling.model_dump_json()) < 512 * 1024

    def test_what_cannot_be_read_is_not_told_at_length(self) -> None:
        """The reason may hold a key of the message."""
        ruling = unreadable(waiting_at(), "x" * 200_000, Evidence(size=200_000), at=later())

        assert len(ruling.model_dump_json()) < 4096
