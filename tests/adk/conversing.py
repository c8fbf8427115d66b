"""A conversation with an app, in few words."""

from typing import Any

from google.genai import types

from gatewright.adk import Accepted, Gateway, Turn


def text(words: str) -> types.Part:
    """A text part."""
    return types.Part(text=words)


def response(interrupt_id: str | None, value: Any, *, name: str | None = "adk_request_input") -> types.Part:
    """A functionResponse; what is not an object goes under `result`, as ADK's clients send it."""
    given = value if isinstance(value, dict) or value is None else {"result": value}
    return types.Part(function_response=types.FunctionResponse(id=interrupt_id, name=name, response=given))


class Talk:
    """One session of one app."""

    def __init__(self, gateway: Gateway, app: str, user: str, session: str) -> None:
        self.gateway = gateway
        self.app, self.user, self.session = app, user, session

    async def begin(self, **options: Any) -> dict[str, Any]:
        """Create the session."""
        return await self.gateway.create_session(self.app, self.user, self.session, **options)

    async def submit(self, *parts: types.Part, **options: Any) -> Accepted:
        """Send a message and do not look on."""
        message = types.Content(role="user", parts=list(parts)) if parts else None
        return await self.gateway.submit(Turn(self.app, self.user, self.session, message, **options))

    async def say(self, *parts: types.Part, **options: Any) -> list[dict[str, Any]]:
        """Send a message and look on until the run waits."""
        return [event async for event in self.gateway.follow(await self.submit(*parts, **options))]

    async def read(self) -> dict[str, Any]:
        """The session."""
        return await self.gateway.session(self.app, self.user, self.session)


def gist(event: dict[str, Any]) -> str:
    """An event in a few words: `path=output`, `path?id` for a gate, `path!code` for an error, `user:id` for an answer."""
    path = event["nodeInfo"]["path"]
    for part in event.get("content", {}).get("parts", []):
        if call := part.get("functionCall"):
            return f"{path}?{call['id']}"
        if reply := part.get("functionResponse"):
            return f"{event['author']}:{reply['id']}={reply.get('response')}"
        if "text" in part:
            return f"{event['author']} {path}: {part['text']}"
    if "errorCode" in event:
        return f"{path}!{event['errorCode']}"
    return f"{path}={event.get('output')}"


def gists(events: list[dict[str, Any]]) -> list[str]:
    """Events in a few words each."""
    return [gist(event) for event in events]
