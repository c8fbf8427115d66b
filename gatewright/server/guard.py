"""
What stands before every endpoint: the checks of `security`, a bound on bodies, and the last resort.

A request's body is read here, whole, before anything acts on it: a body that is
too large, however it is sent, or never ends, has done nothing.
"""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .security import Security
from .wire import encoded

logger = logging.getLogger(__name__)

BODY_SECONDS = 30.0
OPEN = {"/", "/health"}
"""Paths that everybody may ask for."""

SIGNS_IN = "/inbox"
"""The pages that ask by themselves who is there; what is below this path too."""

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """ASGI middleware; the principal it finds is left in `scope["state"]["principal"]`."""

    def __init__(self, app: ASGIApp, security: Security) -> None:
        self._app = app
        self._security = security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                message = {**message, "headers": [*message.get("headers", []), *_extra(scope, message)]}
            await send(message)

        try:
            await self._admit(scope, receive, guarded)
        except Exception:
            number = secrets.token_hex(4)
            logger.exception("fault %s in %s %s", number, scope["method"], scope["path"])
            if not began:
                fault = f"this is a fault of the server; its log has the details under {number}"
                await _answer(guarded, 500, {"detail": fault, "code": "internal", "id": number})

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        if reason := self._security.foreign(scope["scheme"], headers):
            await _answer(send, 403, f"Forbidden: {reason}")
            return
        client = scope["client"][0] if scope.get("client") else None
        principal = self._security.principal(client, headers) if self._security.authenticates else None
        if self._security.authenticates and principal is None and not _asks_by_itself(scope["path"]):
            await _answer(send, 401, self._unknown(), self._security.challenge())
            return
        scope.setdefault("state", {})["principal"] = principal
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._body(headers, receive)
        except TimeoutError:
            late = f"the body did not arrive within {BODY_SECONDS:.0f} s"
            await _answer(send, 408, {"detail": late, "code": "too_slow", "todo": "Send it again."})
            return
        except _TooLargeError:
            limit = self._security.max_body
            large = f"the body is larger than {limit} bytes"
            todo = "Answer with a reference to what is large."
            await _answer(send, 413, {"detail": large, "code": "too_large", "todo": todo}, [(b"connection", b"close")])
            return
        if body is not None:
            await self._app(scope, _again(body, receive), send)

    async def _body(self, headers: Sequence[tuple[bytes, bytes]], receive: Receive) -> bytes | None:
        """The whole body; None where the client went away in the middle of it."""
        limit = self._security.max_body
        if any(key == b"content-length" and value.isdigit() and int(value) > limit for key, value in headers):
            raise _TooLargeError
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > limit:
                raise _TooLargeError
            if not message.get("more_body", False):
                return bytes(body)

    def _unknown(self) -> dict[str, str]:
        ways = []
        if self._security.tokens is not None:
            ways.append("send `Authorization: Bearer TOKEN` with a token of the server's file")
        if self._security.principal_header is not None:
            ways.append("come through the proxy that signs people in")
        todo = f"{' or '.join(ways)}."
        return {
            "detail": "nobody knows who is asking",
            "code": "unauthenticated",
            "todo": todo[0].upper() + todo[1:],
        }


def _asks_by_itself(path: str) -> bool:
    return path in OPEN or path == SIGNS_IN or path.startswith(f"{SIGNS_IN}/")


class _TooLargeError(Exception):
    """The body is larger than it may be."""


def _again(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, and after it whatever else the client does."""
    read = False

    async def replay() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _extra(scope: Scope, message: Message) -> list[tuple[bytes, bytes]]:
    given = {key.lower() for key, _ in message.get("headers", [])}
    cache = b"no-cache" if scope["path"].startswith("/dev-ui/") else b"no-store"
    return [header for header in (*_HEADERS, (b"cache-control", cache)) if header[0] not in given]


async def _answer(
    send: Send, status: int, body: str | dict[str, Any], headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    written = body.encode() if isinstance(body, str) else encoded(body)
    kind = b"text/plain" if isinstance(body, str) else b"application/json"
    length = str(len(written)).encode()
    start = [(b"content-type", kind), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": written})
