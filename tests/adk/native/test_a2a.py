"""A2A: ADK's own server over a `TemporalRunner`, and the A2A SDK's client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, create_client
from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageRequest, Task, TaskState
from a2a.utils.errors import UnsupportedOperationError
from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

from gatewright.adk import Gateway
from gatewright.adk.native import TemporalRunner
from tests.adk.conversing import Talk, gists, response
from tests.adk.native.conftest import served
from tests.adk.pipelines import RUNS

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")

SDK = ("EventQueueSource.", "ActiveTask.")
GOOD = {"approved": True, "limit": 5}
MIXED = (
    "Message cannot contain both function responses and text. Function responses resume an existing invocation while "
    "text starts a new one."
)


def words(text: str) -> Part:
    """A text part."""
    return Part(text=text)


def answer(interrupt_id: str, response: dict[str, Any]) -> Part:
    """A functionResponse as A2A carries it: a data part, and metadata that says what it is."""
    part = Part(data=ParseDict({"id": interrupt_id, "name": "adk_request_input", "response": response}, Value()))
    part.metadata.update({"adk_type": "function_response"})
    return part


class Caller:
    """A client of the agent, in one conversation."""

    def __init__(self, client: Client, url: str, http: httpx.AsyncClient) -> None:
        self.client, self.url, self.http = client, url, http
        self.task = Task()

    async def say(self, *parts: Part) -> Task:
        """Send a message to the task, or open one; the task as it is then."""
        message = Message(
            message_id=str(uuid4()),
            role=Role.ROLE_USER,
            parts=list(parts),
            task_id=self.task.id,
            context_id=self.task.context_id,
        )
        async for told in self.client.send_message(SendMessageRequest(message=message)):
            self.task = told.task
        return self.task

    async def read(self) -> Task:
        """The task as the server has it."""
        return await self.client.get_task(GetTaskRequest(id=self.task.id))


def state(task: Task) -> str:
    """Where the task stands."""
    return TaskState.Name(task.status.state)


def gates(task: Task) -> list[dict[str, Any]]:
    """The gates that the task waits at, as ADK's function calls."""
    assert state(task) == "TASK_STATE_INPUT_REQUIRED", task.status
    parts = [part for part in task.status.message.parts if part.HasField("data")]
    told = {"adk_type": "function_call", "adk_is_long_running": True}
    assert [dict(part.metadata) for part in parts] == [told] * len(parts)
    calls = [MessageToDict(part.data) for part in parts]
    assert {call["name"] for call in calls} == {"adk_request_input"}
    return calls


def gate(task: Task) -> dict[str, Any]:
    """The one gate that the task waits at."""
    [call] = gates(task)
    return call


Calls = Callable[..., Awaitable[Caller]]


@pytest.fixture
async def calling(gateway: Gateway, port: int, workers: None) -> AsyncIterator[Calls]:
    """`await calling()` is a client, over HTTP, of the gated sample's agent."""
    async with AsyncExitStack() as stack:

        async def call(app: str = "gated", *, a2a: bool = True, newer: bool = False) -> Caller:
            runner = TemporalRunner(gateway, app, a2a=a2a)
            executor = partial(A2aAgentExecutor, force_new_version=newer)
            agent = to_a2a(
                runner.root_agent,
                host="127.0.0.1",
                port=port,
                runner=runner,
                agent_executor_factory=lambda given: executor(runner=given),
            )
            url = await stack.enter_async_context(served(agent, port))
            http = await stack.enter_async_context(httpx.AsyncClient(timeout=30))
            return Caller(await create_client(url, ClientConfig(httpx_client=http, streaming=False)), url, http)

        yield call
    # The SDK leaves the tasks of an A2A task behind that was not at its end when its server stopped.
    left = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "").startswith(SDK)]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.fixture(params=[False, True], ids=["executor", "newer executor"])
async def caller(calling: Calls, request: pytest.FixtureRequest) -> Caller:
    """A client of either of ADK's two executors."""
    return await calling(newer=request.param)


async def test_the_card_is_the_apps(caller: Caller) -> None:
    card = await A2ACardResolver(caller.http, caller.url).get_agent_card()

    assert (card.name, card.description) == ("gated", "profile -> gate -> discover -> gate -> finish")
    assert [interface.url for interface in card.supported_interfaces] == [caller.url]


