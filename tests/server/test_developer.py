"""What ADK's developer UI asks for beside the conversation."""

import re
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from google.adk.cli.utils.graph_serialization import serialize_app_info
from google.adk.cli.utils.graph_visualization import plot_workflow_graph

from gatewright.adk import START, App, Gateway, Graph, Node
from gatewright.server import create_app
from gatewright.server.developer import FIXED
from gatewright.server.graph import as_data, as_dot
from gatewright.temporal import GateClient
from tests.server.conftest import served

Asking = Callable[..., httpx.AsyncClient]


async def test_apps_are_listed_in_both_forms(asking: Asking) -> None:
    """Their names, or what is known about them."""
    names = await asking().get("/list-apps?relative_path=./")
    known = (await asking().get("/list-apps", params={"detailed": True})).json()["apps"]

    assert ["held", "mended", "named", "planned", "spoiled"] == names.json()
    assert {
        "name": "planned",
        "rootAgentName": "Planned",
        "description": "count -> review",
        "language": "python",
        "isComputerUse": False,
        "agents": None,
    } in known


@pytest.mark.parametrize("fixed", FIXED, ids=lambda fixed: f"{fixed.method} {fixed.path}")
async def test_what_there_is_not_is_answered_emptily_and_for_known_apps_only(asking: Asking, fixed: Any) -> None:
    """In ADK's shapes; another app is 404."""
    client = asking()
    path = re.sub(r"\{(\w+)\}", lambda name: "planned" if name[1] == "app_name" else "x", fixed.path)
    answered = await client.request(fixed.method, path)
    unknown = await client.request(fixed.method, path.replace("planned", "nope"))

    assert fixed.status == answered.status_code
    assert ({"detail": fixed.body} if isinstance(fixed.body, str) else fixed.body) == answered.json()
    assert 404 == unknown.status_code
    assert unknown.json()["detail"].startswith("Agent not found: 'nope'.")


async def test_the_ui_is_told_how_to_find_us(asking: Asking) -> None:
    """Its configuration is made up, its files are google-adk's, and nothing is sent to anybody."""
    client = asking(follow_redirects=True)
    config = await client.get("/dev-ui/assets/config/runtime-config.json")

    assert ("", False) == (config.json()["backendUrl"], config.json()["telemetry"])
    assert {"telemetry": False} == (await client.get("/config/telemetry")).json()
    assert {"telemetry": False} == (await client.post("/config/telemetry", json={"telemetry": True})).json()
    assert "<app-root" in (await client.get("/dev-ui")).text
    assert "gatewright" == (await client.get("/version")).json()["server"]
    assert ("", "text/plain") == (
        (builder := await client.get("/dev/apps/planned/builder?ts=1")).text,
        builder.headers["content-type"].split(";")[0],
    )


async def test_the_root_leads_to_the_inbox_whether_or_not_the_ui_is_there(gateway: Gateway) -> None:
    """Without the UI there is nothing below `/dev-ui`."""
    transport = httpx.ASGITransport(create_app(gateway))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        page = await client.get("/")
        nothing = await client.get("/dev-ui/")

    assert (307, "/inbox") == (page.status_code, page.headers["location"])
    assert 404 == nothing.status_code


async def test_health_can_look_deeper(gates: GateClient, gateway: Gateway) -> None:
    """503 once the store is away; the plain question is still answered."""
    from gatewright.cli.serve import health_check

    async with (
        served(create_app(gateway, check=health_check(gates))) as running,
        httpx.AsyncClient(base_url=running.url) as client,
    ):
        well = await client.get("/health?deep=1")
        gates.store.close()
        ill = await client.get("/health?deep=1")
        plain = await client.get("/health")

    assert (200, {"status": "ok", "temporal": "ok", "store": "ok"}) == (well.status_code, well.json())
    assert (503, {"status": "away", "temporal": "ok", "store": "away"}) == (ill.status_code, ill.json())
    assert (200, {"status": "ok"}) == (plain.status_code, plain.json())


