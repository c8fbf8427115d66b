"""
What a command prints: text for people or JSON for scripts, and never both.

Three things hold throughout:

1. With `--output json` stdout holds one JSON document (`watch`: one a line);
   whatever else is to be said goes to stderr.
2. Text that somebody else wrote (messages, names, answers) cannot move the
   cursor, change colours or hide itself: control characters are shown as escapes.
3. Without a terminal, or with NO_COLOR, text is plain and is not cut to a width.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

# Control characters, and marks that turn the direction of text or take no room.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

_WIDE = 10_000


class Output(StrEnum):
    """The two forms in which every command prints."""

    TEXT = "text"
    JSON = "json"


def printable(text: str) -> str:
    """`text` with everything that a terminal would obey, or not show, written as an escape."""
    return _UNSEEN.sub(lambda mark: mark.group().encode("unicode_escape", "surrogatepass").decode(), text)


class Out:
    """Where a command prints; one for each command."""

    def __init__(self, output: Output = Output.TEXT) -> None:
        self.json = output is Output.JSON
        self.screen = _console(sys.stdout)
        self.aside = _console(sys.stderr)

    def data(self, document: Any) -> None:
        """Print one JSON document, on one line where stdout is no terminal; nothing in text form."""
        if self.json:
            indent = 2 if sys.stdout.isatty() else None
            # ASCII only, so that any locale and half a surrogate pair can be written.
            print(json.dumps(document, ensure_ascii=True, indent=indent, default=str), flush=True)

    def line(self, document: Any) -> None:
        """Print one JSON document as one line; nothing in text form."""
        if self.json:
            print(json.dumps(document, ensure_ascii=True, default=str), flush=True)

    def say(self, text: str = "", style: str = "") -> None:
        """Print text on stdout; nothing in JSON form."""
        if not self.json:
            self.screen.print(Text(printable(text), style=style), soft_wrap=True)

    def note(self, text: str, style: str = "") -> None:
        """Print text on stderr, in either form."""
        self.aside.print(Text(printable(text), style=style), soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table on stdout; nothing in JSON form."""
        if self.json:
            return
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for head in heads:
            table.add_column(head, overflow="fold")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self.screen.print(table)

    @contextmanager
    def busy(self, doing: str) -> Iterator[None]:
        """Show on stderr that something takes a while: a spinner on a terminal, one line elsewhere."""
        if self.aside.is_terminal:
            with self.aside.status(Text(printable(doing)), spinner="dots"):
                yield
        else:
            self.note(f"{doing} ...")
            yield


def _console(stream: Any) -> Console:
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Console(
        file=stream,
        markup=False,
        highlight=False,
        emoji=False,
        force_terminal=terminal,
        width=None if terminal else _WIDE,
    )
