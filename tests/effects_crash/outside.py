"""
The outsides: what counts how often it was called is the world that effects are done to.

One SQLite file plays three of them. Each call of an outside is a row, and the
commit of the row is what "it happened" means.

    honours keys     the first call with a key makes the row; a repeat is counted in it and given the first one's number
    can be asked     every call makes a row; `find` says whether there is one with a key
    ignores keys     every call makes a row
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gatewright.effects import EffectKind

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    trial TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    pid INTEGER NOT NULL,
    repeats INTEGER NOT NULL DEFAULT 0,
    at REAL NOT NULL DEFAULT (julianday('now'))
);
CREATE INDEX IF NOT EXISTS calls_by_trial ON calls (trial);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
CREATE UNIQUE INDEX IF NOT EXISTS once_by_key ON calls (key) WHERE kind = 'keyed';
"""

_CALL = "INSERT INTO calls (trial, kind, key, pid) VALUES (?, ?, ?, ?) RETURNING id"

_HONOURING = """
INSERT INTO calls (trial, kind, key, pid) VALUES (?, ?, ?, ?)
ON CONFLICT (key) WHERE kind = 'keyed' DO UPDATE SET repeats = repeats + 1 RETURNING id
"""


@dataclass(frozen=True)
class Counted:
    """A call that happened; `id` is the number that the outside gave it."""

    id: int
    key: str
    pid: int
    repeats: int


class Outside:
    """The outsides in one file; made anew in each process."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def make(self) -> None:
        """Make the file."""
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(_SCHEMA)

    def call(self, kind: EffectKind, trial: str, key: str, *, inside: Callable[[], None]) -> int:
        """Do it once more (or, of a key that is honoured, once), and return the number; `inside` is called before the commit."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            [number] = connection.execute(
                _HONOURING if kind is EffectKind.KEYED else _CALL, (trial, kind.value, key, os.getpid())
            ).fetchone()
            inside()
            connection.execute("COMMIT")
        return int(number)

    def find(self, key: str) -> int | None:
        """The number of the first call with this key; None where there was none."""
        with self._connected() as connection:
            found = connection.execute("SELECT id FROM calls WHERE key = ? ORDER BY id", (key,)).fetchone()
        return None if found is None else int(found[0])

    def counted(self, trial: str) -> list[Counted]:
        """Every call of a trial, the first one first."""
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT id, key, pid, repeats FROM calls WHERE trial = ? ORDER BY id", (trial,)
            ).fetchall()
        return [Counted(*row) for row in rows]

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.file, timeout=60, isolation_level=None)
        # A process that is killed loses nothing by it, and a machine that is ends the trials as well.
        connection.execute("PRAGMA synchronous=OFF")
        try:
            yield connection
        finally:
            connection.close()
