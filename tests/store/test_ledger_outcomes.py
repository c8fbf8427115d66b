"""What came of an attempt is written down once; a fact beats a word."""

from datetime import timedelta
from typing import Any

import pytest

from gatewright.store import EffectUnderWay, LedgerEntry, Store, StoreError
from tests.store.builders import PLAN, attempt, planned, until
from tests.store.test_ledger import begin, brought_to, entry, replace


def perform(store: Store, result: Any = None, receipt: Any = None) -> LedgerEntry:
    """Record that the call happened."""
    return store.ledger.performed("k1", result=result, receipt=receipt)


def resolve(store: Store, *, happened: bool, **changes: Any) -> LedgerEntry:
    """Record what Ada says about the call."""
    return store.ledger.resolve("k1", by="ada", happened=happened, **changes)


class TestPerformed:
    @pytest.mark.parametrize("state", ["intended", "failed", "unknown"])
    def test_it_keeps_result_and_receipt_from_whatever_was_known(self, store: Store, state: str) -> None:
        brought_to(store, state)
        before = entry(store)
        done = perform(store, {"rows": 3}, {"etag": "x"})

        outcome = {"state": "performed", "result": {"rows": 3}, "receipt": {"etag": "x"}, "error": None}
        assert done.settled_at is not None
        assert before.model_copy(update=outcome | {"settled_at": done.settled_at}) == done == entry(store)
        assert before.settled_at is None or before.settled_at <= done.settled_at

    def test_the_lease_ends_with_it(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, call_seconds=3600)

        assert perform(store).holder is None
        assert store.ledger.busy("k1") is None

    @pytest.mark.parametrize("result", [{"rows": 3}, {"rows": 4}, None])
    def test_the_first_result_stays(self, store: Store, result: Any) -> None:
        brought_to(store, "performed")
        done = entry(store)

        assert done == perform(store, result, {"etag": "y"}) == entry(store)

    def test_nothing_that_is_said_later_changes_it(self, store: Store) -> None:
        brought_to(store, "performed")
        done = entry(store)

        assert done == store.ledger.failed("k1", error="late") == store.ledger.failed("k1", error="late", holder="h1")
        assert done == store.ledger.unknown("k1", error="late")
        assert done == resolve(store, happened=False) == resolve(store, happened=True, result=9)
        assert done == replace(store) == entry(store)

    @pytest.mark.parametrize("result", [None, 0, False, "", [], {}, [1.5, None, {"ä\0": "\ud83d"}], 10**30])
    def test_every_json_value_comes_back_as_it_was(self, store: Store, result: Any) -> None:
        brought_to(store, "intended")
        perform(store, result, [result])

        kept = entry(store)
        assert (repr(result), repr([result])) == (repr(kept.result), repr(kept.receipt))

    def test_a_result_of_two_mebibytes_comes_back_whole(self, store: Store) -> None:
        result = {"text": "ü" * (2 * 1024 * 1024)}
        brought_to(store, "intended")
        perform(store, result)

        assert result == entry(store).result


class TestFailed:
    def test_a_later_proof_makes_the_unknown_failed(self, store: Store) -> None:
        brought_to(store, "unknown")
        before = entry(store)
        failed = store.ledger.failed("k1", error="the provider never saw it")

        changes = {"state": "failed", "error": "the provider never saw it", "settled_at": failed.settled_at}
        assert before.model_copy(update=changes) == failed == entry(store)

    def test_whoever_holds_the_lease_says_so_and_gives_it_back(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, call_seconds=3600)
        failed = store.ledger.failed("k1", error="no", holder="h1")

        assert ("failed", None) == (failed.state, failed.holder)
        assert failed == entry(store)
        assert store.ledger.busy("k1") is None

    @pytest.mark.parametrize("given_back", [False, True])
    def test_a_holder_that_was_taken_over_does_not_know_enough(self, store: Store, given_back: bool) -> None:
        """What the second attempt did, or is doing, the first has not seen."""
        store.ledger.plan(**planned())
        begin(store, lease=0)
        begin(store, holder="h2")
        if given_back:
            store.ledger.release("k1", "h2", error="it broke")
        before = entry(store)

        assert before == store.ledger.failed("k1", error="no", holder="h1") == entry(store)
        assert "intended" == before.state


