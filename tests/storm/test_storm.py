"""Nothing that is sent to a paused run can restart, poison, cross or lose it."""

from pathlib import Path

import pytest

from tests.conftest import binary
from tests.storm.__main__ import report
from tests.storm.storm import Storm


@pytest.mark.timeout(240)
async def test_a_storm_moves_nothing_and_every_message_comes_to_what_it_must(address: str, tmp_path: Path) -> None:
    """300 messages of every kind; `make storm` sends 2,000."""
    tally = await Storm(address, binary("temporal"), tmp_path, messages=300, seed=7).rage()

    assert [] == tally.mismatches, report(tally, 7)
    assert tally.sent > 300
    assert {"graceful restart", "kill -9 between", "kill -9 amid", "nobody there"} <= set(tally.events)
