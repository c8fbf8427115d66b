"""One pipeline in three releases: the model behind its gate changes while a run is paused there."""

from pydantic import BaseModel, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.temporal import Frame, Gate
    from tests.temporal.pipelines import count


class Decision(BaseModel):
    """As it was when the gate opened."""

    approved: bool
    level: int = Field(default=1, ge=1, le=5)


class DecisionWithMore(BaseModel):
    """A field was added, with a default."""

    approved: bool
    level: int = Field(default=1, ge=1, le=5)
    urgent: bool = False


class StricterDecision(BaseModel):
    """A bound was tightened, and a field added without a default."""

    approved: bool
    level: int = Field(default=1, ge=1, le=3)
    reason: str


@workflow.defn(name="Versioned")
class Before:
    """The release that opened the gate."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        await self.frame.perform(count, workflow.info().workflow_id)
        decision = await self.frame.ask(Gate("review", answer=Decision))
        return decision.value.model_dump_json()


@workflow.defn(name="Versioned")
class WithMore:
    """The next release."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        await self.frame.perform(count, workflow.info().workflow_id)
        decision = await self.frame.ask(Gate("review", answer=DecisionWithMore))
        return decision.value.model_dump_json()


@workflow.defn(name="Versioned")
class Stricter:
    """The one after."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        await self.frame.perform(count, workflow.info().workflow_id)
        decision = await self.frame.ask(Gate("review", answer=StricterDecision))
        return decision.value.model_dump_json()


@workflow.defn(name="Passed")
class PassedBefore:
    """Two gates: the model behind the first changes while the run is paused at the second."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        decision = await self.frame.ask(Gate("review", answer=Decision))
        await self.frame.perform(count, workflow.info().workflow_id)
        await self.frame.ask(Gate("end"))
        return f"{decision.value.approved} {decision.value.level}"


@workflow.defn(name="Passed")
class PassedStricter:
    """The same pipeline, whose first gate would no longer take what was answered."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        decision = await self.frame.ask(Gate("review", answer=StricterDecision))
        await self.frame.perform(count, workflow.info().workflow_id)
        await self.frame.ask(Gate("end"))
        return f"{decision.value.approved} {decision.value.level}"
