"""What is down behind the pages: Temporal, or whoever works on the runs."""

import asyncio
from collections.abc import Collection
from datetime import timedelta

from gatewright.temporal import GateClient
from gatewright.temporal.errors import ServerUnavailableError

EVERY = 5.0
"""How often it is looked at, in seconds."""

PATIENCE = 3.0

LATELY = timedelta(seconds=75)
"""A worker's poll lasts a minute; one that has not polled for longer is away."""


class Health:
    """Looks at Temporal and at the workers of these task queues (None: the client's own), when asked, and not too often."""

    def __init__(self, client: GateClient, queues: Collection[str]) -> None:
        self._client = client
        self._queues: list[str | None] = [None, *sorted(queues)]
        self._looked = float("-inf")
        self.known = ""
        """What was last found, in words; empty where nothing is down."""

    async def trouble(self) -> str:
        """What is down, in words; empty where nothing is."""
        now = asyncio.get_running_loop().time()
        if now - self._looked >= EVERY:
            self._looked = now
            self.known = await self._look()
        return self.known

    async def _look(self) -> str:
        try:
            async with asyncio.timeout(PATIENCE):
                counts = await asyncio.gather(*(self._client.workers(queue, lately=LATELY) for queue in self._queues))
        except (ServerUnavailableError, TimeoutError):
            return "Temporal does not answer: what is shown may be old, and answers cannot be sent until it is back."
        if not any(counts):
            return "No worker is running: an answer is kept and judged when one comes back."
        return ""
