"""
Sessions as a conversation: state, and what was said in them outside any run.

What was said in a run is in the run's book; here is only the rest. A
conversation exists once it was made, or once a run of its session was opened by
other means.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from . import schema
from .errors import ConversationExists, SessionOpen, StoreError
from .records import RUN_OPEN, Conversation, Remark, SessionKey
from .room import Room
from .runs import record_of

_TALKS = schema.conversations.c
_RUNS = schema.runs.c
_REMARKS = schema.remarks.c

MAX_REMARKS: Final = 10_000
"""How many events outside any run one session may have: each of them is read whenever the session is."""


class Conversations(Room):
    """The part of the store that knows sessions as their users see them."""

    def create_conversation(
        self, session: SessionKey, *, state: dict[str, Any], events: Sequence[dict[str, Any]] = (), at: datetime
    ) -> Conversation:
        """
        Begin a session's conversation with this state and these events.

        `ConversationExists` if there is one, be it only because a run of the
        session was opened. One that was deleted may be begun anew: its runs
        stay out of it.
        """
        with self._database.write(session.path) as connection:
            row = _row(connection, session)
            last = connection.scalar(select(schema.sessions.c.last_number).where(_of(schema.sessions.c, session))) or 0
            if (row is not None and not row["deleted"]) or (row is None and last):
                raise ConversationExists(f"the session {session.path} exists already")
            values = {
                "app": session.app,
                "user": session.user,
                "state": state,
                "after": last,
                "deleted": False,
                "created_at": at,
                "updated_at": at,
            }
            if row is None:
                connection.execute(insert(schema.conversations).values(session_path=session.path, **values))
            else:
                connection.execute(update(schema.conversations).where(_of(_TALKS, session)).values(values))
            for event in events:
                _note(connection, session, event, at)
            return Conversation(session=session, state=state, after=last, created_at=at, updated_at=at)

    def conversation(self, session: SessionKey) -> Conversation | None:
        """The session's conversation, or `None` where there is none (any more)."""
        with self._database.read() as connection:
            row = _row(connection, session)
            if row is not None:
                return None if row["deleted"] else _conversation(session, row)
            query = select(_RUNS.opened_at).where(_RUNS.session_path == session.path).order_by(_RUNS.number)
            opened = connection.execute(query).scalars().all()
        if not opened:
            return None
        return Conversation(session=session, state={}, after=0, created_at=opened[0], updated_at=opened[-1])

    def conversations(self, app: str, user: str | None, *, limit: int = 1000) -> list[Conversation]:
        """A user's conversations with an app (everybody's for None), the one that was touched longest ago first."""
        made = select(schema.conversations).where(_TALKS.app == app).order_by(_TALKS.updated_at.desc())
        started = (
            select(_RUNS.session_path, _RUNS.opened_at)
            .where(_RUNS.app == app, _RUNS.session_path.not_in(select(_TALKS.session_path)))
            .order_by(_RUNS.opened_at)
        )
        if user is not None:
            prefix = SessionKey(app=app, user=user, session="-").path.removesuffix("-")
            made = made.where(_TALKS.user == user)
            started = started.where(_RUNS.session_path.startswith(prefix, autoescape=True))
        found: dict[str, Conversation] = {}
        with self._database.read() as connection:
            for row in connection.execute(made.where(_TALKS.deleted.is_(False)).limit(limit)).mappings():
                session = SessionKey.of_path(row["session_path"])
                found[session.path] = _conversation(session, row)
            for path, opened_at in connection.execute(started):
                session = SessionKey.of_path(path)
                first = found[path].created_at if path in found else opened_at
                found[path] = Conversation(session=session, state={}, after=0, created_at=first, updated_at=opened_at)
        return sorted(found.values(), key=lambda talk: talk.updated_at)[-limit:]

    def remark(self, session: SessionKey, event: dict[str, Any], *, at: datetime) -> None:
        """Add an event that belongs to no run, such as a change of state."""
        with self._database.write(session.path) as connection:
            _note(connection, session, event, at)
            _touch(connection, session, at)

    def remarks(self, session: SessionKey) -> list[Remark]:
        """What was said in the session outside any run, oldest first."""
        query = select(schema.remarks).where(_of(_REMARKS, session)).order_by(_REMARKS.id)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings()
            return [Remark(at=row["at"], event=row["event"]) for row in rows]

    def touch_conversation(self, session: SessionKey, *, at: datetime) -> None:
        """Note that something was said in the session."""
        with self._database.write(session.path) as connection:
            _touch(connection, session, at)

    def delete_conversation(self, session: SessionKey, *, at: datetime) -> None:
        """
        Delete the session's conversation; there need not be one.

        Its runs, their receipts and archives stay: they are evidence.
        `SessionOpen` while one of them is open.
        """
        with self._database.write(session.path) as connection:
            of_session = _RUNS.session_path == session.path
            query = select(schema.runs).where(of_session, _RUNS.standing.in_(RUN_OPEN)).order_by(_RUNS.number.desc())
            if busy := connection.execute(query.limit(1)).mappings().one_or_none():
                run = record_of(busy)
                raise SessionOpen(
                    f"{run.workflow_id} is still {run.standing}; answer its gates, or cancel it first", run
                )
            connection.execute(delete(schema.remarks).where(_of(_REMARKS, session)))
            last = connection.scalar(select(schema.sessions.c.last_number).where(_of(schema.sessions.c, session))) or 0
            values: dict[str, Any] = {"state": {}, "after": last, "deleted": True, "updated_at": at}
            if _row(connection, session) is not None:
                connection.execute(update(schema.conversations).where(_of(_TALKS, session)).values(values))
            elif last:
                made = {"session_path": session.path, "app": session.app, "user": session.user, "created_at": at}
                connection.execute(insert(schema.conversations).values(made | values))


def _of(columns: Any, session: SessionKey) -> Any:
    return columns.session_path == session.path


def _row(connection: Connection, session: SessionKey) -> RowMapping | None:
    return connection.execute(select(schema.conversations).where(_of(_TALKS, session))).mappings().one_or_none()


def _conversation(session: SessionKey, row: RowMapping) -> Conversation:
    fields = {name: row[name] for name in ("state", "after", "created_at", "updated_at")}
    return Conversation(session=session, **fields)


def _note(connection: Connection, session: SessionKey, event: dict[str, Any], at: datetime) -> None:
    count = connection.scalar(select(func.count()).select_from(schema.remarks).where(_of(_REMARKS, session))) or 0
    if count >= MAX_REMARKS:
        raise StoreError(f"the session {session.path} has {MAX_REMARKS:,} events outside any run, and takes no more")
    connection.execute(insert(schema.remarks).values(session_path=session.path, at=at, event=event))


def _touch(connection: Connection, session: SessionKey, at: datetime) -> None:
    connection.execute(update(schema.conversations).where(_of(_TALKS, session)).values(updated_at=at))
