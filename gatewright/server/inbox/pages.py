"""The pages' routes: signing in and out, the list, and the stream of changes."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse, StreamingResponse

from gatewright.server.streams import ServerStops, Streams

from .feed import Change
from .gate import GatePages
from .listing import ListPage
from .run import RunPages
from .signin import Visitor
from .site import STATIC, Site, as_json, headers
from .visits import known, safe_target, sent, sign_in_page

BEAT_SECONDS = 15.0
"""How often a stream without news says that it lives."""

MAX_TOLD = 200
"""How many gates of a change are told by name; more of them are `all`."""


def routes(site: Site, streams: Streams) -> APIRouter:
    """All pages of the inbox."""
    router = APIRouter(prefix="/inbox", include_in_schema=False)
    listed, gates, runs = ListPage(site), GatePages(site), RunPages(site)
    router.add_api_route("", _by_token(site, known(site, listed.page)), methods=["GET"])
    router.add_api_route("/gate", _by_token(site, known(site, gates.show)), methods=["GET"])
    router.add_api_route("/gate", known(site, gates.take), methods=["POST"])
    router.add_api_route("/run", _by_token(site, known(site, runs.show)), methods=["GET"])
    router.add_api_route("/run/end", known(site, runs.end), methods=["POST"])
    router.add_api_route("/events", _events(site, streams), methods=["GET"])
    router.add_api_route("/sign-in", _sign_in_form(site), methods=["GET"])
    router.add_api_route("/sign-in", _sign_in(site), methods=["POST"])
    router.add_api_route("/sign-out", _sign_out(site), methods=["POST"])
    router.add_api_route("/static/{name}", _static(site), methods=["GET"])
    return router


def _by_token(site: Site, page: Any) -> Any:
    """The page, and before it whoever comes with a token in the address, which does not stay there."""

    async def entered(request: Request) -> Response:
        token = request.query_params.get("token")
        if token is None:
            return await page(request)  # type: ignore[no-any-return]
        rest = [pair for pair in parse_qsl(request.url.query, keep_blank_values=True) if pair[0] != "token"]
        target = request.url.path + (f"?{urlencode(rest)}" if rest else "")
        return _entered(site, request, token, safe_target(request, target))

    return entered


def _entered(site: Site, request: Request, token: str, target: str) -> Response:
    digest = site.door.admits(token)
    if digest is None:
        return sign_in_page(site, request, 403, wrong="That is not a token of this server, or no longer one.")
    response = RedirectResponse(target, 303, headers=headers())
    site.door.sign_in(response, digest, secure=site.base_url(request).startswith("https:"))
    return response


def _sign_in_form(site: Site) -> Any:
    async def form(request: Request) -> Response:
        return sign_in_page(site, request, 200)

    return form


def _sign_in(site: Site) -> Any:
    async def enter(request: Request) -> Response:
        form = await sent(request)
        if form.wrong:
            return site.said(request, None, 400, "Not signed in", form.wrong)
        return _entered(site, request, form.get("token"), safe_target(request, form.get("target")))

    return enter


def _sign_out(site: Site) -> Any:
    async def leave(request: Request) -> Response:
        visitor = site.door.visitor(request)
        form = await sent(request)
        response = RedirectResponse("/inbox/sign-in", 303, headers=headers())
        if visitor is not None and site.door.sealed(visitor, form.get("seal")):
            site.door.sign_out(response)
        return response

    return leave


def _static(site: Site) -> Any:
    async def static(name: str) -> Response:
        if name not in STATIC:
            return PlainTextResponse("There is no such file.", 404)
        # Its address has its digest, so whatever is kept is right.
        kept = {"cache-control": "public, max-age=31536000, immutable"}
        return Response(site.static[name], media_type=STATIC[name], headers=kept)

    return static


def _events(site: Site, streams: Streams) -> Any:
    async def events(request: Request) -> Response:
        visitor: Visitor | None = site.door.visitor(request)
        if visitor is None:
            return PlainTextResponse("Sign in first.", 401)
        streaming = headers() | {"x-accel-buffering": "no"}
        return StreamingResponse(_stream(site, streams), media_type="text/event-stream", headers=streaming)

    return events


async def _stream(site: Site, streams: Streams) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    try:
        async with aclosing(streams.follow(_told(site), beat=BEAT_SECONDS)) as told:  # type: ignore[type-var]
            async for event in told:
                yield ": still here\n\n" if event is None else f"data: {as_json(event)}\n\n"
    except ServerStops:
        return


async def _told(site: Site) -> AsyncIterator[dict[str, Any]]:
    async with aclosing(site.feed.listen()) as changes:  # type: ignore[type-var]
        async for change in changes:
            yield _event(change)


def _event(change: Change) -> dict[str, Any]:
    gates = sorted(change.gates) if len(change.gates) <= MAX_TOLD else None
    return {"version": change.version, "gates": gates, "trouble": change.trouble}
