"""A. A run pauses: the gate's event, and what is there while it waits."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from google.genai import types

from gatewright.protocol.errors import GateError
from gatewright.store import SessionKey
from gatewright.temporal import Gate
from tests.parity.contract.pipelines import OBJECT, RAN, Address
from tests.parity.contract.saying import Saying, gate_of, outputs, response, text

Begin = Callable[..., Awaitable[Saying]]


async def test_a01_the_call(saying: Begin) -> None:
    """
    A01, mirrored.

    ADK: A gate is one event whose content is `{role: 'model', parts: [function_call(name='adk_request_input', id=<interrupt id>, args=...)]}`.
    """
    session = await saying()

    event = (await session.open("shown"))[-1]

    assert event.content is not None
    assert event.content.role == "model"
    assert event.content.parts is not None
    assert [type(part.function_call) for part in event.content.parts] == [types.FunctionCall]
    call = gate_of([event])
    assert (call.name, call.id) == ("adk_request_input", "g")


async def test_a02_its_arguments(saying: Begin) -> None:
    """
    A02, mirrored.

    ADK: The arguments are exactly `interruptId`, `payload`, `message` and `response_schema` (in that mixture of cases), in that order; what is absent is null.
    """
    session = await saying()

    args = gate_of(await session.open("bare")).args

    assert args is not None
    assert list(args.items()) == [("interruptId", "g"), ("payload", None), ("message", None), ("response_schema", None)]


async def test_a03_the_schema(saying: Begin) -> None:
    """
    A03, mirrored.

    ADK: A type is rendered as its JSON Schema; a schema that is a dict is shown unchanged.
    """
    shown = {}
    for shape in ("decision", "list", "object"):
        args = gate_of(await (await saying()).open(shape)).args
        assert args is not None
        shown[shape] = args["response_schema"]

    assert (shown["decision"]["type"], shown["decision"]["required"]) == ("object", ["approved"])
    assert shown["list"] == {"items": {"type": "string"}, "type": "array"}
    assert shown["object"] == OBJECT


async def test_a04_long_running(saying: Begin) -> None:
    """
    A04, mirrored.

    ADK: `long_running_tool_ids` is the interrupt id alone, a list on the wire, and the event is a final response.
    """
    event = (await (await saying()).open("bare"))[-1]

    assert event.long_running_tool_ids == {"g"}
    assert event.model_dump(mode="json", by_alias=True)["longRunningToolIds"] == ["g"]
    assert event.is_final_response()


async def test_a05_the_author(saying: Begin) -> None:
    """
    A05, mirrored.

    ADK: The author is the workflow that owns the node, never the node.
    """
    event = (await (await saying()).open("bare"))[-1]

    assert event.author == "p"


async def test_a06_the_path(paused: Begin) -> None:
    """
    A06, mirrored.

    ADK: `node_info.path` is `<workflow>@1/<node>@<n>`; n counts the activations of the node in this invocation.
    """
    session = await paused("two")

    await session.say(response("a", 1))

    paths = [event.node_info.path for event in (await session.read()).events if event.get_function_calls()]
    assert paths == ["p@1/gate@1", "p@1/gate@2"]


async def test_a09_the_turn_ends_and_everything_is_kept(saying: Begin) -> None:
    """
    A09, mirrored.

    ADK: The turn ends normally; the session holds the text, what nodes gave and the gate, all of one invocation.
    """
    session = await saying()

    shown = await session.open("bare")

    kept = (await session.read()).events
    assert [event.author for event in kept] == ["user", "p", "p"]
    assert kept[1:] == shown
    assert len({event.invocation_id for event in kept}) == 1


async def test_a12_a_gate_is_shown_while_its_sibling_still_runs(saying: Begin) -> None:
    """
    A12, mirrored.

    ADK: The gate's event comes at once while slow siblings run on; the turn ends when each of them has settled.
    """
    session = await saying()
    ran_by_then = {}

    message = types.Content(role="user", parts=[text(f"beside {session.session} go")])
    async for event in session.runner.run_async(user_id="u", session_id=session.session, new_message=message):
        ran_by_then[event.node_info.path] = [name for name, _ in RAN[session.session]]

    assert ran_by_then == {
        "p@1/prep@1": ["prep"],
        "p@1/gate@1": ["prep"],
        "p@1/slow@1": ["prep", "slow"],
    }


async def test_a13_what_cannot_be_shown_fails_where_it_is_written(paused: Begin) -> None:
    """
    A13, differs.

    ADK: `response_schema=Literal[...]` fails the node when it pauses, and no gate is raised.

    Gatewright: `Literal` is rendered, shown and enforced; a type that has no JSON Schema is refused where the gate is defined, by its name.
    """
    session = await paused("literal")

    assert "wanted one of" in str(await session.refused(response("g", "c")))
    await session.say(response("g", "a"))
    assert session.took() == [("d", "a")]
    with pytest.raises(GateError, match="gate 'g': "):
        Gate("g", answer=Callable[[], Address])
    assert Gate("g", answer=Literal["a"]).response_schema == {"const": "a", "type": "string"}


async def test_a14_open_gates_can_be_asked_for(paused: Begin) -> None:
    """
    A14, differs.

    ADK: No public API lists open gates; they are derived from the events of the whole session, by id alone.

    Gatewright: The run lists its gates by a query: interrupt id, branch, message, payload, schema, opening, deadline, state. The store lists those of all runs.
    """
    session = await paused("two")
    workflow_id = SessionKey(app="contract", user="u", session=session.session).workflow_id(1)
    client = session.runner.gateway.client

    first = await client.gates(workflow_id)
    await session.say(response("a", 1))
    second = await client.gates(workflow_id)

    def shown(gates: Any) -> list[tuple[str, str, str]]:
        return [(gate.interrupt_id, gate.branch, gate.state) for gate in gates]

    assert shown(first) == [("a", "p@1/gate@1", "open")]
    # What waits comes first.
    assert shown(second) == [("b", "p@1/gate@2", "open"), ("a", "p@1/gate@1", "answered")]
    assert [row.interrupt_id for row in client.store.gates(run=workflow_id, states={"open"})] == ["b"]
    assert outputs(await session.say(response("b", 2))) == [("p@1/d@1", "d:2")]
