"""
The database behind the store: its address, its transactions, and its errors in our words.

Two things hold for every write:

1. It holds a lock from its first statement to its commit: on SQLite the file's
   write lock (BEGIN IMMEDIATE), on PostgreSQL an advisory lock on a name (a
   session, a ledger key). Between the two, reading and then writing is safe, so
   the code above this file says what it means and needs no SQL upserts.
2. It takes one such lock, so two writers cannot wait for each other.

Both databases wait 30 seconds for a lock and then raise `StoreUnavailable`; the
URL may say otherwise (`?timeout=5`, and `?options=-c lock_timeout=5s`).
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import (
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    cast,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from .columns import storable
from .errors import StoreError, StoreUnavailable

LOCK_SECONDS = 30
"""How long a call waits for another writer."""

_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


def default_url() -> str:
    """The store's address: GATEWRIGHT_STORE, or else `data/gatewright.db` below the current folder."""
    return os.environ.get("GATEWRIGHT_STORE") or "sqlite:///data/gatewright.db"


def read_url(text: str) -> URL:
    """
    Read a store's address: a file's path, `sqlite:///path` or `postgresql://...`.

    `StoreError` for any other database, and for an SQLite database that would
    live in memory: each connection would have one of its own.
    """
    if "://" not in text:
        if text in {"", ":memory:"}:
            raise StoreError("a store must outlive its process: name a file, or a sqlite:/// or postgresql:// URL")
        return URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise StoreError("the store's URL cannot be read; write sqlite:///path or postgresql://...") from error
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise StoreError(f"a store cannot live in {url.drivername}: use sqlite:///path or postgresql://...")
    if driver == "sqlite" and url.database in {None, "", ":memory:"}:
        raise StoreError("a store must outlive its process: name a file, as in sqlite:///data/gatewright.db")
    return url.set(drivername=driver)


class Database:
    """One database, used through `read` and `write`; both give a connection in a transaction."""

    def __init__(self, address: str) -> None:
        """Prepare to connect; nothing is opened yet. `StoreError` for an address that cannot be used."""
        url = read_url(address)
        self.name = url.set(query={}).render_as_string(hide_password=True)
        """What error messages call the database; without a password."""
        self.file = Path(url.database or "") if url.drivername == "sqlite" else None
        """The file of an SQLite database."""
        self._engine = _sqlite(url) if self.file else _postgres(url)
        self._writing = self._engine.execution_options(writing="FULL")
        self._indexing = self._engine.execution_options(writing="NORMAL")
        self._closed = False

    def make_folder(self) -> None:
        """Create the folder of an SQLite file; `StoreUnavailable` if that cannot be done."""
        if self.file is not None:
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreUnavailable(f"the folder of {self.name} cannot be made: {error}") from error

    def use_wal(self) -> None:
        """Put an SQLite file into WAL mode, for good: readers then never wait for a writer."""
        if self.file is not None:
            with self._our_errors():
                _use_wal(self._engine)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read in one transaction."""
        with self._our_errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, name: str, *, rebuildable: bool = False) -> Iterator[Connection]:
        """
        Read and write in one transaction, while nobody else writes under this name.

        What is `rebuildable` need not survive a loss of power: an SQLite file
        does not wait for the disk then (a crash of the process loses nothing).
        """
        engine = self._indexing if rebuildable else self._writing
        with self._our_errors(), engine.begin() as connection:
            if self.file is None:
                connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(storable(name), 0))))
            yield connection

    def now(self, connection: Connection) -> datetime:
        """
        The time by the one clock that leases are measured by.

        PostgreSQL's own, whichever machine asks; an SQLite file is used from one
        machine, so there it is that machine's.
        """
        if self.file is not None:
            return datetime.now(UTC)  # noqa: TID251 - the store's clock
        moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def stamp(self) -> datetime | ColumnElement[int]:
        """What to write for the time of writing, by the same clock: without a question of its own."""
        if self.file is not None:
            return datetime.now(UTC)  # noqa: TID251 - the store's clock
        return cast(func.extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger)

    def close(self) -> None:
        """Close every connection; later calls raise `StoreError`."""
        self._closed = True
        self._engine.dispose()

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"the store {self.name} has been closed; open it again")
        try:
            yield
        except (OperationalError, InterfaceError, PoolTimeout, sqlite3.OperationalError) as error:
            raise StoreUnavailable(f"the store {self.name} cannot be used now: {_cause(error)}") from error
        except SQLAlchemyError as error:
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise StoreUnavailable(f"the store {self.name} went away: {_cause(error)}") from error
            raise StoreError(f"the store {self.name} did not take this: {_cause(error)}") from error
        except ValidationError as error:
            raise StoreError(f"the store {self.name} cannot keep this: {error}") from error


def _cause(error: Exception) -> str:
    # SQLAlchemy's own text repeats the statement and its parameters, which may be long and private.
    return str(error.orig).strip() if isinstance(error, StatementError) and error.orig else str(error)


def _sqlite(url: URL) -> Engine:
    # Without isolation_level=None the driver would begin transactions of its own, and never an IMMEDIATE one.
    own: dict[str, Any] = {} if "timeout" in url.query else {"timeout": LOCK_SECONDS}
    engine = create_engine(url, connect_args=own | {"isolation_level": None})

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing")
        if writing:
            connection.exec_driver_sql(f"PRAGMA synchronous={writing}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _use_wal(engine: Engine) -> None:
    # SQLite does not wait by itself while another process is switching the same fresh file.
    give_up = time.monotonic() + LOCK_SECONDS
    connection = engine.raw_connection()
    try:
        while True:
            try:
                connection.cursor().execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > give_up:
                    raise
                time.sleep(0.02)
            else:
                return
    finally:
        connection.close()


def _postgres(url: URL) -> Engine:
    # A dead link must be noticed in about the time that a lock may take; libpq ignores what the platform lacks.
    patience: dict[str, Any] = {
        "connect_timeout": 10,
        "keepalives_idle": LOCK_SECONDS,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": LOCK_SECONDS * 1000,
    }
    try:
        engine = create_engine(
            url,
            connect_args={name: value for name, value in patience.items() if name not in url.query},
            # What was committed before a lock was gained must be seen after it.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
        )
    except ImportError as error:
        raise StoreError("PostgreSQL needs its driver: pip install 'gatewright[postgres]'") from error

    if "lock_timeout" not in str(url.query.get("options", "")):

        @event.listens_for(engine, "connect")
        def connect(driver_connection: Any, _record: object) -> None:
            driver_connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            driver_connection.commit()

    return engine
