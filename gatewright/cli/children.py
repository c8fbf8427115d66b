"""The processes of a demo or of `dev`: ended on every way out, last started first."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def children() -> Iterator[ExitStack]:
    """
    A stack of what is to be ended; it is unwound without regard to further signals.

    SIGTERM and SIGHUP become an orderly way out (`SystemExit`, 128 and the
    signal's number), as Ctrl-C is one already.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    ends = ExitStack()
    before = {number: signal.signal(number, leave) for number in _ENDING}
    before[signal.SIGINT] = signal.getsignal(signal.SIGINT)
    try:
        yield ends
    finally:
        # An impatient second Ctrl-C must not leave a server behind.
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        try:
            ends.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
