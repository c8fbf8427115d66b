"""What a run tells of itself fits into Temporal's replies, whatever it was shown and sent."""

from gatewright.protocol import Gate
from gatewright.temporal.views import PAGE_BYTES, book_part, gates_page, refusals_view, transcript_page
from gatewright.testing import BookBuilder

ROOM = PAGE_BYTES + 300 * 1024
"""A page may pass its size by one entry."""


def test_pages_are_measured_in_bytes_and_lose_nothing() -> None:
    """80,000 characters of Chinese are 240,000 bytes."""
    builder = BookBuilder()
    for _ in range(14):
        builder.asked(Gate("review", payload="門" * 80_000))
    book = builder.book
    ids: list[str] = []
    start: int | None = 0
    while start is not None:
        page = gates_page(book, start)
        assert len(page.model_dump_json().encode()) < ROOM
        ids += [gate.interrupt_id for gate in page.gates]
        start = page.next
    entries, after = 0, 0
    while True:
        told = transcript_page(book, after)
        if not told.entries:
            break
        assert len(told.model_dump_json().encode()) < ROOM
        entries, after = entries + len(told.entries), told.next

    assert ids == list(book.gates)
    assert entries == 14


def test_a_page_turned_while_a_gate_settles_shows_every_gate_once() -> None:
    """The order of gates is that of their opening, and does not change."""
    builder = BookBuilder()
    for _ in range(10):
        builder.asked(Gate("review", payload="x" * 200_000))
    first = gates_page(builder.book)
    assert first.next is not None
    builder.answered("review", 1)
    rest = gates_page(builder.book, first.next)

    assert len({gate.interrupt_id for gate in first.gates} & {gate.interrupt_id for gate in rest.gates}) == 0


def test_refusals_beyond_a_reply_are_left_out_and_counted() -> None:
    """The latest are told."""
    builder = BookBuilder()
    for number in range(1, 40):
        builder.asked(Gate("review", answer=int))
        for _ in range(40):
            builder.said_to("review" if number == 1 else f"review~{number}", {"x": "y" * 900})
    view = refusals_view(builder.book)

    assert len(view.model_dump_json().encode()) < ROOM
    assert view.left_out + len(view.refused) == 39 * 40
    assert sum(counts["invalid"] for counts in view.counts.values()) == 39 * 40


def test_a_book_in_pieces_is_the_book() -> None:
    """Each piece below Temporal's limit, each with the same stamp."""
    builder = BookBuilder()
    for _ in range(20):
        builder.asked(Gate("review", payload="x" * 150_000))
    first = book_part(builder.book)
    pieces = [book_part(builder.book, part) for part in range(first.parts)]

    assert first.parts > 1
    assert len({piece.stamp for piece in pieces}) == 1
    import json

    assert json.loads("".join(piece.text for piece in pieces)) == builder.book.to_json()
