"""An effect's key says for ever what is known of it."""

from typing import Any

import pytest

from gatewright.store import Intention, LedgerConflict, LedgerEntry, Store, StoreError
from tests.store.builders import NOON, RUN, SESSION, intention, later


def entry(**changes: Any) -> LedgerEntry:
    """Give the entry that the first intent makes."""
    fields = intention(state="intended", attempts=1, intended_at=NOON) | changes
    del fields["at"]
    return LedgerEntry(**fields)


PERFORMED = entry(state="performed", result={"rows": 3}, receipt={"etag": "x"}, settled_at=later())


def perform(store: Store, result: Any = PERFORMED.result, minutes: int = 1) -> LedgerEntry:
    """Record that `publish` happened."""
    return store.ledger.performed("k1", result=result, receipt={"etag": "x"}, at=later(minutes))


class TestIntent:
    def test_the_first_intent_makes_the_entry(self, store: Store) -> None:
        assert Intention(entry=entry(), first=True) == store.ledger.intend(**intention())
        assert entry() == store.ledger.entry("k1")

    def test_an_intent_after_a_crash_finds_the_open_one(self, store: Store) -> None:
        """The state is the same as after a first intent; the flag tells them apart."""
        store.ledger.intend(**intention())

        assert Intention(entry=entry(attempts=2), first=False) == store.ledger.intend(**intention(at=later()))
        assert entry(attempts=2, intended_at=later()) == store.ledger.entry("k1")

    def test_other_arguments_under_a_key_are_a_conflict_and_change_nothing(self, store: Store) -> None:
        store.ledger.intend(**intention())

        with pytest.raises(LedgerConflict, match="needs a key of its own") as caught:
            store.ledger.intend(**intention(arguments_digest="sha256:other"))
        assert entry() == caught.value.entry == store.ledger.entry("k1")

    def test_other_arguments_are_a_conflict_after_the_effect_too(self, store: Store) -> None:
        store.ledger.intend(**intention())
        perform(store)

        with pytest.raises(LedgerConflict):
            store.ledger.intend(**intention(arguments_digest="sha256:other"))
        assert PERFORMED == store.ledger.entry("k1")

    def test_an_intent_after_a_failure_says_so_and_is_open_again(self, store: Store) -> None:
        """From now on it cannot be said that nothing happened."""
        store.ledger.intend(**intention())
        failed = store.ledger.failed("k1", error="no such bucket", at=later())
        found = store.ledger.intend(**intention(at=later(2)))

        assert entry(state="failed", error="no such bucket", settled_at=later()) == failed
        assert Intention(entry=failed.model_copy(update={"attempts": 2}), first=False) == found
        assert entry(attempts=2, intended_at=later(2)) == store.ledger.entry("k1")

    def test_an_intent_does_not_make_the_unknown_forgotten(self, store: Store) -> None:
        store.ledger.intend(**intention())
        unknown = store.ledger.unknown("k1", error="the line went dead", at=later())
        found = store.ledger.intend(**intention(at=later(2)))

        assert Intention(entry=unknown.model_copy(update={"attempts": 2}), first=False) == found
        assert unknown.model_copy(update={"attempts": 2, "intended_at": later(2)}) == store.ledger.entry("k1")

    def test_an_intent_after_the_effect_finds_its_result(self, store: Store) -> None:
        store.ledger.intend(**intention())
        perform(store)

        expected = PERFORMED.model_copy(update={"attempts": 2})
        assert Intention(entry=expected, first=False) == store.ledger.intend(**intention(at=later(2)))
        assert expected == store.ledger.entry("k1")


class TestOutcome:
    def test_a_performed_effect_keeps_its_result_and_receipt(self, store: Store) -> None:
        store.ledger.intend(**intention())

        assert PERFORMED == perform(store) == store.ledger.entry("k1")

    @pytest.mark.parametrize("result", [PERFORMED.result, {"rows": 4}, None])
    def test_the_first_result_stays(self, store: Store, result: Any) -> None:
        store.ledger.intend(**intention())
        perform(store)

        assert PERFORMED == perform(store, result, minutes=2) == store.ledger.entry("k1")

    def test_a_performed_effect_is_never_called_failed_or_unknown(self, store: Store) -> None:
        store.ledger.intend(**intention())
        perform(store)

        assert PERFORMED == store.ledger.failed("k1", error="late", at=later(2))
        assert PERFORMED == store.ledger.unknown("k1", error="late", at=later(2))
        assert PERFORMED == store.ledger.entry("k1")

    @pytest.mark.parametrize("before", ["failed", "unknown"])
    def test_a_later_proof_makes_it_performed(self, store: Store, before: str) -> None:
        store.ledger.intend(**intention())
        getattr(store.ledger, before)("k1", error="timeout", at=NOON)

        assert PERFORMED == perform(store) == store.ledger.entry("k1")

    def test_a_later_proof_makes_the_unknown_failed(self, store: Store) -> None:
        store.ledger.intend(**intention())
        store.ledger.unknown("k1", error="timeout", at=later())
        failed = store.ledger.failed("k1", error="the provider never saw it", at=later(2))

        expected = entry(state="failed", error="the provider never saw it", settled_at=later(2))
        assert expected == failed == store.ledger.entry("k1")

    @pytest.mark.parametrize(
        ("method", "outcome"),
        [("performed", {"result": 1, "receipt": None}), ("failed", {"error": "no"}), ("unknown", {"error": "?"})],
    )
    def test_an_outcome_without_an_intent_is_refused(self, store: Store, method: str, outcome: dict[str, Any]) -> None:
        with pytest.raises(StoreError, match="write the intent before the effect"):
            getattr(store.ledger, method)("k1", at=NOON, **outcome)
        assert store.ledger.entry("k1") is None

    @pytest.mark.parametrize("result", [None, 0, False, "", [], {}, [1.5, None, {"ä\0": "\ud83d"}], 10**30])
    def test_every_json_value_comes_back_as_it_was(self, store: Store, result: Any) -> None:
        store.ledger.intend(**intention())
        perform(store, result)

        kept = store.ledger.entry("k1")
        assert kept is not None
        assert repr(result) == repr(kept.result)

    def test_a_result_of_two_mebibytes_comes_back_whole(self, store: Store) -> None:
        result = {"text": "ü" * (2 * 1024 * 1024)}
        store.ledger.intend(**intention())
        perform(store, result)

        kept = store.ledger.entry("k1")
        assert kept is not None
        assert result == kept.result


def test_entries_are_listed_the_last_intended_first(store: Store) -> None:
    for number, run in enumerate([RUN, SESSION.workflow_id(2), RUN]):
        store.ledger.intend(**intention(key=f"k{number}", workflow_id=run, at=later(number)))
    store.ledger.unknown("k0", error="?", at=later(9))

    def keys(**filters: Any) -> list[str]:
        return [entry.key for entry in store.ledger.entries(**filters)]

    assert ["k2", "k1", "k0"] == keys()
    assert ["k2", "k0"] == keys(run=RUN)
    assert ["k0"] == keys(states=["unknown", "failed"])
    assert [] == keys(states=[])
    assert ["k2"] == keys(limit=1)
