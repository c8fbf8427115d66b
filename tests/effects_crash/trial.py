"""One trial: a run whose first attempt is stopped at its point, and everything until the run has ended."""

import asyncio
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, update
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from gatewright.protocol import Answer, Refused
from gatewright.store import LedgerEntry, SessionKey, Store, schema
from gatewright.temporal import GateClient, NoWorkerError, UnknownRunError
from tests.effects_crash.effects import ATTEMPTS, CALL_TIMEOUT, HEARTBEAT, Order
from tests.effects_crash.forks import Child, Forks
from tests.effects_crash.outside import Counted, Outside
from tests.effects_crash.pipeline import Given
from tests.effects_crash.points import Trouble
from tests.effects_crash.tally import Case, Outcome
from tests.effects_crash.victim import Setup

CALL_SECONDS = CALL_TIMEOUT.total_seconds()

SHORT = 0.5
"""How much longer than the heartbeat time-out a short stop takes, in seconds: a quarter of the call's time."""

LONG = (0.3, 2.5)
"""How much longer than lease and call time a long stop takes, in seconds; the dice say."""

UNLISTED = 10.0
"""After which time without a listed gate the run is asked for one, in seconds."""

BOUND = 90.0
"""After which time a run that has not ended is lost, in seconds."""


@dataclass(frozen=True)
class World:
    """What all trials share."""

    address: str
    client: Client
    gates: GateClient
    forks: Forks
    store: Store
    url: str
    other_url: str
    outside: Outside


