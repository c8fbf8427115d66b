"""A small pipeline that the command line talks to."""

from typing import Literal

from pydantic import BaseModel, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from gatewright.temporal import Frame, Gate, Policy


class Verdict(BaseModel):
    """A decision with a bound, a list and free text."""

    decision: Literal["yes", "no"]
    level: int = Field(default=1, ge=1, le=5)
    tags: list[str] = []
    note: str = ""


@workflow.defn
class Approve:
    """Ask until somebody says yes; as often as the input says at two gates at once."""

    @workflow.init
    def __init__(self, gates: int) -> None:
        """Host the frame."""
        self.frame = Frame()

    @workflow.run
    async def run(self, gates: int) -> str:
        """Wait for the first yes at each of the gates, one gate after the other; at a second one only for danger."""
        said = "no"
        while said != "yes":
            said = (
                await self.frame.ask(Gate("review", answer=Verdict, message="Well?", payload={"n": gates}))
            ).value.decision
        if gates > 1:
            policy = Policy(dangerous=True)
            await self.frame.ask(Gate("launch", answer=Verdict, message="Sure?", policy=policy))
        return "approved"
