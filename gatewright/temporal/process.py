"""How a process ends that has used Temporal's SDK."""

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """
    End this process with its own exit code, once everything that it said is written.

    Not `sys.exit`: the SDK's native threads can abort an interpreter that is
    being taken down (SIGABRT), and then the exit code is lost.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # Nobody reads it any more.
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(code)
