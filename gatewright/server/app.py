"""The ASGI app: endpoints, the inbox, errors, and ADK's UI where an installed google-adk brings it."""

import importlib.util
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.staticfiles import StaticFiles

from gatewright.adk import Gateway, Rejection

from . import developer, sessions, turns
from .guard import Guard
from .inbox import Settings, Site
from .inbox import routes as inbox_routes
from .security import Security
from .streams import ServerStops, Streams
from .wire import Json, encoded

MAX_ERRORS = 20
MAX_INPUT_SHOWN = 2_000


def find_ui() -> Path | None:
    """The folder of ADK's UI in an installed google-adk, which is not imported; None where there is none."""
    try:
        found = importlib.util.find_spec("google.adk")
    except ModuleNotFoundError:
        return None
    for place in (found and found.submodule_search_locations) or ():
        folder = Path(place) / "cli" / "browser"
        if (folder / "index.html").is_file():
            return folder
    return None


def create_app(
    gateway: Gateway,
    *,
    security: Security | None = None,
    ui: Path | None = None,
    check: developer.Check | None = None,
    inbox: Settings | None = None,
) -> FastAPI:
    """
    The inbox and ADK's HTTP API over this gateway.

    `ui` is the folder of ADK's UI (`find_ui`), `check` what `/health?deep=1`
    asks. Without `inbox`, nobody can sign in to it whom `security` does not know.
    Streams that are open end when `app.state.streams` is stopped.
    """
    streams, security = Streams(), security or Security()
    site = Site(gateway, security, inbox or Settings(), adk_ui=ui is not None)
    app = FastAPI(title="Gatewright", summary="ADK's HTTP API over gates on Temporal.", docs_url=None, redoc_url=None)
    app.state.streams = streams
    app.state.inbox = site
    app.include_router(inbox_routes(site, streams))
    app.include_router(sessions.routes(gateway))
    app.include_router(turns.routes(gateway, streams))
    app.include_router(developer.routes(gateway, check))
    app.add_exception_handler(Rejection, _rejected)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(ServerStops, _stopping)
    app.add_middleware(Guard, security=security)

    @app.get("/", include_in_schema=False)
    async def start() -> Response:
        """Lead to the inbox."""
        return RedirectResponse("/inbox")

    if ui:
        app.mount("/dev-ui", StaticFiles(directory=ui, html=True))
    return app


def _rejected(_request: Request, rejection: Exception) -> Response:
    if not isinstance(rejection, Rejection):
        raise rejection
    return Json(rejection.body(), rejection.status)


def _unreadable(_request: Request, wrong: Exception) -> Response:
    if not isinstance(wrong, RequestValidationError):
        raise wrong
    shown = []
    for error in wrong.errors()[:MAX_ERRORS]:
        plain = jsonable_encoder(error, custom_encoder={bytes: lambda raw: raw.decode("utf-8", "replace")})
        # ADK shows what it got; a whole large body, once for each error, helps nobody.
        if len(encoded(plain.get("input"))) > MAX_INPUT_SHOWN:
            del plain["input"]
        shown.append(plain)
    return Json({"detail": shown}, 422)


def _stopping(_request: Request, _stops: Exception) -> Response:
    said = turns.stopping()
    return Json({"detail": said["error_details"]["error_message"], "code": said["code"], "todo": said["todo"]}, 503)
