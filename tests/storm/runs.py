"""The runs of a storm: opened, brought to the gates where they are paused, and finished with one good answer each."""

import contextlib
import json
from typing import Any

from gatewright.protocol import Receipt, Verified, verify
from gatewright.temporal import GateClient, GateView, NoWorkerError
from tests.storm.arms import ADMITTED, REPEATED, Said, Shot, Target
from tests.storm.channels import DELIVERED, Channels, Told
from tests.storm.pipeline import INVITED, Order
from tests.storm.tally import Owed, Tally
from tests.temporal.conversation import until

PATH = ("first", "second", "looped", "looped~2")
"""The gates that a run passes, `looped` twice."""


class Stage:
    """The runs and whoever answers them well."""

    def __init__(self, gates: GateClient, channels: Channels, tally: Tally, folder: str, queue: str) -> None:
        self.gates = gates
        self.channels = channels
        self.tally = tally
        self.folder = folder
        self.queue = queue

    async def open(self, name: str, stop: int, **options: Any) -> Target:
        """A run paused at the `stop`-th gate of its path; past the last one it is over."""
        started = await self.gates.start("Stormed", Order(name=name, folder=self.folder), **options)
        target = Target(started.workflow_id, name, "")
        await self.reach(target, PATH[0])
        for _ in range(stop):
            await self.pass_on(target, "client update")
        return target

    async def reach(self, target: Target, stop: str) -> None:
        """Wait until the run is paused at this gate of its path."""
        name, _, visit = stop.partition("~")
        target.open = f"{name}{target.suffix}" + (f"~{visit}" if visit else "")
        view = await until(lambda: self.look(target), f"{target.workflow_id} is at {target.open}", seconds=60)
        target.digest = view.digest
        if target.said:
            # What was shown at the gate before is what a stale page still shows.
            target.other_digest = target.said[-1].body["digest"]

    async def look(self, target: Target) -> GateView | None:
        """The gate at which the run is paused, if it is open; asked of the run itself."""
        with contextlib.suppress(NoWorkerError):
            for gate in await self.gates.gates(target.workflow_id):
                if gate.interrupt_id == target.open and gate.state == "open":
                    return gate
        return None

    def shot(self, target: Target) -> Shot:
        """The one good answer to where the run is paused."""
        # The first visit of the loop sends it round again.
        response = {"approved": target.gate != "looped" or "~" in target.open, "level": 3}
        body = target.good(
            response=response,
            answerId=f"good-{target.name}-{target.open}",
            principal=INVITED,
            channel="storm",
            digest=target.digest,
        )
        return Shot("good", [body], ADMITTED)

    async def pass_on(self, target: Target, channel: str) -> None:
        """Answer well, once, and wait until the run is at its next gate or over."""
        shot = self.shot(target)
        told = await self.channels.send(shot, target.workflow_id, channel)
        await self.moved(target, shot, channel, told)

    async def moved(self, target: Target, shot: Shot, channel: str, told: Told, *, alive: bool = True) -> None:
        """The run takes this good answer: wait for what it does with it, and keep what was said."""
        self.tally.note(shot, channel, told, target.workflow_id, Owed(), disturbed=not alive)
        answered = await until(lambda: self._answered(target, shot), f"{target.open} is answered", seconds=60)
        if told.name != DELIVERED and told.receipt != answered:
            self.tally.complain(f"{target.open}: the sender was given another receipt than the gate")
        target.said.append(Said(shot.args[0], answered))
        at = target.open.replace(target.suffix, "") if target.suffix else target.open
        rest = PATH[PATH.index(at) + 1 :]
        if rest:
            await self.reach(target, rest[0])
        else:
            target.open = ""
            await self.gates.client.get_workflow_handle(target.workflow_id).result()

    async def _answered(self, target: Target, shot: Shot) -> str | None:
        """The digest of the receipt of the admitted answer, which has to be this one."""
        with contextlib.suppress(NoWorkerError):
            for gate in await self.gates.gates(target.workflow_id):
                if gate.interrupt_id == target.open and gate.answer is not None:
                    if gate.answer.answer_id != shot.args[0]["answerId"]:
                        msg = f"{target.open} of {target.workflow_id} was answered by {gate.answer}"
                        raise AssertionError(msg)
                    return gate.answer.receipt
        return None

    async def again(self, target: Target, channel: str) -> None:
        """The last thing said to this run, word for word: it earns the receipt that it earned then."""
        last = target.said[-1]
        shot = Shot("good, sent again", [last.body], REPEATED, receipt=last.receipt)
        told = await self.channels.send(shot, target.workflow_id, channel)
        self.tally.note(shot, channel, told, target.workflow_id, Owed(), disturbed=False)

    async def audit(self, target: Target) -> None:
        """A finished run: its result, and its receipts from the first to the last."""
        result = await self.gates.client.get_workflow_handle(target.workflow_id).result()
        if result != 3:
            self.tally.complain(f"{target.workflow_id} came to {json.dumps(result)}, expected 3")
        # An answer each, what was performed, and the end.
        await self.verify(target.workflow_id, len(PATH) + 2)

    async def verify(self, workflow_id: str, expected: int) -> None:
        """The chain of receipts holds and has this many links."""
        receipts: list[Receipt] = []
        after: int | None = 0
        while after is not None:
            page = await self.gates.receipts(workflow_id, after)
            receipts += page.receipts
            after = page.next
        verified = verify(receipts)
        if not isinstance(verified, Verified) or verified.count != expected:
            self.tally.complain(f"the receipts of {workflow_id}: {verified}, expected {expected} that hold")
