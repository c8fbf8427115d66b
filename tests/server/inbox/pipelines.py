"""Pipelines whose gates show and ask for all there is."""

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.adk import App, Graph, Node
    from gatewright.temporal import Default, Frame, Gate, Policy

SCRIPT = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"


class Size(StrEnum):
    """A choice."""

    SMALL = "small"
    LARGE = "large"


class Place(BaseModel):
    """A nested object."""

    street: str = Field(min_length=2)
    number: int = Field(ge=1)


class Card(BaseModel):
    """One form of paying."""

    kind: Literal["card"] = "card"
    digits: str = Field(pattern=r"^\d{4}$")


class Invoice(BaseModel):
    """Another one."""

    kind: Literal["invoice"] = "invoice"
    days: int = 14


class Everything(BaseModel):
    """Every kind of field."""

    approved: bool
    size: Size
    name: str = Field(min_length=3, description="Who signs")
    count: int = Field(ge=1, le=10)
    ratio: float | None = None
    day: date
    urgent: bool = False
    comment: str = ""
    home: Place
    second: Place | None = None
    tags: list[Annotated[str, Field(max_length=6)]] = []
    stops: list[Place] = []
    colours: list[Literal["red", "green", "blue"]] = []
    paying: Annotated[Card | Invoice, Field(discriminator="kind")]
    extra: dict[str, Any] = {}


class Yes(BaseModel):
    """A decision."""

    approved: bool
    comment: str = ""


@workflow.defn
class Asking:
    """One gate with everything in it."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, text: str) -> Any:
        """Ask."""
        message = f"# Fill *everything* in\n\n{SCRIPT}\n\n[a link](javascript:alert(1)) ![a picture](http://example.com/x.png)"
        payload = {"html": SCRIPT, "rows": [{"name": "one", "value": 1}, {"name": SCRIPT, "value": 2}]}
        answer = await self.frame.ask(Gate("everything", answer=Everything, message=message, payload=payload))
        return answer.value.model_dump(mode="json")


@workflow.defn
class Going:
    """Round after round until somebody approves, then a dangerous gate for ada alone, with a deadline and a default."""

    @workflow.init
    def __init__(self, text: str) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, text: str) -> str:
        """Ask, ask again, ask whether to wipe."""
        rounds = 0
        while True:
            rounds += 1
            payload = {
                "draft": f"draft {rounds} of {text}",
                "same": [1, 2],
                "lines": "one\ntwo\nthree" if rounds > 1 else "one\nthree",
            }
            if (
                await self.frame.ask(Gate("review", answer=Yes, message=f"Is draft {rounds} good?", payload=payload))
            ).value.approved:
                break
        wipe = Gate(
            "wipe",
            answer=Yes,
            message="Wipe the old release?",
            policy=Policy(dangerous=True, invited=("ada",)),
            deadline=timedelta(hours=2),
            on_deadline=Default(Yes(approved=False)),
        )
        return f"{rounds} rounds, wiped: {(await self.frame.ask(wipe)).value.approved}"


WORKFLOWS = [Asking, Going]
APPS = [
    App("asking", "Asking"),
    App(
        "going",
        "Going",
        graph=Graph(
            (Node("review", kind="gate"), Node("wipe", kind="gate")),
            (("__START__", "review"), ("review", "review"), ("review", "wipe")),
        ),
    ),
]
