"""
What changes in the gate index, for every page that is open: one poll a second, however many there are.

Nobody listens, nobody polls. What is rendered for one page can be kept for the
others until the next change: `version` names the state of the index, and is
None while nobody looks, when nothing may be kept.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from gatewright.store import Store, StoreError

logger = logging.getLogger(__name__)

EVERY = 1.0
"""How often the index is asked, in seconds."""

OVERLAP = timedelta(seconds=15)
"""How far a poll goes back: a row becomes visible when its transaction is over, which may be after a later one's."""


@dataclass(frozen=True)
class Change:
    """Which gates changed (run, interrupt id), and which state of the index this is; `trouble` says what is down."""

    version: int
    gates: frozenset[tuple[str, str]] = frozenset()
    trouble: str = ""


class Feed:
    """
    The changes of one store.

    `look` is asked with every poll for what else is down (Temporal, a worker),
    in words; empty where nothing is.
    """

    def __init__(self, store: Store, look: Callable[[], Awaitable[str]], *, every: float = EVERY) -> None:
        self._store = store
        self._look = look
        self._every = every
        self._listeners: set[asyncio.Queue[Change]] = set()
        self._polling: asyncio.Task[None] | None = None
        self._version = 0
        self._current = False
        self._trouble = ""
        self.polls = 0
        """How often the index was asked, for whoever wants to see that it is once a second."""

    @property
    def listeners(self) -> int:
        """How many pages listen."""
        return len(self._listeners)

    @property
    def version(self) -> int | None:
        """Which state of the index is being shown; None where nobody knows whether it has changed."""
        return self._version if self._current else None

    async def listen(self) -> AsyncIterator[Change]:
        """Yield how it stands, and then every change."""
        queue: asyncio.Queue[Change] = asyncio.Queue()
        self._listeners.add(queue)
        if self._current:
            queue.put_nowait(Change(self._version, trouble=self._trouble))
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners.discard(queue)
            if not self._listeners and self._polling is not None:
                polling, self._polling, self._current = self._polling, None, False
                polling.cancel()
                with suppress(asyncio.CancelledError):
                    await polling

    async def _poll(self) -> None:
        since: datetime | None = None
        seen: dict[tuple[str, str], datetime] = {}
        first = True
        while True:
            changed: frozenset[tuple[str, str]] = frozenset()
            trouble = was = self._trouble
            self.polls += 1
            try:
                if since is None:
                    since = await asyncio.to_thread(self._store.now)
                now = await asyncio.to_thread(self._store.touched_gates, since - OVERLAP)
                changed = frozenset(key for key, at in now.items() if seen.get(key) != at)
                seen, since = now, max(now.values(), default=since)
                trouble, self._current = await self._look(), True
            except StoreError as away:
                trouble, self._current = f"The gate index is away, and what is shown may be old: {away}", False
            except Exception:
                # A page without news is better than none.
                logger.exception("the gate index was not asked")
            if changed or trouble != was or first:
                self._version, self._trouble, first = self._version + 1, trouble, False
                for queue in self._listeners:
                    queue.put_nowait(Change(self._version, changed, trouble))
            await asyncio.sleep(self._every)
