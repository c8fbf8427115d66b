"""Somebody who listens for webhooks, on a port of their own: a real server that answers as it is told."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from standardwebhooks import Webhook

SECRET = "whsec_c2VzYW1lLXNlc2FtZS1zZXNhbWUtc2VzYW1lLTEyMzQ="
"""What the tests sign with."""


@dataclass(frozen=True)
class Post:
    """What was received."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The message's id."""
        return self.headers["webhook-id"]

    @property
    def type(self) -> str:
        """What it tells."""
        return str(self.verified()["type"])

    @property
    def gate(self) -> str:
        """Of which gate."""
        return str(self.verified()["data"]["interrupt_id"])

    def verified(self, secret: str = SECRET) -> Any:
        """The document, if the official package finds that its signature is right."""
        return Webhook(secret).verify(self.body, self.headers)


@dataclass(frozen=True)
class Reply:
    """What is answered."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"


@dataclass
class Receiver:
    """
    Listens while it is entered.

    `reply` says what the nth post (from 1 on) is answered with. `port` 0 is any
    free one; leaving and entering again listens on the same.
    """

    reply: Callable[[int], Reply] = lambda _: Reply()
    port: int = 0
    got: list[Post] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Listen."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Keep what comes, and answer."""
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                receiver.got.append(Post({name.lower(): value for name, value in self.headers.items()}, body))
                reply = receiver.reply(len(receiver.got))
                self.send_response(reply.status)
                for name, value in ({"content-length": str(len(reply.body))} | reply.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def do_GET(self) -> None:
                """Whoever follows a redirect with another method is noticed too."""
                self.do_POST()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its parameter's name
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Whoever hung up may."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def told(self) -> list[tuple[str, str]]:
        """The gates and what was told of them, in that order."""
        return [(post.gate, post.type) for post in self.got]
