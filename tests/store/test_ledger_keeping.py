"""Entries are listed by what one looks for, and forgotten a whole call at a time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gatewright.store import RUN_CLOSED, SessionKey, Store
from tests.store.builders import RUN, SESSION, allocate, attempt, planned
from tests.store.test_ledger import brought_to, entry, replace

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
OTHER = SESSION.workflow_id(2)


def keys(store: Store, **filters: Any) -> list[str]:
    """The keys of a listing, in its order."""
    return [entry.key for entry in store.ledger.entries(**filters)]


def much_later() -> datetime:
    """After everything that the test has settled, by any machine's clock."""
    return datetime.now(UTC) + timedelta(hours=1)


def over(store: Store, standing: str = "completed", at: datetime = LONG_AGO) -> None:
    """Have the session's first run be over since then."""
    allocate(store, at=LONG_AGO)
    store.close_run(RUN, standing=standing, at=at)


def call(store: Store, key: str, state: str = "performed", **changes: Any) -> None:
    """Plan a call and settle it, or begin it."""
    store.ledger.plan(**planned(key=key, **changes))
    if state != "planned":
        store.ledger.begin(key, **attempt(lease=0))
    match state:
        case "performed":
            store.ledger.performed(key, result=1, receipt=None)
        case "failed":
            store.ledger.failed(key, error="no")
        case "unknown":
            store.ledger.unknown(key, error="?")
        case _:
            assert state in {"planned", "intended"}


def test_entries_are_listed_the_last_planned_first_and_every_filter_narrows(store: Store) -> None:
    call(store, "k0", "unknown", kind="opaque")
    call(store, "k1", "failed", workflow_id=OTHER, effect="mail")
    call(store, "k2", "planned")
    store.ledger.begin("k0", **attempt())

    assert ["k2", "k1", "k0"] == keys(store), "a later attempt does not change the order"
    assert ["k2", "k0"] == keys(store, run=RUN)
    assert ["k1", "k0"] == keys(store, states=["unknown", "failed"])
    assert ["k2", "k1"] == keys(store, kinds=["keyed", "once"])
    assert ["k1"] == keys(store, effect="mail")
    assert ["k0"] == keys(store, run=RUN, kinds=["opaque"], states=["unknown"], effect="publish")
    assert [] == keys(store, states=[]) == keys(store, kinds=[]) == keys(store, effect="mail", run=RUN)
    assert ["k2"] == keys(store, limit=1)
    assert [] == keys(store, limit=0) == keys(store, limit=-1)


class TestPrune:
    @pytest.mark.parametrize("state", ["performed", "failed"])
    def test_what_is_settled_is_forgotten_once_the_time_is_past(self, store: Store, state: str) -> None:
        over(store)
        brought_to(store, state)
        settled = entry(store).settled_at
        assert settled is not None

        assert 0 == store.ledger.prune(before=settled)
        assert ["k1"] == keys(store)
        assert 1 == store.ledger.prune(before=settled + timedelta(microseconds=1))
        assert [] == keys(store)

    @pytest.mark.parametrize("kind", ["keyed", "once"])
    @pytest.mark.parametrize("state", ["planned", "intended", "unknown"])
    def test_what_is_open_stays(self, store: Store, state: str, kind: str) -> None:
        over(store)
        call(store, "k1", state, kind=kind)

        assert 0 == store.ledger.prune(before=much_later())
        assert ["k1"] == keys(store)

    def test_a_dry_run_says_how_many_and_keeps_them(self, store: Store) -> None:
        over(store)
        call(store, "k1")
        call(store, "k2", "failed")

        assert 2 == store.ledger.prune(before=much_later(), dry_run=True)
        assert {"k1", "k2"} == set(keys(store))

    @pytest.mark.parametrize("standing", sorted(RUN_CLOSED))
    def test_only_effects_of_runs_that_are_over_are_forgotten(self, store: Store, standing: str) -> None:
        over(store, standing)
        allocate(store, session=SessionKey(app="datasets", user="ada", session="s2"), at=LONG_AGO)
        call(store, "of a run that is over")
        call(store, "of an open one", workflow_id="datasets/ada/s2/1")
        call(store, "of one that the store does not list", workflow_id="datasets/ada/s3/1")

        assert 1 == store.ledger.prune(before=much_later())
        assert {"of an open one", "of one that the store does not list"} == set(keys(store))

    def test_the_run_must_be_over_since_before_the_time_too(self, store: Store) -> None:
        over(store, at=much_later() + timedelta(hours=1))
        call(store, "k1")

        assert 0 == store.ledger.prune(before=much_later())
        assert 1 == store.ledger.prune(before=much_later() + timedelta(hours=2))

    def test_shared_results_of_steps_belong_to_no_run(self, store: Store) -> None:
        call(store, "k1", kind="once")
        call(store, "k2", kind=None)

        assert 1 == store.ledger.prune(before=much_later())
        assert ["k2"] == keys(store)

    @pytest.mark.parametrize("last", ["performed", "failed", "planned", "intended", "unknown"])
    def test_a_call_goes_with_all_its_generations_or_not_at_all(self, store: Store, last: str) -> None:
        """A generation that stays keeps those before it; another call of the run goes by itself."""
        over(store)
        brought_to(store, "failed")
        replace(store)
        replace(store, key="k3", generation=2, replaces="k2")
        call(store, "k3", last, generation=2)
        call(store, "of another call")

        gone = last in {"performed", "failed"}
        assert (4 if gone else 1) == store.ledger.prune(before=much_later())
        assert (set() if gone else {"k1", "k2", "k3"}) == set(keys(store))

    @pytest.mark.parametrize("moved", ["k1", "k2", "k3"])
    def test_it_stays_whole_where_any_generation_was_settled_late(self, store: Store, moved: str) -> None:
        """A late proof settles an early generation after the one that was decided on in its place."""
        over(store)
        brought_to(store, "failed")
        replace(store)
        replace(store, key="k3", generation=2, replaces="k2")
        if moved != "k3":
            call(store, "k3", "performed", generation=2)
        between = max(entry.settled_at or LONG_AGO for entry in store.ledger.entries()) + timedelta(microseconds=1)
        store.ledger.performed(moved, result=2, receipt=None)

        assert 0 == store.ledger.prune(before=between)
        assert {"k1", "k2", "k3"} == set(keys(store))
        assert 3 == store.ledger.prune(before=much_later())
