"""A session's runs are numbered once, opened once, and stay closed."""

import pytest

from gatewright.store import (
    RUN_CLOSED,
    RUN_OPEN,
    OpeningConflict,
    RunRecord,
    SessionKey,
    SessionOpen,
    Store,
    StoreError,
)
from tests.store.builders import NOON, RUN, SESSION, allocate, gate_row, later, run_record


class TestOpening:
    def test_the_first_run_of_a_session_has_number_one(self, store: Store) -> None:
        run, new = allocate(store)

        assert new
        assert (
            RunRecord(
                workflow_id="datasets/ada/s1/1",
                session=SESSION,
                number=1,
                opening_id="o1",
                pipeline="DatasetRelease",
                task_queue="gates",
                input_digest="sha256:1",
                standing="allocated",
                opened_at=NOON,
            )
            == run
            == store.run(RUN)
        )

    def test_another_opening_gets_the_next_number(self, store: Store) -> None:
        allocate(store)

        assert 2 == allocate(store, opening_id="o2")[0].number

    def test_another_session_has_numbers_of_its_own(self, store: Store) -> None:
        """Even one whose parts, put together, would read the same."""
        allocate(store, session=SessionKey(app="a", user="b/c", session="d"))

        assert 1 == allocate(store, session=SessionKey(app="a/b", user="c", session="d"))[0].number

    def test_the_same_opening_id_finds_its_run_again(self, store: Store) -> None:
        """Whatever has become of it since, and although its session is to be refused while it is open."""
        allocate(store)
        store.run_started(RUN, first_execution_run_id="e1", at=later())

        assert (store.run(RUN), False) == allocate(store, at=later(2), refuse_if_open=True)

    @pytest.mark.parametrize("changes", [{"pipeline": "Other"}, {"input_digest": "sha256:9"}, {"input_digest": None}])
    def test_an_opening_id_for_something_else_is_a_conflict(self, store: Store, changes: dict[str, str | None]) -> None:
        run, _ = allocate(store)

        with pytest.raises(OpeningConflict, match="use a new opening id") as caught:
            allocate(store, **changes)
        assert run == caught.value.run
        assert [run] == store.runs()

    @pytest.mark.parametrize("started", [False, True])
    def test_an_open_session_can_be_refused(self, store: Store, started: bool) -> None:
        allocate(store)
        if started:
            store.run_started(RUN, first_execution_run_id="e1", at=NOON)

        with pytest.raises(SessionOpen, match="datasets/ada/s1/1 is still") as caught:
            allocate(store, opening_id="o2", refuse_if_open=True)
        assert store.run(RUN) == caught.value.run
        assert 1 == len(store.runs())

    @pytest.mark.parametrize("standing", sorted(RUN_CLOSED))
    def test_a_session_whose_runs_are_over_is_not_open(self, store: Store, standing: str) -> None:
        allocate(store)
        store.close_run(RUN, standing=standing, at=later())

        assert 2 == allocate(store, opening_id="o2", refuse_if_open=True)[0].number

    @pytest.mark.parametrize("opening_id", ["", "x" * 201])
    def test_an_opening_id_has_1_to_200_characters(self, store: Store, opening_id: str) -> None:
        with pytest.raises(StoreError, match="1 to 200"):
            allocate(store, opening_id=opening_id)

    def test_the_longest_session_and_opening_id_are_taken(self, store: Store) -> None:
        """An index of PostgreSQL takes 2.7 kB at most."""
        session = SessionKey(app="ä" * 150, user="b" * 50, session="c" * 20)

        assert allocate(store, session=session, opening_id="\N{GRINNING FACE}" * 200)[1]


