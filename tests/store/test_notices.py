"""What is to be told of gates: noted once, claimed by one, kept until it is told and for as long as it may come again."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from gatewright.store import GateRow, Notice, Store, schema
from gatewright.store.notices import types_of
from tests.store.builders import RUN, at_once, gate_row, in_processes, refusal_row, until

URL = "e1"
NOW = datetime.now(UTC)
ONE: dict[str, Any] = {"holder": "h1", "seconds": 60.0}
STATES = {
    "open": ["gate.opened"],
    "answered": ["gate.opened", "gate.answered"],
    "expired": ["gate.opened", "gate.expired"],
    "superseded": ["gate.opened"],
    "closed": ["gate.opened"],
    "blocked": ["gate.opened"],
}

CLAIM = """
from gatewright.store import Store
with Store.open(sys.argv[2]) as store:
    begin()
    taken = []
    while claimed := store.notices.claim("e1", holder=sys.argv[1], seconds=60, limit=3):
        taken += [notice.id for notice in claimed]
        for notice in claimed:
            store.notices.delivered("e1", notice.id)
    print(json.dumps(taken))
"""


def fresh(**changes: object) -> GateRow:
    """Describe a gate that was opened just now."""
    return gate_row(**{"opened_at": datetime.now(UTC), "deadline": None, **changes})


def settled(store: Store, interrupt_id: str = "review", state: str = "answered") -> None:
    """Settle a gate just now."""
    store.settle_gate(RUN, interrupt_id, state=state, at=datetime.now(UTC), principal="bob", channel="http")


def noted(store: Store, endpoint: str = URL) -> int:
    """Read everything that ever changed, and note it."""
    return store.notices.note(endpoint, store.changed_gates(NOW - timedelta(days=36_500)))


def told(store: Store, endpoint: str = URL) -> list[tuple[str, str]]:
    """Claim and deliver until nothing is due; what came, in that order."""
    return [(notice.interrupt_id, notice.type) for notice in _telling(store, endpoint)]


def _telling(store: Store, endpoint: str) -> Iterator[Notice]:
    while claimed := store.notices.claim(endpoint, **ONE):
        store.notices.delivered(endpoint, claimed[0].id)
        yield claimed[0]


def age(store: Store, days: float) -> None:
    """Let everything have been noted, told and settled so many days earlier."""
    ago = timedelta(days=days)
    with store._database.write("test") as connection:
        for table, names in ((schema.notices, ("settled_at", "noted_at")), (schema.gates, ("opened_at", "closed_at"))):
            keys = list(table.primary_key)
            for row in connection.execute(table.select()).mappings().all():
                changes = {name: row[name] - ago for name in names if row[name] is not None}
                this = [key == row[key.name] for key in keys]
                connection.execute(update(table).where(*this).values(changes))


@pytest.mark.parametrize("state", STATES)
def test_what_a_row_tells_is_what_happened_at_its_gate(state: str) -> None:
    row = fresh(state=state, closed_at=None if state == "open" else datetime.now(UTC))
    assert STATES[state] == [type_ for type_, _ in types_of(row)]


@pytest.mark.parametrize("gate", ["blocked:publish", "failed:count"])
def test_a_gate_that_asks_about_a_call_opens_as_blocked(gate: str) -> None:
    row = fresh(gate=gate, state="answered", closed_at=datetime.now(UTC))
    assert ["gate.blocked", "gate.answered"] == [type_ for type_, _ in types_of(row)]


def test_who_begins_is_told_of_what_is_open_and_of_nothing_older(store: Store) -> None:
    """Not even where an old row is written again."""
    store.open_gate(fresh())
    store.open_gate(fresh(interrupt_id="old~1"))
    settled(store, "old~1")
    begun = store.notices.begin(URL)
    store.record_refusal(refusal_row(interrupt_id="old~1"))

    assert begun == store.notices.begin(URL)
    assert 0 == noted(store)
    assert [("review", "gate.opened")] == told(store)


def test_a_gate_that_was_never_seen_open_gives_its_opening_first(store: Store) -> None:
    store.notices.begin(URL)
    store.open_gate(fresh())
    settled(store)

    assert (2, 0) == (noted(store), noted(store))
    assert [("review", "gate.opened"), ("review", "gate.answered")] == told(store)
    assert (0, []) == (noted(store), told(store))


def test_a_gate_that_was_seen_open_gives_only_what_followed(store: Store) -> None:
    store.notices.begin(URL)
    store.open_gate(fresh())
    assert 1 == noted(store)
    assert [("review", "gate.opened")] == told(store)
    settled(store, state="expired")

    assert 1 == noted(store)
    assert [("review", "gate.expired")] == told(store)


def test_only_what_is_wanted_is_noted(store: Store) -> None:
    store.open_gate(fresh())
    store.notices.begin(URL, types={"gate.answered"})
    settled(store)
    changed = store.changed_gates(NOW - timedelta(days=36_500))

    assert 1 == store.notices.note(URL, changed, types={"gate.answered"})
    assert [("review", "gate.answered")] == told(store)


def test_it_is_remembered_up_to_where_the_gates_were_read(store: Store) -> None:
    begun = store.notices.begin(URL)
    store.open_gate(fresh())
    ((touched, row),) = store.changed_gates(begun)
    store.notices.note(URL, [(touched, row)])
    store.notices.note(URL, [])

    assert touched == store.notices.begin(URL)


def test_neither_what_is_shown_nor_what_was_answered_is_in_a_notice(store: Store) -> None:
    store.notices.begin(URL)
    store.open_gate(fresh(payload={"salary": "sesame"}))
    store.settle_gate(RUN, "review", state="answered", at=datetime.now(UTC), response={"x": "sesame"}, principal="bob")
    noted(store)

    answered, opened = store.notices.list(URL)
    assert ("gate.opened", "gate.answered") == (opened.type, answered.type)
    assert "sesame" not in f"{opened}{answered}"
    assert (RUN, "review", "datasets", "bob") == tuple(
        answered.data[name] for name in ("run", "interrupt_id", "app", "principal")
    )


def test_endpoints_are_told_apart_and_stores_too(store: Store, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One event has one id wherever it is told, and another one in another store."""
    store.open_gate(fresh())
    for endpoint in ("e1", "e2"):
        store.notices.begin(endpoint)
    [first], [second] = (store.notices.claim(endpoint, **ONE) for endpoint in ("e1", "e2"))
    with Store.open(str(tmp_path_factory.mktemp("other") / "store.db")) as other:
        other.open_gate(fresh())
        other.notices.begin("e1")
        [third] = other.notices.claim("e1", **ONE)

    assert first.id == second.id != third.id