class TestUnknown:
    def test_it_says_why_and_when(self, store: Store) -> None:
        brought_to(store, "intended")
        before = entry(store)
        unknown = store.ledger.unknown("k1", error="the line went dead")

        assert unknown.settled_at is not None
        changes = {"state": "unknown", "error": "the line went dead", "settled_at": unknown.settled_at}
        assert before.model_copy(update=changes) == unknown == entry(store)

    def test_a_lease_that_somebody_holds_stays_theirs(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store)
        store.ledger.unknown("k1", error="?")

        assert "h1" == entry(store).holder
        assert store.ledger.renew("k1", "h1", lease=10)
        assert store.ledger.busy("k1") is not None

    def test_whoever_holds_the_lease_gives_it_back_with_it(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, call_seconds=3600)
        unknown = store.ledger.unknown("k1", error="?", holder="h1")

        assert ("unknown", None) == (unknown.state, unknown.holder)
        assert unknown == entry(store)
        assert store.ledger.busy("k1") is None

    def test_whoever_had_reached_the_outside_ends_its_lease_with_it_and_is_waited_for(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, lease=60, call_seconds=3600)
        unknown = store.ledger.unknown("k1", error="no reply", holder="h1", reached=True)

        assert ("unknown", "h1") == (unknown.state, unknown.holder)
        assert not store.ledger.renew("k1", "h1", lease=60)
        with pytest.raises(EffectUnderWay):
            resolve(store, happened=False)

    @pytest.mark.parametrize("given_back", [False, True])
    def test_a_holder_that_was_taken_over_changes_nothing(self, store: Store, given_back: bool) -> None:
        store.ledger.plan(**planned())
        begin(store, lease=0)
        begin(store, holder="h2")
        if given_back:
            store.ledger.release("k1", "h2", error="it broke")
        before = entry(store)

        assert before == store.ledger.unknown("k1", error="?", holder="h1") == entry(store)
        assert "intended" == before.state

    @pytest.mark.parametrize("holder", [None, "h1"])
    def test_what_is_known_not_to_have_happened_stays_known(self, store: Store, holder: str | None) -> None:
        brought_to(store, "failed")
        before = entry(store)

        assert before == store.ledger.unknown("k1", error="?", holder=holder) == entry(store)

    @pytest.mark.parametrize("holder", [None, "h1"])
    def test_a_persons_word_stays(self, store: Store, holder: str | None) -> None:
        """The attempt that it was about wakes up afterwards."""
        store.ledger.plan(**planned())
        begin(store, lease=0)
        said = resolve(store, happened=False)

        assert said == store.ledger.unknown("k1", error="?", holder=holder) == entry(store)


