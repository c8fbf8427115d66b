"""
How a run tells the index of its gates, without ever going another way for it.

A local activity may be resolved in one workflow task live and in an earlier one
on replay (SDK 1.35, where a query shares the task), so **no command may wait for
one**: an update that is accepted in between would find itself on the other side
of that command, and the run could never be replayed again. Therefore:

1. A gate is open as soon as the pipeline asks. The local activity that lists it
   is not waited for; on replay its recorded result replaces what today's code
   would show.
2. A gate that was settled is listed soon, beside the run, and for certain with
   the next local activity.
3. What has to be known before the run goes on is asked by an activity like any
   other.
4. Only the end of a run waits for a local activity (a book can be too large for
   an activity's input), and no update is accepted meanwhile.

Runs that were opened by the first release (without the patch) go on as they
began: they wait.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio import workflow

from gatewright.protocol.entries import Refused

from . import names
from .index import CloseRun, Ledger, OpenGate, Opening, RefusedAnswer, SettleGate, Settling

# No bound on attempts: these activities never fail by themselves, and a worker that dies in one must not fail the run.
_OPTIONS: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=30)}


class Listing:
    """What one run tells the index, and what it still has to tell."""

    def __init__(self) -> None:
        self.steady = workflow.patched(names.PATCH_STEADY)
        """Whether the run keeps to the rule that no command waits for a local activity."""
        self._untold: list[SettleGate] = []
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def busy(self) -> bool:
        """Whether something is being told that the end of the run waits for."""
        return bool(self._running)

    def asked(self, asked: OpenGate, pin: Callable[[Opening], None]) -> None:
        """List a gate that has opened, and let `pin` know how it was recorded."""
        asked = asked.model_copy(update={"settled": tuple(self._untold)})
        with _registered():
            handle = workflow.start_local_activity(names.OPEN_GATE, _given(asked), **_OPTIONS)

        async def listed() -> None:
            pin(Opening.model_validate(await handle))
            self._untold = [settled for settled in self._untold if settled not in asked.settled]

        self._begin(listed())

    def settled(self, settled: SettleGate) -> None:
        """List, soon and by and by for certain, that a gate no longer waits."""
        if not self.steady:
            self._begin(self._local(names.SETTLE_GATE, settled))
            return
        self._untold.append(settled)
        tell = workflow.extern_functions().get(names.EXTERN_TELL)
        if tell is not None and not workflow.unsafe.is_replaying():
            tell(settled.model_dump(mode="json"))

    async def settled_for_certain(self, settled: SettleGate) -> Settling:
        """List that a gate no longer waits, and give back what was recorded of it."""
        # Shielded: a pipeline that stops waiting now has its answer all the same, and the index must say so.
        ask = self._remote if self.steady else self._local
        return Settling.model_validate(await asyncio.shield(self._begin(ask(names.SETTLE_GATE, settled))))

    async def opened_first(self, asked: OpenGate) -> Opening:
        """List a gate before it opens, as the first release did."""
        return Opening.model_validate(await self._local(names.OPEN_GATE, asked))

    async def ledger(self) -> str | None:
        """The ledger that this worker's effects are recorded in."""
        ask = self._remote if self.steady else self._local
        return Ledger.model_validate(await ask(names.LEARN_LEDGER, None)).ledger_id

    def carry(self) -> list[dict[str, Any]]:
        """What the next execution of the run has to tell."""
        return [settled.model_dump(mode="json") for settled in self._untold]

    def carried(self, untold: Iterable[Any]) -> None:
        """Take over what the execution before had to tell."""
        self._untold += [SettleGate.model_validate(each) for each in untold]

    async def closed(self, closing: CloseRun) -> None:
        """List the run as over, and archive its book."""
        await self._local(names.CLOSE_RUN, closing.model_copy(update={"settled": tuple(self._untold)}))

    def _begin(self, telling: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(telling)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _local(self, activity: str, argument: BaseModel | None) -> Any:
        with _registered():
            return await workflow.execute_local_activity(activity, _given(argument), **_OPTIONS)

    async def _remote(self, activity: str, argument: BaseModel | None) -> Any:
        return await workflow.execute_activity(activity, _given(argument), **_OPTIONS)


def tell_refused(refused: Refused) -> None:
    """Let the index know, soon and beside the run, of an answer that did not count; the book is what keeps it."""
    tell = workflow.extern_functions().get(names.EXTERN_TELL)
    if tell is not None and not workflow.unsafe.is_replaying():
        told = RefusedAnswer(workflow_id=workflow.info().workflow_id, refused=refused)
        tell(told.model_dump(mode="json"))


def _given(argument: BaseModel | None) -> Any:
    """As plain JSON: an application may have a payload converter that knows nothing of pydantic."""
    return argument.model_dump(mode="json") if argument else None


@contextmanager
def _registered() -> Iterator[None]:
    """Say what to do where the worker has no such activity."""
    try:
        yield
    except ValueError as unregistered:
        # Not a failure of the run: the task is retried until a worker that is set up takes it.
        msg = f"{unregistered} Give the worker's client GatewrightPlugin(...)."
        raise RuntimeError(msg) from unregistered
