"""ADK's sample apps, each written as a Gatewright pipeline: same nodes, same gates, same words."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.adk import App, Graph, Node
    from gatewright.effects import step
    from gatewright.temporal import Frame, Gate

RUNS: Counter[str] = Counter()
"""How often each node really ran, by app, node and the text that opened the run."""


class Approval(BaseModel):
    """Reviewer's decision about the plan."""

    approved: bool = Field(description="Approve the plan?")
    comment: str = Field(default="", description="Why")
    limit: int = Field(default=10, description="Row limit", ge=1, le=100)
    level: Literal["low", "high"] = "low"


@step()
def profile(text: str) -> dict[str, Any]:
    """Cold start work."""
    RUNS[f"gated profile {text}"] += 1
    return {"plan": f"plan for {text}", "rows": 3}


@step()
def discover(approval: Approval) -> dict[str, Any]:
    """What the approved plan finds."""
    return {"discovered": ["a", "b"], "approval": approval.model_dump()}


@step()
def finish(name: str) -> dict[str, Any]:
    """The report."""
    RUNS[f"gated finish {name}"] += 1
    return {"report": name}


@workflow.defn(name="gated")
class Gated:
    """profile -> gate -> discover -> gate -> finish."""

    @workflow.init
    def __init__(self, text: str) -> None:
        self.frame = Frame(gates=["plan-gate-1", "name-gate-1"])

    @workflow.run
    async def run(self, text: str) -> dict[str, Any]:
        plan = await self.frame.perform(profile, text, state={"profiled": True})
        approval = await self.frame.ask(
            Gate("plan-gate-1", answer=Approval, message="Approve the plan?", payload={"plan": plan["plan"]}),
            node="plan_gate",
        )
        await self.frame.perform(discover, approval.value)
        name = await self.frame.ask(
            Gate("name-gate-1", answer=str, message="What shall the report be named?"), node="name_gate"
        )
        self.frame.say(f"Report named {name.value!r} is done", node="finish")
        return await self.frame.perform(finish, name.value)


@step(name="join")
def join(a: Any, b: Any) -> dict[str, Any]:
    """Both answers."""
    return {"b": b, "a": a}


@step(name="fin")
def par_fin(joined: dict[str, Any]) -> dict[str, Any]:
    """What was joined."""
    return {"joined": joined}


@workflow.defn(name="par")
class Par:
    """Two gates at once, joined."""

    @workflow.init
    def __init__(self, text: str) -> None:
        self.frame = Frame(gates=["gate-a", "gate-b"])

    @workflow.run
    async def run(self, text: str) -> dict[str, Any]:
        first: Gate[Any] = Gate("gate-a", message="A?")
        second = Gate("gate-b", message="B?", answer=int)
        a, b = await asyncio.gather(self.frame.ask(first, node="a"), self.frame.ask(second, node="b"))
        joined = await self.frame.perform(join, a.value, b.value)
        return await self.frame.perform(par_fin, joined)


@step()
def draft(text: Any) -> dict[str, Any]:
    """Write a draft."""
    RUNS["loop draft"] += 1
    return {"draft": str(text)[:80]}


@step()
def decide(said: Any) -> Any:
    """Hand the answer on."""
    return said


@step(name="fin")
def loop_fin(said: Any) -> str:
    """The end."""
    return "finished"


@workflow.defn(name="loop")
class Loop:
    """Draft, review, and again until it is good."""

    @workflow.init
    def __init__(self, text: str) -> None:
        self.frame = Frame(gates=["review"])

    @workflow.run
    async def run(self, text: str) -> str:
        said: Any = text
        while True:
            drafted = await self.frame.perform(draft, said)
            review: Any = await self.frame.ask(Gate("review", message=f"ok? {drafted}"))
            said = review.value
            good = said in ("yes", True) or (isinstance(said, dict) and bool(said.get("ok")))
            await self.frame.perform(decide, said, route="ok" if good else "again")
            if good:
                return await self.frame.perform(loop_fin, said)


@step(attempts=1)
def boom(said: Any) -> None:
    """Fail."""
    msg = f"kaboom {said}"
    raise RuntimeError(msg)


@workflow.defn(name="boom")
class Boom:
    """Fails after its gate."""

    @workflow.init
    def __init__(self, text: str) -> None:
        self.frame = Frame(gates=["g"], on_failure="fail")

    @workflow.run
    async def run(self, text: str) -> None:
        said: Any = await self.frame.ask(Gate("g", message="go?"), node="gate")
        await self.frame.perform(boom, said.value)


class A(BaseModel):
    """A form with a list and an optional field."""

    name: str
    tags: list[str] = []
    note: str | None = None


A.__doc__ = None  # as in the sample, which has none to show


@step(name="work")
def strict_work(text: str) -> str:
    """Anything."""
    RUNS[f"strict work {text}"] += 1
    return "w"


@step(name="fin")
def strict_fin(got: Any) -> dict[str, Any]:
    """What was filled in."""
    return {"got": got}


@workflow.defn(name="strict")
class Strict:
    """One form."""

    @workflow.init
    def __init__(self, text: str) -> None:
        self.frame = Frame(gates=["g"])

    @workflow.run
    async def run(self, text: str) -> dict[str, Any]:
        await self.frame.perform(strict_work, text)
        got = await self.frame.ask(Gate("g", answer=A, message="fill in"), node="gate")
        return await self.frame.perform(strict_fin, got.value.model_dump())


@step(name="work")
async def slow_work(text: str) -> str:
    """Takes its time."""
    RUNS[f"slow start {text}"] += 1
    await asyncio.sleep(2)
    RUNS[f"slow end {text}"] += 1
    return "w"


@workflow.defn(name="slow")
class Slow:
    """Slow before its gate."""

    @workflow.init
    def __init__(self, text: str) -> None:
        self.frame = Frame(gates=["g"])

    @workflow.run
    async def run(self, text: str) -> None:
        await self.frame.perform(slow_work, text)
        await self.frame.ask(Gate("g", message="go on?"), node="gate")


SAMPLES: dict[str, tuple[type, list[Callable[..., Any]]]] = {
    "gated": (Gated, [profile, discover, finish]),
    "par": (Par, [join, par_fin]),
    "loop": (Loop, [draft, decide, loop_fin]),
    "boom": (Boom, [boom]),
    "strict": (Strict, [strict_work, strict_fin]),
    "slow": (Slow, [slow_work]),
}
"""Each sample's workflow and activities. They share names, as ADK's nodes do, so each has a worker of its own."""

GRAPHS = {
    "gated": Graph.chain("profile", Node("plan_gate"), "discover", Node("name_gate"), "finish"),
}
DESCRIPTIONS = {"gated": "profile -> gate -> discover -> gate -> finish"}


def apps(queue: str) -> list[App]:
    """The samples as apps, whose workers poll `{queue}-{name}`."""
    return [
        App(
            name,
            name,
            task_queue=f"{queue}-{name}",
            description=DESCRIPTIONS.get(name, ""),
            graph=GRAPHS.get(name, Graph()),
        )
        for name in SAMPLES
    ]
