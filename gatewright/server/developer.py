"""
What ADK's developer UI asks for beside the conversation.

The graph tab is answered from the app's declaration. What Gatewright does not
have (artifacts, memory, evaluation, the builder, traces) is answered emptily, in
ADK's shapes, so that the UI shows an empty tab and no error. What would change
one of these is not served.
"""

import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Response
from fastapi.responses import PlainTextResponse

from gatewright.adk import App, Gateway

from .graph import as_data, as_dot
from .wire import Json, StrictRoute

Check = Callable[[], Awaitable[dict[str, bool]]]
"""Asks what the server stands on whether it answers: the name of each thing, and whether it did."""


@dataclass(frozen=True)
class Fixed:
    """An endpoint of ADK that always answers the same; `{"detail": ...}` where `body` is a reason."""

    path: str
    body: Any
    status: int = 200
    method: str = "GET"


_DEV = "/dev/apps/{app_name}"
_ARTIFACTS = "/apps/{app_name}/users/{user_id}/sessions/{session_id}/artifacts"
_NO_EVALS = 'Eval module is not installed, please install via `pip install "google-adk[eval]"`.'

FIXED = (
    Fixed("/apps/{app_name}/app-info", "Root agent is not an LlmAgent", 400),
    Fixed(_ARTIFACTS, []),
    Fixed(_ARTIFACTS, "Artifacts are not kept.", 400, "POST"),
    Fixed(_ARTIFACTS + "/{artifact_name}/versions", []),
    Fixed(_ARTIFACTS + "/{artifact_name}/versions/metadata", []),
    Fixed(_ARTIFACTS + "/{artifact_name}/versions/{version_id}", "Artifact not found", 404),
    Fixed(_ARTIFACTS + "/{artifact_name}/versions/{version_id}/metadata", "Artifact version not found", 404),
    Fixed(_ARTIFACTS + "/{artifact_name}", "Artifact not found", 404),
    Fixed(_ARTIFACTS + "/{artifact_name}", None, 200, "DELETE"),
    Fixed("/apps/{app_name}/users/{user_id}/memory", "Memory service is not configured.", 400, "PATCH"),
    Fixed(_DEV + "/debug/trace/session/{session_id}", []),
    Fixed(_DEV + "/debug/trace/{event_id}", "Trace not found", 404),
    Fixed(_DEV + "/tests", []),
    Fixed(_DEV + "/eval-sets", {"evalSetIds": []}),
    Fixed(_DEV + "/eval_sets", []),
    Fixed(_DEV + "/eval-results", {"evalResultIds": []}),
    Fixed(_DEV + "/eval_results", []),
    Fixed(_DEV + "/metrics-info", _NO_EVALS, 400),
    Fixed(_DEV + "/users/{user_id}/sessions/{session_id}/events/{event_id}/graph", {}),
)


def routes(gateway: Gateway, check: Check | None) -> APIRouter:
    """The endpoints over this gateway."""
    router = APIRouter(route_class=StrictRoute, default_response_class=Json)

    def known(app_name: str) -> App:
        return gateway.app(app_name)

    @router.get("/health")
    async def health(*, deep: bool = False) -> Response:
        """Whether the server lives; with `deep`, whether Temporal and the store answer it."""
        if not deep or check is None:
            return Json({"status": "ok"})
        answers = await check()
        words = {name: "ok" if answered else "away" for name, answered in answers.items()}
        well = all(answers.values())
        return Json({"status": "ok" if well else "away", **words}, 200 if well else 503)

    @router.get("/version")
    async def get_version() -> Response:
        """Which release this is; that it is not ADK's stands in `server`."""
        python = ".".join(map(str, sys.version_info[:3]))
        release = {"version": version("gatewright"), "language": "python", "language_version": python}
        return Json({**release, "server": "gatewright"})

    @router.get("/config/telemetry")
    @router.post("/config/telemetry")
    async def telemetry() -> Response:
        """Nothing is sent to anybody, whatever is chosen."""
        return Json({"telemetry": False})

    @router.get("/dev-ui/assets/config/runtime-config.json")
    async def runtime_config() -> Response:
        """How ADK's UI finds us."""
        logo = {"text": "Gatewright", "imageUrl": "adk_favicon.svg"}
        return Json({"backendUrl": "", "telemetry": False, "logo": logo})

    @router.get("/dev-ui/config")
    async def ui_config() -> Response:
        """The same, for older releases of the UI."""
        return Json({"logo_text": "Gatewright", "logo_image_url": "adk_favicon.svg"})

    @router.get(_DEV + "/build_graph")
    async def build_graph(app_name: str) -> Response:
        """The graph as data."""
        return Json(as_data(known(app_name)))

    @router.get(_DEV + "/build_graph_image")
    async def build_graph_image(app_name: str, node: str = "", *, dark_mode: bool = False) -> Response:
        """The graph as DOT, by the path of the node that it belongs to."""
        app = known(app_name)
        if node not in {"", app.root_name}:
            raise HTTPException(404, f"Node not found: {node}")
        return Json({node: {"dotSrc": as_dot(app, dark=dark_mode)}})

    @router.get(_DEV + "/graph")
    async def graph(app_name: str, *, dark_mode: bool = False) -> Response:
        """The graph as DOT."""
        return Json({"dotSrc": as_dot(known(app_name), dark=dark_mode)})

    @router.get(_DEV + "/builder", response_class=PlainTextResponse)
    async def builder(app_name: str) -> str:
        """There is nothing to edit: pipelines are code."""
        known(app_name)
        return ""

    for fixed in FIXED:
        router.add_api_route(
            fixed.path,
            _always(fixed),
            methods=[fixed.method],
            operation_id=f"{fixed.method} {fixed.path}",
            dependencies=[Depends(known)],
            responses={fixed.status: {"description": "always"}},
            openapi_extra={"parameters": [_path_parameter(name) for name in re.findall(r"{(\w+)}", fixed.path)[1:]]},
        )
    return router


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _always(fixed: Fixed) -> Callable[[], Awaitable[Response]]:
    body = {"detail": fixed.body} if isinstance(fixed.body, str) else fixed.body

    async def answer() -> Response:
        return Json(body, fixed.status)

    return answer
