"""
A stand-in for the Gemini API: answers generateContent from a script and records what it was sent.

It fails loudly: a call beyond the script, or a script that was not used up, is an error of the test.
"""

import json
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple, Self


class Request(NamedTuple):
    """One call as it arrived."""

    path: str
    key: str | None
    body: dict[str, Any]


class GeminiStandIn:
    """A local HTTP server; `script` replies, read `requests`, `check` at the end."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._script: deque[tuple[int, bytes]] = deque()
        self._beyond = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def script(self, status: int, body: object) -> None:
        """Reply to the next call in line with this; text is sent as it is, anything else as JSON."""
        raw = body if isinstance(body, str) else json.dumps(body)
        self._script.append((status, raw.encode()))

    def says(self, *parts: dict[str, Any], finish: str = "STOP") -> None:
        """Reply with a candidate of these parts."""
        content = {"role": "model", "parts": list(parts)}
        self.script(200, {"candidates": [{"content": content, "finishReason": finish}]})

    def refuses(self, status: int, message: str) -> None:
        """Reply with an error as the API words it."""
        self.script(status, {"error": {"code": status, "message": message, "status": "SAID_BY_THE_TEST"}})

    def check(self) -> None:
        """Raise if the script and the calls did not match."""
        if self._beyond or self._script:
            raise AssertionError(f"{self._beyond} calls beyond the script, {len(self._script)} replies not used")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stand_in.requests.append(Request(self.path, self.headers.get("x-goog-api-key"), body))
                if stand_in._script:
                    status, reply = stand_in._script.popleft()
                else:
                    stand_in._beyond += 1
                    status, reply = 418, b'{"error": {"code": 418, "message": "the script has run dry"}}'
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Keep the test's output quiet."""

        return Handler
