"""Saying it again: the first receipt for the same words, never a second answer; and several answers at once."""

from collections.abc import Callable
from typing import Any

import pytest

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Refusal
from gatewright.protocol.gate import Gate
from gatewright.protocol.identity import Standing
from tests.protocol.builders import (
    CONFIRM,
    CONFIRMING,
    REVIEW,
    answer,
    answered,
    ask,
    carried,
    closed,
    judge,
    later,
    refusal,
    refused,
    reread,
    say,
    waiting_at,
)


def _after_many(book: Book) -> Book:
    """Answer so many further gates that the first receipt no longer travels in full."""
    for number in range(60):
        ask(book, Gate("more", answer=bool))
        more = book.open[-1].interrupt_id
        assert "admitted" == say(book, answer(answer_id=f"m{number}", interrupt_id=more)).verdict
    return carried(book)


AFTERWARDS: dict[str, Callable[[Book], Book]] = {
    "at once": lambda book: book,
    "after the gate was asked again": lambda book: (ask(book, REVIEW), book)[1],
    "after the run completed": closed,
    "after the run was cancelled": lambda book: closed(book, Standing.CANCELLED),
    "after a reading": reread,
    "after continue-as-new": carried,
    "after continuing as new twice": lambda book: carried(carried(book)),
    "after continue-as-new and the end": lambda book: closed(carried(book)),
}


class TestRepeat:
    @pytest.mark.parametrize("when", AFTERWARDS)
    def test_pressing_twice_earns_the_first_receipt_again(self, when: str) -> None:
        """A resend is recognised even when the gate is closed, the deadline passed and the run is over."""
        book = answered(CONFIRMING, gates=(CONFIRM, REVIEW))
        first = book.receipts[0]
        book = AFTERWARDS[when](book)
        before = book.to_json()

        assert Repeated(receipts=(first,)) == judge(book, CONFIRMING, at=later(24 * 60))
        assert before == book.to_json()

    @pytest.mark.parametrize("when", AFTERWARDS)
    def test_the_same_id_with_other_content_is_a_conflict_for_ever(self, when: str) -> None:
        """It never counts as a repeat, nor as a new answer."""
        book = AFTERWARDS[when](answered(CONFIRMING, gates=(CONFIRM, REVIEW)))
        other = CONFIRMING.model_copy(update={"response": "reject"})

        assert Refusal.CONFLICT == refusal(book, other, at=later(24 * 60))

    @pytest.mark.parametrize("changes", [{"channel": "temporal"}, {"digest": REVIEW.digest}])
    def test_a_resend_by_another_way_is_a_repeat(self, changes: dict[str, Any]) -> None:
        """A client falls back from update to signal with the same answer id."""
        book = answered()

        assert Repeated(receipts=tuple(book.receipts)) == judge(book, answer(**changes), door="signal")

    def test_an_answer_without_an_id_is_recognised_by_its_content(self) -> None:
        """The same words of the same person; other words are other answers."""
        book = answered(answer(answer_id=""))

        assert Repeated(receipts=tuple(book.receipts)) == judge(book, answer(answer_id=""))
        assert Refusal.ALREADY_ANSWERED == refusal(book, answer(answer_id="", response=False))
        assert Refusal.ALREADY_ANSWERED == refusal(book, answer(answer_id="", principal="eve"))

    def test_a_repeated_message_repeats_whole(self) -> None:
        """With the receipts in the order of its answers."""
        book = answered(answer(), CONFIRMING, gates=(REVIEW, CONFIRM))

        assert Repeated(receipts=tuple(book.receipts)) == judge(book, answer(), CONFIRMING)
        assert Repeated(receipts=tuple(reversed(book.receipts))) == judge(book, CONFIRMING, answer())

    def test_a_receipt_that_is_only_in_the_archive_is_restated(self) -> None:
        """Number, digest and occurrence are the first receipt's; the rest is read from the archive by them."""
        book = answered()
        first = book.receipts[0]
        book = _after_many(book)
        ruling = judge(book, answer())

        assert isinstance(ruling, Repeated)
        assert 1 < book.receipts[0].number
        assert (first.number, first.digest, first.occurrence, first.branch, first.at) == (
            ruling.receipts[0].number,
            ruling.receipts[0].digest,
            ruling.receipts[0].occurrence,
            ruling.receipts[0].branch,
            ruling.receipts[0].at,
        )

    def test_a_refused_answer_id_can_be_used_again(self) -> None:
        """A corrected answer keeps its id: only an admitted one is bound to its content."""
        book = waiting_at()

        assert "refused" == say(book, answer(response="perhaps")).verdict
        assert "admitted" == say(book, answer()).verdict


class TestSeveralAnswers:
    def test_they_are_admitted_whole(self) -> None:
        """In the order of the message, with one receipt each, linked to one another."""
        book = waiting_at(REVIEW, CONFIRM)
        ruling = say(book, CONFIRMING, answer())

        assert isinstance(ruling, Admitted)
        assert ["confirm", "review"] == [
            receipt.occurrence.interrupt_id for receipt in ruling.receipts if receipt.occurrence
        ]
        assert ruling.receipts[0].digest == ruling.receipts[1].previous
        assert [] == book.open

    def test_every_answer_that_is_wrong_is_told_so(self) -> None:
        """One round trip is enough to mend a message."""
        ruling = refused(
            waiting_at(REVIEW, CONFIRM),
            answer(response="perhaps"),
            CONFIRMING,
            answer(answer_id="a3", interrupt_id="nope"),
        )

        assert [Refusal.INVALID, Refusal.UNKNOWN_GATE] == [objection.refusal for objection in ruling.objections]
        assert [True, False] == [objection.armed for objection in ruling.objections]

    def test_one_occurrence_by_two_names_is_one_occurrence(self) -> None:
        """Its id and its gate's name."""
        said = answer(), answer(answer_id="a2", interrupt_id="", gate="review")

        assert Refusal.DUPLICATE_IN_MESSAGE == refusal(waiting_at(), *said)

    def test_one_answer_id_names_one_answer(self) -> None:
        """In one message as in the whole run."""
        said = answer(), CONFIRMING.model_copy(update={"answer_id": "a1"})

        assert Refusal.DUPLICATE_IN_MESSAGE == refusal(waiting_at(REVIEW, CONFIRM), *said)

    def test_a_repeat_beside_a_new_answer_to_the_same_occurrence_is_refused(self) -> None:
        """The message contradicts itself."""
        assert Refusal.DUPLICATE_IN_MESSAGE == refusal(answered(), answer(), answer(answer_id="a2", response=False))
