"""A live book stays light enough to be written in one workflow task, and forgets nothing by which it judges."""

import json

from gatewright.protocol import Answer, Book, Gate, Repeated
from gatewright.protocol.book import MAX_WEIGHT
from gatewright.protocol.entries import Answered, Asked
from gatewright.testing import BookBuilder

PAGE = "x" * 100_000


def heavy_book(gates: int) -> Book:
    """A run that showed 100 KB at each of its gates, and was answered with 50 KB."""
    builder = BookBuilder()
    for number in range(1, gates + 1):
        builder.asked(Gate("review", payload=PAGE, message=f"draft {number}"))
        interrupt_id = "review" if number == 1 else f"review~{number}"
        builder.answered(interrupt_id, PAGE[:50_000], answer_id=f"a{number}")
    return builder.book


def test_what_was_shown_and_said_long_ago_is_let_go_of() -> None:
    """300 gates of 200 KB each (payload, response, value) are 60 MB; the book keeps about 4 MB of it."""
    book = heavy_book(300)

    assert len(json.dumps(book.to_json())) < MAX_WEIGHT + 2_000_000
    asked = [entry for entry in book.entries if isinstance(entry, Asked)]
    answered = [entry for entry in book.entries if isinstance(entry, Answered)]
    assert asked[0].gate.payload is None
    assert asked[0].gate.message == "draft 1"
    assert answered[0].value is None
    assert asked[-1].gate.payload == PAGE
    assert len(str(answered[-1].value)) == 50_000


def test_a_repeat_is_known_by_its_digest_when_its_words_are_gone() -> None:
    """And another answer to the same occurrence is told who was first."""
    builder = BookBuilder()
    builder.book = heavy_book(60)

    again = builder.said_to("review", PAGE[:50_000], answer_id="a1")
    assert isinstance(again, Repeated)
    assert again.receipts == (builder.book.receipts[0],)
    assert builder.said_to("review", "other", answer_id="a1").verdict == "refused"


def test_an_open_gate_never_loses_what_it_shows() -> None:
    """However old it is: it is what answers are judged by."""
    builder = BookBuilder()
    builder.asked(Gate("first", answer=int, payload=PAGE))
    for number in range(1, 80):
        builder.asked(Gate("review", payload=PAGE))
        builder.answered("review" if number == 1 else f"review~{number}", 1, answer_id=f"a{number}")
    book = builder.book

    gate = book.gates["first"].gate
    assert gate is not None
    assert gate.payload == PAGE
    assert builder.said_to("first", "no number").verdict == "refused"
    assert builder.said_to("first", 3, answer_id="n").verdict == "admitted"


def test_a_book_that_let_go_reads_the_same_from_json() -> None:
    """Folded anew, it says what it said."""
    book = heavy_book(80)
    read = Book.from_json(json.loads(json.dumps(book.to_json())))

    assert read.to_json() == book.to_json()
    assert read.gates["review"].content_digest == book.gates["review"].content_digest == _content("a1")


def _content(answer_id: str) -> str:
    return Answer(answer_id=answer_id, interrupt_id="review", response=PAGE[:50_000]).content_digest
