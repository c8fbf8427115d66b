"""Refusals are kept as evidence, and cannot fill the database."""

from gatewright.store import Store
from tests.store.builders import RUN, SESSION, gate_row, refusal_row


def test_refusals_are_listed_the_last_one_first(store: Store) -> None:
    rows = [
        refusal_row(),
        refusal_row(
            workflow_id="nobody-knows", interrupt_id=None, answer_id=None, principal=None, recorded_by="client"
        ),
        refusal_row(refusal="too_late"),
    ]
    for row in rows:
        store.record_refusal(row)

    assert rows[::-1] == store.refusals()
    assert [rows[2], rows[0]] == store.refusals(run=RUN)
    assert [rows[2]] == store.refusals(limit=1)
    assert [] == store.refusals(run=SESSION.workflow_id(2))


def test_a_refusal_counts_at_its_gate_and_changes_nothing_else(store: Store) -> None:
    store.open_gate(gate_row())
    store.open_gate(gate_row(interrupt_id="review~2"))
    for interrupt_id in ("review", "review", "unheard-of", None):
        store.record_refusal(refusal_row(interrupt_id=interrupt_id))

    assert gate_row(refusals=2) == store.gate(RUN, "review")
    assert gate_row(interrupt_id="review~2") == store.gate(RUN, "review~2")


def test_of_a_storm_the_first_50_and_the_latest_150_are_kept(store: Store) -> None:
    """The count at the gate goes on, and other runs lose nothing."""
    store.open_gate(gate_row())
    store.record_refusal(refusal_row(workflow_id="other"))
    for number in range(203):
        store.record_refusal(refusal_row(answer_id=f"a{number}"))

    kept = [*range(50), *range(53, 203)]
    assert [f"a{number}" for number in reversed(kept)] == [row.answer_id for row in store.refusals(run=RUN, limit=999)]
    assert gate_row(refusals=203) == store.gate(RUN, "review")
    assert 1 == len(store.refusals(run="other"))
