"""The call on its way to the activity side: named by `Frame.perform`, put into a header by the interceptor."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from gatewright.protocol.call import Call
from gatewright.protocol.finding import Errand

_CALLING: ContextVar[tuple[Call, Errand | None] | None] = ContextVar("gatewright_calling", default=None)


@contextlib.contextmanager
def calling(call: Call, errand: Errand | None = None) -> Iterator[None]:
    """The activity that is started within the block is this call, on this errand."""
    token = _CALLING.set((call, errand))
    try:
        yield
    finally:
        _CALLING.reset(token)


def called() -> tuple[Call, Errand | None] | None:
    """The call whose activity is being started, if `Frame.perform` starts it, and its errand."""
    return _CALLING.get()
