"""How `Frame.perform` runs an activity, waits for it, and what it keeps of the outcome."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.common import RetryPolicy

from gatewright.effects.declare import Declaration
from gatewright.protocol.canonical import NotJson, canonical, digest, plain

R = TypeVar("R")

MAX_OUTPUT_BYTES = 16 * 1024
"""The largest output of a step that the transcript keeps; of a larger one it keeps the digest."""


def activity_options(declaration: Declaration, given: dict[str, Any]) -> dict[str, Any]:
    """How Temporal is to run the activity: as it was declared, but for what this call says."""
    return {
        "start_to_close_timeout": declaration.timeout,
        "heartbeat_timeout": declaration.heartbeat,
        "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=declaration.attempts),
        **given,
    }


def kept(value: Any) -> tuple[Any, str | None]:
    """What the transcript keeps of a value: itself where it is small, and its digest; nothing of what is not JSON."""
    try:
        shown = plain(value)
        data = canonical(shown)
    except NotJson:
        return None, None
    return (shown if len(data) <= MAX_OUTPUT_BYTES else None), digest(shown)


async def awaited(handle: Awaitable[R]) -> tuple[R, asyncio.CancelledError | None]:
    """The result of a step, which a cancellation may interrupt: it is safe to repeat."""
    return await handle, None


async def seen_through(handle: asyncio.Task[R]) -> tuple[R, asyncio.CancelledError | None]:
    """
    The result of an effect, and the cancellation that came meanwhile.

    An effect that has begun is not interrupted: nobody could say afterwards
    whether it happened. It is recorded first, and then the run is cancelled.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            return await asyncio.shield(handle), cancelled
        except asyncio.CancelledError as asked:
            if handle.cancelled():
                raise
            cancelled = asked
