"""Small pipelines that are opened by a text. The counters live outside Temporal."""

import asyncio
from collections import Counter, defaultdict
from datetime import timedelta

from pydantic import BaseModel
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.adk import App, Graph, Node
    from gatewright.effects import step
    from gatewright.temporal import Frame, Gate

COUNTED: Counter[str] = Counter()
"""How often the first step ran, by the text that opened the run."""

RELEASED: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
"""What a slow step waits for, by the text that opened the run."""


class Approval(BaseModel):
    """A decision."""

    approved: bool
    comment: str = ""


class Naming(BaseModel):
    """What a blank form does not give: it sends null."""

    name: str


@step()
def count(text: str) -> dict[str, int | str]:
    """The expensive first step."""
    COUNTED[text] += 1
    return {"plan": f"plan for {text}", "runs": COUNTED[text]}


@step(timeout=timedelta(minutes=2))
async def hold(text: str) -> str:
    """A step that takes as long as the test wants."""
    await RELEASED[text].wait()
    return f"held {text}"


@step(attempts=1)
def spoil(text: str) -> str:
    """A step that fails for good."""
    raise ValueError(f"nothing can be made of {text}")


@workflow.defn
class Planned:
    """Count, review until approved, done."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, text: str) -> str:
        """Go round until somebody approves."""
        plan = await self.frame.perform(count, text)
        while True:
            review = await self.frame.ask(Gate("review", answer=Approval, message="Approve the plan?", payload=plan))
            if review.value.approved:
                return f"approved by {review.principal}"


@workflow.defn
class Held:
    """A gate, a step that takes its time, and another gate."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, text: str) -> str:
        """Ask, hold, ask."""
        await self.frame.ask(Gate("before", answer=Approval, message="Begin?"))
        held = await self.frame.perform(hold, text)
        await self.frame.ask(Gate("after", answer=Approval, message="Well?", payload=held))
        return held


@workflow.defn
class Spoiled:
    """A gate, and then a failure."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame(on_failure="fail")

    @workflow.run
    async def run(self, text: str) -> str:
        """Ask, fail."""
        await self.frame.ask(Gate("before", answer=Approval, message="Begin?"))
        return await self.frame.perform(spoil, text)


@workflow.defn
class Named:
    """Count, ask for a name, done."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, text: str) -> str:
        """Ask."""
        await self.frame.perform(count, text)
        named = await self.frame.ask(Gate("naming", answer=Naming, message="Which name?"))
        return f"named {named.value.name} by {named.principal}"


@workflow.defn
class Mended:
    """Its step fails until somebody says what follows."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, text: str) -> str:
        """Fail, ask, go on without."""
        await self.frame.ask(Gate("before", answer=Approval, message="Begin?"))
        return await self.frame.perform(spoil, text, on_skip="went on without it")


WORKFLOWS = [Planned, Held, Spoiled, Named, Mended]
STEPS = [count, hold, spoil]
APPS = [
    App("planned", "Planned", description="count -> review", graph=Graph.chain("count", Node("review", kind="gate"))),
    App("held", "Held"),
    App("spoiled", "Spoiled"),
    App("mended", "Mended"),
    App("named", "Named", graph=Graph.chain("count", Node("naming", kind="gate"))),
]
