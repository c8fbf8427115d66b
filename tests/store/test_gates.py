"""News of a gate may come twice, late or in the wrong order; the index says the same in the end."""

from collections.abc import Callable
from datetime import timedelta, timezone
from itertools import permutations
from typing import Any

import pytest

from gatewright.store import GATE_STATES, Store, StoreError
from tests.store.builders import NOON, RUN, SESSION, allocate, gate_row, later, refusal_row

ANSWER: dict[str, Any] = {
    "answer_id": "a1",
    "principal": "ada",
    "channel": "update",
    "response": {"drop": ["email"], "why": "it names people"},
    "receipt_digest": "sha256:7",
}


def answer(store: Store, **changes: Any) -> None:
    """Settle the gate `review` by Ada's answer."""
    arguments: dict[str, Any] = {"state": "answered", "at": later(5), **ANSWER}
    store.settle_gate(RUN, "review", **arguments | changes)


ANSWERED = gate_row(state="answered", closed_at=later(5), **ANSWER)


class TestOpening:
    def test_a_gate_is_listed_as_it_was_opened(self, store: Store) -> None:
        store.open_gate(gate_row())

        assert gate_row() == store.gate(RUN, "review")
        assert store.gate(RUN, "review~2") is None
        assert store.gate(SESSION.workflow_id(2), "review") is None

    def test_opening_twice_is_opening_once(self, store: Store) -> None:
        store.open_gate(gate_row())
        store.open_gate(gate_row())

        assert [gate_row()] == store.gates()

    def test_an_opening_that_comes_after_the_answer_does_not_open_again(self, store: Store) -> None:
        store.open_gate(gate_row())
        answer(store)
        store.open_gate(gate_row())

        assert ANSWERED == store.gate(RUN, "review")

    def test_a_gate_of_a_run_that_is_over_is_not_open(self, store: Store) -> None:
        """Its opening was on the way while the run closed; an inbox would show it for ever."""
        allocate(store)
        store.close_run(RUN, standing="completed", at=later(3))
        store.open_gate(gate_row())

        assert gate_row(state="closed", closed_at=later(3)) == store.gate(RUN, "review")

    def test_an_opening_does_not_forget_refusals(self, store: Store) -> None:
        store.open_gate(gate_row())
        store.record_refusal(refusal_row())
        store.open_gate(gate_row())

        assert gate_row(refusals=1) == store.gate(RUN, "review")

    def test_a_state_that_nobody_knows_is_refused(self, store: Store) -> None:
        with pytest.raises(StoreError, match="'ajar' is not a state"):
            store.open_gate(gate_row(state="ajar"))


class TestSettling:
    def test_a_settled_gate_says_who_answered_what_and_when(self, store: Store) -> None:
        store.open_gate(gate_row())
        answer(store)

        assert ANSWERED == store.gate(RUN, "review")

    def test_a_settlement_that_comes_first_waits_for_its_description(self, store: Store) -> None:
        answer(store)
        alone = store.gate(RUN, "review")
        store.open_gate(gate_row())

        assert alone is not None
        assert ("answered", "review", 0, "ada") == (alone.state, alone.gate, alone.visit, alone.principal)
        assert ANSWERED == store.gate(RUN, "review")

    def test_settling_twice_is_settling_once(self, store: Store) -> None:
        store.open_gate(gate_row())
        answer(store)
        answer(store)

        assert [ANSWERED] == store.gates()

    def test_a_supersession_keeps_what_was_answered(self, store: Store) -> None:
        store.open_gate(gate_row())
        answer(store)
        store.settle_gate(RUN, "review", state="superseded", at=later(6))

        expected = ANSWERED.model_copy(update={"state": "superseded", "closed_at": later(6)})
        assert expected == store.gate(RUN, "review")

    @pytest.mark.parametrize("minutes", [5, 6])
    def test_whatever_order_news_comes_in_the_same_stands_in_the_end(self, store: Store, minutes: int) -> None:
        """Opened, answered, superseded (perhaps at the same instant), and closed with its run."""
        news: list[Callable[[str], None]] = [
            lambda run: store.open_gate(gate_row(workflow_id=run)),
            lambda run: store.settle_gate(run, "review", state="answered", at=later(5), **ANSWER),
            lambda run: store.settle_gate(run, "review", state="superseded", at=later(minutes), answer_id="a1"),
            lambda run: store.close_run(run, standing="completed", at=later(9)),
        ]
        stands = set()
        for number, order in enumerate(permutations(news), start=1):
            run = SESSION.workflow_id(number)
            for each in order:
                each(run)
            row = store.gate(run, "review")
            assert row is not None
            stands.add((row.state, row.closed_at, row.answer_id, row.message))

        assert {("superseded", later(minutes), "a1", gate_row().message)} == stands

    @pytest.mark.parametrize("state", ["open", "ajar"])
    def test_a_gate_is_settled_by_a_state_that_settles(self, store: Store, state: str) -> None:
        store.open_gate(gate_row())

        with pytest.raises(StoreError, match=r"not settled by being open|not a state"):
            answer(store, state=state)
        assert gate_row() == store.gate(RUN, "review")

    @pytest.mark.parametrize("state", sorted(GATE_STATES - {"open"}))
    def test_every_other_state_settles(self, store: Store, state: str) -> None:
        store.open_gate(gate_row())
        answer(store, state=state)

        assert {state: 1} == store.count_gates()


class TestReindex:
    def test_a_run_gets_the_rows_that_temporal_tells_and_no_others(self, store: Store) -> None:
        """Even where they say less: after a reset, a gate may stand open again."""
        store.open_gate(gate_row())
        answer(store)
        store.open_gate(gate_row(interrupt_id="gone"))
        other = gate_row(workflow_id=SESSION.workflow_id(2))
        store.open_gate(other)

        rows = [gate_row(refusals=3), gate_row(interrupt_id="review~2", visit=2, opened_at=later())]
        store.replace_index(RUN, rows)

        assert rows == store.gates(run=RUN, descending=False)
        assert [other] == store.gates(run=other.workflow_id)

    def test_a_row_of_another_run_is_refused_and_nothing_is_replaced(self, store: Store) -> None:
        store.open_gate(gate_row())

        with pytest.raises(StoreError, match="belongs to"):
            store.replace_index(RUN, [gate_row(workflow_id=SESSION.workflow_id(2))])
        assert [gate_row()] == store.gates()

    def test_a_replacement_that_fails_halfway_replaces_nothing(self, store: Store) -> None:
        store.open_gate(gate_row())

        with pytest.raises(StoreError, match=r"(?i)unique"):
            store.replace_index(RUN, [gate_row(interrupt_id="a"), gate_row(interrupt_id="a")])
        assert [gate_row()] == store.gates()

    def test_no_rows_empty_the_run(self, store: Store) -> None:
        store.open_gate(gate_row())
        store.replace_index(RUN, [])

        assert [] == store.gates()


def test_times_come_back_in_utc_to_the_microsecond(store: Store) -> None:
    local = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    store.open_gate(gate_row(opened_at=local, deadline=local))

    row = store.gate(RUN, "review")
    assert row is not None
    assert (NOON.isoformat(), NOON.isoformat()) == (row.opened_at.isoformat(), str(row.deadline).replace(" ", "T"))
