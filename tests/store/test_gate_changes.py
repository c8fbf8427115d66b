"""The feed of changed gates, by which open pages and webhooks learn of them."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from gatewright.store import Store
from tests.store.builders import NOON, RUN, gate_row, later, refusal_row, run_record

CHANGES: dict[str, Callable[[Store], None]] = {
    "settled": lambda store: store.settle_gate(RUN, "review", state="answered", at=later(), principal="bob"),
    "refused": lambda store: store.record_refusal(refusal_row()),
    "run closed": lambda store: store.close_run(RUN, standing="cancelled", at=later()),
    "run found closed": lambda store: store.register_run(run_record(standing="failed", closed_at=later())),
    "reindexed": lambda store: store.replace_index(RUN, [gate_row(message="again")]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_way_in_which_a_gate_changes_is_in_the_feed(store: Store, change: Callable[[Store], None]) -> None:
    store.open_gate(gate_row())
    (opened, _), *none = store.changed_gates(NOON - timedelta(days=36_500))
    assert not none
    after = store.now()
    assert opened <= after
    assert store.changed_gates(after + timedelta(microseconds=1)) == []
    change(store)
    ((touched, row),) = store.changed_gates(after)
    assert after <= touched <= store.now()
    assert store.touched_gates(after) == {(RUN, "review"): touched}
    assert row == store.gate(RUN, "review")


def test_the_feed_tells_of_the_oldest_change_first_and_no_more_than_it_is_asked_for(store: Store) -> None:
    since = store.now()
    for number in (3, 1, 2):
        store.open_gate(gate_row(interrupt_id=f"review~{number}"))
    store.settle_gate(RUN, "review~3", state="expired", at=later())
    changed = store.changed_gates(since)
    assert [row.interrupt_id for _, row in changed] == ["review~1", "review~2", "review~3"]
    assert [at for at, _ in changed] == sorted(at for at, _ in changed)
    assert store.changed_gates(since, limit=2) == changed[:2]
    assert store.changed_gates(since, limit=-1) == []


def test_what_changes_nothing_is_not_in_the_feed(store: Store) -> None:
    store.open_gate(gate_row())
    store.settle_gate(RUN, "review", state="answered", at=later(2))
    since = store.now() + timedelta(microseconds=1)
    store.settle_gate(RUN, "review", state="expired", at=later(1))
    store.close_run(RUN, standing="completed", at=later(3))
    assert store.changed_gates(since) == []


def test_pipelines_are_named_once_each(store: Store) -> None:
    assert store.pipelines() == []
    for number, pipeline in enumerate(("Letters", "DatasetRelease", "Letters")):
        store.open_gate(gate_row(interrupt_id=f"review~{number}", pipeline=pipeline))
    assert store.pipelines() == ["DatasetRelease", "Letters"]
