"""The pipelines that are stormed: every stop that a run can be paused at, and counters that lie outside Temporal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import effect, step
    from gatewright.temporal import Answered, Frame, Gate, Policy

INVITED = "user:ann"
"""The only principal who may answer `second`."""

STARTED = "started.txt"
ACTED = "acted.txt"


class Order(BaseModel):
    """Which run this is, and the folder of the files that count."""

    name: str
    folder: str


class Budget(BaseModel):
    """Something nested, with a list and a bound."""

    amount: float = Field(gt=0, le=1000)
    codes: list[int] = Field(default=[], max_length=3)


class Approval(BaseModel):
    """One of every kind of thing that a schema can say."""

    approved: bool
    level: int = Field(default=1, ge=1, le=5)
    colour: Literal["red", "green"] = "green"
    note: str = Field(default="", max_length=20)
    budget: Budget | None = None


@step()
def count_start(order: Order) -> str:
    """Append one line for each execution: the expensive first step."""
    _append(order, STARTED)
    return order.name


@effect(kind="keyed")
def act(order: Order, level: int) -> int:
    """Append one line for each execution: what is done to the world."""
    _append(order, ACTED)
    return level


def _append(order: Order, file: str) -> None:
    with (Path(order.folder) / file).open("a", encoding="utf-8") as lines:
        lines.write(f"{order.name}\n")


@workflow.defn
class Stormed:
    """Count, pass `first` and `second`, go round at `looped` until it is approved, act."""

    @workflow.init
    def __init__(self, order: Order) -> None:
        self.frame = Frame(gates=["first", "second", "looped"])

    @workflow.run
    async def run(self, order: Order) -> int:
        await self.frame.perform(count_start, order)
        for name, policy in (("first", Policy()), ("second", Policy(invited=(INVITED,)))):
            await self.frame.ask(Gate(name, answer=Approval, payload=[order.name, name], policy=policy))
        approval: Answered[Approval] | None = None
        turn = 0
        while approval is None or not approval.value.approved:
            turn += 1
            approval = await self.frame.ask(Gate("looped", answer=Approval, payload=[order.name, "looped", turn]))
        return await self.frame.perform(act, order, approval.value.level, authorised_by=approval)


@workflow.defn
class Raced:
    """A gate for each round, then one at which the run rests while the losers are judged."""

    @workflow.init
    def __init__(self, order: Order, rounds: int) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, order: Order, rounds: int) -> list[Any]:
        await self.frame.perform(count_start, order)
        winners = [(await self.frame.ask(Gate("race", answer=int))).value for _ in range(rounds)]
        rest = await self.frame.ask(Gate("rest"))
        await self.frame.perform(act, order, 1, authorised_by=rest)
        return winners


PIPELINES = [Stormed, Raced]
STEPS: list[Callable[..., Any]] = [count_start, act]
