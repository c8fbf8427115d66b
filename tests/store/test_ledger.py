"""An effect's key says for ever what is known of it: plans, attempts and their leases."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from gatewright.store import Begun, Busy, CallReplaced, LedgerConflict, LedgerEntry, Store, StoreError
from tests.store.builders import PLAN, RUN, attempt, planned, until

SHORT = 0.3


def begin(store: Store, key: str = "k1", **changes: Any) -> Begun:
    """Begin an attempt that nothing stands in the way of."""
    begun = store.ledger.begin(key, **attempt(**changes))
    assert isinstance(begun, Begun)
    return begun


def entry(store: Store, key: str = "k1") -> LedgerEntry:
    """What stands under the key, which is there."""
    found = store.ledger.entry(key)
    assert found is not None
    return found


def replace(store: Store, *, key: str = "k2", generation: int = 1, replaces: str = "k1") -> LedgerEntry:
    """Decide on another generation in place of one."""
    return store.ledger.plan(**planned(key=key, generation=generation, replaces=replaces))


class TestPlan:
    def test_it_makes_the_entry_of_a_call_that_nobody_has_attempted(self, store: Store) -> None:
        made = store.ledger.plan(**planned())

        assert LedgerEntry(key="k1", state="planned", planned_at=made.planned_at, **dict(PLAN)) == made == entry(store)

    @pytest.mark.parametrize("state", ["planned", "intended", "performed", "failed", "unknown"])
    def test_planned_again_it_gives_what_stands_and_changes_nothing(self, store: Store, state: str) -> None:
        brought_to(store, state)
        before = entry(store)

        assert before == store.ledger.plan(**planned()) == entry(store)
        assert state == before.state

    @pytest.mark.parametrize("state", ["planned", "failed"])
    def test_what_did_not_happen_is_replaced_and_leads_to_its_successor(self, store: Store, state: str) -> None:
        brought_to(store, state)
        before = entry(store)
        made = replace(store)

        assert ("k2", "planned", 1) == (made.key, made.state, made.generation)
        assert made == entry(store, "k2") == store.ledger.plan(**planned())
        left = entry(store)
        assert ("failed", "k2", None) == (left.state, left.successor, left.holder)
        assert left.error == (before.error or "it was not attempted")
        assert left.settled_at == (before.settled_at or made.planned_at)

    @pytest.mark.parametrize("state", ["intended", "performed", "unknown"])
    def test_what_may_have_happened_is_not_replaced(self, store: Store, state: str) -> None:
        brought_to(store, state)
        before = entry(store)

        assert before == replace(store) == entry(store)
        assert store.ledger.entry("k2") is None

    def test_what_is_to_be_replaced_and_is_missing_is_written_down_as_not_attempted(self, store: Store) -> None:
        made = replace(store)

        left = entry(store)
        assert ("failed", "it was not attempted", "k2", 0) == (left.state, left.error, left.successor, left.generation)
        assert ("k2", "planned") == (made.key, made.state)
        assert made == store.ledger.plan(**planned())

    def test_a_decision_that_is_told_twice_makes_one_generation(self, store: Store) -> None:
        brought_to(store, "failed")
        made = replace(store)
        left = entry(store)

        assert made == replace(store)
        assert left == entry(store)
        assert 2 == len(store.ledger.entries())

    def test_a_chain_is_followed_to_the_last_generation_whatever_its_state(self, store: Store) -> None:
        store.ledger.plan(**planned())
        for number in (1, 2, 3):
            replace(store, key=f"k{number + 1}", generation=number, replaces=f"k{number}")
        begin(store, "k4")

        assert {"k4"} == {store.ledger.plan(**planned(key=f"k{number}")).key for number in (1, 2, 3, 4)}
        assert "k4" == replace(store).key, "a run that was reset repeats its first decision"

    def test_a_call_that_was_replaced_is_not_begun_any_more(self, store: Store) -> None:
        """A run that was reset between plan and attempt, and a worker that slept, come with the old key."""
        brought_to(store, "failed")
        replace(store)
        before = entry(store)

        with pytest.raises(CallReplaced, match="recorded under k2") as caught:
            store.ledger.begin("k1", **attempt())
        assert before == caught.value.entry == entry(store)
        assert "k2" == caught.value.entry.successor

    def test_a_call_that_was_replaced_and_is_found_to_have_happened_gives_its_result(self, store: Store) -> None:
        brought_to(store, "failed")
        replace(store)
        store.ledger.performed("k1", result=1, receipt=None)

        begun = begin(store)
        assert (False, 1) == (begun.taken, begun.entry.result)


class TestBegin:
    def test_it_takes_the_lease_and_writes_the_intent(self, store: Store) -> None:
        before = store.ledger.plan(**planned())
        begun = begin(store, call_seconds=7.5)

        assert (True, "planned") == (begun.taken, begun.before)
        at = begun.entry.intended_at
        assert at is not None
        taken = {"state": "intended", "attempts": 1, "intended_at": at, "holder": "h1"}
        lease = {"lease_until": at + timedelta(hours=1), "call_seconds": 7.5}
        arguments = {"arguments": [{"rows": 3}], "arguments_digest": "sha256:3"}
        assert before.model_copy(update=taken | lease | arguments) == begun.entry == entry(store)

    def test_without_an_entry_nothing_is_begun(self, store: Store) -> None:
        """It was lost, and whoever planned it must be told."""
        assert store.ledger.begin("k1", **attempt()) is None
        assert store.ledger.entry("k1") is None

    def test_an_entry_is_made_on_the_spot_where_the_caller_says_what_it_is(self, store: Store) -> None:
        begun = begin(store, new=PLAN)

        assert (True, "planned", 1) == (begun.taken, begun.before, begun.entry.attempts)
        assert begun.entry == entry(store)

    def test_what_stands_is_not_made_anew(self, store: Store) -> None:
        store.ledger.plan(**planned())

        assert "publish" == begin(store, new=PLAN.model_copy(update={"effect": "another"})).entry.effect

    def test_an_attempt_after_a_failure_is_open_again(self, store: Store) -> None:
        """From now on it cannot be said that nothing happened."""
        brought_to(store, "failed")
        begun = begin(store)

        assert "failed" == begun.before
        assert ("intended", None, None, 2) == (
            *(begun.entry.state, begun.entry.error, begun.entry.settled_at, begun.entry.attempts),
        )
        assert begun.entry == entry(store)

    def test_an_attempt_does_not_make_the_unknown_forgotten(self, store: Store) -> None:
        brought_to(store, "unknown")
        begun = begin(store, holder="h2")

        assert ("unknown", "unknown", "it went dead") == (begun.before, begun.entry.state, begun.entry.error)
        assert ("h2", 2) == (begun.entry.holder, begun.entry.attempts)
        assert begun.entry == entry(store)

    def test_an_attempt_after_a_crash_finds_the_open_intent(self, store: Store) -> None:
        brought_to(store, "intended")
        begun = begin(store, holder="h2")

        assert ("intended", "intended", 2) == (begun.before, begun.entry.state, begun.entry.attempts)

    def test_of_a_performed_effect_nothing_is_taken(self, store: Store) -> None:
        brought_to(store, "performed")
        before = entry(store)

        assert Begun(entry=before, before="performed", taken=False) == begin(store)
        assert before == entry(store)

    @pytest.mark.parametrize("state", ["intended", "performed", "failed", "unknown"])
    def test_other_arguments_are_a_conflict_and_change_nothing(self, store: Store, state: str) -> None:
        brought_to(store, state)
        before = entry(store)

        with pytest.raises(LedgerConflict, match="needs a key of its own") as caught:
            store.ledger.begin("k1", **attempt(arguments_digest="sha256:other"))
        assert before == caught.value.entry == entry(store)


class TestLease:
    def test_while_it_is_held_everybody_else_is_busy_and_nothing_changes(self, store: Store) -> None:
        store.ledger.plan(**planned())
        held = begin(store).entry
        busy = store.ledger.begin("k1", **attempt(holder="h2", arguments=["another"]))

        assert isinstance(busy, Busy)
        assert "h1" == busy.holder
        assert 3500 < busy.remaining <= 3600
        assert held == entry(store)

    def test_whoever_holds_it_may_begin_again(self, store: Store) -> None:
        """The answer to a first `begin` may have been lost on its way."""
        store.ledger.plan(**planned())
        begin(store)

        assert (True, 2) == ((again := begin(store)).taken, again.entry.attempts)

    def test_it_runs_out_and_then_somebody_else_begins(self, store: Store) -> None:
        store.ledger.plan(**planned())
        first = begin(store, lease=SHORT).entry
        second = until(lambda: begun_or_none(store, alone=False)).entry

        assert first.lease_until is not None
        assert second.intended_at is not None
        assert second.intended_at >= first.lease_until
        assert ("h2", 2) == (second.holder, second.attempts)

    def test_alone_also_the_time_of_a_last_call_is_waited_for(self, store: Store) -> None:
        store.ledger.plan(**planned())
        first = begin(store, lease=SHORT, call_seconds=SHORT).entry
        second = until(lambda: begun_or_none(store, alone=True)).entry

        assert first.lease_until is not None
        assert second.intended_at is not None
        assert second.intended_at >= first.lease_until + timedelta(seconds=SHORT)

    def test_not_alone_the_time_of_a_last_call_is_not_waited_for(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, lease=0, call_seconds=3600)

        assert isinstance(store.ledger.begin("k1", **attempt(holder="h2", alone=True)), Busy)
        assert begun_or_none(store, alone=False) is not None

    def test_busy_says_how_long_an_attempt_and_its_last_call_may_go_on(self, store: Store) -> None:
        assert store.ledger.busy("k1") is None
        store.ledger.plan(**planned())
        assert store.ledger.busy("k1") is None
        begin(store, lease=10, call_seconds=90)

        busy = store.ledger.busy("k1")
        assert busy is not None
        assert (busy.holder, 60 < busy.remaining <= 100) == ("h1", True)
        store.ledger.release("k1", "h1")
        assert store.ledger.busy("k1") is None

    def test_renewed_it_goes_on_and_nobody_else_begins_before_its_new_end(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, lease=60)
        assert store.ledger.renew("k1", "h1", lease=3600)

        busy = store.ledger.busy("k1")
        assert busy is not None
        assert busy.remaining > 3500

    def test_one_that_ran_out_is_not_renewed_though_nobody_has_taken_it(self, store: Store) -> None:
        """Somebody may have seen meanwhile that nothing is under way, and be asking the outside."""
        store.ledger.plan(**planned())
        begin(store, lease=SHORT)
        until(lambda: True if store.ledger.busy("k1") is None else None)
        before = entry(store)

        assert not store.ledger.renew("k1", "h1", lease=3600)
        assert before == entry(store)

    def test_it_is_not_renewed_for_anybody_else_nor_once_the_effect_is_settled(self, store: Store) -> None:
        assert not store.ledger.renew("k1", "h1", lease=1)
        store.ledger.plan(**planned())
        assert not store.ledger.renew("k1", "h1", lease=1)
        held = begin(store).entry
        assert not store.ledger.renew("k1", "h2", lease=1)
        assert held == entry(store)
        store.ledger.failed("k1", error="no")
        assert not store.ledger.renew("k1", "h1", lease=1)
        begin(store)
        store.ledger.performed("k1", result=1, receipt=None)
        assert not store.ledger.renew("k1", "h1", lease=1)

    def test_given_back_it_is_free_at_once_and_the_state_stays(self, store: Store) -> None:
        store.ledger.plan(**planned())
        held = begin(store, call_seconds=3600).entry
        store.ledger.release("k1", "h1", error="it broke")
        assert held.model_copy(update={"holder": None, "error": "it broke"}) == entry(store)

        begun = begun_or_none(store, alone=True)
        assert begun is not None
        assert ("intended", "it broke") == (begun.before, begun.entry.error)
        store.ledger.release("k1", "h2")
        assert "it broke" == entry(store).error

    def test_given_back_after_the_outside_was_reached_it_is_not_free_for_who_must_be_alone(self, store: Store) -> None:
        """The outside may be at the call still that nobody waits for any more."""
        store.ledger.plan(**planned())
        begin(store, lease=60, call_seconds=0.3)
        store.ledger.release("k1", "h1", error="no reply", reached=True)

        busy = store.ledger.busy("k1")
        assert busy is not None
        assert busy.remaining <= 0.3
        assert isinstance(store.ledger.begin("k1", **attempt(holder="h2", alone=True)), Busy)
        assert not store.ledger.renew("k1", "h1", lease=60)
        assert isinstance(store.ledger.begin("k1", **attempt(holder="h2", alone=False)), Begun)

    def test_a_lease_that_had_run_out_is_not_made_longer_by_its_end(self, store: Store) -> None:
        store.ledger.plan(**planned())
        held = begin(store, lease=0, call_seconds=3600).entry
        store.ledger.release("k1", "h1", reached=True)

        assert held.lease_until == entry(store).lease_until

    def test_nobody_gives_anothers_back(self, store: Store) -> None:
        store.ledger.release("k1", "h1")
        assert store.ledger.entry("k1") is None
        store.ledger.plan(**planned())
        held = begin(store).entry
        store.ledger.release("k1", "h2", error="mine is over")
        assert held == entry(store)

        done = store.ledger.performed("k1", result=1, receipt=None)
        store.ledger.release("k1", "h1", error="late")
        assert done == entry(store)

    def test_it_is_measured_by_the_databases_clock(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """On PostgreSQL a worker whose own clock is a day ahead gets no other lease."""

        class Ahead(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.now(tz) + timedelta(days=1)

        store.ledger.plan(**planned())
        if store._database.file is None:
            monkeypatch.setattr("gatewright.store.database.datetime", Ahead)
        start = clock(store)
        until_ = begin(store, lease=10).entry.lease_until
        end = clock(store)

        assert until_ is not None
        assert start + timedelta(seconds=10) <= until_ <= end + timedelta(seconds=10)


def clock(store: Store) -> datetime:
    """The clock of the database's machine, asked without the store's code."""
    if store._database.file is not None:
        return datetime.now(UTC)
    with store._database.read() as connection:
        moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return moment


def begun_or_none(store: Store, *, alone: bool) -> Begun | None:
    """What a second holder gets, or None while the first is in its way."""
    begun = store.ledger.begin("k1", **attempt(holder="h2", alone=alone))
    return begun if isinstance(begun, Begun) else None


def brought_to(store: Store, state: str) -> None:
    """Bring the entry `k1` to a state, with nobody at it."""
    store.ledger.plan(**planned())
    if state == "planned":
        return
    begin(store)
    match state:
        case "intended":
            store.ledger.release("k1", "h1")
        case "performed":
            store.ledger.performed("k1", result={"rows": 3}, receipt={"etag": "x"})
        case "failed":
            store.ledger.failed("k1", error="no such bucket")
        case "unknown":
            store.ledger.release("k1", "h1")
            store.ledger.unknown("k1", error="it went dead")
        case _:
            raise ValueError(state)


def test_of_a_ledger_that_was_restored_the_id_is_another_for_everybody(address: str) -> None:
    with Store.open(address) as store, Store.open(address) as other:
        old = store.ledger_id
        fresh = store.renew_ledger_id()

        assert len({old, fresh}) == 2
        assert (fresh, old) == (store.ledger_id, other.ledger_id)
        store.ledger.plan(**planned())
    with Store.open(address) as store:
        assert fresh == store.ledger_id
        assert RUN == entry(store).workflow_id


def test_nothing_is_settled_under_a_key_that_has_no_entry(store: Store) -> None:
    ways: list[Callable[[], object]] = [
        lambda: store.ledger.performed("k1", result=1, receipt=None),
        lambda: store.ledger.failed("k1", error="no"),
        lambda: store.ledger.unknown("k1", error="?"),
    ]
    for settle in ways:
        with pytest.raises(StoreError, match="write the intent before the effect"):
            settle()
    assert store.ledger.entry("k1") is None