def test_a_claim_keeps_others_away_until_it_ends(store: Store) -> None:
    store.open_gate(fresh())
    store.notices.begin(URL)
    [first] = store.notices.claim(URL, holder="h1", seconds=0.05)
    again = until(lambda: store.notices.claim(URL, holder="h2", seconds=60) or None)
    assert [] == store.notices.claim(URL, holder="h3", seconds=60)
    store.notices.missed(URL, first.id, holder="h1", error="late", again=0)
    assert [] == store.notices.claim(URL, holder="h3", seconds=60)
    store.notices.delivered(URL, first.id)
    store.notices.missed(URL, first.id, holder="h2", error="too late", again=0)

    assert [first.id] == [notice.id for notice in again]
    [kept] = store.notices.list()
    assert ("delivered", 0, None) == (kept.state, kept.attempts, kept.error)


def test_what_follows_waits_until_the_opening_has_failed_twice(store: Store) -> None:
    store.notices.begin(URL)
    store.open_gate(fresh())
    settled(store)
    noted(store)
    for attempt in (1, 2):
        [opened] = store.notices.claim(URL, limit=9, **ONE)
        assert "gate.opened" == opened.type
        again = 0 if attempt == 1 else 3600
        store.notices.missed(URL, opened.id, holder="h1", error=f"no {attempt}", again=again)

    assert [("review", "gate.answered")] == told(store)
    [waiting] = store.notices.list(state="pending")
    assert ("gate.opened", 2, "no 2") == (waiting.type, waiting.attempts, waiting.error)


def test_what_is_given_up_is_kept_and_holds_nothing_up(store: Store) -> None:
    store.notices.begin(URL)
    store.open_gate(fresh())
    settled(store)
    noted(store)
    [opened] = store.notices.claim(URL, limit=9, **ONE)
    store.notices.missed(URL, opened.id, holder="h1", error="never", again=None)

    assert [("review", "gate.answered")] == told(store)
    [failed] = store.notices.list(state="failed")
    assert ("gate.opened", "never", None) == (failed.type, failed.error, failed.holder)


def test_what_was_delivered_long_ago_is_forgotten_and_not_told_again(store: Store) -> None:
    """A reindex writes every row anew, and a refused answer the row of its gate."""
    store.notices.begin(URL)
    with store._database.write("test") as connection:
        connection.execute(update(schema.endpoints).values(begun_at=NOW - timedelta(days=400)))
    store.open_gate(fresh())
    settled(store)
    noted(store)
    assert 2 == len(told(store))
    age(store, 29)
    assert 0 == store.notices.prune()
    age(store, 2)
    assert 2 == store.notices.prune()
    store.record_refusal(refusal_row())

    assert (0, []) == (noted(store), store.notices.list())


def test_the_opening_of_a_gate_that_is_still_open_is_not_forgotten(store: Store) -> None:
    """Nor is it as long as the gate has only just been closed, or something is still to be told of it."""
    store.notices.begin(URL)
    store.open_gate(fresh())
    noted(store)
    assert 1 == len(told(store))
    age(store, 40)
    assert 0 == store.notices.prune()
    store.close_run(RUN, standing="cancelled", at=datetime.now(UTC))
    store.replace_index(RUN, [fresh(state="closed", closed_at=datetime.now(UTC))])

    assert (0, 0) == (store.notices.prune(), noted(store))


def test_more_than_one_statement_takes_is_noted(store: Store) -> None:
    rows = [fresh(interrupt_id=f"review~{n}") for n in range(1201)]
    store.replace_index(RUN, rows)
    store.notices.begin(URL)
    store.notices.begin("e2")
    with store._database.write("test") as connection:
        connection.execute(schema.notices.delete().where(schema.notices.c.endpoint == "e2"))

    assert 1201 == len(store.notices.list(URL, limit=5000))
    assert 1201 == store.notices.note("e2", store.changed_gates(NOW - timedelta(days=1), limit=5000))


def test_what_many_note_at_once_is_noted_once(store: Store) -> None:
    store.notices.begin(URL)
    store.open_gate(fresh())
    settled(store)

    results = at_once(*[lambda: noted(store)] * 8)

    assert [0] * 7 + [2] == sorted(map(int, map(str, results)))


def test_what_many_processes_claim_is_told_once(address: str) -> None:
    with Store.open(address) as store:
        store.replace_index(RUN, [fresh(interrupt_id=f"review~{n}") for n in range(30)])
        store.notices.begin(URL)

    taken = [id_ for printed in in_processes(3, CLAIM, address) for id_ in printed]

    assert (30, 30) == (len(taken), len(set(taken)))
