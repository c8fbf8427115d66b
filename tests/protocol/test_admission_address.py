"""Which occurrence an answer means, and until when it may come."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.answer import Answer
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Refusal
from gatewright.protocol.gate import Gate
from tests.protocol.builders import (
    CONFIRM,
    CONFIRMING,
    REVIEW,
    answer,
    answered,
    ask,
    asked_twice,
    carried,
    expired,
    judge,
    later,
    refusal,
    refused,
    say,
    superseded,
    waiting_at,
)


class TestGateByName:
    """An answer may name the gate instead of the interrupt id, where that cannot mean another occurrence (H02)."""

    def by_name(self, **changes: Any) -> Answer:
        return answer(interrupt_id="", gate="review", **changes)

    def test_a_gate_that_was_reached_once_is_named_by_its_name(self) -> None:
        """The receipt says which occurrence it was."""
        ruling = say(waiting_at(REVIEW, CONFIRM), self.by_name())

        assert isinstance(ruling, Admitted)
        assert ruling.receipts[0].occurrence
        assert "review" == ruling.receipts[0].occurrence.interrupt_id

    def test_a_gate_that_was_reached_again_is_not(self) -> None:
        """A late answer could otherwise land in the wrong round."""
        ruling = refused(asked_twice(), self.by_name())

        assert Refusal.AMBIGUOUS_GATE == ruling.refusal
        assert "was reached 2 times, not one occurrence (review~2). Answer the interrupt id." in ruling.reason

    def test_a_gate_that_is_just_being_reached_again_is_not_either(self) -> None:
        """From the moment at which the second arrival is numbered, before it is shown."""
        book = waiting_at()
        book.reserve("review")

        assert Refusal.AMBIGUOUS_GATE == refusal(book, self.by_name())

    def test_the_digest_that_was_seen_tells_the_rounds_apart(self) -> None:
        """The open one is admitted, the answered one is called so."""
        book = asked_twice()

        assert Refusal.ALREADY_ANSWERED == refusal(book, self.by_name(digest=REVIEW.digest))
        assert Refusal.AMBIGUOUS_GATE == refusal(book, self.by_name(digest="sha256:0"))
        assert "admitted" == judge(book, self.by_name(digest=book.open[0].shown)).verdict

    def test_the_same_words_to_the_next_draft_are_a_new_answer(self) -> None:
        """Without an answer id too: the digest is part of what was said."""
        book = waiting_at()
        first = say(book, self.by_name(answer_id="", digest=REVIEW.digest))
        ask(book, Gate("review", answer=bool, message="And now?"), at=later(2))
        second = say(book, self.by_name(answer_id="", digest=book.open[0].shown))

        assert ("admitted", "admitted") == (first.verdict, second.verdict)
        assert Repeated(receipts=(book.receipts[0],)) == judge(book, self.by_name(answer_id="", digest=REVIEW.digest))

    @pytest.mark.parametrize(
        ("book", "name"),
        [
            (waiting_at, Refusal.STALE_DIGEST),
            (lambda: answered(answer(answer_id="a0")), Refusal.ALREADY_ANSWERED),
            (superseded, Refusal.SUPERSEDED),
            (lambda: carried(answered(answer(answer_id="a0"))), Refusal.ALREADY_ANSWERED),
        ],
    )
    def test_a_gate_that_was_reached_once_is_judged_as_itself(self, book: Callable[[], Book], name: Refusal) -> None:
        """With a digest of something else: the reason is the gate's own and not that its name is ambiguous."""
        assert name == refusal(book(), self.by_name(digest="sha256:0"))

    @pytest.mark.parametrize(
        ("gate", "name"), [("confirm", Refusal.NOT_OPEN_YET), ("nope", Refusal.UNKNOWN_GATE), ("", Refusal.MISSING_ID)]
    )
    def test_a_gate_that_was_never_reached_has_no_occurrence(self, gate: str, name: Refusal) -> None:
        """As with an interrupt id."""
        assert name == refusal(waiting_at(), answer(interrupt_id="", gate=gate))

    def test_a_gate_beside_an_id_of_another_is_refused(self) -> None:
        """It is not known which of them is meant."""
        assert Refusal.AMBIGUOUS_GATE == refusal(waiting_at(REVIEW, CONFIRM), answer(gate="confirm"))
        assert "admitted" == judge(waiting_at(REVIEW, CONFIRM), answer(gate="review")).verdict

    def test_an_empty_name_names_nothing(self) -> None:
        """B17: ADK takes an answer with the empty id for a fresh start."""
        assert Refusal.MISSING_ID == refusal(waiting_at(), answer(interrupt_id="", gate=""))


class TestDeadline:
    @pytest.mark.parametrize(("minutes", "verdict"), [(59.99, "admitted"), (60, "refused"), (61, "refused")])
    def test_an_answer_counts_until_the_deadline(self, minutes: float, verdict: str) -> None:
        """The deadline itself is too late; whether the timer has fired yet does not matter."""
        assert verdict == judge(waiting_at(CONFIRM), CONFIRMING, at=later(minutes)).verdict

    def test_an_expired_gate_stays_expired(self) -> None:
        """Also for a clock that went back, and after continue-as-new."""
        book = expired(waiting_at(CONFIRM), "confirm")

        assert Refusal.EXPIRED == refusal(book, CONFIRMING, at=later(1))
        assert Refusal.EXPIRED == refusal(carried(book), CONFIRMING, at=later(1))

    def test_a_gate_without_a_deadline_waits(self) -> None:
        """For years."""
        assert "admitted" == judge(waiting_at(REVIEW), answer(), at=later() + timedelta(days=3650)).verdict
