"""
The turns that are being followed over HTTP.

A client that goes away, and a server that stops, end the following and nothing
else: the run is Temporal's.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

Event = dict[str, Any]


class ServerStops(Exception):  # noqa: N818 - named for what is the case
    """The server is being stopped in the middle of a turn."""


class _End(Exception):  # noqa: N818 - named for what is the case
    """There are no more events."""


class Streams:
    """Everything that is followed at the moment."""

    def __init__(self) -> None:
        self._open: set[asyncio.Queue[Event | Exception]] = set()
        self._stopped = False

    @property
    def followed(self) -> int:
        """How many turns are being followed."""
        return len(self._open)

    def stop(self) -> None:
        """End them all, and each later one at once."""
        self._stopped = True
        for queue in self._open:
            queue.put_nowait(ServerStops())

    async def follow(self, events: AsyncIterator[Event], *, beat: float | None = None) -> AsyncIterator[Event | None]:
        """
        Yield events as they come, and None where none came for `beat` seconds.

        Raises what `events` raises, and `ServerStops`. Closing it closes `events`.
        """
        queue: asyncio.Queue[Event | Exception] = asyncio.Queue()
        if self._stopped:
            raise ServerStops
        # In a task of its own, so that nobody's cancellation reaches the gateway in the middle of a call.
        fetching = asyncio.create_task(_fetch(events, queue))
        self._open.add(queue)
        try:
            while True:
                try:
                    async with asyncio.timeout(beat):
                        item = await queue.get()
                except TimeoutError:
                    yield None
                    continue
                if isinstance(item, _End):
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self._open.discard(queue)
            fetching.cancel()


async def _fetch(events: AsyncIterator[Event], queue: asyncio.Queue[Event | Exception]) -> None:
    try:
        async with aclosing(events):  # type: ignore[type-var]
            async for event in events:
                queue.put_nowait(event)
    except Exception as failed:  # noqa: BLE001 - it is raised where the events are read
        queue.put_nowait(failed)
    else:
        queue.put_nowait(_End())
