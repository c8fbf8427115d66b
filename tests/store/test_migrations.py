"""A store of an earlier release is brought up to date, and what it knew of effects is still known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

import gatewright.store
from gatewright.store import Begun, LedgerConflict, LedgerEntry, Store, StoreError
from gatewright.store.database import Database
from gatewright.store.migrate import VERSION_TABLE
from gatewright.store.schema import metadata
from tests.store.builders import NOON, RUN, attempt, in_processes, later, planned

OPEN = """
from gatewright.store import Store
begin()
with Store.open(sys.argv[2]) as store:
    print(json.dumps([store.ledger_id, len(store.ledger.entries())]))
"""

ROW = {
    "effect": "publish",
    "workflow_id": RUN,
    "branch": "release@1/publish@1",
    "visit": 1,
    "generation": 0,
    "arguments_digest": "sha256:3",
    "attempts": 2,
    "result": None,
    "receipt": None,
    "error": None,
    "settled_at": None,
}
ROWS = [
    ROW | {"key": "intended", "state": "intended"},
    ROW | {"key": "performed", "state": "performed", "result": '{"rows":3}', "receipt": '"t-1"', "settled_at": 9},
    ROW | {"key": "failed", "state": "failed", "error": "no such bucket", "settled_at": 9, "generation": 1},
    ROW | {"key": "unknown", "state": "unknown", "error": "it went dead", "settled_at": 9, "visit": 2},
]


def microseconds(minutes: int) -> int:
    """How a time is kept: so many minutes after noon, since 1970."""
    return int(later(minutes).timestamp()) * 1_000_000 + NOON.microsecond


def written(address: str, work: Callable[[Connection], object]) -> None:
    """Write to a database as nobody of this release would."""
    database = Database(address)
    with database.write("test") as connection:
        work(connection)
    database.close()


@pytest.fixture
def old(address: str) -> str:
    """The address of a store at revision 0002, with one effect in each of its states."""
    config = Config()
    config.set_main_option("script_location", str(Path(gatewright.store.__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")

    def make(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        names = [*ROW, "key", "state", "intended_at"]
        insert = f"INSERT INTO ledger ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"  # noqa: S608 - our own names
        for number, row in enumerate(ROWS):
            settled = microseconds(10) if row["settled_at"] else None
            connection.execute(text(insert), row | {"intended_at": microseconds(number), "settled_at": settled})

    written(address, make)
    return address


def test_the_effects_that_it_knew_are_read_back(old: str) -> None:
    with Store.open(old) as store:
        entries = {entry.key: entry for entry in store.ledger.entries()}

    expected = {}
    for number, row in enumerate(ROWS):
        changes: dict[str, Any] = {"intended_at": later(number), "planned_at": later(number)}
        if row["settled_at"]:
            changes["settled_at"] = later(10)
        if row["key"] == "performed":
            changes |= {"result": {"rows": 3}, "receipt": "t-1"}
        expected[str(row["key"])] = LedgerEntry(**row | changes)
    assert expected == entries
    assert list(entries) == ["unknown", "failed", "performed", "intended"]


def test_they_stand_for_what_they_stood_for(old: str) -> None:
    with Store.open(old) as store:
        begun = {str(row["key"]): store.ledger.begin(str(row["key"]), **attempt()) for row in ROWS}
        with pytest.raises(LedgerConflict):
            store.ledger.begin("intended", **attempt(arguments_digest="sha256:other"))
        new = store.ledger.plan(**planned())

    for key, found in begun.items():
        assert isinstance(found, Begun)
        assert (key, key != "performed") == (found.before, found.taken)
    assert ("planned", None, None) == (new.state, new.arguments_digest, new.intended_at)


def test_its_tables_are_those_of_a_new_store(old: str) -> None:
    with Store.open(old) as store, store._database.read() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})

        assert [] == compare_metadata(context, metadata)


def test_without_migration_it_is_refused_and_left_as_it_was(old: str) -> None:
    with pytest.raises(StoreError, match=r"at schema 0002, not 0005; run `gatewright store migrate`"):
        Store.open(old, migrate=False)


def test_many_processes_bring_it_up_to_date_at_once(old: str) -> None:
    opened = in_processes(4, OPEN, old)

    with Store.open(old, migrate=False) as store:
        assert [[store.ledger_id, len(ROWS)]] * 4 == opened


def test_an_upgrade_that_breaks_off_leaves_everything_as_it_was(old: str) -> None:
    """The last thing that it does fails: the table that was made anew before it is taken back."""
    written(old, lambda database: database.execute(text("CREATE INDEX ix_ledger_state_planned_at ON meta (value)")))
    with pytest.raises(StoreError, match="already exists"):
        Store.open(old)
    with pytest.raises(StoreError, match="at schema 0002"):
        Store.open(old, migrate=False)

    written(old, lambda database: database.execute(text("DROP INDEX ix_ledger_state_planned_at")))
    with Store.open(old) as store:
        assert [later(3), later(2), later(1), NOON] == [entry.planned_at for entry in store.ledger.entries()]
