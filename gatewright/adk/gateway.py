"""
The adapter without a transport: sessions, turns and events in ADK's shapes, over runs on Temporal.

Everything that can be rejected is rejected in `submit`; `follow` only looks on,
so that a client that goes away changes nothing (W03 to W05).
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any
from uuid import uuid4  # noqa: TID251 - an event that is never kept has an id of its own

from gatewright.protocol.entries import Answered
from gatewright.protocol.identity import BranchPath
from gatewright.store import RUN_CLOSED, StoreError
from gatewright.temporal.errors import NoWorkerError
from gatewright.temporal.reading import now
from gatewright.temporal.views import TranscriptPage

from .events import Event, author_of, entry_of, event, gate_call
from .names import alias, invocation_id
from .rejection import Rejection, RunFailed
from .shapes import reported
from .turns import Accepted, Turns

FIRST_LOOK, LAST_LOOK, SLOWER = 0.005, 0.5, 1.6
"""How soon a turn looks for more after it found nothing, at most how late (both in seconds), and how that grows."""

LISTING_PATIENCE = 2.0
"""How long the end of a turn waits until a run that is over is listed as such, in seconds."""

WORKER_PATIENCE = 20.0
"""How long a turn waits for a worker that does not answer, in seconds."""


class Gateway(Turns):
    """ADK's sessions and turns over the runs behind one `GateClient`."""

    async def follow(self, accepted: Accepted) -> AsyncGenerator[Event, None]:
        """
        The turn's events as they come, until the run waits for an answer or is over.

        `RunFailed` once the run has failed, after the event that says where.
        Closing the iterator, or never reading it, changes nothing.
        """
        if accepted.silent:
            return
        renderer = self._renderer(accepted.workflow_id)
        async with reported():
            async for page in self._pages(accepted):
                for position, line in enumerate(page.entries, start=page.next - len(page.entries)):
                    entry = await self._restored(accepted.workflow_id, entry_of(line))
                    if accepted.again and position >= accepted.after and _begins_a_turn(entry):
                        for shown in renderer.flush():
                            yield shown
                        return
                    for shown in renderer.feed(entry, position):
                        if position >= accepted.after and shown["author"] != "user":
                            yield shown
            for shown in renderer.flush():
                if shown["author"] != "user":
                    yield shown
            if renderer.closed:
                await self._listed_as_over(accepted.workflow_id)
            if renderer.failure is not None:
                raise RunFailed(renderer.failure, workflow_id=accepted.workflow_id)

    async def _pages(self, accepted: Accepted) -> AsyncGenerator[TranscriptPage, None]:
        """The run's transcript from the turn on, page by page, until nothing more comes by itself."""
        cursor, wait = accepted.start, FIRST_LOOK
        patience = time.monotonic() + WORKER_PATIENCE
        while True:
            page = None
            try:
                page = await self.client.transcript(accepted.workflow_id, cursor)
            except NoWorkerError:
                if time.monotonic() > patience:
                    raise
            if page is not None:
                patience = time.monotonic() + WORKER_PATIENCE
                yield page
                if page.closed or (page.waiting and page.next >= accepted.after):
                    return
                if page.next > cursor:
                    cursor, wait = page.next, FIRST_LOOK
                    continue
            if wait >= LAST_LOOK and not await self.client.running(accepted.workflow_id):
                # It ended in a way that its book does not know of: nor does the store, until it is told.
                if run := await asyncio.to_thread(self.store.run, accepted.workflow_id):
                    await self.client.still_open(run)
                raise RunFailed("RunEnded: it was terminated, or timed out", workflow_id=accepted.workflow_id)
            await asyncio.sleep(wait)
            wait = min(wait * SLOWER, LAST_LOOK)

    async def _listed_as_over(self, workflow_id: str) -> None:
        """Wait until the store says so too: whoever is told of the end may open the next run at once."""
        ends = time.monotonic() + LISTING_PATIENCE
        while time.monotonic() < ends:
            run = await asyncio.to_thread(self.store.run, workflow_id)
            if run is not None and run.standing in RUN_CLOSED:
                return
            await asyncio.sleep(0.01)

    async def rearm(self, rejection: Rejection) -> list[Event]:
        """
        Copies of the gate events that the rejected message was for, each under another id.

        They are shown and never kept: ADK's UI hides a form once an answer to
        its id was sent, also one that was refused.
        """
        if not rejection.armed or rejection.workflow_id is None:
            return []
        rows = []
        with suppress(StoreError):
            rows = await asyncio.to_thread(self.store.gates, run=rejection.workflow_id, states={"open"})
        shown: list[dict[str, Any]] = []
        for row in rows:
            if row.interrupt_id not in rejection.armed:
                continue
            again, branch = alias(row.interrupt_id), BranchPath.parse(row.branch)
            note = f"(not accepted: {rejection.message})"
            content = gate_call(
                row.interrupt_id,
                shown_as=again,
                message=f"{row.message} {note}" if row.message else note,
                payload=row.payload,
                schema=row.response_schema,
            )
            shown.append(
                event(
                    event_id=str(uuid4()),
                    at=now(),
                    invocation=invocation_id(rejection.workflow_id),
                    author=author_of(branch),
                    path=str(branch),
                    content=content,
                    longRunningToolIds=[again],
                )
            )
        return shown


def _begins_a_turn(entry: Any) -> bool:
    return isinstance(entry, Answered) and not entry.answer.principal.startswith("engine:")
