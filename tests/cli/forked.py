"""
The command, in a process of its own at the price of a fork.

Python's fork server imports everything once (starting no thread), where a
fresh interpreter takes a second of a core for it each time.
"""

import multiprocessing
import os
import sys
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path


@cache
def forking() -> ForkServerContext:
    """Whoever forks, one for all tests of this process; it ends with it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["gatewright.cli.app", "gatewright.cli.effects", "gatewright.cli.receipts"])
    return context


def command(arguments: list[str], environment: dict[str, str], folder: Path, streams: Path) -> None:
    """What the process does: `gatewright` with these arguments; its standard streams are the files 0, 1 and 2 in `streams`."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(streams / str(number), flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 - they are this process's
        for number in range(3)
    )
    sys.argv = ["gatewright", *arguments]
    from gatewright.cli import main

    main()
