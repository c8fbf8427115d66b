"""The README's first example is run as it stands there."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.temporal.conversation import Conversation

README = Path(__file__).parents[1] / "README.md"

SHOP = """
from pydantic import BaseModel
from temporalio import activity


class Order(BaseModel):
    amount: int


@activity.defn
async def pay(order: Order) -> str:
    return f"paid {order.amount}"
"""


async def test_a_gate_in_a_workflow_that_somebody_already_has(
    tmp_path: Path, gates: Any, working: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied, with an `Order` and a `pay` of the reader's own, it asks, and pays when it is approved."""
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "transfer.py").write_text(example)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop  # type: ignore[import-not-found]
    import transfer  # type: ignore[import-not-found]

    try:
        async with working([transfer.Transfer], [shop.pay]):
            started = await gates.start("Transfer", {"amount": 30})
            run = Conversation(gates, started.workflow_id)
            assert (await run.opened("approve")).message == "Pay 30?"
            await run.refused("approve", {"approved": "certainly"})
            await run.admitted("approve", {"approved": True}, principal="alice")

            assert await run.result() == "paid 30"
    finally:
        del sys.modules["shop"], sys.modules["transfer"]
