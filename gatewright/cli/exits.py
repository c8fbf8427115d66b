"""
How a command ends: its exit codes, and the one way to end early.

    0    admitted or repeated; whatever was asked for was done
    1    anything else: a broken chain, a run that failed, a fault of Gatewright
    2    usage: the command line is wrong, nothing was sent
    3    refused: the answer did not count, the session is busy
    4    not found, unreachable, or not judged yet
    130  Ctrl-C
"""

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
AWAY: Final = 4
INTERRUPTED: Final = 130


class Stop(Exception):  # noqa: N818 - an end, not always an error
    """
    End the command with `code`, saying `message` on stderr.

    `kind` names the case for scripts: with `--output json` it stands on stdout
    as `{"error": kind, "message": message}`, together with `details`.
    """

    def __init__(self, code: int, message: str, *, kind: str = "usage", **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.kind = kind
        self.details = details


def usage(message: str) -> Stop:
    """The end of a command whose command line is wrong."""
    return Stop(USAGE, message)
