"""The call on its way to the activity side: named by `Frame.perform`, put into a header by the interceptor."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from gatewright.protocol.call import Call

_CALLING: ContextVar[Call | None] = ContextVar("gatewright_calling", default=None)


@contextlib.contextmanager
def calling(call: Call) -> Iterator[None]:
    """The activity that is started within the block is this call."""
    token = _CALLING.set(call)
    try:
        yield
    finally:
        _CALLING.reset(token)


def called() -> Call | None:
    """The call whose activity is being started, if `Frame.perform` starts it."""
    return _CALLING.get()