class TestStanding:
    def test_a_started_run_is_open_since_it_was_started(self, store: Store) -> None:
        run, _ = allocate(store)
        store.run_started(RUN, first_execution_run_id="e1", at=later())

        changes = {"standing": "open", "first_execution_run_id": "e1", "opened_at": later()}
        assert run.model_copy(update=changes) == store.run(RUN)

    def test_starting_again_changes_nothing(self, store: Store) -> None:
        allocate(store)
        store.run_started(RUN, first_execution_run_id="e1", at=later())
        before = store.run(RUN)
        store.run_started(RUN, first_execution_run_id="e2", at=later(2))

        assert before == store.run(RUN)

    def test_a_closed_run_is_not_reopened_by_late_news(self, store: Store) -> None:
        """But what was not known of it yet is filled in."""
        allocate(store)
        store.close_run(RUN, standing="cancelled", at=later(), reason="by ada")
        closed = store.run(RUN)
        store.run_started(RUN, first_execution_run_id="e1", at=later(2))
        store.register_run(run_record(standing="open"))

        assert closed is not None
        assert closed.model_copy(update={"first_execution_run_id": "e1"}) == store.run(RUN)

    def test_the_first_closing_stays(self, store: Store) -> None:
        allocate(store)
        for standing, minutes in (("superseded", 1), ("cancelled", 2), ("superseded", 3)):
            store.close_run(RUN, standing=standing, at=later(minutes), reason=f"at {minutes}")

        run = store.run(RUN)
        assert run is not None
        assert ("superseded", later(1), "at 1") == (run.standing, run.closed_at, run.reason)

    @pytest.mark.parametrize("standing", ["open", "allocated", "finished"])
    def test_a_run_closes_with_a_standing_that_means_closed(self, store: Store, standing: str) -> None:
        with pytest.raises(StoreError, match="one of abandoned, cancelled"):
            store.close_run(RUN, standing=standing, at=NOON)

    def test_closing_keeps_an_archive_which_only_a_later_one_replaces(self, store: Store) -> None:
        allocate(store)
        assert store.archive(RUN) is None

        for archive in ({"book": [1, {"ä": None}]}, None):
            store.close_run(RUN, standing="completed", at=NOON, archive=archive)
            assert {"book": [1, {"ä": None}]} == store.archive(RUN)

        store.close_run(RUN, standing="completed", at=NOON, archive={})
        assert {} == store.archive(RUN)

    def test_closing_closes_the_gates_that_are_open(self, store: Store) -> None:
        allocate(store)
        store.open_gate(gate_row())
        store.open_gate(gate_row(interrupt_id="other"))
        store.settle_gate(RUN, "other", state="answered", at=later())
        store.open_gate(gate_row(workflow_id=SESSION.workflow_id(2)))
        store.close_run(RUN, standing="completed", at=later(2))

        listed = {(row.workflow_id, row.interrupt_id): (row.state, row.closed_at) for row in store.gates()}
        assert {
            (RUN, "review"): ("closed", later(2)),
            (RUN, "other"): ("answered", later(1)),
            (SESSION.workflow_id(2), "review"): ("open", None),
        } == listed


class TestUnknown:
    def test_an_unknown_run_may_close_and_its_number_is_not_given_again(self, store: Store) -> None:
        store.close_run(SESSION.workflow_id(3), standing="completed", at=NOON)

        run = store.run(SESSION.workflow_id(3))
        assert run is not None
        assert (SESSION, 3, "completed", "", NOON) == (
            run.session,
            run.number,
            run.standing,
            run.pipeline,
            run.closed_at,
        )
        assert 4 == allocate(store)[0].number

    @pytest.mark.parametrize("workflow_id", ["order-17", "a/b/c", "//x", "x" * 1000, "ü/%/1/2"])
    def test_a_workflow_of_somebodys_own_naming_is_a_session_of_its_own(self, store: Store, workflow_id: str) -> None:
        store.run_started(workflow_id, first_execution_run_id="e1", at=NOON)
        store.close_run(workflow_id, standing="failed", at=later())

        run = store.run(workflow_id)
        assert run is not None
        assert ("", "", workflow_id, 1, "e1", "failed") == (
            run.session.app,
            run.session.user,
            run.session.session,
            run.number,
            run.first_execution_run_id,
            run.standing,
        )
        assert [run] == store.runs(session=run.session)