class TestWord:
    @pytest.mark.parametrize("state", ["planned", "intended", "unknown"])
    def test_it_happened_with_the_result_and_receipt_that_the_person_found(self, store: Store, state: str) -> None:
        brought_to(store, state)
        said = resolve(store, happened=True, result={"rows": 3}, receipt="t-1", comment="it is in the bucket")

        assert ("performed", {"rows": 3}, "t-1") == (said.state, said.result, said.receipt)
        assert ("ada", "happened") == (said.resolved_by, said.resolution)
        assert said.resolved_at is not None
        assert said.settled_at is not None
        assert said.resolved_at <= said.settled_at
        assert said == entry(store)
        assert not begin(store).taken

    @pytest.mark.parametrize("state", ["planned", "intended", "unknown"])
    def test_it_did_not_happen_and_may_be_replaced(self, store: Store, state: str) -> None:
        brought_to(store, state)
        said = resolve(store, happened=False, comment="the bucket is empty")

        assert ("failed", "the bucket is empty", "ada") == (said.state, said.error, said.resolved_by)
        assert "did_not_happen" == said.resolution
        assert said == entry(store)
        assert "k2" == replace(store).key

    def test_without_a_comment_the_error_says_who_said_what(self, store: Store) -> None:
        brought_to(store, "unknown")

        assert "ada said: did_not_happen" == resolve(store, happened=False).error

    def test_a_fact_contradicts_the_word_and_stands(self, store: Store) -> None:
        brought_to(store, "unknown")
        resolve(store, happened=False)
        done = perform(store, 1)

        assert ("performed", True, "did_not_happen", 1) == (done.state, done.contradicted, done.resolution, done.result)
        assert done == entry(store)

    def test_a_fact_contradicts_the_decision_to_make_the_call_again(self, store: Store) -> None:
        """Nobody gave a word: an attempt had said that it did nothing, and another was made in its place."""
        brought_to(store, "failed")
        replace(store)
        done = perform(store, 1)

        assert ("performed", True, None, "k2") == (done.state, done.contradicted, done.resolution, done.successor)
        assert done == entry(store)

    def test_a_fact_that_agrees_contradicts_nothing(self, store: Store) -> None:
        brought_to(store, "unknown")
        resolve(store, happened=True, result=1)

        assert not perform(store, 2).contradicted
        assert 1 == entry(store).result

    def test_of_what_is_known_not_to_have_happened_it_cannot_be_said_that_it_did(self, store: Store) -> None:
        brought_to(store, "failed")
        before = entry(store)

        with pytest.raises(StoreError, match=r"known not to have happened \(no such bucket\)"):
            resolve(store, happened=True)
        assert before == resolve(store, happened=False) == entry(store)

    def test_unless_that_is_not_relied_on(self, store: Store) -> None:
        """A backup has brought it back."""
        brought_to(store, "failed")
        said = resolve(store, happened=True, result=1, receipt="t-1", despite_failed=True)

        assert ("performed", 1, "t-1", "happened") == (said.state, said.result, said.receipt, said.resolution)
        assert said == entry(store)

    @pytest.mark.parametrize("happened", [True, False])
    @pytest.mark.parametrize(("lease", "call"), [(3600, 0), (0, 3600)])
    def test_while_an_attempt_or_its_last_call_may_be_under_way_nothing_is_decided(
        self, store: Store, lease: float, call: float, happened: bool
    ) -> None:
        store.ledger.plan(**planned())
        begin(store, lease=lease, call_seconds=call)
        store.ledger.unknown("k1", error="?")
        before = entry(store)

        with pytest.raises(EffectUnderWay, match="publish may be under way"):
            resolve(store, happened=happened)
        assert before == entry(store)

    @pytest.mark.parametrize("happened", [True, False])
    def test_once_both_are_surely_over_it_counts(self, store: Store, happened: bool) -> None:
        def word() -> LedgerEntry | None:
            try:
                return resolve(store, happened=happened)
            except EffectUnderWay:
                return None

        store.ledger.plan(**planned())
        held = begin(store, lease=0.15, call_seconds=0.15).entry
        said = until(word)

        assert held.lease_until is not None
        assert said.resolved_at is not None
        assert said.resolved_at >= held.lease_until + timedelta(seconds=0.15)
        assert said.holder is None

    def test_after_it_the_attempt_that_had_the_lease_has_it_no_more(self, store: Store) -> None:
        store.ledger.plan(**planned())
        begin(store, lease=0)
        resolve(store, happened=False)
        before = entry(store)

        assert not store.ledger.renew("k1", "h1", lease=10)
        assert before == store.ledger.failed("k1", error="late", holder="h1") == entry(store)

    def test_of_a_call_that_the_ledger_has_lost_it_needs_to_be_told_what_it_is(self, store: Store) -> None:
        with pytest.raises(StoreError, match="no entry under k1"):
            resolve(store, happened=True)
        assert store.ledger.entry("k1") is None

        said = resolve(store, happened=True, result=1, new=PLAN)
        assert ("performed", 1, "publish", 0) == (said.state, said.result, said.effect, said.attempts)
        assert said == entry(store)

    def test_a_conflicting_word_leaves_no_entry_behind(self, store: Store) -> None:
        with pytest.raises(StoreError, match=r"not JSON serializable|not (a )?valid"):
            resolve(store, happened=True, result=object(), new=PLAN)
        assert store.ledger.entry("k1") is None


def test_an_attempt_that_cannot_be_written_down_leaves_no_entry_behind(store: Store) -> None:
    with pytest.raises(StoreError, match=r"not JSON serializable|not (a )?valid"):
        store.ledger.begin("k1", **attempt(new=PLAN, arguments=object()))
    assert store.ledger.entry("k1") is None
