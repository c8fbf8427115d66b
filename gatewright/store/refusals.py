"""Refused answers, as evidence: bounded, because anybody may send any number of them."""

from sqlalchemy import delete, func, insert, select, update

from . import schema
from .records import RefusalRow
from .room import Room, queue_of

MAX_KEPT = 200
"""How many refusals of one run are kept."""

FIRST_KEPT = 50
"""How many of them are the run's first; the others are its latest."""

_REFUSALS = schema.refusals.c


class Refusals(Room):
    """The part of the store that remembers refusals."""

    def record_refusal(self, row: RefusalRow) -> None:
        """
        Remember one refused answer, and count it at its gate if that is listed.

        At most 200 are kept per run: the first 50 and the latest 150. The count
        at the gate goes on.
        """
        of_run = _REFUSALS.workflow_id == row.workflow_id
        with self._database.write(queue_of(row.workflow_id)) as connection:
            connection.execute(insert(schema.refusals).values(dict(row)))
            connection.execute(
                update(schema.gates)
                .where(schema.gates.c.workflow_id == row.workflow_id, schema.gates.c.interrupt_id == row.interrupt_id)
                .values(refusals=schema.gates.c.refusals + 1, touched_at=self._database.stamp())
            )
            kept = connection.execute(select(func.count()).select_from(schema.refusals).where(of_run)).scalar_one()
            if kept > MAX_KEPT:
                surplus = select(_REFUSALS.id).where(of_run).order_by(_REFUSALS.id)
                surplus = surplus.offset(FIRST_KEPT).limit(kept - MAX_KEPT)
                connection.execute(delete(schema.refusals).where(_REFUSALS.id.in_(surplus)))

    def refusals(self, *, run: str | None = None, limit: int = 100) -> list[RefusalRow]:
        """List refusals, the one recorded last first."""
        query = select(schema.refusals).order_by(_REFUSALS.id.desc()).limit(max(limit, 0))
        if run is not None:
            query = query.where(_REFUSALS.workflow_id == run)
        with self._database.read() as connection:
            return [
                RefusalRow(**{name: row[name] for name in RefusalRow.model_fields})
                for row in connection.execute(query).mappings()
            ]
