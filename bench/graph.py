"""The same pipeline as an ADK graph, and hosted by temporalio-google-adk as its README says."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from google.adk import Workflow
from google.adk.events import Event, RequestInput
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.workflow import START
from google.genai import types
from temporalio import activity, workflow
from temporalio.google_adk import HitlRequest, hitl_input_response, pending_hitl_requests
from temporalio.google_adk.workflow import activity_node

APP = "bench"
USER = "user"


def graph(gates: int, step: Any) -> Workflow:
    """`gates` rounds of step and gate; `step` is a node or a function."""

    def begin() -> Iterator[Event]:
        yield Event(output=1)

    def gate(node_input: int) -> Iterator[RequestInput]:
        yield RequestInput(
            interrupt_id=f"review-{node_input}", message=f"Step {node_input} is done", payload={"step": node_input}
        )

    def decide(node_input: dict[str, Any]) -> Iterator[Event]:
        number = node_input["number"]
        # Its constructor takes a route, and its types do not say so.
        yield Event(output=number + 1, route="again" if number < gates else "done")  # type: ignore[call-arg]

    def finish(node_input: int) -> Iterator[Event]:
        yield Event(output=node_input)

    edges: list[Any] = [(START, begin, step, gate, decide), (decide, {"again": step, "done": finish})]
    return Workflow(name=APP, edges=edges)


def plain_step(node_input: int) -> int:
    """The step of the graph on ADK itself."""
    return node_input


@activity.defn
async def tga_step(number: int) -> int:
    """The step of the graph on Temporal."""
    return number


@workflow.defn
class AdkOnTemporal:
    """The human-in-the-loop workflow of temporalio-google-adk's README."""

    def __init__(self) -> None:
        self._pending: dict[str, HitlRequest] = {}
        self._responses: dict[str, Any] = {}

    @workflow.query
    def pending_requests(self) -> list[HitlRequest]:
        """What waits for an answer."""
        return list(self._pending.values())

    @workflow.update
    def respond(self, interrupt_id: str, response: Any) -> None:
        """Take an answer."""
        self._responses[interrupt_id] = response

    @workflow.run
    async def run(self, gates: int) -> int:
        """Run the graph from pause to pause."""
        node = activity_node(tga_step, start_to_close_timeout=timedelta(minutes=10))
        runner = Runner(app_name=APP, node=graph(gates, node), session_service=InMemorySessionService())
        session = await runner.session_service.create_session(app_name=APP, user_id=USER)
        message = types.Content(role="user", parts=[types.Part(text="go")])
        while True:
            async for event in runner.run_async(user_id=USER, session_id=session.id, new_message=message):
                for request in pending_hitl_requests(event):
                    self._pending[request.interrupt_id] = request
            if not self._pending:
                return gates
            await workflow.wait_condition(lambda: any(i in self._responses for i in self._pending))
            answered = [i for i in self._pending if i in self._responses]
            parts = [hitl_input_response(i, self._responses.pop(i)) for i in answered]
            for i in answered:
                self._pending.pop(i)
            message = types.Content(role="user", parts=parts)
