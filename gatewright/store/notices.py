"""
Notices: what is told of gates to endpoints that listen, once each.

Whoever reads the gate index's changes notes what they mean for an endpoint; any
server over this store then claims what is due, tells it, and says what came of
it.

    pending ──> delivered
            ──> pending      after a failed attempt, due again later
            ──> failed       given up

Four things hold throughout:

1. A notice is one for each endpoint, gate and type, however often its gate is
   noted: `id` is made from gate and type.
2. A claim ends with its time, by the store's clock, so that a notice whose
   teller died is told again. It may then have been told already: at least once.
3. What was noted is kept for as long as its gate may come again in the feed, so
   that nothing is told twice for having been forgotten.
4. Of one gate an opening goes first. What follows waits until it is delivered
   or given up, or has failed twice: one that an endpoint does not take must not
   hold the rest up for days.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, get_args

from pydantic import JsonValue
from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, or_, select, update

from gatewright.protocol.recovery import BLOCKED, FAILED

from . import schema
from .records import GateRow, Notice, NoticeType, SessionKey
from .room import Room

NOTICE_TYPES: Final[tuple[NoticeType, ...]] = get_args(NoticeType)
"""Everything that is told of gates, in the order in which it is told of one gate."""

KEPT: Final = timedelta(days=30)
"""For how long what was delivered is remembered after it."""

HELD_UP: Final = 2
"""After so many failed attempts the next notice of a gate no longer waits."""

# A day less than it is kept, because runs and store go by different clocks.
_OLD = KEPT - timedelta(days=1)
# SQLite once took no more than 999 parameters.
_AT_ONCE = 500

_NOTICES = schema.notices.c
_ENDPOINTS = schema.endpoints.c
_GATES = schema.gates.c


class Notices(Room):
    """The part of the store that knows what is told to whom; an endpoint is named by a digest of its URL."""

    def begin(self, endpoint: str, *, types: Collection[NoticeType] = NOTICE_TYPES) -> datetime:
        """
        Up to when (by the store's clock) the gates were read for an endpoint.

        One that was never seen begins now: the gates that are open are noted for
        it, and none that was settled before.
        """
        with self._database.write(_queue(endpoint)) as connection:
            query = select(_ENDPOINTS.read_to).where(_ENDPOINTS.endpoint == endpoint)
            known: datetime | None = connection.scalar(query)
            if known is not None:
                return known
            now = self._database.now(connection)
            connection.execute(insert(schema.endpoints).values(endpoint=endpoint, begun_at=now, read_to=now))
            gates = select(*(_GATES[name] for name in GateRow.model_fields)).where(_GATES.state == "open")
            for some in connection.execute(gates.order_by(_GATES.opened_at)).mappings().partitions(_AT_ONCE):
                _note(connection, endpoint, (GateRow(**row) for row in some), types, now)
            return now

    def note(
        self,
        endpoint: str,
        changed: Sequence[tuple[datetime, GateRow]],
        *,
        types: Collection[NoticeType] = NOTICE_TYPES,
    ) -> int:
        """
        Note what these rows of `changed_gates` mean for an endpoint that has begun, and that they were read.

        A row tells only how its gate stands, so one that was never seen open
        gives its opening too. How many notices are new.
        """
        # A loss of power takes back what was noted together with how far was read, and it is noted again.
        with self._database.write(_queue(endpoint), rebuildable=True) as connection:
            found = connection.execute(select(schema.endpoints).where(_ENDPOINTS.endpoint == endpoint)).one()
            now = self._database.now(connection)
            # Settled before, or so long ago that what was told of it may be forgotten: a reindex writes every row anew.
            since = max(found.begun_at, min(found.read_to, now - _OLD))
            rows = [row for _, row in changed if row.closed_at is None or row.closed_at >= since]
            new = sum(
                _note(connection, endpoint, rows[start : start + _AT_ONCE], types, now)
                for start in range(0, len(rows), _AT_ONCE)
            )
            read_to = max([found.read_to, *(at for at, _ in changed)])
            connection.execute(update(schema.endpoints).where(_ENDPOINTS.endpoint == endpoint).values(read_to=read_to))
            return new

    def claim(self, endpoint: str, *, holder: str, seconds: float, limit: int = 1) -> list[Notice]:
        """Take what is due and nobody else is telling, for so many seconds; what is due longest comes first."""
        with self._database.read() as connection:
            # Asked without a lock first: nearly always there is nothing, and writers of gates must not wait for that.
            if not _due(connection, endpoint, self._database.now(connection), 1):
                return []
        with self._database.write(_queue(endpoint), rebuildable=True) as connection:
            now = self._database.now(connection)
            changes = {"holder": holder, "claimed_until": now + timedelta(seconds=seconds)}
            due = _due(connection, endpoint, now, limit)
            ids = [notice.id for notice in due]
            these = and_(_NOTICES.endpoint == endpoint, _NOTICES.id.in_(ids))
            connection.execute(update(schema.notices).where(these).values(changes))
            return [notice.model_copy(update=changes) for notice in due]

    def delivered(self, endpoint: str, id: str) -> None:  # noqa: A002 - its column's name
        """Write down that it was taken: a fact, whoever holds the claim by now."""
        with self._database.write(_queue(endpoint), rebuildable=True) as connection:
            changes = {"state": "delivered", "error": None, "settled_at": self._database.now(connection)}
            these = and_(_this(endpoint, id), _NOTICES.state != "delivered")
            connection.execute(update(schema.notices).where(these).values(_UNCLAIMED | changes))

    def missed(self, endpoint: str, id: str, *, holder: str, error: str, again: float | None) -> None:  # noqa: A002
        """
        Write down an attempt that failed: it is due again in so many seconds, or with None given up.

        Nothing is changed where this holder's claim has passed to another.
        """
        with self._database.write(_queue(endpoint), rebuildable=True) as connection:
            now = self._database.now(connection)
            changes: dict[str, Any] = {"attempts": _NOTICES.attempts + 1, "error": error}
            if again is None:
                changes |= {"state": "failed", "settled_at": now}
            else:
                changes["next_at"] = now + timedelta(seconds=again)
            these = and_(_this(endpoint, id), _NOTICES.holder == holder, _NOTICES.state == "pending")
            connection.execute(update(schema.notices).where(these).values(_UNCLAIMED | changes))

    def list(self, endpoint: str | None = None, *, state: str | None = None, limit: int = 100) -> list[Notice]:
        """List notices, the one noted last first."""
        equal = {_NOTICES.endpoint: endpoint, _NOTICES.state: state}
        query = select(schema.notices).where(*(column == value for column, value in equal.items() if value is not None))
        query = query.order_by(_NOTICES.noted_at.desc(), _NOTICES.rank.desc(), _NOTICES.id).limit(max(limit, 0))
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query).mappings()]

    def prune(self) -> int:
        """
        Forget what was delivered more than 30 days ago, all notices of a gate together; how many.

        Kept for longer: what was given up, and whatever belongs to a gate that
        was open in this time, or that has a notice which is not yet old. Its row
        may be written again, and would be told again.
        """
        other = schema.notices.alias("other")
        same = and_(
            other.c.endpoint == _NOTICES.endpoint,
            other.c.workflow_id == _NOTICES.workflow_id,
            other.c.interrupt_id == _NOTICES.interrupt_id,
        )
        with self._database.write("notices") as connection:
            before = self._database.now(connection) - KEPT
            young = exists().where(same, or_(other.c.state != "delivered", other.c.settled_at >= before))
            at_work = exists().where(
                _GATES.workflow_id == _NOTICES.workflow_id,
                _GATES.interrupt_id == _NOTICES.interrupt_id,
                or_(_GATES.state == "open", _GATES.closed_at >= before),
            )
            old = and_(_NOTICES.state == "delivered", _NOTICES.settled_at < before)
            return connection.execute(delete(schema.notices).where(old, ~young, ~at_work)).rowcount


_UNCLAIMED: dict[str, Any] = {"holder": None, "claimed_until": None}


def types_of(row: GateRow) -> Iterator[tuple[NoticeType, datetime]]:
    """What has happened at a gate, by how it stands, and when: its opening first."""
    yield "gate.blocked" if row.gate.startswith((BLOCKED, FAILED)) else "gate.opened", row.opened_at
    if row.state in {"answered", "expired"}:
        yield "gate.answered" if row.state == "answered" else "gate.expired", row.closed_at or row.opened_at


def _note(
    connection: Connection, endpoint: str, rows: Iterable[GateRow], types: Collection[NoticeType], now: datetime
) -> int:
    """Note what is not noted yet of a few rows; how many that was."""
    salt = connection.scalar(select(schema.meta.c.value).where(schema.meta.c.name == "notices_id"))
    wanted: dict[str, dict[str, Any]] = {}
    for row in rows:
        for type_, at in types_of(row):
            if type_ in types:
                # With the store's own id: two stores may tell one endpoint of runs that are called alike.
                named = json.dumps([salt, row.workflow_id, row.interrupt_id, type_]).encode()
                id_ = f"msg_{hashlib.sha256(named).hexdigest()[:32]}"
                wanted[id_] = {
                    "endpoint": endpoint,
                    "id": id_,
                    "workflow_id": row.workflow_id,
                    "interrupt_id": row.interrupt_id,
                    "type": type_,
                    "rank": NOTICE_TYPES.index(type_),
                    "at": at,
                    "data": _data(row),
                    "state": "pending",
                    "attempts": 0,
                    "next_at": now,
                    "noted_at": now,
                }
    ids = list(wanted)
    for start in range(0, len(ids), _AT_ONCE):
        some = _NOTICES.id.in_(ids[start : start + _AT_ONCE])
        for known in connection.scalars(select(_NOTICES.id).where(_NOTICES.endpoint == endpoint, some)).all():
            del wanted[known]
    if wanted:
        connection.execute(insert(schema.notices), list(wanted.values()))
    return len(wanted)


def _data(row: GateRow) -> dict[str, JsonValue]:
    """What is told of a gate: never what it shows nor what was answered, because either may be confidential."""
    told = {"interrupt_id", "gate", "visit", "pipeline", "message", "dangerous", "deadline", "opened_at", "closed_at"}
    plain: dict[str, JsonValue] = row.model_dump(mode="json", include=told | {"state", "principal", "channel"})
    return {"run": row.workflow_id, "app": SessionKey.of_workflow(row.workflow_id)[0].app} | plain


def _due(connection: Connection, endpoint: str, now: datetime, limit: int) -> list[Notice]:
    earlier = schema.notices.alias("earlier")
    waits = exists().where(
        earlier.c.endpoint == _NOTICES.endpoint,
        earlier.c.workflow_id == _NOTICES.workflow_id,
        earlier.c.interrupt_id == _NOTICES.interrupt_id,
        earlier.c.rank < _NOTICES.rank,
        earlier.c.state == "pending",
        earlier.c.attempts < HELD_UP,
    )
    query = select(schema.notices).where(
        _NOTICES.endpoint == endpoint,
        _NOTICES.state == "pending",
        _NOTICES.next_at <= now,
        or_(_NOTICES.claimed_until.is_(None), _NOTICES.claimed_until < now),
        ~waits,
    )
    query = query.order_by(_NOTICES.next_at, _NOTICES.rank, _NOTICES.id).limit(max(limit, 0))
    return [_record(row) for row in connection.execute(query).mappings()]


def _record(row: Any) -> Notice:
    return Notice(**{name: row[name] for name in Notice.model_fields})


def _this(endpoint: str, id_: str) -> ColumnElement[bool]:
    return and_(_NOTICES.endpoint == endpoint, _NOTICES.id == id_)


def _queue(endpoint: str) -> str:
    return f"notices {endpoint}"
