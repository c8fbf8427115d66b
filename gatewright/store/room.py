"""What the rooms of the store share: the database, and the name that a run's writers queue under."""

from .database import Database
from .records import SessionKey


class Room:
    """A part of the store over one database."""

    def __init__(self, database: Database) -> None:
        """Use this database; it is opened and closed by the store."""
        self._database = database


def queue_of(workflow_id: str) -> str:
    """The name under which everything about a run is written: its session's, so that numbers and rows agree."""
    return SessionKey.of_workflow(workflow_id)[0].path
