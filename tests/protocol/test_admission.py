"""An answer counts once, for what its sender was shown, at the occurrence that it names."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from pydantic import TypeAdapter

from gatewright.protocol.admission import Verdict, admit, unreadable
from gatewright.protocol.answer import MAX_MESSAGE_BYTES, Answer, Evidence, Message
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Refusal
from gatewright.protocol.gate import Gate
from gatewright.protocol.rules import ANSWER_RULES, BEFORE_REPEAT, MESSAGE_RULES
from tests.protocol.builders import (
    CONFIRM,
    CONFIRMING,
    INVITING,
    REVIEW,
    answer,
    answered,
    asked_twice,
    carried,
    closed,
    judge,
    later,
    refused,
    superseded,
    waiting_at,
)

THREE_PAST = later(3)


@dataclass(frozen=True)
class Spoiled:
    """A message that is refused, and a good answer that the same run admits before and after (if a gate is open)."""

    book: Callable[[], Book]
    said: tuple[Answer | Message, ...]
    good: Answer | None
    at: datetime = THREE_PAST
    size: int = 100


SPOILED: dict[Refusal, Spoiled] = {
    Refusal.TOO_LARGE: Spoiled(waiting_at, (answer(),), answer(), size=MAX_MESSAGE_BYTES + 1),
    Refusal.MIXED_MESSAGE: Spoiled(waiting_at, (Message(answers=(answer(),), text="Looks good!"),), answer()),
    Refusal.NOT_AN_ANSWER: Spoiled(waiting_at, (Message(answers=(answer(),), author="model"),), answer()),
    Refusal.NO_ANSWER: Spoiled(waiting_at, (Message(text="Looks good!"),), answer()),
    Refusal.DUPLICATE_IN_MESSAGE: Spoiled(waiting_at, (answer(), answer(answer_id="a2", response=False)), answer()),
    Refusal.MISSING_ID: Spoiled(waiting_at, (answer(interrupt_id=""),), answer()),
    Refusal.CONFLICT: Spoiled(lambda: answered(gates=(REVIEW, CONFIRM)), (answer(response=False),), CONFIRMING),
    Refusal.FRAME_CLOSED: Spoiled(lambda: closed(waiting_at()), (answer(),), None, at=later(31)),
    Refusal.UNKNOWN_GATE: Spoiled(waiting_at, (answer(interrupt_id="nope"),), answer()),
    Refusal.NOT_OPEN_YET: Spoiled(waiting_at, (answer(interrupt_id="confirm"),), answer()),
    Refusal.AMBIGUOUS_GATE: Spoiled(
        asked_twice, (answer(interrupt_id="", gate="review"),), answer(interrupt_id="review~2")
    ),
    Refusal.SUPERSEDED: Spoiled(lambda: superseded(book=waiting_at(REVIEW, CONFIRM)), (answer(),), CONFIRMING),
    Refusal.MAY_NOT_SUPERSEDE: Spoiled(waiting_at, (answer(supersedes="a0"),), answer()),
    Refusal.ALREADY_ANSWERED: Spoiled(
        lambda: answered(gates=(REVIEW, CONFIRM)), (answer(answer_id="a2", response=False),), CONFIRMING
    ),
    Refusal.EXPIRED: Spoiled(lambda: waiting_at(REVIEW, CONFIRM), (CONFIRMING,), answer(), at=later(60)),
    Refusal.NOT_INVITED: Spoiled(lambda: waiting_at(INVITING), (answer(principal="eve"),), answer(principal="bob")),
    Refusal.STALE_DIGEST: Spoiled(waiting_at, (answer(digest="sha256:0"),), answer(digest=REVIEW.digest)),
    Refusal.INVALID: Spoiled(waiting_at, (answer(response="perhaps"),), answer()),
}

ELSEWHERE = {Refusal.UNREADABLE}
"""Refusals that no rule makes: what cannot be read never gets as far as admission."""


class TestRefusal:
    @pytest.mark.parametrize("name", [name for name in Refusal if name not in ELSEWHERE])
    def test_each_way_of_being_wrong_is_refused_by_name(self, name: Refusal) -> None:
        """A new refusal without a row in the table fails here."""
        case = SPOILED[name]

        assert name == refused(case.book(), *case.said, at=case.at, size=case.size).refusal

    @pytest.mark.parametrize("name", SPOILED)
    def test_judging_changes_nothing(self, name: Refusal) -> None:
        """Judging without writing is a dry run."""
        case = SPOILED[name]
        book = case.book()
        before = book.to_json()
        judge(book, *case.said, at=case.at, size=case.size)

        assert before == book.to_json()

    @pytest.mark.parametrize("name", SPOILED)
    def test_a_refused_message_changes_nothing_but_the_record_of_refusals(self, name: Refusal) -> None:
        """The gate stays armed: the good answer is admitted afterwards, to the same receipt as without the bad one."""
        case = SPOILED[name]
        book, undisturbed = case.book(), case.book()
        before = book.to_json()
        ruling = refused(book, *case.said, at=case.at, size=case.size)
        book.write(ruling)

        assert {key for key, value in book.to_json().items() if value != before[key]} == {"refusals"}
        if case.good is None:
            assert [] == book.open
            return
        expected = judge(undisturbed, case.good)

        assert "admitted" == expected.verdict
        assert expected == judge(book, case.good)

    @pytest.mark.parametrize("name", SPOILED)
    def test_a_refusal_can_be_acted_on(self, name: Refusal) -> None:
        """It has a reason in words, survives JSON as a verdict, and says whether the gate still takes an answer."""
        case = SPOILED[name]
        ruling = refused(case.book(), *case.said, at=case.at, size=case.size)
        adapter: TypeAdapter[Any] = TypeAdapter(Verdict)

        assert len(ruling.reason) > 20
        assert ruling == adapter.validate_json(adapter.dump_json(ruling))
        assert ruling.objections[0].open == tuple(record.interrupt_id for record in case.book().open)

    def test_what_cannot_be_read_is_refused_by_name_too(self) -> None:
        """It says what to send instead."""
        ruling = unreadable(waiting_at(), "it is not JSON", Evidence(size=3, door="signal"), at=later())

        assert Refusal.UNREADABLE == ruling.refusal
        assert "it is not JSON. Send one JSON object with interruptId and response" in ruling.reason
        assert "Open now: review." in ruling.reason

    def test_every_rule_has_its_place(self) -> None:
        """The order is part of the protocol: a change to it changes how histories replay."""
        order = [refusal.value for rules in (MESSAGE_RULES, BEFORE_REPEAT, ANSWER_RULES) for refusal, _ in rules]

        assert [
            *("too_large", "mixed_message", "not_an_answer", "no_answer"),
            *("missing_id", "invalid", "duplicate_in_message"),
            *("conflict", "frame_closed", "ambiguous_gate", "not_open_yet", "unknown_gate", "superseded"),
            *("may_not_supersede", "already_answered", "expired", "not_invited", "stale_digest", "invalid"),
        ] == order
        assert set(order) == {name.value for name in Refusal if name not in ELSEWHERE}


class TestReasons:
    """A person reads them, and must be able to act."""

    def test_who_was_first_and_when(self) -> None:
        """Also after continue-as-new."""
        book = answered(gates=(REVIEW, CONFIRM))
        words = "review was answered by ada at 2031-05-04 12:01:00 UTC; the first admitted answer is final. Open now: confirm."

        assert words == refused(book, answer(answer_id="a2")).reason
        assert words == refused(carried(book), answer(answer_id="a2")).reason

    def test_which_answer_used_the_id(self) -> None:
        """Who, for what, and when."""
        reason = refused(answered(), answer(response=False)).reason

        assert (
            "answer id 'a1' was used before, for review with other content by ada at 2031-05-04 12:01:00 UTC." in reason
        )

    def test_how_the_run_ended_and_who_answered_before(self) -> None:
        """A person who comes late learns both."""
        reason = refused(closed(answered()), answer(answer_id="a2"), at=later(31)).reason

        assert "the run is completed; it takes no more answers. review was answered by ada at" in reason

    def test_what_does_not_fit_and_where(self) -> None:
        """Every fault with its path."""
        schema = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
        ruling = refused(waiting_at(Gate("review", answer=schema)), answer(response={"n": "x", "s": []}))

        assert ["$.n", "$.s"] == [fault.path for fault in ruling.objections[0].faults]
        assert "$.n: " in ruling.reason
        assert "$.s: " in ruling.reason

    def test_when_the_deadline_was_and_why_a_gate_no_longer_waits(self) -> None:
        """In words."""
        assert (
            "the deadline of confirm passed at 2031-05-04 13:00:00 UTC. Open now: confirm."
            == refused(waiting_at(CONFIRM), CONFIRMING, at=later(60)).reason
        )
        assert (
            "review no longer waits: the pipeline went another way. No gate is open now."
            == refused(superseded(), answer()).reason
        )

    def test_who_is_invited(self) -> None:
        """So that the right person can be found."""
        assert (
            "eve may not answer 'review'; invited: ada, bob"
            == refused(waiting_at(INVITING), answer(principal="eve")).reason
        )

    def test_many_open_gates_are_counted(self) -> None:
        """Ten by name."""
        gates = [Gate(f"g{number}") for number in range(12)]

        assert "g8, g9 and 2 more." in refused(waiting_at(*gates), answer(interrupt_id="")).reason

    def test_judging_is_the_same_however_often(self) -> None:
        """Same input, same output: a replay rules as the run did."""
        for case in SPOILED.values():
            message = case.said[0] if isinstance(case.said[0], Message) else Message(answers=case.said)
            rulings = [
                admit(case.book(), message, Evidence(size=case.size), at=case.at).model_dump_json() for _ in range(2)
            ]

            assert rulings[0] == rulings[1]