class TestRegistering:
    def test_an_unknown_run_is_listed_as_given_and_its_number_is_not_given_again(self, store: Store) -> None:
        run = run_record(number=5, standing="completed", closed_at=later(), reason="done")
        store.register_run(run)

        assert run == store.run(run.workflow_id)
        assert 6 == allocate(store, opening_id="o2")[0].number

    def test_registering_twice_is_registering_once(self, store: Store) -> None:
        store.register_run(run_record())
        store.register_run(run_record())

        assert [run_record()] == store.runs()

    def test_the_last_number_is_never_lowered(self, store: Store) -> None:
        """A reindex meets runs in any order."""
        for number in (2, 5, 3):
            store.register_run(run_record(number=number))

        assert 6 == allocate(store, opening_id="new")[0].number

    def test_an_opening_id_outlives_a_reindex_that_does_not_know_it(self, store: Store) -> None:
        allocate(store)
        store.register_run(run_record(opening_id="", input_digest=None))

        assert (run_record(), False) == allocate(store)

    def test_a_rebuilt_store_knows_the_opening_ids_that_temporal_knows(self, store: Store) -> None:
        store.register_run(run_record())

        assert (run_record(), False) == allocate(store)

    def test_a_run_that_temporal_says_is_over_closes_with_its_gates(self, store: Store) -> None:
        allocate(store)
        store.open_gate(gate_row())
        store.register_run(run_record(standing="failed", closed_at=later()))

        run, gate = store.run(RUN), store.gate(RUN, "review")
        assert run is not None
        assert gate is not None
        assert ("failed", later(), "closed", later()) == (run.standing, run.closed_at, gate.state, gate.closed_at)

    def test_an_open_run_does_not_go_back_to_allocated(self, store: Store) -> None:
        store.register_run(run_record())
        store.register_run(run_record(standing="allocated"))

        assert [run_record()] == store.runs()

    def test_a_standing_that_nobody_knows_is_refused(self, store: Store) -> None:
        with pytest.raises(StoreError, match="'done' is not a standing"):
            store.register_run(run_record(standing="done"))


class TestListing:
    def test_runs_are_listed_newest_first_and_filtered(self, store: Store) -> None:
        other = SessionKey(app="letters", user="ada", session="s1")
        for minutes, (session, opening) in enumerate([(SESSION, "o1"), (other, "o2"), (SESSION, "o3")]):
            allocate(store, session=session, opening_id=opening, at=later(minutes))
        store.close_run(RUN, standing="completed", at=later(9))

        def listed(**filters: object) -> list[str]:
            return [run.opening_id for run in store.runs(**filters)]  # type: ignore[arg-type]

        assert ["o3", "o2", "o1"] == listed()
        assert ["o3", "o1"] == listed(session=SESSION)
        assert ["o2"] == listed(app="letters")
        assert ["o1"] == listed(standing=RUN_CLOSED)
        assert ["o3"] == listed(standing=RUN_OPEN, app="datasets")
        assert ["o3"] == listed(limit=1)
        assert [] == listed(standing=[])
        assert [] == listed(limit=-1)

    def test_runs_of_a_session_are_sorted_by_number_though_clocks_disagree(self, store: Store) -> None:
        for number in (1, 2, 3):
            allocate(store, opening_id=f"o{number}", at=later(-number))

        assert [3, 2, 1] == [run.number for run in store.runs(session=SESSION)]
        assert [1, 2, 3] == [run.number for run in store.runs()]

    @pytest.mark.parametrize("session", [None, SESSION])
    def test_pages_follow_each_other_without_gap_or_repetition(self, store: Store, session: SessionKey | None) -> None:
        """Though many runs were opened at the same instant, and a new one comes in between."""
        for number in range(11):
            allocate(store, opening_id=f"o{number}", at=later(number // 4))
        everything = store.runs(session=session)

        pages, before = [], None
        while page := store.runs(session=session, limit=3, before=before):
            pages += page
            before = page[-1].cursor
            allocate(store, opening_id=f"new{len(pages)}", at=later(60))

        assert everything == pages

    @pytest.mark.parametrize(
        "cursor", ["", "x", "2031-05-04T12:00:00 1 a", "yesterday 1 a", "2031-05-04T12:00:00Z x a"]
    )
    def test_a_cursor_that_no_run_gave_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(StoreError, match="not a cursor"):
            store.runs(before=cursor)
