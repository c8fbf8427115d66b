"""What a gate shows, made readable: whatever it is, and in bounded time."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gatewright.adk import START, App, Graph, Node
from gatewright.server.inbox import times
from gatewright.server.inbox.address import Listed
from gatewright.server.inbox.content import (
    MAX_CELLS,
    MAX_CHANGES,
    Shown,
    as_text,
    differences,
    headline,
    laid_out,
    markdown,
)
from gatewright.server.inbox.picture import picture
from tests.store.builders import gate_row, later

VALUES = some.recursive(
    some.none() | some.booleans() | some.integers(-9, 9) | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=3), inner, max_size=4),
)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# Head", "<h3>Head</h3>"),
        ("<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](data:text/html,hi)", "<p>[x](data:text/html,hi)</p>"),
        (
            "![x](http://example.com/x.png)",
            '<p>!<a href="http://example.com/x.png" rel="noopener noreferrer nofollow" target="_blank">x</a></p>',
        ),
        ("`<script>`", "<p><code>&lt;script&gt;</code></p>"),
    ],
)
def test_markdown_brings_nothing_that_acts(text: str, html: str) -> None:
    """Raw HTML stays text, no picture is fetched, and links lead only where links may."""
    assert html == str(markdown(text)).strip()


def test_a_message_is_read_in_bounded_time() -> None:
    """Whatever it is made of."""
    began = time.monotonic()
    for hostile in ("[" * 60_000, "*a " * 20_000, ">" * 60_000, "`" * 60_000, "![" * 30_000, "x" * 200_000):
        assert str(markdown(hostile))
        assert len(headline(hostile)) <= 160
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Approve *this*\n\nmore", "Approve this"),
        ("", ""),
        ("```\ncode\n```", "``` code ```"),
        ("a  \nb", "a b"),
        ("x" * 200, "x" * 159 + "…"),
    ],
)
def test_a_list_shows_the_first_line_without_its_marks(text: str, line: str) -> None:
    """Shortened."""
    assert line == headline(text)


def test_a_payload_is_laid_out_by_its_shape() -> None:
    """Objects by their fields, like objects as a table, lists as lists, long text as text."""
    shown = laid_out({"rows": [{"a": 1, "b": None}, {"a": True}], "list": [1, "two"], "text": "one\ntwo", "empty": {}})

    rows, items, text, empty = (row[0] for row in shown.rows)
    assert ("fields", ("rows", "list", "text", "empty")) == (shown.kind, shown.heads)
    assert ("table", ("a", "b")) == (rows.kind, rows.heads)
    assert [["1", "none"], ["yes", ""]] == [[cell.text for cell in row] for row in rows.rows]
    assert ("items", ["1", "two"]) == (items.kind, [row[0].text for row in items.rows])
    assert (Shown("text", "one\ntwo"), Shown("word", "{}")) == (text, empty)


def test_a_large_payload_is_shortened_and_says_so() -> None:
    """Its JSON is whole."""
    shown = laid_out([[number] for number in range(MAX_CELLS * 2)])

    assert len(shown.rows) < MAX_CELLS
    assert shown.missing == MAX_CELLS * 2 - len(shown.rows)


@given(VALUES, VALUES)
def test_differences_are_there_exactly_where_something_differs(one: Any, other: Any) -> None:
    """And every value can be laid out and written as text."""
    assert (json.dumps(one) == json.dumps(other) or one == other) == (not differences(one, other).listed) or (
        json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    )
    assert () == differences(one, one).listed
    assert laid_out(one).kind
    assert isinstance(as_text(one), str)


def test_what_changed_is_told_by_place() -> None:
    """Added, removed, changed, and a longer text line by line; a flood of it is cut."""
    found = differences({"a": [1, 2], "b": "x", "t": "1\n2\n3"}, {"a": [1], "c": None, "t": "1\n3"})

    assert [("$.a[1]", "2", None), ("$.b", "x", None), ("$.t", None, None), ("$.c", None, "null")] == [
        (each.path, each.before, each.after) for each in found.listed
    ]
    assert ((" ", "1"), ("-", "2"), (" ", "3")) == found.listed[2].lines
    assert [("$", "1", "true")] == [(each.path, each.before, each.after) for each in differences(1, True).listed]
    many = differences(list(range(1000)), [])
    assert (MAX_CHANGES, True) == (len(many.listed), many.more)


def test_a_picture_says_where_the_run_is() -> None:
    """In words too; loops and places that nobody declared do no harm; without an app the gates that were reached."""
    graph = Graph(
        (Node("make"), Node("review", kind="gate"), Node("publish")),
        (
            (START, "make"),
            ("make", "review"),
            ("review", "make"),
            ("review", "publish"),
            ("publish", "publish"),
            ("a", "b"),
        ),
    )
    rows = [
        gate_row(state="answered", closed_at=later()),
        gate_row(interrupt_id="review~2", visit=2, opened_at=later(2)),
    ]

    drawn = picture(App("x", "X", graph=graph), rows)
    reached = picture(None, [*rows, gate_row(gate="failed:publish", interrupt_id="f", opened_at=later(3))])

    assert drawn is not None
    assert "The pipeline: make, review (waits here), publish" == drawn.words
    assert 4 == len(drawn.lines)
    assert [0, 2, 0] == [place.visits for place in drawn.places]
    assert all(0 <= place.x <= drawn.width and 0 <= place.y <= drawn.height for place in drawn.places)
    assert reached is not None
    assert ["review", "failed:publish"] == [place.name for place in reached.places]
    assert picture(None, []) is None


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(minutes=61), "1 h 1 min"),
        (timedelta(hours=2), "2 h"),
        (timedelta(days=2, hours=3), "2 d 3 h"),
        (timedelta(days=2, minutes=3), "2 d"),
        (-timedelta(days=2), "0 s"),
    ],
)
def test_a_length_of_time_in_words(length: timedelta, words: str) -> None:
    """In its largest units."""
    assert words == times.span(length)


def test_the_list_is_in_its_address() -> None:
    """What differs from the plain list, and a change begins at the first page."""
    listed = Listed.of({"view": "all", "q": "a&b=c", "page": "3", "sort": "nope", "dir": "asc"})

    assert Listed("all", "a&b=c", dir="asc", page=3) == listed
    assert "/inbox?view=all&q=a%26b%3Dc&dir=asc&page=3" == listed.url(page=3)
    assert "/inbox?view=all&dir=asc" == listed.url(q="")
    assert "/inbox" == Listed().url()
