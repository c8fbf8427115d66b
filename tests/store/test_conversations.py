"""A session's conversation: made once, deleted without losing what its runs left."""

import pytest

from gatewright.store import ConversationExists, SessionKey, SessionOpen, Store, StoreError
from gatewright.store import conversations as room
from tests.store.builders import NOON, RUN, SESSION, allocate, later

OTHER = SessionKey(app="datasets", user="ada", session="s2")


def test_it_keeps_the_state_it_was_made_with_and_what_was_said_outside_any_run(store: Store) -> None:
    made = store.create_conversation(SESSION, state={"a": [1]}, events=[{"author": "user"}], at=NOON)
    store.remark(SESSION, {"stateDelta": {"b": 2}}, at=later())

    found = store.conversation(SESSION)

    assert made.state == {"a": [1]}
    assert found == made.model_copy(update={"updated_at": later()})
    assert [remark.event for remark in store.remarks(SESSION)] == [{"author": "user"}, {"stateDelta": {"b": 2}}]
    assert [remark.at for remark in store.remarks(SESSION)] == [NOON, later()]


def test_it_is_made_once(store: Store) -> None:
    store.create_conversation(SESSION, state={"a": 1}, at=NOON)

    with pytest.raises(ConversationExists, match="datasets/ada/s1 exists already"):
        store.create_conversation(SESSION, state={}, at=later())

    found = store.conversation(SESSION)
    assert found is not None
    assert found.state == {"a": 1}


def test_a_run_that_was_opened_by_other_means_makes_its_session_be_there(store: Store) -> None:
    assert store.conversation(SESSION) is None
    allocate(store)

    found = store.conversation(SESSION)

    assert found is not None
    assert (found.after, found.state, found.created_at) == (0, {}, NOON)
    assert [talk.session for talk in store.conversations("datasets", "ada")] == [SESSION]
    with pytest.raises(ConversationExists):
        store.create_conversation(SESSION, state={}, at=later())


def test_those_of_one_user_are_listed_the_one_touched_last_at_the_end(store: Store) -> None:
    store.create_conversation(SESSION, state={}, at=NOON)
    store.create_conversation(OTHER, state={}, at=later())
    for stranger in (
        SessionKey(app="datasets", user="ada2", session="s"),
        SessionKey(app="data", user="ada", session="s"),
    ):
        store.create_conversation(stranger, state={}, at=NOON)
    store.touch_conversation(SESSION, at=later(2))

    assert [talk.session for talk in store.conversations("datasets", "ada")] == [OTHER, SESSION]
    assert [talk.session for talk in store.conversations("datasets", "ada", limit=1)] == [SESSION]


def test_a_user_whose_name_is_a_pattern_sees_only_their_own(store: Store) -> None:
    allocate(store, session=SessionKey(app="datasets", user="a%", session="s"))
    allocate(store, session=SessionKey(app="datasets", user="ab", session="s"))

    assert [talk.session.user for talk in store.conversations("datasets", "a%")] == ["a%"]


def test_deleting_keeps_the_runs_and_their_numbers_out_of_what_comes_after(store: Store) -> None:
    store.create_conversation(SESSION, state={"a": 1}, at=NOON)
    allocate(store)
    store.close_run(RUN, standing="completed", at=later(), archive={"kept": True})
    store.remark(SESSION, {"x": 1}, at=later())

    store.delete_conversation(SESSION, at=later(2))

    assert store.conversation(SESSION) is None
    assert store.conversations("datasets", "ada") == []
    assert store.archive(RUN) == {"kept": True}
    again = store.create_conversation(SESSION, state={"b": 2}, at=later(3))
    assert (again.after, again.state, store.remarks(SESSION)) == (1, {"b": 2}, [])
    assert allocate(store, opening_id="o2")[0].number == 2


def test_one_whose_run_is_open_is_not_deleted(store: Store) -> None:
    store.create_conversation(SESSION, state={}, at=NOON)
    allocate(store)

    with pytest.raises(SessionOpen, match="datasets/ada/s1/1 is still allocated"):
        store.delete_conversation(SESSION, at=later())

    assert store.conversation(SESSION) is not None


def test_deleting_what_is_not_there_is_no_error(store: Store) -> None:
    store.delete_conversation(SESSION, at=NOON)

    assert store.conversation(SESSION) is None


def test_a_session_that_only_has_runs_can_be_deleted(store: Store) -> None:
    allocate(store)
    store.close_run(RUN, standing="completed", at=later())

    store.delete_conversation(SESSION, at=later(2))

    assert store.conversation(SESSION) is None
    assert store.conversations("datasets", "ada") == []


def test_what_is_said_outside_runs_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_REMARKS", 2)
    store.create_conversation(SESSION, state={}, events=[{"n": 1}, {"n": 2}], at=NOON)

    with pytest.raises(StoreError, match="takes no more"):
        store.remark(SESSION, {"n": 3}, at=later())


def test_a_run_that_is_opened_in_a_deleted_session_brings_it_back(store: Store) -> None:
    """Text and a deletion at one moment: an open run whose session is gone could be answered by nobody."""
    store.create_conversation(SESSION, state={"a": 1}, at=NOON)
    allocate(store)
    store.close_run(RUN, standing="completed", at=later())
    store.delete_conversation(SESSION, at=later(2))

    allocate(store, opening_id="o2", at=later(3))

    found = store.conversation(SESSION)
    assert found is not None
    assert (found.after, found.state) == (1, {})
