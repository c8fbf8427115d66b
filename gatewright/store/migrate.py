"""
Bringing a database to the schema of this code, once, however many processes open it.

A database is ours if it has our version table. One that is empty becomes ours;
one that holds something else is left alone.
"""

import threading
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from .database import Database
from .errors import StoreError

VERSION_TABLE = "gatewright_version"
"""Where the schema's revision is written; not alembic's usual name, which a neighbour may use."""

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Every revision that this code knows, oldest first."""

# Alembic's context and operations are globals of the process.
_ALEMBIC = threading.Lock()


def migrate(database: Database) -> None:
    """Bring the database to the newest revision; `StoreError` if it is newer than this code, or not ours."""
    database.make_folder()
    with database.read() as connection:
        # Looked at before anything is changed: the file may be somebody else's.
        if _revision(connection, database.name) == REVISIONS[-1]:
            return
    database.use_wal()
    with _ALEMBIC, database.write("gatewright migration") as connection:
        if _revision(connection, database.name) != REVISIONS[-1]:
            _upgrade(connection)


def require_newest(database: Database) -> None:
    """Raise `StoreError` unless the database is at the newest revision already."""
    way_out = "run `gatewright store migrate`"
    if database.file and not database.file.exists():
        # Connecting would leave an empty file behind.
        raise StoreError(f"there is no store at {database.name}; {way_out}")
    with database.read() as connection:
        revision = _revision(connection, database.name)
    if revision is None:
        raise StoreError(f"the store {database.name} has no tables yet; {way_out}")
    if revision != REVISIONS[-1]:
        raise StoreError(f"the store {database.name} is at schema {revision}, not {REVISIONS[-1]}; {way_out}")


def _revision(connection: Connection, name: str) -> str | None:
    """The revision of a database that is ours and not newer than this code; `None` for an empty one."""
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE not in tables:
        if tables:
            raise StoreError(
                f"{name} is not a Gatewright store: it holds {', '.join(sorted(tables)[:3])}; name an empty database"
            )
        return None
    revision = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 - our own constant
    if revision is not None and revision not in REVISIONS:
        raise StoreError(
            f"the store {name} was made by a newer Gatewright (schema {revision}; this one knows {REVISIONS[-1]}):"
            " upgrade gatewright"
        )
    return None if revision is None else str(revision)


def _upgrade(connection: Connection) -> None:
    # Imported here, because most openings find the schema in place and alembic is slow to import.
    from alembic import command
    from alembic.config import Config

    config = Config()
    scripts = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
