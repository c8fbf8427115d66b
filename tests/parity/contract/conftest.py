"""The pipeline on a real server, called through an ADK `Runner`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pytest

from gatewright.adk import Gateway
from gatewright.temporal import GateClient
from tests.conftest import Working
from tests.parity.contract.pipelines import APPS, STEPS, Pipeline

if TYPE_CHECKING:
    from tests.parity.contract.saying import Saying


@pytest.fixture
async def worked(working: Working) -> AsyncIterator[None]:
    """A worker for the pipeline."""
    async with working([Pipeline], STEPS):
        yield


@pytest.fixture
def saying(gates: GateClient, worked: None) -> Callable[..., Awaitable["Saying"]]:
    """`await saying()` is a session with nothing in it; with `on_text="open"`, text opens runs beside open ones."""
    # The extra may be missing: the tests then skip, and this file must not fail.
    from gatewright.adk.native import TemporalRunner
    from tests.parity.contract.saying import Saying

    async def begin(on_text: Literal["refuse", "open"] = "refuse") -> "Saying":
        session = Saying(TemporalRunner(Gateway(gates, APPS, on_text=on_text), "contract"), f"s-{uuid4().hex[:12]}")
        await session.begin()
        return session

    return begin


@pytest.fixture
def paused(saying: Callable[..., Awaitable["Saying"]]) -> Callable[..., Awaitable["Saying"]]:
    """`await paused("bare")` is a session whose run of this shape waits at its first gates."""

    async def begin(shape: str, **options: Any) -> "Saying":
        session = await saying(**options)
        await session.open(shape)
        session.took()
        return session

    return begin
