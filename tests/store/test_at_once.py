"""Many threads and many processes write at once, and nothing is given twice or lost."""

from collections.abc import Callable

from gatewright.store import SessionOpen, Store
from tests.store.builders import RUN, SESSION, allocate, at_once, gate_row, in_processes, later, refusal_row

ALLOCATE = """
from concurrent.futures import ThreadPoolExecutor
from gatewright.store import Store
from tests.store.builders import allocate
number, address, same = sys.argv[1:]
with Store.open(address) as store, ThreadPoolExecutor(8) as threads:
    def one(n):
        run, new = allocate(store, opening_id="same" if same == "same" else f"{number}-{n}")
        return run.number, new
    begin()
    print(json.dumps(list(threads.map(one, range(12)))))
"""


def test_numbers_have_no_gaps_and_no_doubles(address: str) -> None:
    """Four processes with eight threads each."""
    given = [pair for printed in in_processes(4, ALLOCATE, address, "different") for pair in printed]

    assert [[number, True] for number in range(1, 49)] == sorted(given)


def test_one_opening_id_from_everywhere_makes_one_run(address: str) -> None:
    given = [tuple(pair) for printed in in_processes(4, ALLOCATE, address, "same") for pair in printed]

    assert [(1, False)] * 47 + [(1, True)] == sorted(given)


def test_of_many_openings_one_finds_the_session_free(store: Store) -> None:
    def opening(number: int) -> Callable[[], object]:
        return lambda: allocate(store, opening_id=f"o{number}", refuse_if_open=True)

    results = at_once(*map(opening, range(8)))

    assert 7 == sum(isinstance(result, SessionOpen) for result in results)
    assert 1 == len(store.runs())


def test_an_opening_and_a_closing_of_a_gate_may_race(store: Store) -> None:
    """Eight gates are listed while their run closes: none stays open."""
    allocate(store)
    opens = [lambda n=n: store.open_gate(gate_row(interrupt_id=f"review~{n}")) for n in range(2, 9)]

    at_once(*opens, lambda: store.close_run(RUN, standing="completed", at=later()))

    assert {"closed": 7} == store.count_gates()


def test_writers_of_many_kinds_neither_deadlock_nor_lose(store: Store) -> None:
    rows = [gate_row(interrupt_id=f"review~{n}") for n in range(2, 6)]
    store.replace_index(RUN, rows)
    refuse = [lambda: store.record_refusal(refusal_row(interrupt_id="review~2")) for _ in range(8)]
    settle = [lambda row=row: store.settle_gate(RUN, row.interrupt_id, state="answered", at=later()) for row in rows]

    at_once(*refuse, *settle, lambda: store.run_started(RUN, first_execution_run_id="e1", at=later()))

    assert {"answered": 4} == store.count_gates(session=SESSION)
    assert [8, 0, 0, 0] == sorted((row.refusals for row in store.gates()), reverse=True)
    assert 8 == len(store.refusals())
