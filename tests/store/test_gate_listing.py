"""The inbox's questions to the gate index: filters, search, order, pages, counts."""

from typing import Any

import pytest

from gatewright.store import SessionKey, Store, StoreError
from tests.store.builders import RUN, gate_row, later

OTHER = SessionKey(app="letters", user="bob", session="s%2")
FOREIGN = "order-17"

ROWS = {
    "first": gate_row(deadline=later(90)),
    "second": gate_row(interrupt_id="review~2", visit=2, opened_at=later(1), deadline=later(30)),
    "third": gate_row(
        workflow_id=OTHER.workflow_id(1),
        gate="confirm",
        pipeline="Letters",
        message="Straße_50% off?",
        opened_at=later(2),
        deadline=None,
        state="answered",
        closed_at=later(4),
    ),
    "fourth": gate_row(
        workflow_id=FOREIGN,
        gate="ÜBERGABE",
        message="Straßen x50 off?",
        opened_at=later(3),
        deadline=later(60),
        state="expired",
        closed_at=later(3),
        refusals=2,
        invited=("ada", 'o"b\n'),
        on_deadline="default",
        default_response={"keep": True},
    ),
}

FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["fourth", "third", "second", "first"]),
    ({"run": RUN}, ["second", "first"]),
    ({"run": FOREIGN}, ["fourth"]),
    ({"session": OTHER}, ["third"]),
    ({"session": SessionKey(app="letters", user="bob", session="s")}, []),
    ({"app": "datasets"}, ["second", "first"]),
    ({"pipeline": "Letters"}, ["third"]),
    ({"gate": "review"}, ["second", "first"]),
    ({"gate": "review", "app": "letters"}, []),
    ({"states": ["open"]}, ["second", "first"]),
    ({"states": ("answered", "expired")}, ["fourth", "third"]),
    ({"states": []}, []),
    ({"search": "COLUMNS"}, ["second", "first"]),
    ({"search": "übergabe"}, ["fourth"]),
    ({"search": "STRASSE"}, ["fourth", "third"]),
    ({"search": "_50%"}, ["third"]),
    ({"search": "%"}, ["third"]),
    ({"search": "\\"}, []),
    ({"search": "ORDER-"}, ["fourth"]),
    ({"search": "bob/"}, ["third"]),
    ({"search": "'; DROP TABLE gates"}, []),
    ({"search": "x" * 100_000}, []),
    ({"search": "\0"}, []),
    ({"invited": "ada"}, ["fourth"]),
    ({"invited": 'o"b\n'}, ["fourth"]),
    ({"invited": "ad"}, []),
    ({"invited": "b"}, []),
    ({"refused": True}, ["fourth"]),
    ({"refused": False, "app": "letters"}, ["third"]),
    ({"prefixes": ("con", "ÜB")}, ["fourth", "third"]),
    ({"prefixes": ("eview", "%")}, []),
    ({"prefixes": ()}, []),
    ({"run": None, "session": None, "states": None, "invited": None, "prefixes": None, "search": None}, [*ROWS][::-1]),
    ({"search": ""}, ["fourth", "third", "second", "first"]),
]


@pytest.fixture
def listed(store: Store) -> Store:
    for row in ROWS.values():
        store.open_gate(row)
    return store


def names(rows: list[Any]) -> list[str]:
    return [name for row in rows for name, known in ROWS.items() if known == row]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=lambda value: str(value)[:40])
def test_a_list_shows_what_was_asked_for_and_the_count_agrees(
    listed: Store, filters: dict[str, Any], expected: list[str]
) -> None:
    counts = dict.fromkeys([ROWS[name].state for name in expected], 0)
    for name in expected:
        counts[ROWS[name].state] += 1

    assert expected == names(listed.gates(**filters))
    assert counts == listed.count_gates(**filters)


@pytest.mark.parametrize(
    ("order", "descending", "expected"),
    [
        ("opened_at", False, ["first", "second", "third", "fourth"]),
        ("deadline", False, ["second", "fourth", "first", "third"]),
        ("deadline", True, ["first", "fourth", "second", "third"]),
        ("closed_at", False, ["fourth", "third", "first", "second"]),
        ("closed_at", True, ["third", "fourth", "second", "first"]),
    ],
)
def test_a_list_is_sorted_with_what_has_no_such_time_at_the_end(
    listed: Store, order: Any, descending: bool, expected: list[str]
) -> None:
    assert expected == names(listed.gates(order=order, descending=descending))


def test_an_order_that_nobody_knows_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="use opened_at, deadline or closed_at"):
        store.gates(order="message")  # type: ignore[arg-type]


def test_pages_follow_each_other(listed: Store) -> None:
    """Gates without the time that is sorted by are paged through as well."""
    pages = [listed.gates(order="closed_at", limit=1, offset=offset) for offset in range(5)]

    assert [["third"], ["fourth"], ["second"], ["first"], []] == [names(page) for page in pages]


def test_a_search_finds_what_a_later_opening_says(store: Store) -> None:
    store.settle_gate(RUN, "review", state="answered", at=later())
    assert [] == store.gates(search="columns")

    store.open_gate(gate_row())
    assert ["review"] == [row.interrupt_id for row in store.gates(search="columns")]
