"""Small pipelines that tests put on a real server. The counter lives outside Temporal."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from temporalio import workflow
from temporalio.common import RawValue

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import effect, step
    from gatewright.temporal import Answered, Default, Frame, Gate, GateExpiredError, GateFailedError, GateKind, Policy

COUNTED: Counter[str] = Counter()
"""How often each step really ran, by the id that the test gave it."""


class Approval(BaseModel):
    """A decision with a bound and a default."""

    approved: bool
    level: int = Field(default=1, ge=1, le=5)


class Even(BaseModel):
    """A rule that no JSON Schema can express."""

    number: int

    @field_validator("number")
    @classmethod
    def _even(cls, number: int) -> int:
        if number % 2:
            msg = "must be even"
            raise ValueError(msg)
        return number


@step(heartbeat=timedelta(seconds=2))
def count(name: str) -> int:
    """The expensive first step."""
    COUNTED[name] += 1
    return COUNTED[name]


@effect(kind="keyed")
async def pay(name: str, amount: int) -> str:
    """Something done to the world."""
    COUNTED[f"{name} paid"] += 1
    return f"paid {amount}"


@workflow.defn
class Reviewed:
    """Count, review in a loop until approved, pay."""

    @workflow.init
    def __init__(self, name: str) -> None:
        self.frame = Frame(gates=["review"])

    @workflow.run
    async def run(self, name: str) -> str:
        number = await self.frame.perform(count, name)
        review: Answered[Approval] | None = None
        while review is None or not review.value.approved:
            review = await self.frame.ask(
                Gate("review", answer=Approval, message=f"Approve {name}?", payload={"count": number})
            )
        return await self.frame.perform(pay, name, review.value.level, authorised_by=review)


@workflow.defn
class TwoGates:
    """Two gates open at once; both answers are needed."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> list[Any]:
        both = await asyncio.gather(self.frame.ask(Gate("left", answer=int)), self.frame.ask(Gate("right", answer=str)))
        return [answered.value for answered in both]


@workflow.defn
class FirstOfTwo:
    """Two gates open at once; the first answer wins and the other gate is superseded."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        tasks = [asyncio.create_task(self.frame.ask(Gate(name, answer=str))) for name in ("left", "right")]
        done, pending = await workflow.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await self.frame.ask(Gate("end"))
        return done[0].result().value


@workflow.defn
class ByDeadline:
    """A gate with a deadline of an hour; the argument is its default, None for none."""

    @workflow.init
    def __init__(self, default: dict[str, Any] | None = None) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, default: dict[str, Any] | None = None) -> str:
        try:
            answered = await self.frame.ask(
                Gate(
                    "review",
                    answer=Approval,
                    deadline=timedelta(hours=1),
                    on_deadline="fail" if default is None else Default(default),
                )
            )
        except GateExpiredError as expired:
            await self.frame.ask(Gate("late"))
            return expired.message
        return f"{answered.principal} {answered.value.approved}"


@workflow.defn
class Checked:
    """A gate whose type has a rule of its own."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> int:
        return (await self.frame.ask(Gate("number", answer=Even))).value.number


@workflow.defn
class Job:
    """A system gate that only the job may answer, or fail."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        try:
            done = await self.frame.ask(
                Gate("job", answer=str, kind=GateKind.SYSTEM, policy=Policy(invited=("system:job",)))
            )
        except GateFailedError as failed:
            return f"failed: {failed.reported.type}"
        return done.value


@workflow.defn
class Quick:
    """Finishes in the activation that brings its answer."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> Any:
        return (await self.frame.ask(Gate("go"))).value