async def test_open_answer_answer_completed(caller: Caller) -> None:
    """As ADK's own agent does it (01_open, 03_answer_datapart), but that the last answer arrives."""
    first = gate(await caller.say(words("hello")))
    second = gate(await caller.say(answer("plan-gate-1", GOOD)))
    done = await caller.say(answer("name-gate-1", {"result": "q3"}))

    assert (first["id"], first["args"]["message"]) == ("plan-gate-1", "Approve the plan?")
    assert first["args"]["payload"] == {"plan": "plan for hello"}
    assert first["args"]["response_schema"]["properties"]["limit"] == {
        # A2A's data has no integers.
        "title": "Limit",
        "type": "integer",
        "description": "Row limit",
        "default": 10.0,
        "minimum": 1.0,
        "maximum": 100.0,
    }
    assert (second["id"], second["args"]["response_schema"]["type"]) == ("name-gate-1", "string")
    assert state(done) == "TASK_STATE_COMPLETED"
    assert state(await caller.read()) == "TASK_STATE_COMPLETED"
    assert [part.text for artifact in done.artifacts for part in artifact.parts] == ["Report named 'q3' is done"]


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([words("here"), answer("plan-gate-1", GOOD)], MIXED),
        ([answer("plan-gate-1", {"approved": "maybe"})], 'got "maybe", wanted true or false'),
        ([answer("nope", GOOD)], "Function call not found for function response ids: {'nope'}"),
    ],
    ids=["mixed", "invalid", "unknown"],
)
async def test_after_a_rejected_message_the_task_is_answerable(caller: Caller, parts: list[Part], why: str) -> None:
    """On stock ADK the task is then failed for ever (04_text_plus_fr, 05_answer2)."""
    topic = str(uuid4())
    await caller.say(words(topic))

    again = gate(await caller.say(*parts))

    assert why in again["args"]["message"]
    assert again["args"]["interruptId"] == "plan-gate-1"
    assert gate(await caller.say(answer(again["id"], GOOD)))["id"] == "name-gate-1"
    assert RUNS[f"gated profile {topic}"] == 1


async def test_text_at_a_gate_is_refused_and_the_run_not_restarted(calling: Calls) -> None:
    """On stock ADK the pipeline starts again from the top (02_text_reply)."""
    caller, topic = await calling(), str(uuid4())
    opened = await caller.say(words(topic))
    told = {"app_name": "gated", "author": "gated", "session_id": opened.context_id}
    assert {name: opened.metadata[f"adk_{name}"] for name in told} == told
    assert {"adk_user_id", "adk_invocation_id", "adk_event_id", "adk_actions"} < set(opened.metadata)

    again = gate(await caller.say(words("yes approve")))

    assert "is open (it waits at plan-gate-1), so text would open another beside it" in again["args"]["message"]
    assert (RUNS[f"gated profile {topic}"], RUNS["gated profile yes approve"]) == (1, 0)
    assert gate(await caller.say(answer("plan-gate-1", GOOD)))["id"] == "name-gate-1"


async def test_the_newer_executor_turns_text_at_a_gate_away_by_itself(calling: Calls) -> None:
    caller, topic = await calling(newer=True), str(uuid4())
    await caller.say(words(topic))

    task = await caller.say(words("yes approve"))

    assert state(task) == "TASK_STATE_INPUT_REQUIRED"
    assert RUNS["gated profile yes approve"] == 0
    assert gate(await caller.say(answer("plan-gate-1", GOOD)))["id"] == "name-gate-1"


async def test_what_happened_elsewhere_is_seen_by_sending_the_last_answer_again(
    calling: Calls, gateway: Gateway
) -> None:
    caller = await calling("par")
    await caller.say(words("x"))
    last = answer("gate-b", {"result": 7})
    context = (await caller.say(last)).context_id
    someone = Talk(gateway, "par", f"A2A_USER_{context}", context)
    assert gists(await someone.say(response("gate-a", "A!")))[-1].startswith("par@1/fin@1=")

    assert state(await caller.read()) == "TASK_STATE_INPUT_REQUIRED"
    assert state(await caller.say(last)) == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("newer", [False, True], ids=["executor", "newer executor"])
async def test_a_task_with_two_gates_waits_for_both(calling: Calls, newer: bool) -> None:
    """On stock ADK the task counts as completed when the first of them is answered."""
    caller = await calling("par", newer=newer)

    both = gates(await caller.say(words("x")))
    rest = gate(await caller.say(answer("gate-b", {"result": 7})))
    done = await caller.say(answer("gate-a", {"result": "A!"}))

    assert [call["id"] for call in both] == ["gate-a", "gate-b"]
    assert rest["id"] == "gate-a"
    assert state(done) == "TASK_STATE_COMPLETED"


async def test_without_a2a_the_task_fails_and_the_run_waits_on(calling: Calls) -> None:
    """Another task of the same context answers it."""
    caller = await calling(a2a=False)
    await caller.say(words("hello"))

    task = await caller.say(words("here"), answer("plan-gate-1", GOOD))

    assert (state(task), task.status.message.parts[0].text) == ("TASK_STATE_FAILED", MIXED)
    with pytest.raises(UnsupportedOperationError, match="terminal state"):
        await caller.say(answer("plan-gate-1", GOOD))
    caller.task = Task(context_id=task.context_id)
    assert gate(await caller.say(answer("plan-gate-1", GOOD)))["id"] == "name-gate-1"


async def test_a_run_that_fails_fails_the_task(calling: Calls) -> None:
    caller = await calling("boom")
    await caller.say(words("x"))

    task = await caller.say(answer("g", {"result": "a"}))

    assert state(task) == "TASK_STATE_FAILED"
    assert [part.text for part in task.status.message.parts] == ["kaboom a"]
