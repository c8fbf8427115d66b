"""The sample pipelines of `tests/adk/pipelines.py` as ADK workflows: same nodes, same gates, same words."""

from collections.abc import Iterator
from typing import Any, Literal

from google.adk import Workflow
from google.adk.events import Event, RequestInput
from google.adk.workflow import START, JoinNode
from google.genai import types
from pydantic import BaseModel, Field

Yields = Iterator[Any]


def event(**fields: Any) -> Event:
    """An event by ADK's shorthands (`message`, `state`, `route`), which its type does not show."""
    return Event(**fields)


def words(node_input: Any) -> str:
    """What a first node is given, as text: ADK gives it the message, or None where there is none."""
    if not isinstance(node_input, types.Content):
        return str(node_input)
    return "".join(part.text or "" for part in node_input.parts or [])


class Approval(BaseModel):
    """Reviewer's decision about the plan."""

    approved: bool = Field(description="Approve the plan?")
    comment: str = Field(default="", description="Why")
    limit: int = Field(default=10, description="Row limit", ge=1, le=100)
    level: Literal["low", "high"] = "low"


def profile(node_input: Any) -> Yields:
    yield event(output={"plan": f"plan for {words(node_input)}", "rows": 3}, state={"profiled": True})


def plan_gate(node_input: Any) -> Yields:
    yield RequestInput(
        interrupt_id="plan-gate-1",
        message="Approve the plan?",
        payload={"plan": node_input["plan"]},
        response_schema=Approval,
    )


def discover(node_input: Any) -> Yields:
    yield event(output={"discovered": ["a", "b"], "approval": node_input})


def name_gate(node_input: Any) -> Yields:
    yield RequestInput(interrupt_id="name-gate-1", message="What shall the report be named?", response_schema=str)


def finish(node_input: Any) -> Yields:
    yield event(message=f"Report named {node_input!r} is done")
    yield event(output={"report": node_input})


def a(node_input: Any) -> Yields:
    yield RequestInput(interrupt_id="gate-a", message="A?")


def b(node_input: Any) -> Yields:
    yield RequestInput(interrupt_id="gate-b", message="B?", response_schema=int)


def _joined(node_input: Any) -> Yields:
    yield event(output={"joined": node_input})


def draft(node_input: Any) -> Yields:
    yield event(output={"draft": words(node_input)[:80]})


def review(node_input: Any) -> Yields:
    yield RequestInput(interrupt_id="review", message=f"ok? {node_input}")


def decide(node_input: Any) -> Yields:
    good = node_input in ("yes", True) or (isinstance(node_input, dict) and bool(node_input.get("ok")))
    yield event(output=node_input, route="ok" if good else "again")


def _finished(node_input: Any) -> Yields:
    yield event(output="finished")


def _go(node_input: Any) -> Yields:
    yield RequestInput(interrupt_id="g", message="go?")


def boom(node_input: Any) -> None:
    raise RuntimeError(f"kaboom {node_input}")


class A(BaseModel):
    name: str
    tags: list[str] = []
    note: str | None = None


def work(node_input: Any) -> Yields:
    yield event(output="w")


def _fill_in(node_input: Any) -> Yields:
    yield RequestInput(interrupt_id="g", message="fill in", response_schema=A)


def _got(node_input: Any) -> Yields:
    yield event(output={"got": node_input})


def _called(name: str, function: Any) -> Any:
    """The function under the name of a node that other samples have as well."""
    function.__name__ = name
    return function


def sample(app: str) -> Workflow:
    """A sample's workflow, built anew: a node belongs to one workflow."""
    join, fin = JoinNode(name="join"), "fin"
    edges: dict[str, list[Any]] = {
        "gated": [(START, profile, plan_gate, discover, name_gate, finish)],
        "par": [(START, a, join), (START, b, join), (join, _called(fin, _joined))],
        "loop": [(START, draft, review, decide), (decide, {"again": draft, "ok": _called(fin, _finished)})],
        "boom": [(START, _called("gate", _go), boom)],
        "strict": [(START, work, _called("gate", _fill_in), _called(fin, _got))],
    }
    return Workflow(name=app, edges=edges[app])