@workflow.defn
class Later:
    """Asks after two seconds."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame(gates=["go"])

    @workflow.run
    async def run(self) -> Any:
        await workflow.sleep(2)
        return (await self.frame.ask(Gate("go"))).value


@workflow.defn
class Rolling:
    """Continues as new after every round, three times."""

    @workflow.init
    def __init__(self, left: int, carried: dict[str, Any] | None = None) -> None:
        self.frame = Frame(carried=carried)

    @workflow.run
    async def run(self, left: int, carried: dict[str, Any] | None = None) -> int:
        await self.frame.perform(count, workflow.info().workflow_id)
        await self.frame.ask(Gate("round", answer=int))
        if left > 1:
            await workflow.wait_condition(workflow.all_handlers_finished)
            workflow.continue_as_new(args=[left - 1, self.frame.carry()])
        return len(self.frame.book.gates)


@workflow.defn
class WithItsOwnDoor:
    """An application that had dynamic handlers before it was given gates."""

    @workflow.init
    def __init__(self) -> None:
        self.heard: list[str] = []
        workflow.set_dynamic_signal_handler(self._heard)
        self.frame = Frame()

    def _heard(self, name: str, args: Sequence[RawValue]) -> None:
        self.heard.append(name)

    @workflow.run
    async def run(self) -> list[str]:
        await self.frame.ask(Gate("go"))
        return self.heard


@workflow.defn
class Fails:
    """Fails for a reason of its own after its gate."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> None:
        await self.frame.ask(Gate("go"))
        from temporalio.exceptions import ApplicationError

        msg = "the world is against it"
        raise ApplicationError(msg, non_retryable=True)


class StrictDate(BaseModel):
    """A strict model: a date comes as JSON text and as nothing else."""

    model_config = ConfigDict(strict=True)

    when: date


class Odd(BaseModel):
    """Its validator raises something of its own."""

    name: str

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        return {"alice": name}[name]


@workflow.defn
class Typed:
    """One gate of a type that the argument names."""

    @workflow.init
    def __init__(self, which: str) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, which: str) -> str:
        types: dict[str, type[BaseModel]] = {"strict": StrictDate, "odd": Odd}
        gate: Gate[Any] = Gate("typed", answer=types[which])
        return str((await self.frame.ask(gate)).value)


@workflow.defn
class FourEyes:
    """Who answered the number may not confirm it."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        await self.frame.ask(Gate("number", answer=Even))
        confirmed = await self.frame.ask(Gate("confirm", policy=Policy(separate_from=("number",))))
        return confirmed.principal


@effect(kind="keyed")
async def slow_pay(name: str) -> str:
    """An effect that is under way when the run is cancelled."""
    COUNTED[f"{name} begun"] += 1
    await asyncio.sleep(1)
    COUNTED[f"{name} done"] += 1
    return "paid"


@workflow.defn
class Pays:
    """Performs a slow effect and asks a gate that nobody comes to."""

    @workflow.init
    def __init__(self, name: str) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, name: str) -> None:
        await self.frame.perform(slow_pay, name)
        await self.frame.ask(Gate("never"))


@workflow.defn
class CarriesOpen:
    """Continues as new while a gate is open, and asks for it again."""

    @workflow.init
    def __init__(self, carried: dict[str, Any] | None = None) -> None:
        self.frame = Frame(carried=carried)

    @workflow.run
    async def run(self, carried: dict[str, Any] | None = None) -> str:
        side = asyncio.create_task(self.frame.ask(Gate("side", answer=str)))
        if carried is None:
            await self.frame.ask(Gate("roll"))
            workflow.continue_as_new(self.frame.carry())
        answered = await side
        return f"{answered.occurrence.interrupt_id} {answered.value}"


@workflow.defn
class OwnDoor:
    """An application with an update named as the door."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.update
    async def answer(self, value: str) -> str:
        """The application's own."""
        return value

    @workflow.run
    async def run(self) -> None:
        await self.frame.ask(Gate("go"))


@workflow.defn
class Plain:
    """No gates at all: the plugin leaves it alone."""

    @workflow.run
    async def run(self) -> str:
        return "plain"


ALL = [
    Reviewed,
    TwoGates,
    FirstOfTwo,
    ByDeadline,
    Checked,
    Job,
    Quick,
    Later,
    Rolling,
    WithItsOwnDoor,
    Fails,
    Plain,
    Typed,
    FourEyes,
    Pays,
    CarriesOpen,
    OwnDoor,
]
STEPS: list[Callable[..., Any]] = [count, pay, slow_pay]
