"""
What the store can object to, drawn once.

    StoreError               the call, or the database, is not as it must be
    ├── StoreUnavailable     the database cannot be reached or stays locked: try again
    ├── OpeningConflict      an opening id is used for another opening; `.run` is the run it made
    ├── ConversationExists   the session that is to be made is there already
    ├── SessionOpen          a run of the session is still open; `.run` says which
    ├── LedgerConflict       a key is used for other arguments; `.entry` is what stands
    │   └── CallReplaced     another generation was decided on in its place: `.entry.successor`
    └── EffectUnderWay       an attempt lives, so that nobody may say yet what came of it

No exception of SQLAlchemy or of a driver leaves a public method.
"""

from typing import TYPE_CHECKING

from gatewright.protocol.errors import GatewrightError

if TYPE_CHECKING:
    from .records import LedgerEntry, RunRecord


class StoreError(GatewrightError):
    """The root: the call, or the database, is not as it must be, and trying again will not help."""


class StoreUnavailable(StoreError):  # noqa: N818 - named for what is the case
    """The database cannot be reached, or stayed locked for longer than the store waits; the call may be repeated."""


class OpeningConflict(StoreError):  # noqa: N818 - named for what is the case
    """An opening id that has made a run came back with another pipeline or other input; nothing was changed."""

    def __init__(self, message: str, run: "RunRecord") -> None:
        """Keep the run that the opening id made."""
        super().__init__(message)
        self.run = run


class ConversationExists(StoreError):  # noqa: N818 - named for what is the case
    """The session that is to be made is there already; nothing was changed."""


class SessionOpen(StoreError):  # noqa: N818 - named for what is the case
    """A run of the session stands allocated or open, and the caller asked to be refused in that case."""

    def __init__(self, message: str, run: "RunRecord") -> None:
        """Keep the newest run that is still open."""
        super().__init__(message)
        self.run = run


class LedgerConflict(StoreError):  # noqa: N818 - named for what is the case
    """A key that names one call came back with other arguments; nothing was changed."""

    def __init__(self, message: str, entry: "LedgerEntry") -> None:
        """Keep the entry that stands under the key."""
        super().__init__(message)
        self.entry = entry


class CallReplaced(LedgerConflict):
    """The call did not happen, and another generation was decided on in its place; nothing was changed."""


class EffectUnderWay(StoreError):  # noqa: N818 - named for what is the case
    """An attempt at the effect may still be under way, so that nothing is decided about it yet; try again after it."""
