"""How `Frame.perform` runs an activity, waits for it, and what it keeps of the outcome."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

from gatewright.effects.declare import Declaration
from gatewright.protocol.canonical import NotJson, canonical, digest, plain

R = TypeVar("R")

Route = str | int | bool | list[str | int | bool] | None
"""Which way a pipeline goes on after a step (ADK's `Event.route`)."""

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


def session_delta(state: dict[str, Any]) -> dict[str, Any]:
    """A change of the session's state as JSON; `ValueError` for what is not JSON, or more than the transcript keeps."""
    try:
        shown = plain(state)
        size = len(canonical(shown))
    except NotJson as wrong:
        msg = f"state={{...}} must be JSON: {wrong}"
        raise ValueError(msg) from wrong
    if not isinstance(shown, dict) or size > MAX_OUTPUT_BYTES:
        msg = f"state={{...}} is {size:,} bytes, at most {MAX_OUTPUT_BYTES:,} are kept in a session's state at once"
        raise ValueError(msg)
    return shown


async def awaited(handle: Awaitable[R]) -> tuple[R, asyncio.CancelledError | None]:
    """The result of a step, which a cancellation may interrupt: it is safe to repeat."""
    return await handle, None


async def seen_through(handle: asyncio.Task[R]) -> tuple[R | ActivityError, asyncio.CancelledError | None]:
    """
    The result of an effect, or how it failed, and the cancellation that came meanwhile.

    An effect that has begun is not interrupted: nobody could say afterwards
    whether it happened. It is recorded first, and then the run is cancelled.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            return await asyncio.shield(handle), cancelled
        except ActivityError as failed:
            return failed, cancelled
        except asyncio.CancelledError as asked:
            if handle.cancelled():
                raise
            cancelled = asked
