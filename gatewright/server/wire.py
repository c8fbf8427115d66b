"""JSON as it comes in and goes out: only what JSON has, and nothing that a client could not read."""

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import PydanticSerializationError, to_json


def encoded(document: Any) -> bytes:
    """`document` as UTF-8 JSON on one line; what is not a number becomes null, as in ADK's events."""
    try:
        return to_json(document, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeError, ValueError):
        # Half a surrogate pair is the only text without UTF-8, and its escape is JSON.
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


class Json(Response):
    """A JSON response of plain data."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write it as `encoded` does."""
        return encoded(content)


class _StrictRequest(Request):
    async def json(self) -> Any:
        """
        The body as JSON; `JSONDecodeError` (a 422) for whatever else there is.

        Python would read NaN, numbers that fill memory when they are written
        out, half a surrogate pair, and nesting that only breaks later on.
        """
        text = ""
        try:
            text = (await self.body()).decode()
            read = json.loads(text, parse_constant=_no_constant)
            json.dumps(read, ensure_ascii=False).encode()
        except json.JSONDecodeError:
            raise
        except UnicodeError as wrong:
            raise json.JSONDecodeError("text that is not UTF-8, or half a surrogate pair", text, 0) from wrong
        except RecursionError as deep:
            raise json.JSONDecodeError("nested too deeply", text, 0) from deep
        except ValueError as wrong:
            raise json.JSONDecodeError(str(wrong), text, 0) from wrong
        if _depth(read) > MAX_DEPTH:
            raise json.JSONDecodeError("nested too deeply", text, 0)
        return read


MAX_DEPTH = 100


def _depth(value: Any) -> int:
    """How deeply lists and objects are nested, counted level by level."""
    level, depth = [value], 0
    while level := [
        inner
        for outer in level
        if isinstance(outer, dict | list)
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        depth += 1
    return depth


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class StrictRoute(APIRoute):
    """A route whose request bodies are JSON and nothing else."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Hand FastAPI's own handler the strict request."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict
