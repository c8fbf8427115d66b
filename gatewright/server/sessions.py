"""The apps that are served, and the sessions of their users."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Response

from gatewright.adk import Gateway

from .models import CreateSessionRequest, UpdateSessionRequest
from .wire import Json, StrictRoute

_SESSIONS = "/apps/{app_name}/users/{user_id}/sessions"


def routes(gateway: Gateway) -> APIRouter:
    """The endpoints over this gateway."""
    router = APIRouter(route_class=StrictRoute, default_response_class=Json)

    @router.get("/list-apps")
    async def list_apps(*, detailed: bool = False) -> Response:
        """The names of the apps that are served, or what is known about them."""
        apps = [gateway.apps[name] for name in sorted(gateway.apps)]
        if not detailed:
            return Json([app.name for app in apps])
        described = [
            {
                "name": app.name,
                "rootAgentName": app.root_name,
                "description": app.description,
                "language": "python",
                "isComputerUse": False,
                "agents": None,
            }
            for app in apps
        ]
        return Json({"apps": described})

    @router.post(_SESSIONS)
    async def create_session(app_name: str, user_id: str, body: CreateSessionRequest | None = None) -> Response:
        """A new session, empty or with a state and events to begin with."""
        wanted = body or CreateSessionRequest()
        if wanted.options:
            raise HTTPException(400, "Session options are not supported by the configured session service.")
        made = await gateway.create_session(
            app_name, user_id, wanted.session_id, state=wanted.state, events=wanted.events or ()
        )
        return Json(made)

    @router.get(_SESSIONS)
    async def list_sessions(app_name: str, user_id: str) -> Response:
        """A user's sessions without their events."""
        return Json(await gateway.sessions(app_name, user_id))

    @router.post(_SESSIONS + "/{session_id}", deprecated=True)
    async def create_session_with_id(
        app_name: str,
        user_id: str,
        session_id: str,
        state: Annotated[dict[str, Any] | None, Body()] = None,
    ) -> Response:
        """A new session under this id; the body is its state."""
        return Json(await gateway.create_session(app_name, user_id, session_id, state=state))

    @router.get(_SESSIONS + "/{session_id}")
    async def get_session(app_name: str, user_id: str, session_id: str) -> Response:
        """A session with its events, for showing it again."""
        return Json(await gateway.session(app_name, user_id, session_id))

    @router.patch(_SESSIONS + "/{session_id}")
    async def update_session(app_name: str, user_id: str, session_id: str, body: UpdateSessionRequest) -> Response:
        """Change the state of a session; no run hears of it."""
        return Json(await gateway.patch_session(app_name, user_id, session_id, body.state_delta))

    @router.delete(_SESSIONS + "/{session_id}")
    async def delete_session(app_name: str, user_id: str, session_id: str) -> Response:
        """Forget a session."""
        await gateway.delete_session(app_name, user_id, session_id)
        return Json(None)

    return router
