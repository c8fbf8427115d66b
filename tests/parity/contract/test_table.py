"""The page about the contract says what the tests hold."""

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from tests.parity.contract.table import PAGE, page


def test_every_row_is_held_once_and_the_page_is_up_to_date() -> None:
    """Otherwise: `python -m tests.parity.contract.table`."""
    assert PAGE.read_text("utf-8") == page()
