"""
The ledger: what is remembered of effects.

An intent is written before an effect is tried and its outcome afterwards, so
that a crash in between leaves an intent, which says: somebody must find out.

    intended ──> performed      for ever
             ──> failed         known not to have happened; the next intent goes back to intended
             ──> unknown        nobody knows; a later proof makes it performed or failed

The ledger records what it is told. Whether an effect may be tried again is for
its caller to decide, from the `Intention` that it gets.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Select, insert, select, update

from . import schema
from .errors import LedgerConflict, StoreError
from .records import Intention, LedgerEntry
from .room import Room

_LEDGER = schema.ledger.c


class Ledger(Room):
    """The part of the store that remembers effects, by their keys."""

    def intend(
        self,
        *,
        key: str,
        effect: str,
        workflow_id: str,
        branch: str,
        visit: int,
        generation: int,
        arguments_digest: str,
        at: datetime,
    ) -> Intention:
        """
        Write down that the call is about to be tried, and say what was known of it before.

        `first` is true for the one call that made the entry. Later ones count
        the attempt and get the state that stood before them; `failed` goes back
        to `intended`, because it can no longer be said that nothing happened.
        `LedgerConflict`, and no change, if the key stands for other arguments.
        """
        with self._database.write(key) as connection:
            before = _entry(connection, key)
            if before is None:
                entry = LedgerEntry(
                    key=key,
                    effect=effect,
                    workflow_id=workflow_id,
                    branch=branch,
                    visit=visit,
                    generation=generation,
                    arguments_digest=arguments_digest,
                    state="intended",
                    attempts=1,
                    intended_at=at,
                )
                connection.execute(insert(schema.ledger).values(dict(entry)))
                return Intention(entry=entry, first=True)
            if before.arguments_digest != arguments_digest:
                raise LedgerConflict(
                    f"key {key} stands for {before.effect} with arguments {before.arguments_digest}, not"
                    f" {arguments_digest}; a call with other arguments needs a key of its own",
                    before,
                )
            attempts = before.attempts + 1
            changes: dict[str, Any] = {"attempts": attempts}
            if before.state != "performed":
                changes["intended_at"] = at
            if before.state == "failed":
                changes |= {"state": "intended", "error": None, "settled_at": None}
            connection.execute(update(schema.ledger).where(_LEDGER.key == key).values(changes))
            return Intention(entry=before.model_copy(update={"attempts": attempts}), first=False)

    def performed(self, key: str, *, result: JsonValue, receipt: JsonValue, at: datetime) -> LedgerEntry:
        """
        Write down that the effect happened, with its result, and return what stands.

        The first result stays for ever: repeating it changes nothing, and a
        different one is not taken.
        """
        return self._settle(key, {"state": "performed", "result": result, "receipt": receipt, "error": None}, at)

    def failed(self, key: str, *, error: str, at: datetime) -> LedgerEntry:
        """
        Write down that the effect is known not to have happened, in any attempt, and return what stands.

        A performed entry stays performed.
        """
        return self._settle(key, {"state": "failed", "error": error}, at)

    def unknown(self, key: str, *, error: str, at: datetime) -> LedgerEntry:
        """
        Write down that nobody knows whether the effect happened, and return what stands.

        A performed entry stays performed.
        """
        return self._settle(key, {"state": "unknown", "error": error}, at)

    def entry(self, key: str) -> LedgerEntry | None:
        """What stands under the key, or `None`."""
        with self._database.read() as connection:
            return _entry(connection, key)

    def entries(
        self, *, run: str | None = None, states: Collection[str] | None = None, limit: int = 100
    ) -> list[LedgerEntry]:
        """List entries, the one intended last first; `run` is a workflow id."""
        query = select(schema.ledger).order_by(_LEDGER.intended_at.desc(), _LEDGER.key).limit(max(limit, 0))
        if run is not None:
            query = query.where(_LEDGER.workflow_id == run)
        if states is not None:
            query = query.where(_LEDGER.state.in_(states))
        with self._database.read() as connection:
            return _entries(connection, query)

    def _settle(self, key: str, changes: dict[str, Any], at: datetime) -> LedgerEntry:
        with self._database.write(key) as connection:
            before = _entry(connection, key)
            if before is None:
                raise StoreError(f"the ledger has no intent under key {key}; write the intent before the effect")
            if before.state == "performed":
                return before
            after = LedgerEntry(**dict(before) | changes | {"settled_at": at})
            connection.execute(
                update(schema.ledger).where(_LEDGER.key == key).values(changes | {"settled_at": after.settled_at})
            )
            return after


def _entries(connection: Connection, query: Select[Any]) -> list[LedgerEntry]:
    return [
        LedgerEntry(**{name: row[name] for name in LedgerEntry.model_fields})
        for row in connection.execute(query).mappings()
    ]


def _entry(connection: Connection, key: str) -> LedgerEntry | None:
    entries = _entries(connection, select(schema.ledger).where(_LEDGER.key == key))
    return entries[0] if entries else None
