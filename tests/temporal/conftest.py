"""What tests of the Temporal shell share."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gatewright.temporal import GateClient
from tests.temporal.conversation import Conversation


@pytest.fixture
def open_run(gates: GateClient) -> Callable[..., Awaitable[Conversation]]:
    """`await open_run("Pipeline", input)` opens a run and gives the conversation with it."""

    async def opener(pipeline: str, given: Any = None, **options: Any) -> Conversation:
        started = await gates.start(pipeline, given, **options)
        return Conversation(gates, started.workflow_id)

    return opener
