"""Asking somebody at a terminal: a form, and yes or no."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .exits import INTERRUPTED, Stop
from .form import fill
from .out import Out, printable


def ask_form(out: Out, schema: dict[str, Any] | None, *, strict: bool = False) -> Any:
    """
    The answer that somebody fills in; prompts go to stderr where stdout is JSON.

    `Stop` (interrupted) at Ctrl-C and at the end of input: nothing was sent.
    """
    form = fill(schema, strict=strict)
    prompt = next(form)
    before = None
    while True:
        # What is asked is not repeated because of a slip of the hand.
        for line in prompt.lines if prompt.label != before else ():
            out.note(f"  {line}")
        before = prompt.label
        if prompt.fault:
            out.note(f"  ! {prompt.fault}", "red")
        try:
            prompt = form.send(read_line(f"  {prompt.label}> "))
        except StopIteration as filled:
            return filled.value


def read_line(label: str) -> str:
    """One line from the terminal, without its end; `Stop` (interrupted) at Ctrl-C and at the end of input."""
    with suppress(ImportError):  # editing and history, where Python has them
        import readline  # noqa: F401
    label = printable(label)
    try:
        with _interruptible():
            if sys.stdout.isatty():
                return input(label)
            sys.stderr.write(label)
            sys.stderr.flush()
            return input()
    except (KeyboardInterrupt, EOFError) as left:
        sys.stderr.write("\n")
        raise Stop(INTERRUPTED, "interrupted; nothing was sent", kind="interrupted") from left


def confirm(question: str) -> bool:
    """Whether somebody at the terminal says yes; an empty line says no."""
    return read_line(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end `input`: asyncio's own handler would only note it for later."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
