"""The effects that are stopped in the middle, one of each kind, and the trap that stops them."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from gatewright.effects import (
    Call,
    DidNotHappen,
    EffectKind,
    Happened,
    Reconciliation,
    current_call,
    effect,
    fence,
    idempotency_headers,
    receipt,
)
from tests.effects_crash.outside import Outside
from tests.effects_crash.points import Point

HEARTBEAT = timedelta(seconds=1)
"""How long a dead worker goes unnoticed, and how long a lease runs, unless a run says otherwise."""
CALL_TIMEOUT = timedelta(seconds=2)
ATTEMPTS = 5

How = Literal["kill", "stop"]


class Order(BaseModel):
    """
    What is to be done to the world, and where its first attempt is stopped (`point` None: nowhere).

    `honoured` False is an outside that ignores the key although the effect is
    declared `keyed`: then it must be seen to be done twice.
    """

    trial: str
    point: Point | None = None
    how: How = "kill"
    honoured: bool = True


@dataclass
class Trap:
    """Stops this process, once, where the order of its first attempt says so."""

    order: Order | None = None
    stopped_at: float = 0.0
    """When the process was stopped, by a clock that goes on meanwhile."""

    def reach(self, point: Point) -> None:
        """The attempt has come to this point."""
        order = self.order
        if order is None or order.point is not point:
            return
        self.order = None
        sent = signal.SIGKILL if order.how == "kill" else signal.SIGSTOP
        self.stopped_at = time.monotonic()
        # To this very thread, which then does nothing more before the whole process stands still.
        signal.pthread_kill(threading.get_ident(), sent)


TRAP = Trap()
"""The trap of this process; never armed in one that finds out what another has left."""


def outside() -> Outside:
    """The outside that this process was told of."""
    return Outside(Path(os.environ["EFFECTS_CRASH_OUTSIDE"]))


def _called(kind: EffectKind, order: Order, key: str) -> int:
    TRAP.reach(Point.BEFORE_OUTSIDE)
    number = outside().call(kind, order.trial, key, inside=lambda: TRAP.reach(Point.UNCOMMITTED))
    TRAP.reach(Point.COMMITTED)
    receipt({"call": number})
    return number


@effect(kind="keyed", heartbeat=HEARTBEAT, call_timeout=CALL_TIMEOUT, attempts=ATTEMPTS)
async def keyed(order: Order) -> int:
    """The outside honours the key; returns the number that it gave."""
    TRAP.reach(Point.BEFORE_FENCE)
    kind = EffectKind.KEYED if order.honoured else EffectKind.OPAQUE
    return _called(kind, order, idempotency_headers()["Idempotency-Key"])


def ask(call: Call, order: Order) -> Reconciliation:
    """Whether the outside knows the key."""
    found = outside().find(call.key)
    return DidNotHappen() if found is None else Happened(found, receipt={"call": found})


@effect(kind="reconcilable", reconcile=ask, heartbeat=HEARTBEAT, call_timeout=CALL_TIMEOUT, attempts=ATTEMPTS)
async def reconcilable(order: Order) -> int:
    """The outside can be asked; returns the number that it gave."""
    TRAP.reach(Point.BEFORE_FENCE)
    fence()
    return _called(EffectKind.RECONCILABLE, order, current_call().key)


@effect(kind="opaque", heartbeat=HEARTBEAT, call_timeout=CALL_TIMEOUT, attempts=ATTEMPTS)
async def opaque(order: Order) -> int:
    """The outside ignores keys and cannot be asked; returns the number that it gave."""
    TRAP.reach(Point.BEFORE_FENCE)
    fence()
    return _called(EffectKind.OPAQUE, order, current_call().key)


EFFECTS = {EffectKind.KEYED: keyed, EffectKind.RECONCILABLE: reconcilable, EffectKind.OPAQUE: opaque}
