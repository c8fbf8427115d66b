"""The call that is running: which one it is, its key for the outside, and its heartbeat."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from temporalio import activity

from gatewright.protocol.call import Call

from .lease import fence

CALL: ContextVar[Call] = ContextVar("gatewright_call")
"""The call whose activity runs here."""


def current_call() -> Call:
    """
    The call that is running: its key, branch and visit.

    `LookupError` outside an activity that `Frame.perform` called on a worker
    with the Gatewright plugin.
    """
    try:
        return CALL.get()
    except LookupError:
        msg = (
            "no Gatewright call is running here: call the function with Frame.perform on a worker with GatewrightPlugin"
        )
        raise LookupError(msg) from None


def idempotency_headers() -> dict[str, str]:
    """
    The HTTP header that carries the call's key, for an outside that honours it: `{"Idempotency-Key": "gw1-..."}`.

    Made right before the request, because it is a fence too: `LeaseLost` where
    another attempt may have taken the effect over; `LookupError` as `current_call`.
    """
    key = current_call().key
    fence()
    return {"Idempotency-Key": key}


def heartbeat(*details: Any) -> None:
    """Report progress to Temporal inside an activity; outside one (a unit test, a script) do nothing."""
    if activity.in_activity():
        activity.heartbeat(*details)


@contextlib.contextmanager
def running(call: Call) -> Iterator[None]:
    """Make `call` the current call within the block; for tests of functions that ask for it."""
    token = CALL.set(call)
    try:
        yield
    finally:
        CALL.reset(token)


__all__ = ["CALL", "current_call", "heartbeat", "idempotency_headers", "running"]
