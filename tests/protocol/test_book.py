"""The record of one run: what it refuses to say, what it keeps for ever, and how small it stays."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import pytest

from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.entries import (
    Answered,
    Asked,
    Closed,
    Consumed,
    Expired,
    Performed,
    Settled,
    Superseded,
)
from gatewright.protocol.errors import BookError
from gatewright.protocol.identity import Occurrence, Standing
from tests.protocol.builders import (
    CONFIRM,
    IDENTITY,
    NOON,
    REVIEW,
    ROOT,
    answer,
    answered,
    carried,
    chain,
    dead_letter,
    empty,
    expired,
    judge,
    later,
    refusal_of,
    reread,
    sealed,
    superseded,
    waiting_at,
)

REVIEWED = Occurrence(gate="review")


def asked(**changes: Any) -> Asked:
    """Record the first arrival at `review`."""
    given = {"at": NOON, "occurrence": REVIEWED, "branch": ROOT.child("review", 1), "gate": REVIEW.pin(opened_at=NOON)}
    return Asked(**given | changes)


def settled(**changes: Any) -> Settled:
    """Record what compaction left of it."""
    given = {"at": NOON, "occurrence": REVIEWED, "branch": ROOT.child("review", 1), "shown": "sha256:1"}
    return Settled(**{"state": "answered", "answer_id": "a1"} | given | changes)


def an_answer(book: Book | None = None, **changes: Any) -> Answered:
    """Record an answer as admission would, for a book that waits at `review`."""
    ruling = judge(book or waiting_at(), answer(**changes))
    return ruling.entries[0]  # type: ignore[union-attr]


def performed(**changes: Any) -> Performed:
    """Record the first call of `publish`."""
    return Performed(**{"at": NOON, "call": Call.at(IDENTITY, ROOT, "publish", 1, effect=True)} | changes)


def consumed(interrupt_id: str = "review") -> Consumed:
    """Record that an answer authorised a call."""
    return Consumed(at=NOON, occurrence=Occurrence.parse(interrupt_id), by="publish#1", key="gw1-1")


def closed(book: Book) -> Book:
    """Let the run complete."""
    book.write(Closed(at=later(30), standing=Standing.COMPLETED))
    return book


class TestWrite:
    """All facts pass one place, and one that contradicts the book is the fault of the caller."""

    @pytest.mark.parametrize(
        ("book", "entry", "why"),
        [
            (waiting_at, asked(), "review was asked before"),
            (answered, asked(), "review was asked before"),
            (lambda: carried(answered()), asked(), "review was asked before"),
            (lambda: closed(empty()), asked(), "review cannot be asked: the run is completed"),
            (empty, asked(occurrence=Occurrence(gate="review", run=2)), "review@2 belongs to run 2"),
            (waiting_at, settled(), "review was asked before"),
            (empty, settled(occurrence=Occurrence(gate="review", run=2)), "review@2 belongs to run 2"),
            (empty, an_answer(), "review cannot be answered: it is unknown"),
            (answered, an_answer(answer_id="a2"), "review cannot be answered: it is answered"),
            (lambda: carried(answered()), an_answer(answer_id="a2"), "review cannot be answered: it is answered"),
            (superseded, an_answer(), "review cannot be answered: it is superseded"),
            (lambda: expired(waiting_at(), "review"), an_answer(), "review cannot be answered: it is expired"),
            (lambda: closed(waiting_at()), an_answer(), "review cannot be answered: it is closed"),
            (
                answered,
                Expired(at=NOON, occurrence=REVIEWED, outcome="fail"),
                "review cannot be expired: it is answered",
            ),
            (
                empty,
                Expired(at=NOON, occurrence=REVIEWED, outcome="default"),
                "review cannot be expired: it is unknown",
            ),
            (
                answered,
                Superseded(at=NOON, occurrence=REVIEWED, reason="x"),
                "review cannot be superseded: it is answered",
            ),
            (waiting_at, consumed(), "review cannot be consumed: it is open"),
            (empty, consumed(), "review cannot be consumed: it is unknown"),
            (superseded, consumed(), "review cannot be consumed: it is superseded"),
            (waiting_at, performed(receipt=sealed(chain(1)[0])), "receipt 2 does not follow the head"),
            (answered, performed(receipt=sealed(None)), "receipt 1 does not follow the head"),
            (
                lambda: answered(
                    answer(answer_id="c1", interrupt_id="confirm", response="release"), gates=(REVIEW, CONFIRM)
                ),
                an_answer(),
                "receipt 1 does not follow the head",
            ),
            (waiting_at, REVIEW, "a book does not record Gate"),
        ],
    )
    def test_what_contradicts_the_book_is_not_written(self, book: Callable[[], Book], entry: Any, why: str) -> None:
        """It says what stands against it, and the book is as it was: nothing is written by halves."""
        written = book()
        before = written.to_json()

        with pytest.raises(BookError, match=why):
            written.write(entry)
        assert before == written.to_json()
        assert before == reread(written).to_json()
        assert [record.interrupt_id for record in reread(written).open] == [each.interrupt_id for each in written.open]

    def test_an_answer_is_consumed_by_what_it_authorised(self) -> None:
        """More than once, where it authorised more than one call; after continue-as-new too."""
        book = answered()
        book.write(consumed(), consumed())
        again = carried(book)
        again.write(consumed())

        assert 2 == len(book.gates["review"].consumed)
        assert 1 == len(again.gates["review"].consumed)

    def test_a_refusal_is_no_part_of_the_transcript(self) -> None:
        """It is counted beside it, under the gate that it was meant for or under none."""
        book = waiting_at()
        entries = list(book.entries)
        book.write(refusal_of(), refusal_of("nope"), refusal_of(None), dead_letter())

        assert entries == book.entries
        assert (1, 2, 1) == (book.tally("review").count, book.tally(None).count, book.dead_letters.count)
        assert book.tally("nope") == book.tally(None)


class TestNumbers:
    @pytest.mark.parametrize("again", [reread, carried, lambda book: carried(carried(book))])
    def test_numbers_never_go_back(self, again: Callable[[Book], Book]) -> None:
        """Nor do those that were taken for an arrival that no entry tells of yet."""
        book = answered()
        book.write(performed())
        book.reserve("review")
        book.reserve_call("publish")
        book.reserve("confirm")
        read = again(book)

        assert "review~3" == read.next_occurrence("review").interrupt_id
        assert "confirm~2" == read.next_occurrence("confirm").interrupt_id
        assert "other" == read.next_occurrence("other").interrupt_id
        assert 3 == read.reserve_call("publish")

    def test_two_arrivals_at_one_moment_are_two_occurrences(self) -> None:
        """Each takes its own number before either is shown."""
        book = empty()

        assert ["review", "review~2"] == [book.reserve("review").interrupt_id for _ in range(2)]

    def test_arrivals_may_be_shown_out_of_order(self) -> None:
        """The second opened first: the next is the third all the same."""
        book = empty()
        book.write(asked(occurrence=Occurrence(gate="review", visit=2)), asked())

        assert "review~3" == book.next_occurrence("review").interrupt_id

    def test_the_ids_of_a_later_run_say_so(self) -> None:
        """They are unique in the session."""
        assert "review@3" == empty(run=3).next_occurrence("review").interrupt_id


# A ledger may be called anything.
DAMAGED = sorted(
    product(set(answered().to_json()) - {"gatewright_book"}, ["missing", 7.5, "x", [7], {"x": []}]), key=str
)
DAMAGED.remove(("ledger_id", "x"))


class TestReading:
    @pytest.mark.parametrize(
        "data",
        [
            None,
            [],
            "book",
            {},
            {"gatewright_book": 2},
            {"gatewright_book": "1"},
            {"gatewright_book": None},
            {"identity": {}},
        ],
    )
    def test_a_book_of_another_version_is_not_read(self, data: Any) -> None:
        """It says which release can."""
        with pytest.raises(BookError, match="this is not a book of version 1"):
            Book.from_json(data)

    @pytest.mark.parametrize(("key", "damage"), DAMAGED)
    def test_a_damaged_book_is_not_read(self, key: str, damage: Any) -> None:
        """Whatever is missing or of another kind; half a book would be worse than none."""
        data = answered().to_json()
        if damage == "missing":
            del data[key]
        else:
            data[key] = damage

        with pytest.raises(BookError, match="this book is damaged"):
            Book.from_json(data)

    @pytest.mark.parametrize("damage", ["unknown kind", "unknown field", "twice", "dropped"])
    def test_a_book_with_damaged_entries_is_not_read(self, damage: str) -> None:
        """Nor one whose entries contradict one another."""
        data = json.loads(json.dumps(answered().to_json()))
        match damage:
            case "unknown kind":
                data["entries"][0]["kind"] = "wished"
            case "unknown field":
                data["entries"][0]["colour"] = "red"
            case "twice":
                data["entries"].append(data["entries"][-1])
            case _:
                del data["entries"][0]

        with pytest.raises(BookError, match="this book is damaged"):
            Book.from_json(data)


def test_every_state_of_a_gate_can_be_reached() -> None:
    """And each is kept in JSON."""
    books = [waiting_at(), answered(), expired(waiting_at(), "review"), superseded(), closed(waiting_at())]
    states = [reread(book).gates["review"].state for book in books]

    assert ["open", "answered", "expired", "superseded", "closed"] == states
    assert set(get_args(type(books[0].gates["review"]).__annotations__["state"])) == set(states)