class Trial:
    """
    One of them; `gates` brings the interrupt ids of the gates that its run opens.

    `patience` is by how much longer than the shortest all time-outs are.
    """

    def __init__(self, world: World, case: Case, name: str, *, dice: random.Random, patience: int) -> None:
        self._world = world
        self._case = case
        self._dice = dice
        self.outcome = Outcome(case, name)
        self.gates: asyncio.Queue[str] = asyncio.Queue()
        self._name = name
        self._session = SessionKey(app="crash", user=case.kind.value, session=name)
        self.workflow_id = self._session.workflow_id(1)
        self._heartbeat = HEARTBEAT.total_seconds() * patience
        self._children: list[Child] = []

    async def run(self) -> Outcome:
        """All of it."""
        began = time.monotonic()
        try:
            await self._run()
        finally:
            for child in self._children:
                child.send(signal.SIGKILL)
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    async def _run(self) -> None:
        trouble, world = self._case.trouble, self._world
        victim = self._fork(world.url, armed=1)
        await self._open()
        stopped = await self._struck(victim, "first")
        if stopped:
            await self._trouble(victim)
        if stopped and trouble is Trouble.RESTORED_AGAIN:
            # Long enough for a beat of the second attempt.
            again = self._fork(world.url, armed=2, lingers=self._heartbeat * 0.6)
            await self._struck(again, "second")
        self._fork(world.other_url if trouble is Trouble.OTHER else world.url)
        answering = asyncio.create_task(self._answered())
        numbers: list[int] = []
        try:
            async with asyncio.timeout(BOUND):
                if stopped and trouble.stops:
                    await self._continued(victim)
                numbers = await world.client.get_workflow_handle(self.workflow_id).result()
                self.outcome.ended = True
        except TimeoutError:
            pass
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
        if answering.done() and not answering.cancelled() and (failed := answering.exception()):
            self.outcome.faults.append(f"nobody could answer: {failed}")
        await self._count(numbers)

    def _fork(self, url: str, *, armed: int = 0, lingers: float = 0.0) -> Child:
        world = self._world
        setup = Setup(
            address=world.address,
            store=url,
            queue=self.workflow_id,
            outside=world.outside.file,
            armed=armed,
            lingers=lingers,
        )
        child = world.forks.fork(f"{self._name}.{len(self._children)}", setup)
        self._children.append(child)
        return child

    async def _open(self) -> None:
        trouble = self._case.trouble
        given = Given(
            kind=self._case.kind,
            order=Order(
                trial=self._name,
                point=self._case.point,
                how="stop" if trouble.stops else "kill",
                honoured=self._case.honoured,
            ),
            heartbeat=self._heartbeat,
            attempts=1 if trouble is Trouble.EMPTIED_UNDER else ATTEMPTS,
            before=Order(trial=f"{self._name} before") if trouble is Trouble.CONTINUED else None,
        )
        started = await self._world.gates.start("Pays", given, session=self._session)
        assert started.workflow_id == self.workflow_id

    async def _struck(self, child: Child, which: str) -> bool:
        """Wait until the process is stopped where it was to be; otherwise the trial shows nothing."""
        at = await child.until("stopped", "ended", "over")
        if at is not None and (at["said"] == "stopped" or at.get("code") == -signal.SIGKILL):
            return True
        self.outcome.disturbed = f"the {which} attempt did not come to its point: {child.news[-1:]}"
        child.send(signal.SIGKILL)
        return False

    # What happens while the first attempt is stopped

    async def _trouble(self, victim: Child) -> None:
        trouble = self._case.trouble
        if trouble.empties:
            await asyncio.to_thread(self._forget)
        if trouble.restores:
            planned = LedgerEntry.model_validate(victim.heard("planned")[0]["entry"])
            await asyncio.to_thread(self._restore, planned)
        if trouble.resets:
            await self._reset()

    def _forget(self) -> None:
        query = delete(schema.ledger).where(schema.ledger.c.workflow_id == self.workflow_id)
        with self._world.store._database.write("ledger trouble") as connection:
            done = connection.execute(query).rowcount
        assert done == 1, f"{done} entries of {self.workflow_id} were there to be forgotten"

    def _restore(self, planned: LedgerEntry) -> None:
        assert planned.state == "planned"
        query = update(schema.ledger).where(schema.ledger.c.key == planned.key).values(dict(planned))
        with self._world.store._database.write("ledger trouble") as connection:
            done = connection.execute(query).rowcount
        assert done == 1, f"{done} entries under {planned.key} were there to be put back"

    async def _reset(self) -> None:
        """To before the effect: to the run's very beginning, or to right after it was planned."""
        client = self._world.client
        handle = client.get_workflow_handle(self.workflow_id)
        completed = [
            event.event_id
            async for event in handle.fetch_history_events()
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        ]
        described = await handle.describe()
        await client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=self.workflow_id, run_id=described.run_id),
                workflow_task_finish_event_id=self._dice.choice((completed[0], completed[-1])),
                reason="a trial",
                request_id=f"reset-{self._name}",
            )
        )

    async def _continued(self, victim: Child) -> None:
        """The stopped attempt goes on after its time, and comes to an end of its own."""
        match self._case.trouble:
            case Trouble.EMPTIED_UNDER:
                wait = 0.0
            case Trouble.SHORT_STOP:
                wait = self._heartbeat + SHORT
            case _:
                wait = self._heartbeat + CALL_SECONDS + self._dice.uniform(*LONG)
        await asyncio.sleep(wait)
        victim.send(signal.SIGCONT)
        over = await victim.until("over")
        if over is None:
            self.outcome.faults.append("the attempt that was stopped did not end")
        elif self._case.trouble is Trouble.SHORT_STOP and over["since"] > self._heartbeat + CALL_SECONDS - 0.1:
            self.outcome.disturbed = (
                f"it was to be a short stop, and the attempt ended {over['since']:.1f} s after it began"
            )

    # Whoever is asked

    async def _answered(self) -> None:
        """A person who looks into the outside, and says what is there."""
        while True:
            interrupt_id = await self._asked()
            if interrupt_id in self.outcome.asked:
                # Listed after all, when it had been answered.
                continue
            self.outcome.asked.append(interrupt_id)
            calls = await asyncio.to_thread(self._world.outside.counted, self._name)
            answer = Answer(interrupt_id=interrupt_id, response=_said(interrupt_id, calls), principal="user:operator")
            ruling = await self._world.gates.answer(self.workflow_id, answer)
            if isinstance(ruling, Refused):
                self.outcome.faults.append(f"{interrupt_id}: the answer was refused: {ruling}")

    async def _asked(self) -> str:
        """The next gate that is open; of one that could not be listed, because the store was busy, the run itself tells."""
        while True:
            with suppress(TimeoutError):
                return await asyncio.wait_for(self.gates.get(), UNLISTED)
            with suppress(NoWorkerError, UnknownRunError):
                for gate in await self._world.gates.gates(self.workflow_id):
                    if gate.state == "open" and gate.interrupt_id not in self.outcome.asked:
                        return gate.interrupt_id

    # What came of it

    async def _count(self, numbers: list[int]) -> None:
        outcome = self.outcome
        calls = await asyncio.to_thread(self._world.outside.counted, self._name)
        outcome.calls, outcome.repeats = len(calls), sum(call.repeats for call in calls)
        ids = [call.id for call in calls]
        if outcome.ended and calls and numbers[-1] not in ids:
            outcome.faults.append(f"the run returned {numbers[-1]}, and the outside gave {ids}")
        if self._case.trouble is Trouble.CONTINUED:
            before = await asyncio.to_thread(self._world.outside.counted, f"{self._name} before")
            if outcome.ended and [call.id for call in before] != numbers[:1]:
                outcome.faults.append(f"the effect before it: {before} in the outside, {numbers[:1]} in the run")
        # A reset run begins to count anew.
        most = {Trouble.RESTORED_AGAIN: 3}.get(self._case.trouble, 1 if self._case.trouble.resets else 2)
        attempts = [news for child in self._children for news in child.heard("attempt")]
        if not outcome.disturbed and any(attempt["attempt"] > most for attempt in attempts):
            # One of them was given up although nobody stopped it.
            outcome.disturbed = f"{max(attempt['attempt'] for attempt in attempts)} attempts"


def _said(interrupt_id: str, calls: list[Counted]) -> dict[str, Any]:
    if interrupt_id.startswith("failed:"):
        return {"decision": "retry"}
    if not calls:
        return {"decision": "did_not_happen", "comment": "the outside has no such call"}
    return {"decision": "happened", "receipt": {"call": calls[0].id}, "result": calls[0].id}
