"""
The gate index: which occurrences stand open, and how the others were settled.

It serves the inbox and the CLI, and is written after the fact by whoever learns
of it, so news may come twice or in the wrong order. What stands is therefore
the same whatever the order:

1. Settled wins over open, and a gate of a closed run is not open.
2. What is known of a settlement wins over `closed`, which only says that the
   run ended; otherwise the later settlement wins.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import JsonValue
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    delete,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)
from typing_extensions import Unpack

from . import schema
from .columns import Line, storable
from .errors import StoreError
from .records import GATE_STATES, RUN_CLOSED, GateFilter, GateRow, SessionKey
from .room import Room, queue_of

_GATES = schema.gates.c
_SETTLEMENT = ("state", "closed_at", "answer_id", "principal", "channel", "response", "receipt_digest")

# Built once: every answer runs them, and to build one takes longer than to run it.
_THIS = and_(_GATES.workflow_id == bindparam("of_run"), _GATES.interrupt_id == bindparam("of_gate"))
_FIND = select(schema.gates).where(_THIS)
_INSERT = insert(schema.gates)
_UPDATE = update(schema.gates).where(_THIS)
_CLOSED = select(schema.runs.c.closed_at).where(
    schema.runs.c.workflow_id == bindparam("of_run"), schema.runs.c.standing.in_(RUN_CLOSED)
)
# Of two settlements at the same instant, the one that builds on the other is the later.
_RANK = {"expired": 0, "answered": 1, "blocked": 2, "superseded": 3}

GateOrder = Literal["opened_at", "deadline", "closed_at"]
"""What a listing of gates is sorted by."""


class GateIndex(Room):
    """The part of the store that lists gates."""

    def open_gate(self, row: GateRow) -> None:
        """List a gate as it was opened; repeating it, or coming late, never opens it again."""
        _check(row)
        with self._database.write(queue_of(row.workflow_id), rebuildable=True) as connection:
            known = _gate(connection, row.workflow_id, row.interrupt_id)
            row = _run_closed(connection, row if known is None else _together(known, row))
            self._put(connection, row, known)

    def settle_gate(
        self,
        workflow_id: str,
        interrupt_id: str,
        *,
        state: str,
        at: datetime,
        answer_id: str | None = None,
        principal: str | None = None,
        channel: str | None = None,
        response: JsonValue = None,
        receipt_digest: str | None = None,
    ) -> None:
        """
        Note how and when a gate was settled; what is `None` stays as it was.

        A gate that was never listed gets a row that says only this, under its
        interrupt id and with visit 0; `open_gate` fills in the rest.
        """
        given = {
            "answer_id": answer_id,
            "principal": principal,
            "channel": channel,
            "response": response,
            "receipt_digest": receipt_digest,
        }
        with self._database.write(queue_of(workflow_id), rebuildable=True) as connection:
            known = _gate(connection, workflow_id, interrupt_id)
            before = known or _undescribed(workflow_id, interrupt_id, at)
            said = {name: value for name, value in given.items() if value is not None}
            after = GateRow(**dict(before) | said | {"state": state, "closed_at": at})
            _check(after)
            if state == "open":
                raise StoreError("a gate is not settled by being open; list it with open_gate")
            if known is None or known.state == "open" or _weight(after) > _weight(known):
                self._put(connection, after, known)

    def gate(self, workflow_id: str, interrupt_id: str) -> GateRow | None:
        """The gate as it is listed, or `None`."""
        with self._database.read() as connection:
            return _gate(connection, workflow_id, interrupt_id)

    def gates(
        self,
        *,
        order: GateOrder = "opened_at",
        descending: bool = True,
        limit: int = 100,
        offset: int = 0,
        **only: Unpack[GateFilter],
    ) -> list[GateRow]:
        """
        List the gates that pass the filter.

        Gates without a deadline (or not yet closed) come last in either
        direction when the list is sorted by it.
        """
        if order not in {"opened_at", "deadline", "closed_at"}:
            raise StoreError(f"gates cannot be sorted by {order!r}; use opened_at, deadline or closed_at")
        columns = (_GATES[order], _GATES.workflow_id, _GATES.interrupt_id)
        sorts = [column.desc() if descending else column.asc() for column in columns]
        query = (
            select(schema.gates)
            .where(self._filter(only))
            .order_by(sorts[0].nulls_last(), *sorts[1:])
            .limit(max(limit, 0))
            .offset(max(offset, 0))
        )
        with self._database.read() as connection:
            return _rows(connection, query)

    def count_gates(self, **only: Unpack[GateFilter]) -> dict[str, int]:
        """How many gates are in each state, filtered as in `gates`; a state without gates is left out."""
        query = (
            select(_GATES.state, func.count().label("gates"))
            .where(self._filter(only))
            .group_by(_GATES.state)
            .order_by(_GATES.state)
        )
        with self._database.read() as connection:
            return {row.state: row.gates for row in connection.execute(query)}

    def pipelines(self) -> list[str]:
        """The pipelines that have gates, by name."""
        with self._database.read() as connection:
            return list(connection.scalars(select(_GATES.pipeline).distinct().order_by(_GATES.pipeline)))

    def changed_gates(self, since: datetime, *, limit: int = 1000) -> list[tuple[datetime, GateRow]]:
        """
        The gates that were written at or after a time by the store's clock (`now`), the longest unchanged first.

        A row is seen when its transaction is over, and so perhaps after one that
        was written later: whoever asks again and again goes back a little, and
        knows by run, gate and time what it has seen.
        """
        query = select(schema.gates).where(_GATES.touched_at >= since)
        query = query.order_by(_GATES.touched_at, _GATES.workflow_id, _GATES.interrupt_id).limit(max(limit, 0))
        with self._database.read() as connection:
            return [(row["touched_at"], _record(row)) for row in connection.execute(query).mappings()]

    def touched_gates(self, since: datetime, *, limit: int = 10_000) -> dict[tuple[str, str], datetime]:
        """As `changed_gates`, but only which ones (run, interrupt id) and when."""
        query = select(_GATES.workflow_id, _GATES.interrupt_id, _GATES.touched_at).where(_GATES.touched_at >= since)
        query = query.order_by(_GATES.touched_at).limit(max(limit, 0))
        with self._database.read() as connection:
            return {(row.workflow_id, row.interrupt_id): row.touched_at for row in connection.execute(query)}

    def now(self) -> datetime:
        """The time by the clock that `changed_gates` goes by."""
        with self._database.read() as connection:
            return self._database.now(connection)

    def replace_index(self, workflow_id: str, rows: list[GateRow]) -> None:
        """
        Replace all rows of one run by these, as `gatewright reindex` read them from Temporal.

        The rows are taken as they are: a reset may have opened a gate again.
        """
        for row in rows:
            _check(row)
            if row.workflow_id != workflow_id:
                raise StoreError(f"{row.interrupt_id} belongs to {row.workflow_id}, not to {workflow_id}")
        with self._database.write(queue_of(workflow_id)) as connection:
            connection.execute(delete(schema.gates).where(_GATES.workflow_id == workflow_id))
            for row in rows:
                self._put(connection, row, None)

    def _filter(self, only: GateFilter) -> ColumnElement[bool]:
        session = only.get("session")
        equal = {
            _GATES.workflow_id: only.get("run"),
            _GATES.session_path: None if session is None else session.path,
            _GATES.app: only.get("app"),
            _GATES.pipeline: only.get("pipeline"),
            _GATES.gate: only.get("gate"),
        }
        conditions = [column == value for column, value in equal.items() if value is not None]
        if (states := only.get("states")) is not None:
            conditions.append(_GATES.state.in_(states))
        if (prefixes := only.get("prefixes")) is not None:
            conditions.append(or_(false(), *(self._position(_GATES.gate, prefix) == 1 for prefix in prefixes)))
        if (invited := only.get("invited")) is not None:
            conditions.append(self._position(_GATES.invitations, _lines([invited])) > 0)
        if only.get("refused"):
            conditions.append(_GATES.refusals > 0)
        if search := only.get("search"):
            conditions.append(self._position(_GATES.haystack, search.casefold()) > 0)
        return and_(true(), *conditions)

    def _position(self, column: Any, text: str) -> ColumnElement[int]:
        """Where the text is in the column, from 1 on; 0 where it is not."""
        # Not LIKE: its wildcards would need escapes, and SQLite limits its length.
        position: Any = func.strpos if self._database.file is None else func.instr
        return position(column, literal(text, Line))  # type: ignore[no-any-return]

    def _put(self, connection: Connection, row: GateRow, known: GateRow | None) -> None:
        session, _ = SessionKey.of_workflow(row.workflow_id)
        values = dict(row) | {
            "session_path": session.path,
            "app": session.app,
            "haystack": storable(f"{row.message}\n{row.gate}\n{row.workflow_id}".casefold()),
            "invitations": _lines(row.invited),
        }
        if known is None:
            connection.execute(_INSERT.values(touched_at=self._database.stamp()), values)
        else:
            this = {"of_run": row.workflow_id, "of_gate": row.interrupt_id}
            connection.execute(_UPDATE.values(touched_at=self._database.stamp()), values | this)


def _check(row: GateRow) -> None:
    if row.state not in GATE_STATES:
        raise StoreError(f"{row.state!r} is not a state of a gate; it is one of {', '.join(sorted(GATE_STATES))}")


def _rows(connection: Connection, query: Select[Any]) -> list[GateRow]:
    return [_record(row) for row in connection.execute(query).mappings()]


def _record(row: RowMapping) -> GateRow:
    return GateRow(**{name: row[name] for name in GateRow.model_fields})


def _gate(connection: Connection, workflow_id: str, interrupt_id: str) -> GateRow | None:
    row = connection.execute(_FIND, {"of_run": workflow_id, "of_gate": interrupt_id}).mappings().one_or_none()
    return None if row is None else _record(row)


def _undescribed(workflow_id: str, interrupt_id: str, at: datetime) -> GateRow:
    return GateRow(
        workflow_id=workflow_id,
        interrupt_id=interrupt_id,
        gate=interrupt_id,
        visit=0,
        kind="",
        pipeline="",
        branch="",
        message="",
        digest="",
        opened_at=at,
    )


def _together(known: GateRow, row: GateRow) -> GateRow:
    settled = row if known.state == "open" else known
    changes = {name: getattr(settled, name) for name in _SETTLEMENT}
    return row.model_copy(update=changes | {"refusals": max(known.refusals, row.refusals)})


def _run_closed(connection: Connection, row: GateRow) -> GateRow:
    if row.state != "open":
        return row
    found = connection.execute(_CLOSED, {"of_run": row.workflow_id}).one_or_none()
    return row if found is None else row.model_copy(update={"state": "closed", "closed_at": found.closed_at})


def _weight(row: GateRow) -> tuple[bool, datetime, int]:
    return row.state != "closed", row.closed_at or datetime.min.replace(tzinfo=UTC), _RANK.get(row.state, 0)


def _lines(names: Iterable[str]) -> str:
    """Names one to a line, each between two line ends, and escaped so that none can hold one."""
    return "\n".join(["", *(json.dumps(name) for name in names), ""])
