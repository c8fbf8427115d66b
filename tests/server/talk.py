"""A client of the server, as somebody would write one with any HTTP library."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

Events = list[dict[str, Any]]


@dataclass
class Talk:
    """One session of one user."""

    client: httpx.AsyncClient
    session: str
    app: str = "planned"
    user: str = "alice"

    @property
    def path(self) -> str:
        """Where the session is."""
        return f"/apps/{self.app}/users/{self.user}/sessions/{self.session}"

    async def begin(self) -> httpx.Response:
        """Make the session."""
        return await self.client.post(self.path.rpartition("/")[0], json={"sessionId": self.session})

    def body(self, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The body of a turn."""
        message = {"role": "user", "parts": list(parts)}
        return {"appName": self.app, "userId": self.user, "sessionId": self.session, "newMessage": message, **fields}

    async def run(self, *parts: dict[str, Any], headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        """A turn by `/run`."""
        return await self.client.post("/run", json=self.body(*parts, **fields), headers=headers)

    async def stream(self, *parts: dict[str, Any], **fields: Any) -> Events:
        """A turn by `/run_sse`."""
        async with self.client.stream("POST", "/run_sse", json=self.body(*parts, **fields)) as response:
            assert 200 == response.status_code, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
            return [json.loads(line[6:]) async for line in response.aiter_lines() if line.startswith("data: ")]

    async def events(self) -> Events:
        """What the session shows."""
        read = await self.client.get(self.path)
        assert 200 == read.status_code, read.text
        found: Events = read.json()["events"]
        return found


def text(words: str) -> dict[str, Any]:
    """A part that says something."""
    return {"text": words}


def answer(interrupt_id: str, **response: Any) -> dict[str, Any]:
    """A part that answers a gate, as ADK's UI sends it."""
    return {"functionResponse": {"id": interrupt_id, "name": "adk_request_input", "response": response}}


def asked(events: Events) -> list[str]:
    """The interrupt ids of the gates among these events."""
    return [interrupt_id for event in events for interrupt_id in event.get("longRunningToolIds") or ()]
