"""A run as whoever answers it sees it, and the one way to wait in these tests."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from gatewright.protocol import Admitted, Answer, Refused
from gatewright.temporal import GateClient, GateView, NoWorkerError, Ruling

T = TypeVar("T")

PATIENCE = timedelta(seconds=60)
"""How long an answer waits for its verdict, however busy the machine is and whatever its worker died in."""


class Conversation:
    """One run, as whoever answers it sees it."""

    def __init__(self, gates: GateClient, workflow_id: str) -> None:
        self.gates = gates
        self.id = workflow_id
        self.handle = gates.client.get_workflow_handle(workflow_id)

    async def opened(self, interrupt_id: str) -> GateView:
        """Wait until a gate is open."""
        seen: GateView = await until(lambda: self._open(interrupt_id), f"{interrupt_id} opens")
        return seen

    async def _open(self, interrupt_id: str) -> GateView | None:
        with contextlib.suppress(NoWorkerError):
            for gate in await self.gates.gates(self.id):
                if gate.interrupt_id == interrupt_id and gate.state == "open":
                    return gate
        return None

    async def say(self, interrupt_id: str, response: Any = None, *, signal: bool = False, **fields: Any) -> Ruling:
        """Answer."""
        answer = Answer(interrupt_id=interrupt_id, response=response, **fields)
        return await self.gates.answer(self.id, answer, signal=signal, patience=PATIENCE)

    async def admitted(self, interrupt_id: str, response: Any = None, **fields: Any) -> Admitted:
        """Answer, and be admitted."""
        ruling = await self.say(interrupt_id, response, **fields)
        assert isinstance(ruling, Admitted), ruling
        return ruling

    async def refused(self, interrupt_id: str, response: Any = None, **fields: Any) -> Refused:
        """Answer, and be refused."""
        ruling = await self.say(interrupt_id, response, **fields)
        assert isinstance(ruling, Refused), ruling
        return ruling

    async def result(self) -> Any:
        """How the run ended."""
        return await self.handle.result()


async def until(look: Callable[[], Awaitable[T]], what: str, *, seconds: float = 20) -> Any:
    """Look until there is something to see."""
    try:
        async with asyncio.timeout(seconds):
            while not (seen := await look()):
                await asyncio.sleep(0.02)
            return seen
    except TimeoutError:
        raise AssertionError(f"waited {seconds} s in vain until {what}") from None
