"""ADK's own server over a `TemporalRunner`: what it serves, it serves from runs."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

import httpx
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App as AdkApp
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from google.adk.cli.dev_server import DevServer
from google.adk.cli.utils.base_agent_loader import BaseAgentLoader
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from google.adk.evaluation.local_eval_sets_manager import LocalEvalSetsManager
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService

from gatewright.adk.native import TemporalRunner
from tests.adk.native.conftest import served

pytestmark = pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")

WHERE = {"appName": "gated", "userId": "u", "sessionId": "s"}
GOOD = {"approved": True}


class Loader(BaseAgentLoader):
    """Knows one app."""

    def __init__(self, runner: TemporalRunner) -> None:
        self.runner = runner

    def list_agents(self) -> list[str]:
        return [self.runner.app_name]

    def load_agent(self, agent_name: str) -> BaseAgent | AdkApp:
        if agent_name != self.runner.app_name:
            raise ValueError(f"Agent not found: {agent_name!r}")
        return self.runner.app


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    """A turn as ADK's clients post it."""
    return {**WHERE, "newMessage": {"role": "user", "parts": list(parts)}}


def answer(interrupt_id: str, response: dict[str, Any]) -> dict[str, Any]:
    """A functionResponse."""
    return {"functionResponse": {"id": interrupt_id, "name": "adk_request_input", "response": response}}


async def test_a_conversation_over_adks_server(runner: TemporalRunner, port: int, tmp_path: Path) -> None:
    """The invalid answer in the middle would end the session on stock ADK: here the valid one after it counts."""
    server = DevServer(
        agent_loader=Loader(runner),
        session_service=runner.session_service,
        memory_service=InMemoryMemoryService(),
        artifact_service=InMemoryArtifactService(),
        credential_service=InMemoryCredentialService(),
        eval_sets_manager=LocalEvalSetsManager(agents_dir=str(tmp_path)),
        eval_set_results_manager=LocalEvalSetResultsManager(agents_dir=str(tmp_path)),
        agents_dir=str(tmp_path),
    )
    server.runner_dict["gated"] = runner
    app = server.get_fast_api_app(bind_host="127.0.0.1")

    async with served(app, port) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        made = await http.post("/apps/gated/users/u/sessions", json={"sessionId": "s", "state": {"a": 1}})
        opened = await http.post("/run", json=said({"text": "hello"}))
        mixed = await http.post("/run_sse", json=said({"text": "yes"}, answer("plan-gate-1", GOOD)))
        invalid = await http.post("/run_sse", json=said(answer("plan-gate-1", {"approved": "maybe"})))
        patched = await http.patch("/apps/gated/users/u/sessions/s", json={"stateDelta": {"b": 2}})
        answered = await http.post("/run", json=said(answer("plan-gate-1", GOOD)))
        session = await http.get("/apps/gated/users/u/sessions/s")
        twice = await http.post("/apps/gated/users/u/sessions", json={"sessionId": "s"})

    assert made.json()["state"] == {"a": 1}
    assert [event["nodeInfo"]["path"] for event in opened.json()] == ["gated@1/profile@1", "gated@1/plan_gate@1"]
    assert opened.json()[1]["longRunningToolIds"] == ["plan-gate-1"]
    assert '"error":"ValueError: Message cannot contain both function responses and text.' in mixed.text.replace(
        '": ', '":'
    )
    assert "WorkflowDataError: Validation failed for interrupt plan-gate-1" in invalid.text
    assert patched.json()["state"] == {"a": 1, "profiled": True, "b": 2}
    assert answered.json()[-1]["longRunningToolIds"] == ["name-gate-1"]
    shown = session.json()
    assert shown["state"] == {"a": 1, "profiled": True, "b": 2}
    assert [event["author"] for event in shown["events"]] == [
        "user",
        "gated",
        "gated",
        "user",
        "user",
        "gated",
        "gated",
    ]
    assert (twice.status_code, twice.json()) == (409, {"detail": "Session already exists: s"})
