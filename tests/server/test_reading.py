"""Bodies: what is read as ADK reads it, and what is refused before anything happens."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

Asking = Callable[..., httpx.AsyncClient]
JSON = {"Content-Type": "application/json"}


async def test_what_is_missing_is_named_as_adk_names_it(asking: Asking) -> None:
    """FastAPI's 422, word for word as `adk api_server` was recorded."""
    refused = await asking().post("/run", json={"appName": "planned"})

    missing = {"type": "missing", "msg": "Field required", "input": {"appName": "planned"}}
    assert 422 == refused.status_code
    assert [{**missing, "loc": ["body", name]} for name in ("userId", "sessionId")] == refused.json()["detail"]


async def test_what_is_no_json_is_named_as_adk_names_it(asking: Asking) -> None:
    """The same shape, with the place."""
    refused = await asking().post("/run_sse", content="{nope", headers=JSON)
    [error] = refused.json()["detail"]

    assert (422, "json_invalid", ["body", 1]) == (refused.status_code, error["type"], error["loc"])
    assert "Expecting property name enclosed in double quotes" == error["ctx"]["error"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"userId": NaN}', "NaN is not JSON"),
        (b'{"userId": -Infinity}', "-Infinity is not JSON"),
        (b'{"userId": "\\ud800"}', "half a surrogate pair"),
        (b'{"userId": "\xff"}', "not UTF-8"),
        (b'{"stateDelta": {"x": ' + b"[" * 500 + b"]" * 500 + b"}}", "nested too deeply"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"stateDelta": {"x": ' + b"9" * 5000 + b"}}", "integer string conversion"),
    ],
)
async def test_what_only_python_would_read_is_no_json(asking: Asking, body: bytes, said: str) -> None:
    """It would break later, where nobody can be told any more."""
    refused = await asking().post("/run", content=body, headers=JSON)

    assert 422 == refused.status_code
    assert said in refused.json()["detail"][0]["ctx"]["error"]


@pytest.mark.parametrize(
    "message",
    [
        {"parts": [{"functionResponse": {"id": "x", "name": "y", "response": [1]}}]},
        {"parts": [{"functionResponse": {"id": "x", "name": "y", "response": "yes"}}]},
        {"parts": "hello"},
        {"parts": [{"nope": 1}]},
        {"parts": [{"mediaProcessing": {}}]},
        "hello",
    ],
)
async def test_a_message_that_is_none_is_unreadable_as_in_adk(asking: Asking, message: Any) -> None:
    """Parsed by the same type, so with the same errors."""
    body = {"appName": "planned", "userId": "u", "sessionId": "s", "newMessage": message}
    refused = await asking().post("/run_sse", json=body)

    assert 422 == refused.status_code
    assert ["body", "newMessage"] == refused.json()["detail"][0]["loc"][:2]


async def test_a_body_without_its_type_is_not_guessed(asking: Asking) -> None:
    """As FastAPI has it; the 422 shows what came, also where it is no text."""
    for content in (b'{"appName": "planned"}', b"\xff\xfe"):
        refused = await asking().post("/run", content=content)
        assert 422 == refused.status_code


async def test_a_large_mistake_is_not_sent_back_whole(asking: Asking) -> None:
    """Neither its text nor each of its thousand errors."""
    parts = [{"nope": "x" * 500}] * 1000
    body = {"appName": "planned", "userId": "u", "sessionId": "s", "newMessage": {"parts": parts}}
    refused = await asking().post("/run", json=body)

    assert 422 == refused.status_code
    assert len(refused.content) < 50_000


async def test_an_app_must_be_named(asking: Asking) -> None:
    """400, as in ADK without a default app; the names are told."""
    refused = await asking().post("/run", json={"userId": "u", "sessionId": "s"})

    assert 400 == refused.status_code
    assert "app_name is required: held, mended, named, planned, spoiled" == refused.json()["detail"]
