"""The store as its users see it: opened by an address, closed at the end."""

from types import TracebackType
from typing import Self
from uuid import uuid4  # noqa: TID251 - the store's own id

from sqlalchemy import select, update

from . import schema
from .conversations import Conversations
from .database import Database
from .gates import GateIndex
from .ledger import Ledger
from .migrate import migrate as bring_to_newest
from .migrate import require_newest
from .notices import Notices
from .refusals import Refusals
from .runs import Runs


class Store(Runs, Conversations, GateIndex, Refusals):
    """
    Sessions, conversations and runs, the gate index and refusals.

    `ledger` remembers effects, `notices` what is told of gates.

    Open one per process and share it between threads.
    """

    ledger_id: str
    """A random id, made once with the schema: which ledger a receipt speaks of."""

    ledger: Ledger
    """What is remembered of effects."""

    notices: Notices
    """What is told of gates, to whom, and what came of it."""

    @classmethod
    def open(cls, url: str, *, migrate: bool = True) -> Self:
        """
        Open the store at a file's path, a `sqlite:///` or a `postgresql://` URL.

        Creates the folder, the file and the tables where they are missing, and
        brings an older schema up to date; any number of processes may do so at
        once. With `migrate=False` a missing or older schema is a `StoreError`.
        So is a database that is newer than this code, or that is not ours;
        `StoreUnavailable` if it cannot be reached.
        """
        database = Database(url)
        try:
            if migrate:
                bring_to_newest(database)
            else:
                require_newest(database)
            store = cls(database)
            with database.read() as connection:
                store.ledger_id = connection.execute(
                    select(schema.meta.c.value).where(schema.meta.c.name == "ledger_id")
                ).scalar_one()
        except BaseException:
            database.close()
            raise
        store.ledger = Ledger(database)
        store.notices = Notices(database)
        return store

    def renew_ledger_id(self) -> str:
        """
        Give the ledger another id, after the database was restored from a backup, and return it.

        Every run that relies on the old one then stops at its next effect and
        asks, because what the ledger knew meanwhile is lost.
        """
        with self._database.write("ledger_id") as connection:
            fresh = uuid4().hex
            connection.execute(update(schema.meta).where(schema.meta.c.name == "ledger_id").values(value=fresh))
        self.ledger_id = fresh
        return fresh

    def close(self) -> None:
        """Close every connection; the store cannot be used afterwards."""
        self._database.close()

    def __enter__(self) -> Self:
        """For `with Store.open(...) as store`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()
