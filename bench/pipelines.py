"""
One pipeline, `gates` times [step, gate, answer], by hand on Temporal and on Gatewright.

The third way, ADK's graph, is in `bench.graph`, because google-adk takes a
second to import and a worker that needs none of it should not pay for it.
"""

from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import step
    from gatewright.temporal import Frame, Gate

GATE = "review"


class Approval(BaseModel):
    """What each gate asks for."""

    approved: bool
    number: int


@activity.defn
async def bare_step(number: int) -> int:
    """The step before each gate: no work, so that what is measured is the way there and back."""
    return number


@step()
async def gatewright_step(number: int) -> int:
    """The same step, declared for Gatewright."""
    return number


@workflow.defn
class Bare:
    """What a careful author writes by hand: an update with a validator, an activity, a wait."""

    @workflow.init
    def __init__(self, gates: int) -> None:
        self._gates = gates
        self._open = 0
        self._answers: dict[int, dict[str, Any]] = {}

    @workflow.run
    async def run(self, gates: int) -> int:
        """Come to each gate in turn."""
        for number in range(1, gates + 1):
            await workflow.execute_activity(bare_step, number, start_to_close_timeout=timedelta(minutes=10))
            self._open = number
            await workflow.wait_condition(lambda: self._open == 0)
        return gates

    @workflow.update
    def answer(self, number: int, response: dict[str, Any]) -> str:
        """Take the answer to the open gate."""
        self._answers[number] = response
        self._open = 0
        return "taken"

    @answer.validator
    def _check(self, number: int, response: dict[str, Any]) -> None:
        if number != self._open or not isinstance(response.get("approved"), bool):
            msg = f"gate {number} is not open, or this is no answer to it"
            raise ApplicationError(msg, non_retryable=True)


@workflow.defn
class Gated:
    """The same on Gatewright."""

    @workflow.init
    def __init__(self, gates: int) -> None:  # noqa: ARG002 - Temporal wants the same arguments as `run`
        self.frame = Frame(gates=[GATE])

    @workflow.run
    async def run(self, gates: int) -> int:
        """Come to each gate in turn."""
        for number in range(1, gates + 1):
            done = await self.frame.perform(gatewright_step, number)
            await self.frame.ask(Gate(GATE, answer=Approval, message=f"Step {done} is done", payload={"step": done}))
        return gates
