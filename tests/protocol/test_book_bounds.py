"""How small a book stays: what is only counted beyond a bound, and what is carried through continue-as-new."""

import json
from collections.abc import Callable

import pytest

from gatewright.protocol.book import KEPT_RECEIPTS, Book
from gatewright.protocol.entries import (
    Objection,
    Refusal,
    Refused,
)
from gatewright.protocol.gate import Gate
from gatewright.protocol.receipt import Verified, verify
from gatewright.protocol.record import KEPT
from tests.protocol.builders import (
    CONFIRM,
    IDENTITY,
    NOON,
    REVIEW,
    answer,
    answered,
    ask,
    carried,
    dead_letter,
    empty,
    expired,
    later,
    refusal_of,
    reread,
    say,
    superseded,
    waiting_at,
)


class TestBounds:
    @pytest.mark.parametrize("count", [1, KEPT, KEPT + 1, 2 * KEPT, 2 * KEPT + 1, 500])
    def test_the_first_and_the_last_refusals_are_kept(self, count: int) -> None:
        """Per gate; beyond them they are counted by name."""
        book = waiting_at()
        book.write(*(refusal_of(at=later(number)) for number in range(count)))
        times = [later(number) for number in range(count)]

        assert times[:KEPT] + times[KEPT:][-KEPT:] == [entry.at for entry in reread(book).tally("review").kept]
        assert {"invalid": count} == dict(reread(book).tally("review").by_name)
        assert (count >= 2 * KEPT) == book.tally("review").full

    def test_the_first_and_the_last_dead_letters_are_kept(self) -> None:
        """Counted by the door at which they came."""
        book = empty()
        book.write(*(dead_letter(number) for number in range(100)), dead_letter(100, door="update"))
        read = reread(book).dead_letters

        assert [*range(20), *range(81, 101)] == [int((entry.at - NOON).total_seconds() // 60) for entry in read.kept]
        assert {"signal": 100, "update": 1} == dict(read.by_name)

    @pytest.mark.parametrize("letter", ["x", "😀"])
    def test_a_long_refusal_is_kept_by_its_beginning(self, letter: str) -> None:
        """Forty of them at a gate must never make a book that cannot continue as new."""
        book = waiting_at(*(Gate(f"g{number}") for number in range(60)))
        long = [
            Objection(
                refusal=Refusal.UNKNOWN_GATE, reason=letter * 2000, interrupt_id=letter * 400, open=(letter * 200,) * 50
            )
            for _ in range(20)
        ]
        before = len(json.dumps(book.to_json(), ensure_ascii=False).encode())
        book.write(*(Refused(at=NOON, objections=tuple(long), principal=letter * 400) for _ in range(100)))
        kept = book.tally(None).kept

        assert len(json.dumps(book.to_json(), ensure_ascii=False).encode()) - before < 2 * KEPT * 9_000
        assert {(Refusal.UNKNOWN_GATE, letter * 800)} == {(entry.refusal, entry.reason) for entry in kept}

    def test_an_ordinary_refusal_is_kept_word_for_word(self) -> None:
        """The record is what the sender was told."""
        book = waiting_at(REVIEW, CONFIRM)
        ruling = say(book, answer(response="perhaps"), answer(answer_id="a2", interrupt_id="nope"))

        assert [ruling] == reread(book).tally("review").kept

    def test_a_long_dead_letter_is_kept_by_its_beginning(self) -> None:
        """Its reason may hold a key of whatever was sent."""
        book = empty()
        book.write(dead_letter(reason="x" * 200_000, name="y" * 200_000, preview="z" * 200_000))

        assert len(json.dumps(book.to_json()["dead_letters"])) < 4096


class TestCompaction:
    def test_open_gates_are_kept_in_full(self) -> None:
        """With what was shown, when, and what was refused there; so is what nobody could place."""
        book = answered(gates=(REVIEW, CONFIRM))
        say(book, answer(answer_id="c1", interrupt_id="confirm", response="perhaps"))
        say(book, answer(answer_id="n1", interrupt_id="nope"))
        book.write(dead_letter())
        again = carried(book)

        assert book.open == again.open
        assert book.tally("confirm") == again.tally("confirm")
        assert book.tally(None) == again.tally(None)
        assert book.dead_letters == again.dead_letters

    def test_an_occurrence_that_is_over_becomes_one_line(self) -> None:
        """Who answered with what digest when, by which receipt; its refusals are gone."""
        book = answered()
        say(book, answer(answer_id="a2"))
        again = carried(book)
        line = again.gates["review"].settled
        assert line

        assert [line] == again.entries
        assert ("answered", "ada", "cli", "a1", answer().content_digest, REVIEW.digest, later()) == (
            line.state,
            line.principal,
            line.channel,
            line.answer_id,
            line.content_digest,
            line.shown,
            line.at,
        )
        assert (book.receipts[0].number, book.receipts[0].digest) == (line.receipt_number, line.receipt_digest)
        assert 0 == again.tally("review").count

    @pytest.mark.parametrize("ends", [superseded, lambda: expired(waiting_at(), "review")])
    def test_a_gate_that_nobody_answered_is_one_line_too(self, ends: Callable[[], Book]) -> None:
        """In the state that it ended in, nobody's."""
        book = ends()
        again = carried(book)

        assert book.gates["review"].state == again.gates["review"].state
        assert again.gates["review"].principal is None

    def test_what_the_run_is_does_not_change(self) -> None:
        """Identity, number, ledger, epoch and what the pipeline may come to."""
        book = waiting_at(run=2)
        book.ledger_id, book.epoch = "l1", 3
        again = carried(book)

        assert (IDENTITY, 2, ("review", "confirm", "publish"), "l1", 3, book.frame) == (
            again.identity,
            again.run,
            again.declared,
            again.ledger_id,
            again.epoch,
            again.frame,
        )

    def test_compacting_twice_is_compacting_once(self) -> None:
        """Nothing wears off."""
        once = carried(answered(gates=(REVIEW, CONFIRM))).to_json()
        twice = carried(carried(answered(gates=(REVIEW, CONFIRM)))).to_json()

        assert once.pop("dropped") < twice.pop("dropped")
        assert once == twice

    def test_entries_are_counted_on(self) -> None:
        """A reader of the transcript who had come to entry n is not shown other entries under old numbers."""
        book = answered()
        again = carried(book)

        assert len(book.entries) == again.dropped
        assert again.dropped + len(again.entries) == carried(again).dropped

    def test_compacting_changes_nothing_in_the_book_itself(self) -> None:
        """Nor does what the fresh one is told afterwards."""
        book = waiting_at()
        say(book, answer(response="perhaps"))
        before = book.to_json()
        fresh = book.compacted()
        fresh.write(refusal_of(), dead_letter(), refusal_of(None))
        say(fresh, answer())

        assert before == book.to_json()

    @pytest.mark.parametrize("count", [0, 1, KEPT_RECEIPTS, KEPT_RECEIPTS + 1, 130])
    def test_the_last_receipts_travel_with_an_anchor(self, count: int) -> None:
        """They verify, and the next one follows the last, however often the run continued as new."""
        book = empty()
        for number in range(count):
            interrupt_id = ask(book, REVIEW)
            assert "admitted" == say(book, answer(answer_id=f"a{number}", interrupt_id=interrupt_id)).verdict
            if number % 40 == 39:
                book = carried(book)
        head = book.head
        book = carried(book)

        assert head == book.head
        assert Verified(min(count, KEPT_RECEIPTS), head.digest if head else None) == verify(book.receipts, book.anchor)
        assert max(count - KEPT_RECEIPTS, 0) == book.anchor.number

        say(book, answer(answer_id="last", interrupt_id=ask(book, REVIEW)))

        assert count + 1 == book.receipts[-1].number
        assert isinstance(verify(reread(book).receipts, reread(book).anchor), Verified)

    def test_a_settled_occurrence_costs_little(self) -> None:
        """
        Measured over 5,000 answers with UUIDs for ids: 530 bytes of JSON each, receipts and all.

        Some 3,900 of them fit into the 2 MiB that Temporal takes as one payload.
        """
        book = empty()
        for number in range(5_000):
            interrupt_id = ask(book, REVIEW)
            said = answer(answer_id=f"8c7e2f54-{number:04}-4d3a-9b1f-2f6d5b0c9e11", interrupt_id=interrupt_id)
            assert "admitted" == say(book, said).verdict
        size = len(json.dumps(book.compacted().to_json(), separators=(",", ":")))

        assert 500 < size / 5_000 < 560
