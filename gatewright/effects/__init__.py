"""
The activity side: steps and effects, and the protocol of intent and receipt over the ledger.

A *step* is work without outward consequence and is safe to repeat; an *effect*
is something done to the world, once per key. Declare either with a decorator,
call it from a workflow with `Frame.perform`, and it runs as a Temporal activity.
"""

from gatewright.protocol.call import Call

from .attempt import NotPerformed
from .current import current_call, heartbeat, idempotency_headers, running
from .declare import (
    CannotTell,
    Declaration,
    DidNotHappen,
    EffectKind,
    Happened,
    Reconciliation,
    declaration_of,
    effect,
    step,
)
from .interceptor import EffectsInterceptor
from .lease import LeaseLost, fence, receipt
from .wire import CALL_HEADER

__all__ = [
    "CALL_HEADER",
    "Call",
    "CannotTell",
    "Declaration",
    "DidNotHappen",
    "EffectKind",
    "EffectsInterceptor",
    "Happened",
    "LeaseLost",
    "NotPerformed",
    "Reconciliation",
    "current_call",
    "declaration_of",
    "effect",
    "fence",
    "heartbeat",
    "idempotency_headers",
    "receipt",
    "running",
    "step",
]
