"""Whoever comes at once: of many attempts at a call one has the lease, and of two decisions one counts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise

import pytest

from gatewright.store import Begun, Busy, CallReplaced, LedgerConflict, LedgerEntry, Store
from gatewright.store.ledger import _made
from tests.store.builders import PLAN, at_once, attempt, in_processes, planned

BEGIN = """
from gatewright.store import Begun, Store
from tests.store.builders import PLAN, attempt
with Store.open(sys.argv[2]) as store:
    begin()
    tries = [store.ledger.begin("k1", **attempt(holder=f"{sys.argv[1]}-{n}", new=PLAN)) for n in range(5)]
    print(json.dumps([isinstance(tried, Begun) for tried in tries]))
"""

TAKE_TURNS = """
from gatewright.store import Begun, Busy, Store
from tests.store.builders import PLAN, attempt, until
number, address, alone = sys.argv[1:]
def one(turn):
    lease = dict(holder=f"{number}-{turn}", lease=0.05, call_seconds=0.05, alone=alone == "alone")
    tried = store.ledger.begin("k1", **attempt(new=PLAN, **lease))
    return tried if isinstance(tried, Begun) else None
with Store.open(address) as store:
    begin()
    taken = [until(lambda: one(turn)).entry for turn in range(4)]
    print(json.dumps([[e.intended_at.timestamp(), e.lease_until.timestamp(), e.attempts] for e in taken]))
"""


def test_of_many_processes_one_makes_the_entry_and_begins(address: str) -> None:
    begun = [one for printed in in_processes(4, BEGIN, address) for one in printed]

    with Store.open(address) as store:
        entry = store.ledger.entry("k1")
    assert entry is not None
    assert (1, 20, 1) == (begun.count(True), len(begun), entry.attempts)


@pytest.mark.parametrize("alone", ["alone", "together"])
def test_leases_of_processes_that_take_turns_never_overlap(address: str, alone: str) -> None:
    """Nobody gives its lease back: each is waited for to its end, and alone for the time of a last call besides."""
    taken = sorted(tuple(turn) for printed in in_processes(3, TAKE_TURNS, address, alone) for turn in printed)

    gaps = [following[0] - earlier[1] for earlier, following in pairwise(taken)]
    assert 11 == len(gaps)
    # As floats, the times are exact to less than a microsecond.
    assert min(gaps) >= (0.05 if alone == "alone" else 0) - 1e-6
    assert list(range(1, 13)) == [attempts for _, _, attempts in taken]


def test_of_many_threads_one_begins_and_the_others_are_told_who(store: Store) -> None:
    store.ledger.plan(**planned())

    def begin(holder: str) -> Callable[[], object]:
        return lambda: store.ledger.begin("k1", **attempt(holder=holder, alone=True))

    results = at_once(*map(begin, "abcdefgh"))

    [begun] = [result for result in results if isinstance(result, Begun)]
    told = [result.holder for result in results if isinstance(result, Busy)]
    assert [begun.entry.holder] * 7 == told


def test_of_two_meanings_of_a_key_one_stands(store: Store) -> None:
    def begin(arguments: str) -> Callable[[], object]:
        return lambda: store.ledger.begin("k1", **attempt(holder=arguments, arguments_digest=arguments, new=PLAN))

    results = at_once(*map(begin, "abcdefgh"))

    assert 1 == sum(isinstance(result, Begun) for result in results)
    assert 7 == sum(isinstance(result, LedgerConflict) for result in results)


def test_one_result_is_the_first(store: Store) -> None:
    store.ledger.plan(**planned())

    def perform(result: int) -> Callable[[], object]:
        return lambda: store.ledger.performed("k1", result=result, receipt=None)

    results = at_once(*map(perform, range(8)))

    assert [store.ledger.entry("k1")] * 8 == results


def test_a_decision_that_many_carry_out_makes_one_generation(store: Store) -> None:
    store.ledger.plan(**planned())

    results = at_once(*[lambda: store.ledger.plan(**planned(key="k2", generation=1, replaces="k1"))] * 8)

    assert [store.ledger.entry("k2")] * 8 == results
    assert 2 == len(store.ledger.entries())


def test_a_call_is_either_begun_or_replaced(store: Store) -> None:
    for turn in range(10):
        old, new = f"k{turn}", f"k{turn}'"
        store.ledger.plan(**planned(key=old))

        def begin(key: str = old) -> object:
            return store.ledger.begin(key, **attempt())

        def replace(key: str = new, replaces: str = old) -> object:
            return store.ledger.plan(**planned(key=key, generation=1, replaces=replaces))

        begun, stands = at_once(begin, replace)

        entry = store.ledger.entry(old)
        assert entry is not None
        assert isinstance(stands, LedgerEntry)
        if isinstance(begun, Begun):
            assert ("intended", None, old) == (entry.state, entry.successor, stands.key)
        else:
            assert isinstance(begun, CallReplaced)
            assert ("failed", new, new) == (entry.state, entry.successor, stands.key)


@pytest.mark.parametrize("way", ["plan", "begin", "resolve"])
def test_a_generation_that_two_make_at_once_is_made_once(store: Store, way: str) -> None:
    """A decision makes it under the lock of the generation before; whoever comes by its own key waits, and finds it."""
    ways: dict[str, Callable[[], object]] = {
        "plan": lambda: store.ledger.plan(**planned(key="k2", generation=1)),
        "begin": lambda: store.ledger.begin("k2", **attempt(new=PLAN)),
        "resolve": lambda: store.ledger.resolve("k2", by="ada", happened=True, new=PLAN),
    }
    with ThreadPoolExecutor(1) as threads:
        with store._database.write("k1") as connection:
            made = _made(connection, "k2", PLAN.model_copy(update={"generation": 1}), store._database.now(connection))
            coming = threads.submit(ways[way])
            done, _ = wait([coming], timeout=0.3)
            assert set() == done
        came = coming.result(timeout=30)

    entry = store.ledger.entry("k2")
    assert entry is not None
    assert (1, made.planned_at) == (entry.generation, entry.planned_at)
    assert came == {"plan": made, "resolve": entry}.get(way, Begun(entry=entry, before="planned", taken=True))
