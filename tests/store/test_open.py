"""A store opens itself: folder, file, tables, once, whoever comes first."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

import gatewright.store
from gatewright.store import Store, StoreError, default_url
from gatewright.store.migrate import REVISIONS, VERSION_TABLE
from gatewright.store.schema import metadata
from tests.store.builders import RUN, allocate, in_processes

OPEN = """
from gatewright.store import Store
begin()
with Store.open(sys.argv[2]) as store:
    print(json.dumps(store.ledger_id))
"""


def test_six_processes_open_a_fresh_database_at_once(address: str) -> None:
    """One of them makes the schema, and all see the one ledger id."""
    ids = in_processes(6, OPEN, address)

    with Store.open(address) as store:
        assert [store.ledger_id] * 6 == ids


def test_a_store_opened_again_is_the_same_store(address: str) -> None:
    with Store.open(address) as store:
        first = store.ledger_id
        allocate(store)

    with Store.open(address, migrate=False) as store:
        assert first == store.ledger_id
        assert 32 == len(first)
        assert store.run(RUN) is not None


def test_the_migrations_make_the_tables_that_the_code_uses(store: Store) -> None:
    with store._database.read() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)

        assert [] == compare_metadata(context, metadata)


def test_every_revision_is_known_to_the_code() -> None:
    """Opening compares against this list, so that alembic need not be imported."""
    config = Config()
    config.set_main_option("script_location", str(Path(gatewright.store.__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)

    assert REVISIONS == tuple(reversed([script.revision for script in scripts.walk_revisions()]))


def test_without_migration_a_missing_schema_is_refused_with_the_way_out(address: str) -> None:
    with pytest.raises(StoreError, match="gatewright store migrate"):
        Store.open(address, migrate=False)


def test_without_migration_no_file_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="gatewright store migrate"):
        Store.open(str(tmp_path / "folder" / "store.db"), migrate=False)

    assert [] == list(tmp_path.iterdir())


def test_without_migration_an_older_schema_is_refused_with_the_way_out(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(address).close()
    monkeypatch.setattr("gatewright.store.migrate.REVISIONS", (*REVISIONS, "9999"))

    with pytest.raises(StoreError, match="gatewright store migrate"):
        Store.open(address, migrate=False)


@pytest.mark.parametrize("migrate", [True, False])
def test_a_store_of_a_newer_gatewright_is_left_alone(address: str, migrate: bool) -> None:
    with Store.open(address) as store, store._database.write("test") as connection:
        connection.execute(text("UPDATE gatewright_version SET version_num = 'from the future'"))

    with pytest.raises(StoreError, match="upgrade gatewright"):
        Store.open(address, migrate=migrate)


@pytest.mark.parametrize("migrate", [True, False])
def test_a_database_of_somebody_else_is_left_alone(address: str, migrate: bool) -> None:
    with Store.open(address) as store, store._database.write("test") as connection:
        connection.execute(text(f"ALTER TABLE {VERSION_TABLE} RENAME TO recipes"))

    with pytest.raises(StoreError, match=r"not a Gatewright store.*name an empty database"):
        Store.open(address, migrate=migrate)


def test_somebody_elses_sqlite_file_is_not_touched(tmp_path: Path) -> None:
    """Not even its journal mode, which is written in its header."""
    file = tmp_path / "recipes.db"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = file.read_bytes()

    with pytest.raises(StoreError, match="it holds recipes"):
        Store.open(str(file))
    assert before == file.read_bytes()


def test_a_file_that_is_no_database_is_named_in_the_error(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Buy milk. " * 1000)

    with pytest.raises(StoreError, match=r"notes\.txt.*not a database"):
        Store.open(str(file))


def test_a_plain_path_is_an_sqlite_file_and_its_folder_is_made(tmp_path: Path) -> None:
    file = tmp_path / "new 100%" / "folder" / "store.db"

    with Store.open(str(file)) as store:
        allocate(store)

    with Store.open(f"sqlite:///{file}", migrate=False) as store:
        assert store.run(RUN) is not None


def test_on_sqlite_readers_and_a_writer_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """A writer commits while somebody is still reading, and is read by the next one."""
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}?timeout=0.05") as store:
        with store._database.read() as reader:
            before = reader.execute(text("SELECT count(*) FROM runs")).scalar()
            allocate(store)
            during = reader.execute(text("SELECT count(*) FROM runs")).scalar()

        assert (0, 0, 1) == (before, during, len(store.runs()))


def test_a_fresh_file_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself gives up at once when such a file is to be switched to WAL."""
    file = tmp_path / "store.db"
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")

    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(Store.open, str(file))
        done, _ = wait([opening], timeout=0.3)
        writer.rollback()
        writer.close()
        opening.result().close()

    assert set() == done


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_may_be_spelt_in_three_ways(scheme: str, request: pytest.FixtureRequest) -> None:
    url: str = request.getfixturevalue("server").fresh_database()

    with Store.open(url.replace("postgresql", scheme)) as store:
        assert allocate(store)[1]


@pytest.mark.parametrize("url", ["", ":memory:", "sqlite://", "sqlite:///:memory:"])
def test_a_store_in_memory_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match="name a file"):
        Store.open(url)


@pytest.mark.parametrize("url", ["mysql://host/db", "postgresql+asyncpg://host/db", "http://[x", "://"])
def test_a_url_that_is_no_store_is_refused_with_the_way_out(url: str) -> None:
    with pytest.raises(StoreError, match=r"sqlite:///path or postgresql://"):
        Store.open(url)


def test_a_missing_driver_is_named_with_the_line_that_installs_it() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from gatewright.store import Store, StoreError\n"
        "try: Store.open('postgresql://nowhere/store')\n"
        "except StoreError as error: print(error)\n"
    )

    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout

    assert "pip install 'gatewright[postgres]'" in said


def test_the_address_comes_from_the_environment_or_is_a_file_below_the_current_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GATEWRIGHT_STORE", raising=False)
    assert "sqlite:///data/gatewright.db" == default_url()

    monkeypatch.setenv("GATEWRIGHT_STORE", "postgresql://db/gates")
    assert "postgresql://db/gates" == default_url()
