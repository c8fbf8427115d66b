"""The turns of a conversation: `/run` answers with all events at once, `/run_sse` with each as it comes."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from gatewright.adk import Accepted, Gateway, Rejection, Turn

from .models import RunRequest
from .streams import ServerStops, Streams
from .wire import Json, StrictRoute, encoded

BEAT_SECONDS = 15.0
"""A silent stream shows this often that it lives; otherwise a proxy would cut it, usually after 60 seconds."""

NOT_FOUND = {"unknown_app", "unknown_session"}

_STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Key = Annotated[str | None, Header(alias="Idempotency-Key", description="names this opening or answer, for ever")]


def routes(gateway: Gateway, streams: Streams) -> APIRouter:
    """The endpoints over this gateway."""
    router = APIRouter(route_class=StrictRoute, default_response_class=Json)
    # What is being said is said to the end, whatever becomes of whoever says it.
    saying: set[asyncio.Task[Accepted]] = set()

    async def submit(request: Request, run: RunRequest, key: str | None) -> Accepted:
        if not run.app_name:
            raise HTTPException(400, f"app_name is required: {', '.join(sorted(gateway.apps)) or 'no app is served'}")
        principal = getattr(request.state, "principal", None)
        turn = Turn(
            app=run.app_name,
            user=run.user_id,
            session=run.session_id,
            message=run.new_message,
            invocation_id=run.invocation_id,
            event_id=run.function_call_event_id,
            state_delta=run.state_delta,
            metadata=run.custom_metadata,
            principal=principal,
            authenticated=principal is not None,
            channel="adk",
            key=key or None,
        )
        task = asyncio.create_task(gateway.submit(turn))
        saying.add(task)
        task.add_done_callback(saying.discard)
        return await asyncio.shield(task)

    @router.post("/run", response_model=list[dict[str, Any]])
    async def run_turn(request: Request, run: RunRequest, key: Key = None) -> Response:
        """Say something, and wait until the run pauses or is over; its events."""
        accepted = await submit(request, run, key)

        async def collect() -> list[dict[str, Any]]:
            return [event async for event in streams.follow(gateway.follow(accepted)) if event is not None]

        collecting = asyncio.create_task(collect())
        leaving = asyncio.create_task(_left(request))
        try:
            await asyncio.wait({collecting, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return Json(collecting.result()) if collecting.done() else Response(status_code=499)
        finally:
            collecting.cancel()
            leaving.cancel()

    @router.post("/run_sse", response_class=StreamingResponse)
    async def run_turn_sse(request: Request, run: RunRequest, key: Key = None) -> Response:
        """Say something, and stream the events of the run until it pauses or is over."""
        try:
            accepted = await submit(request, run, key)
        except Rejection as rejection:
            if rejection.code in NOT_FOUND:
                raise
            lines = _refused(gateway, rejection)
        else:
            lines = _followed(gateway, streams, accepted)
        return StreamingResponse(lines, media_type="text/event-stream", headers=_STREAM)

    return router


async def _followed(gateway: Gateway, streams: Streams, accepted: Accepted) -> AsyncIterator[bytes]:
    try:
        async for event in streams.follow(gateway.follow(accepted), beat=BEAT_SECONDS):
            yield b": the run goes on\n\n" if event is None else _line(event)
    except Rejection as failed:
        yield _line(failed.frame(time.time()))
    except ServerStops:
        yield _line(stopping())


async def _refused(gateway: Gateway, rejection: Rejection) -> AsyncIterator[bytes]:
    yield _line(rejection.frame(time.time()))
    for event in await gateway.rearm(rejection):
        yield _line(event)


def stopping() -> dict[str, Any]:
    """What a stream says last when the server is stopped under it, in the shape of a rejection."""
    message = "the server is being stopped; the run goes on without it"
    details = {"error_type": "ServerStops", "error_message": message, "timestamp": time.time()}
    todo = "Read the session again in a moment."
    return {"error": f"ServerStops: {message}", "error_details": details, "code": "stopping", "todo": todo}


def _line(event: dict[str, Any]) -> bytes:
    return b"data: " + encoded(event) + b"\n\n"


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
