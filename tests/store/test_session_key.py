"""A session and a number make one workflow id, and the id gives them back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gatewright.store import SessionKey

PARTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@given(PARTS, PARTS, PARTS, st.integers(1, 10**15 - 1))
def test_a_workflow_id_gives_its_session_and_number_back(app: str, user: str, session: str, number: int) -> None:
    """Whatever the parts are made of, slashes and percent signs included."""
    key = SessionKey(app=app, user=user, session=session)

    assert (key, number) == SessionKey.parse(key.workflow_id(number))


def test_a_workflow_id_is_four_parts_with_slashes_between() -> None:
    assert "a/b%2Fc/d%25/7" == SessionKey(app="a", user="b/c", session="d%").workflow_id(7)


@pytest.mark.parametrize(
    "workflow_id",
    [
        *[
            "",
            "order-17",
            "a/b/c",
            "a/b/c/0",
            "a/b/c/01",
            "a/b/c/-1",
            "a/b/c/x",
            "a/b/c/1/2",
            "/b/c/1",
            "a//c/1",
            "a/b/c/١",
        ],
        *["a/b/%63/1", "a/b/%2f/1", "a/b/c c/1", "a/b/%00/1", "a/b/" + "c" * 201 + "/1", "a/b/c/" + "9" * 19],
    ],
)
def test_an_id_that_no_session_has_is_not_read_as_one(workflow_id: str) -> None:
    """Another spelling of an id is another workflow to Temporal, so it must not pass for the session's run."""
    assert SessionKey.parse(workflow_id) is None


@pytest.mark.parametrize("part", ["", "x" * 201, "a\0b", "a\ud800b"])
@pytest.mark.parametrize("name", ["app", "user", "session"])
def test_a_part_that_is_empty_too_long_or_not_text_is_refused(name: str, part: str) -> None:
    with pytest.raises(ValidationError):
        SessionKey(**{"app": "a", "user": "b", "session": "c"} | {name: part})


def test_a_key_whose_workflow_ids_temporal_would_refuse_is_refused_at_once() -> None:
    """200 characters are allowed, but each of these takes twelve bytes once escaped."""
    with pytest.raises(ValidationError, match="1000 bytes"):
        SessionKey(app="\N{GRINNING FACE}" * 90, user="b", session="c")


def test_three_plain_parts_of_the_greatest_length_make_a_workflow_id() -> None:
    key = SessionKey(app="a" * 200, user="b" * 200, session="c" * 200)

    assert (key, 10**15 - 1) == SessionKey.parse(key.workflow_id(10**15 - 1))
