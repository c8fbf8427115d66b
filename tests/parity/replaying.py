"""Recorded requests of ADK's clients, sent again to Gatewright's server in their order."""

import json
from pathlib import Path
from typing import Any

import httpx

RECORDINGS = Path(__file__).with_name("fixtures")
Json = Any


def recorded(name: str) -> list[dict[str, Any]]:
    """
    A recording of real ADK: requests in their order, each with the status and the reply that it got.

    A stream's reply is the list of its `data:` frames.
    """
    steps: list[dict[str, Any]] = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))
    return steps


def as_recorded(steps: list[dict[str, Any]]) -> Json:
    """What ADK replied, step by step."""
    return {step["step"]: {"status": step["status"], "reply": step["reply"]} for step in steps}


async def replay(steps: list[dict[str, Any]], client: httpx.AsyncClient) -> Json:
    """
    What the server replies, step by step.

    Ids that the recorded client had from an earlier reply are replaced by those
    of this server's reply to the same request.
    """
    replies: dict[str, Json] = {}
    drawn: dict[str, str] = {}
    asked: dict[str, str] = {}
    for step in steps:
        body = step.get("body")
        headers = {"Content-Type": "application/json", **step.get("headers", {})}
        # A body that is text is none that JSON could be read from.
        content = body if isinstance(body, str) else json.dumps(_answering(_with(body, drawn), asked))
        response = await client.request(
            step["method"], _with(step["path"], drawn), headers=headers, content=None if body is None else content
        )
        reply = _read(response)
        replies[step["step"]] = {"status": response.status_code, "reply": reply}
        for theirs, ours in zip(_drawn(step["reply"]), _drawn(reply), strict=False):
            drawn.setdefault(theirs, ours)
        asked.update(zip(_asked(step["reply"]), _asked(reply), strict=False))
    return replies


def _read(response: httpx.Response) -> Json:
    kind = response.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    return response.json() if kind.startswith("application/json") else response.text


def _objects(value: Json) -> list[dict[str, Any]]:
    """Every object in a reply, outermost first."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [found for each in inner for found in _objects(each)]
    return [value, *below] if isinstance(value, dict) else below


def _drawn(reply: Json) -> list[str]:
    """Ids of the reply's sessions, events and invocations."""
    known = [each for each in _objects(reply) if "author" in each or "appName" in each]
    return [each[name] for each in known for name in ("id", "invocationId") if name in each]


def _asked(reply: Json) -> list[str]:
    """Ids of the function calls of the gates that were asked."""
    return [each["id"] for each in _objects(reply) if each.get("name") == "adk_request_input" and "args" in each]


def _with(value: Json, ids: dict[str, str]) -> Json:
    """The value with these ids replaced wherever they stand."""
    match value:
        case str():
            for theirs, ours in ids.items():
                value = value.replace(theirs, ours)
            return value
        case dict():
            return {name: _with(inner, ids) for name, inner in value.items()}
        case list():
            return [_with(inner, ids) for inner in value]
        case _:
            return value


def _answering(body: dict[str, Any], asked: dict[str, str]) -> dict[str, Any]:
    """The body with its answers under the ids by which this server asked last."""
    for each in _objects(body):
        for name in ("functionResponse", "function_response"):
            if name in each and "id" in each[name]:
                each[name]["id"] = asked.get(each[name]["id"], each[name]["id"])
    return body