def functions(*names: str) -> tuple[Any, App]:
    """A chain of function nodes: ADK's own, and as an app of ours."""
    from google.adk.apps import App as AdkApp
    from google.adk.workflow import START as ADK_START
    from google.adk.workflow import Workflow

    def node(name: str) -> Any:
        def function(node_input: Any) -> Any:
            return node_input

        function.__name__ = name
        return function

    chain = Workflow(name="twin", edges=[(ADK_START, *(node(name) for name in names))])
    return AdkApp(name="twin", root_agent=chain), App("twin", "twin", graph=Graph.chain(*names))


# ADK reads pydantic's fields in a way that is deprecated, and swallows the warning that is an error here.
quietly = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@quietly
@pytest.mark.parametrize("dark", [True, False])
def test_a_graph_is_drawn_as_adk_draws_it(dark: bool) -> None:
    """Line for line, but for quotes and order."""
    theirs, ours = functions("profile", "gate", "publish")
    drawn = plot_workflow_graph(serialize_app_info(theirs), format="dot", dark_mode=dark)
    assert isinstance(drawn, str)

    assert lines(drawn) == lines(as_dot(ours, dark=dark))


def lines(dot: str) -> set[str]:
    """The statements of a DOT text, without quotes, comments and empty labels."""
    plain = re.sub(r'"|\[label=\]| ?\[label=""\]', "", dot)
    return {" ".join(sorted(line.split())) for line in plain.splitlines() if line.strip() and not line.startswith("//")}


@quietly
def test_a_graph_as_data_has_what_adk_tells_of_nodes_and_edges() -> None:
    """Names, types and edges are the same."""
    theirs, ours = functions("profile", "gate", "publish")

    assert shape(serialize_app_info(theirs)) == shape(as_data(ours))


def shape(told: dict[str, Any]) -> Any:
    """What the UI draws from."""
    graph = told["root_agent"]["graph"]
    nodes = {(node["name"], node["type"]) for node in graph["nodes"]}
    edges = {(edge["from_node"]["name"], edge["to_node"]["name"]) for edge in graph["edges"]}
    return told["name"], told["root_agent"]["name"], nodes, edges


async def test_a_gate_is_marked_in_the_picture(asking: Asking) -> None:
    """Under the path that was asked for; a node that is not there is 404."""
    client = asking()
    whole = await client.get("/dev/apps/planned/build_graph_image?dark_mode=true")
    root = await client.get("/dev/apps/planned/build_graph_image?node=Planned")
    nowhere = await client.get("/dev/apps/planned/build_graph_image?node=nope")
    data = await client.get("/dev/apps/planned/build_graph")

    assert 'POINT-SIZE="14">?</FONT> review' in whole.json()[""]["dotSrc"]
    assert "#0F172A" in whole.json()[""]["dotSrc"].splitlines()[1]
    assert ["Planned"] == list(root.json())
    assert (404, "Node not found: nope") == (nowhere.status_code, nowhere.json()["detail"])
    assert "Planned" == data.json()["root_agent"]["name"]


def test_a_name_cannot_break_out_of_the_picture() -> None:
    """Quotes, backslashes and markup are text."""
    nasty = 'a"b\\c<script>&'
    dot = as_dot(App("x", "X", graph=Graph((Node(nasty),), ((START, nasty),))), dark=False)

    assert '"a\\"b\\\\c<script>&" [label=' in dot
    assert "a&quot;b\\c&lt;script&gt;&amp;>" in dot


def test_an_app_without_a_graph_is_one_node() -> None:
    """Its pipeline."""
    told = as_data(App("x", "Pipeline"))

    assert {(START, "start"), ("Pipeline", "function")} == shape(told)[2]


def test_the_server_needs_no_google_adk() -> None:
    """Its UI is found without importing it; nor does the API."""
    import subprocess

    code = (
        "import sys; from gatewright.server import find_ui; assert find_ui(); "
        "sys.exit(any(name.startswith('google.adk') for name in sys.modules))"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
