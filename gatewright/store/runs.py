"""
Sessions and their runs: numbers, standings, archives.

Three things hold throughout:

1. A session's numbers go up by one, and none is ever given twice.
2. One opening id makes one run, however often and from wherever it comes.
3. A run that is closed stays closed, as it was closed first.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, insert, select, tuple_, update

from . import schema
from .errors import OpeningConflict, SessionOpen, StoreError
from .records import RUN_CLOSED, RUN_OPEN, RunRecord, SessionKey, cursor_parts
from .room import Room, queue_of

_RUNS = schema.runs.c
_SESSIONS = schema.sessions.c
MAX_OPENING_ID: Final = 200


class Runs(Room):
    """The part of the store that knows sessions and runs."""

    def allocate_run(
        self,
        session: SessionKey,
        *,
        opening_id: str,
        pipeline: str,
        task_queue: str,
        input_digest: str | None,
        at: datetime,
        refuse_if_open: bool,
    ) -> tuple[RunRecord, bool]:
        """
        Give the session's next number to this opening; the flag says whether the run is newly made.

        An opening id (1 to 200 characters) that has made a run of the session
        finds it again: `OpeningConflict` if it names another pipeline or input
        digest now. With `refuse_if_open`, `SessionOpen` while a run of the
        session stands allocated or open.
        """
        if not 1 <= len(opening_id) <= MAX_OPENING_ID:
            raise StoreError(f"an opening id has 1 to {MAX_OPENING_ID} characters, not {len(opening_id)}")
        with self._database.write(session.path) as connection:
            of_session = _RUNS.session_path == session.path
            if run := _first(connection, of_session, _RUNS.opening_id == opening_id):
                if (run.pipeline, run.input_digest) != (pipeline, input_digest):
                    raise OpeningConflict(
                        f"opening id {opening_id!r} has already opened {run.workflow_id} as {run.pipeline!r} with other"
                        " input; use a new opening id for a new run",
                        run,
                    )
                return run, False
            if refuse_if_open and (run := _first(connection, of_session, _RUNS.standing.in_(RUN_OPEN))):
                raise SessionOpen(
                    f"{run.workflow_id} is still {run.standing}; answer its gates, or close it first", run
                )
            number = _last_number(connection, session) + 1
            # A session that was deleted meanwhile is there again, with this run alone.
            talks = schema.conversations
            again = update(talks).where(talks.c.session_path == session.path, talks.c.deleted.is_(True))
            connection.execute(again.values(deleted=False, after=number - 1, created_at=at, updated_at=at))
            run = RunRecord(
                workflow_id=session.workflow_id(number),
                session=session,
                number=number,
                opening_id=opening_id,
                pipeline=pipeline,
                task_queue=task_queue,
                input_digest=input_digest,
                standing="allocated",
                opened_at=at,
            )
            _make(connection, run)
            return run, True

    def run_started(self, workflow_id: str, *, first_execution_run_id: str, at: datetime) -> None:
        """
        Note that Temporal has the run: from allocated it becomes open, and `at` is when.

        Repeating it changes nothing; neither the first execution run id nor a
        closed standing is ever overwritten.
        """
        with self._database.write(queue_of(workflow_id), rebuildable=True) as connection:
            run = _found_or_made(connection, workflow_id, at)
            changes: dict[str, Any] = {}
            if run.first_execution_run_id is None:
                changes["first_execution_run_id"] = first_execution_run_id
            if run.standing == "allocated":
                changes |= {"standing": "open", "opened_at": at}
            _change(connection, run, changes)

    def register_run(self, run: RunRecord) -> None:
        """
        Take over what Temporal says of a run, for `gatewright reindex` and for runs that others started.

        An unknown run is listed as given. Of a known one, empty fields are
        filled, pipeline, task queue and opening time are taken over, and its
        standing may go on but never back. A closed one's gates are closed. The
        session's last number may rise.
        """
        _check(run.standing, RUN_OPEN | RUN_CLOSED)
        with self._database.write(queue_of(run.workflow_id)) as connection:
            known = _run(connection, run.workflow_id)
            if run.standing in RUN_CLOSED:
                self._close_gates(connection, run.workflow_id, run.closed_at or run.opened_at)
            if known is None:
                _make(connection, run)
                return
            changes: dict[str, Any] = {
                "pipeline": run.pipeline or known.pipeline,
                "task_queue": run.task_queue or known.task_queue,
                "opening_id": known.opening_id or run.opening_id,
                "input_digest": known.input_digest or run.input_digest,
                "first_execution_run_id": known.first_execution_run_id or run.first_execution_run_id,
                "opened_at": run.opened_at,
            }
            if known.standing not in RUN_CLOSED and run.standing != "allocated":
                changes |= {"standing": run.standing, "closed_at": run.closed_at, "reason": run.reason}
            _change(connection, known, changes)

    def run(self, workflow_id: str) -> RunRecord | None:
        """The run as it is listed, or `None`."""
        with self._database.read() as connection:
            return _run(connection, workflow_id)

    def runs(
        self,
        *,
        session: SessionKey | None = None,
        app: str | None = None,
        standing: Collection[str] | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRecord]:
        """
        List runs, newest first: a session's by number, all others by the time they were opened.

        `before` is the `cursor` of the last run of the page before.
        """
        order = [_RUNS.number] if session else [_RUNS.opened_at, _RUNS.number, _RUNS.workflow_id]
        query = select(schema.runs).order_by(*(column.desc() for column in order)).limit(max(limit, 0))
        if session is not None:
            query = query.where(_RUNS.session_path == session.path)
        if app is not None:
            query = query.where(_RUNS.app == app)
        if standing is not None:
            query = query.where(_RUNS.standing.in_(standing))
        if before is not None:
            try:
                opened_at, number, workflow_id = cursor_parts(before)
            except ValueError as error:
                raise StoreError(f"{before[:80]!r} is not a cursor; pass the `cursor` of a listed run") from error
            last = (number,) if session else (opened_at, number, workflow_id)
            query = query.where(tuple_(*order) < last)
        with self._database.read() as connection:
            return [record_of(row) for row in connection.execute(query).mappings()]

    def close_run(
        self,
        workflow_id: str,
        *,
        standing: str,
        at: datetime,
        reason: str | None = None,
        archive: dict[str, Any] | None = None,
    ) -> None:
        """
        Note that the run is over: its standing, its gates that were still open, and its archive.

        Of several closings the first one's standing, time and reason stay,
        unless a later one brings the run's archive: that is the run's own word (a
        task that closed it may have been thrown away and replayed to another
        end). An archive is replaced by a later one, never removed. An unknown
        run is listed from what its id says.
        """
        _check(standing, RUN_CLOSED)
        with self._database.write(queue_of(workflow_id)) as connection:
            run = _found_or_made(connection, workflow_id, at)
            if run.standing not in RUN_CLOSED or archive is not None:
                _change(connection, run, {"standing": standing, "closed_at": at, "reason": reason})
            self._close_gates(connection, workflow_id, at)
            if archive is not None:
                _keep(connection, workflow_id, archive)

    def archive(self, workflow_id: str) -> dict[str, Any] | None:
        """What was kept of the run when it closed, or `None`."""
        query = select(schema.archives.c.archive).where(schema.archives.c.workflow_id == workflow_id)
        with self._database.read() as connection:
            archive: dict[str, Any] | None = connection.scalar(query)
            return archive

    def _close_gates(self, connection: Connection, workflow_id: str, at: datetime) -> None:
        open_ones = (schema.gates.c.workflow_id == workflow_id, schema.gates.c.state == "open")
        changes = {"state": "closed", "closed_at": at, "touched_at": self._database.stamp()}
        connection.execute(update(schema.gates).where(*open_ones).values(changes))


def _check(standing: str, known: frozenset[str]) -> None:
    if standing not in known:
        raise StoreError(f"{standing!r} is not a standing to record here; it is one of {', '.join(sorted(known))}")


def record_of(row: RowMapping) -> RunRecord:
    """A row of the table of runs as it is given out."""
    fields = {name: row[name] for name in RunRecord.model_fields if name != "session"}
    return RunRecord(session=SessionKey.of_path(row["session_path"]), **fields)


def _run(connection: Connection, workflow_id: str) -> RunRecord | None:
    return _first(connection, _RUNS.workflow_id == workflow_id)


def _first(connection: Connection, *conditions: Any) -> RunRecord | None:
    query = select(schema.runs).where(*conditions).order_by(_RUNS.number.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else record_of(row)


def _found_or_made(connection: Connection, workflow_id: str, at: datetime) -> RunRecord:
    if run := _run(connection, workflow_id):
        return run
    session, number = SessionKey.of_workflow(workflow_id)
    run = RunRecord(
        workflow_id=workflow_id,
        session=session,
        number=number,
        opening_id="",
        pipeline="",
        task_queue="",
        standing="open",
        opened_at=at,
    )
    _make(connection, run)
    return run


def _make(connection: Connection, run: RunRecord) -> None:
    values = dict(run) | {"session_path": run.session.path, "app": run.session.app}
    del values["session"]
    connection.execute(insert(schema.runs).values(values))
    last = _last_number(connection, run.session)
    if last == 0:
        connection.execute(insert(schema.sessions).values(session_path=run.session.path, last_number=run.number))
    elif run.number > last:
        this = _SESSIONS.session_path == run.session.path
        connection.execute(update(schema.sessions).where(this).values(last_number=run.number))


def _change(connection: Connection, run: RunRecord, changes: dict[str, Any]) -> None:
    if changes:
        connection.execute(update(schema.runs).where(_RUNS.workflow_id == run.workflow_id).values(changes))


def _last_number(connection: Connection, session: SessionKey) -> int:
    query = select(_SESSIONS.last_number).where(_SESSIONS.session_path == session.path)
    return connection.scalar(query) or 0


def _keep(connection: Connection, workflow_id: str, archive: dict[str, Any]) -> None:
    this = schema.archives.c.workflow_id == workflow_id
    if not connection.execute(update(schema.archives).where(this).values(archive=archive)).rowcount:
        connection.execute(insert(schema.archives).values(workflow_id=workflow_id, archive=archive))
