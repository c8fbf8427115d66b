"""Following a turn: silence, ends, and whoever stops listening."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewright.server.streams import ServerStops, Streams


class Source:
    """Events as the test lets them come; `closed` tells that nobody wants more."""

    def __init__(self) -> None:
        self.more = asyncio.Event()
        self.closed = asyncio.Event()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """One at once, one when it may, and a failure."""
        try:
            yield {"id": 1}
            await self.more.wait()
            yield {"id": 2}
            raise ValueError("enough")
        finally:
            self.closed.set()


async def test_silence_is_told_and_a_failure_is_passed_on() -> None:
    """None for every beat without an event."""
    source, streams, seen = Source(), Streams(), list[Any]()

    async def listen() -> None:
        async for event in streams.follow(source.events(), beat=0.02):
            seen.append(event)
            if len(seen) == 3:
                source.more.set()

    with pytest.raises(ValueError, match="enough"):
        await listen()

    assert [{"id": 1}, None, None] == seen[:3]
    assert {"id": 2} == seen[-1]
    assert 0 == streams.followed


async def test_whoever_stops_listening_closes_the_source() -> None:
    """Also while it waits for its next event."""
    source, streams = Source(), Streams()
    following = streams.follow(source.events())
    assert {"id": 1} == await anext(following)
    await following.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(2):
        await source.closed.wait()

    assert 0 == streams.followed


async def test_a_stop_reaches_whoever_listens_and_whoever_comes_later() -> None:
    """At once."""
    source, streams = Source(), Streams()
    following = streams.follow(source.events())
    await anext(following)
    streams.stop()
    with pytest.raises(ServerStops):
        await anext(following)
    with pytest.raises(ServerStops):
        await anext(streams.follow(Source().events()))
