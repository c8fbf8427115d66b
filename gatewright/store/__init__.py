"""
The store: the database beside Temporal.

It lists sessions, runs and gates, and remembers refusals, archives, effects and
what is to be told of gates.
It never decides: what a run may do is Temporal's word, and what an answer is
worth is the protocol's. Two things in it cannot be rebuilt from Temporal, and
so must be kept with care: the numbers of a session's runs, and the ledger.

Every method is synchronous and safe to call from any thread and from many
processes at once; asynchronous callers use `asyncio.to_thread`.
"""

from .database import default_url
from .errors import (
    CallReplaced,
    ConversationExists,
    EffectUnderWay,
    LedgerConflict,
    OpeningConflict,
    SessionOpen,
    StoreError,
    StoreUnavailable,
)
from .gates import GateOrder
from .ledger import Ledger
from .notices import NOTICE_TYPES, Notices
from .records import (
    GATE_STATES,
    RUN_CLOSED,
    RUN_OPEN,
    Begun,
    Busy,
    Conversation,
    GateFilter,
    GateRow,
    LedgerEntry,
    Notice,
    NoticeType,
    Plan,
    RefusalRow,
    Remark,
    RunRecord,
    SessionKey,
)
from .store import Store

__all__ = [
    "GATE_STATES",
    "NOTICE_TYPES",
    "RUN_CLOSED",
    "RUN_OPEN",
    "Begun",
    "Busy",
    "CallReplaced",
    "Conversation",
    "ConversationExists",
    "EffectUnderWay",
    "GateFilter",
    "GateOrder",
    "GateRow",
    "Ledger",
    "LedgerConflict",
    "LedgerEntry",
    "Notice",
    "NoticeType",
    "Notices",
    "OpeningConflict",
    "Plan",
    "RefusalRow",
    "Remark",
    "RunRecord",
    "SessionKey",
    "SessionOpen",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "default_url",
]
