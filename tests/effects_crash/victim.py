"""
A worker for one trial's activities, in a process of its own.

One that is armed stops itself in one attempt: in the first where the order says
so, in a later one before it asks the ledger. Any other only works, and finds out
what was left. All tell what becomes of them, a line of JSON at a time.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor, Worker

from gatewright.store import Begun, Busy, LedgerEntry, Store
from gatewright.store.ledger import Ledger
from gatewright.temporal import GatewrightPlugin
from tests.effects_crash.effects import EFFECTS, TRAP, Order
from tests.effects_crash.points import Point

Tell = Callable[[dict[str, Any]], None]


class Setup(BaseModel):
    """
    What such a process is told.

    `armed` is the attempt in which it stops itself, 0 for none; `lingers` how
    long it waits before it asks the ledger, in seconds.
    """

    address: str
    store: str
    queue: str
    outside: Path
    armed: int
    lingers: float = 0.0


class Watched(Ledger):
    """The real ledger, with points around the intent and the receipt."""

    tell: Tell
    lingers = 0.0

    def begin(self, key: str, **given: Any) -> Begun | Busy | None:
        """See base class."""
        if TRAP.order is not None and (planned := self.entry(key)) is not None:
            self.tell({"said": "planned", "entry": planned.model_dump(mode="json")})
        if self.lingers:
            # Long enough for a beat of this attempt.
            time.sleep(self.lingers)
        TRAP.reach(Point.BEFORE_INTENT)
        begun = super().begin(key, **given)
        TRAP.reach(Point.AFTER_INTENT)
        return begun

    def performed(self, key: str, **given: Any) -> LedgerEntry:
        """See base class."""
        TRAP.reach(Point.BEFORE_RECEIPT)
        entry = super().performed(key, **given)
        TRAP.reach(Point.AFTER_RECEIPT)
        return entry


class Around(Interceptor):
    """Outside of everything that Gatewright does in an activity: arms the trap, and tells how the attempt ends."""

    def __init__(self, tell: Tell, *, armed: int) -> None:
        self.tell = tell
        self.armed = armed

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See base class."""
        return _Around(next, self)


class _Around(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, around: Around) -> None:
        super().__init__(next)
        self._around = around

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        order = input.args[0] if input.args else None
        if not isinstance(order, Order):
            return await self.next.execute_activity(input)
        info = activity.info()
        armed = info.attempt == self._around.armed and order.point is not None
        if armed:
            # Once: it may go on to perform what follows.
            self._around.armed = 0
            again = {"point": Point.BEFORE_INTENT} if info.attempt > 1 else {}
            TRAP.order = order.model_copy(update=again)
        self._around.tell({"said": "attempt", "attempt": info.attempt})
        ended = "performed"
        try:
            result = await self.next.execute_activity(input)
            TRAP.reach(Point.BEFORE_REPORT)
        except BaseException as failure:
            ended = f"{type(failure).__name__}: {failure}"[:500]
            raise
        else:
            return result
        finally:
            TRAP.order = None
            if armed:
                self._around.tell({"said": "over", "ended": ended, "since": time.monotonic() - TRAP.stopped_at})


async def work(setup: Setup, told: int) -> None:
    """Work until killed, or until whoever forked this process has gone; `told` is the file descriptor to tell things to."""
    parent = os.getppid()

    def tell(news: dict[str, Any]) -> None:
        # In one piece: a line is shorter than what a pipe takes at once.
        os.write(told, json.dumps({"pid": os.getpid(), **news}).encode() + b"\n")

    os.environ["EFFECTS_CRASH_OUTSIDE"] = str(setup.outside)
    store = Store.open(setup.store, migrate=False)
    store.ledger = Watched(store._database)
    store.ledger.tell = tell
    store.ledger.lingers = setup.lingers
    client = await Client.connect(setup.address, plugins=[GatewrightPlugin(store, check=False)])
    worker = Worker(
        client,
        task_queue=setup.queue,
        activities=list(EFFECTS.values()),
        interceptors=[Around(tell, armed=setup.armed)],
        max_concurrent_activities=1,
        # Otherwise every loaded module is hashed for one.
        build_id="effects-crash",
    )
    async with worker:
        while os.getppid() == parent:
            await asyncio.sleep(1)
