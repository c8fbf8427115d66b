"""The page about parity says what the tests hold."""

import re

from .differences import DIFFERENCES
from .document import PAGE, page
from .replaying import RECORDINGS
from .scripts import SCRIPTS


def test_the_page_is_made_from_the_differences() -> None:
    """`python -m tests.parity.document` makes it anew."""
    assert page() == PAGE.read_text("utf-8")


def test_every_difference_says_where_and_rests_on_rows_of_the_contract() -> None:
    """A misspelt script would never be looked at, and so never fail."""
    known = set(SCRIPTS) | {path.stem for path in RECORDINGS.glob("*.json")}

    for difference in DIFFERENCES:
        assert difference.says, difference.title
        assert all(re.fullmatch(r"[A-Z]\d\d", row) for row in difference.rows), difference.title
        for says in difference.says:
            assert set(" | ".join(says.at).split(" | ")) <= known, difference.title
            assert all(says.at.values()), difference.title
