"""One pipeline, p: prep, then gates one after the other, then d. Which gates, the text that opens it says."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.adk import App
    from gatewright.effects import step
    from gatewright.temporal import Frame, Gate

RAN: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
"""Which steps really ran, and on what, by session."""


class Decision(BaseModel):
    """A form with a field to fill in and two with defaults."""

    approved: bool
    note: str = "dflt"
    level: int = Field(default=1, ge=1, le=5)


class Address(BaseModel):
    """A form within a form."""

    zip: int


class Person(BaseModel):
    """Nested, optional, and a list."""

    addr: Address
    kind: Literal["x"] | None = None
    tags: list[int] = []


OBJECT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}

SHAPES: dict[str, tuple[tuple[Gate[Any], ...], ...]] = {
    "bare": ((Gate("g"),),),
    "shown": ((Gate("g", answer=Decision, message="Approve?", payload={"d": 1}),),),
    "decision": ((Gate("g", answer=Decision),),),
    "person": ((Gate("g", answer=Person),),),
    "object": ((Gate("g", answer=OBJECT),),),
    "list": ((Gate("g", answer=list[str]),),),
    "ints": ((Gate("g", answer=list[int]),),),
    "literal": ((Gate("g", answer=Literal["a", "b"]),),),
    "enum": ((Gate("g", answer={"type": "string", "enum": ["a"]}),),),
    "minimum": ((Gate("g", answer={"type": "integer", "minimum": 10}),),),
    "optional": ((Gate("g", answer=int | None),),),
    "bool": ((Gate("g", answer=bool),),),
    "int": ((Gate("g", answer=int),),),
    "str": ((Gate("g", answer=str),),),
    "two": ((Gate("a"),), (Gate("b"),)),
    "both": ((Gate("a"), Gate("b")),),
    "both-int": ((Gate("a", answer=int), Gate("b", answer=int)),),
}
"""Gates that are asked one after the other; those in one bracket at once."""


@step()
def prep(session: str, words: str) -> str:
    """What must never run twice."""
    RAN[session].append(("prep", words))
    return "P"


@step()
async def slow(session: str) -> str:
    """A sibling that takes its time."""
    await asyncio.sleep(1)
    RAN[session].append(("slow", None))
    return "W"


@step()
def m(session: str, got: Any) -> str:
    """Between two gates."""
    RAN[session].append(("m", got))
    return f"m:{got}"


@step()
def d(session: str, got: Any) -> str:
    """What the answers were for."""
    RAN[session].append(("d", got))
    return f"d:{got}"


@step()
def use(session: str, got: Decision) -> str:
    """A consumer that wants the model."""
    RAN[session].append(("use", got))
    return "ok"


@workflow.defn(name="p")
class Pipeline:
    """prep -> gates -> d."""

    @workflow.init
    def __init__(self, told: dict[str, str]) -> None:
        self.frame = Frame(gates=["g", "a", "b"], on_failure="fail")

    @workflow.run
    async def run(self, told: dict[str, str]) -> Any:
        shape, session = told["shape"], told["session"]
        await self.frame.perform(prep, session, told["words"], state={"prepared": True})
        if shape == "beside":
            answer, _ = await asyncio.gather(self.frame.ask(Gate("g"), node="gate"), self.frame.perform(slow, session))
            return await self.frame.perform(d, session, answer.value)
        if shape == "typed":
            decided = await self.frame.ask(Gate("g", answer=Decision), node="gate")
            return await self.frame.perform(use, session, decided.value)
        got: Any = None
        for position, gates in enumerate(SHAPES[shape]):
            if position:
                await self.frame.perform(m, session, got)
            nodes = ["gate"] if len(gates) == 1 else [f"g{gate.name}" for gate in gates]
            answers = await asyncio.gather(
                *(self.frame.ask(gate, node=node) for gate, node in zip(gates, nodes, strict=True))
            )
            got = answers[0].value if len(gates) == 1 else {a.occurrence.gate: a.value for a in answers}
        return await self.frame.perform(d, session, got)


STEPS = [prep, slow, m, d, use]


def opens(words: str, state: Mapping[str, Any]) -> dict[str, str]:
    """`shape session words`: the rest of the words is for nobody but the record."""
    shape, session, *_ = words.split()
    if shape not in SHAPES and shape not in {"beside", "typed"}:
        msg = f"there is no shape {shape!r}"
        raise ValueError(msg)
    return {"shape": shape, "session": session, "words": words}


APPS = [App("contract", "p", opens=opens)]
