"""
What a user's message is: text that opens a run, functionResponses that answer its gates, or neither.

Text opens, functionResponse resumes, never both: on Temporal these are two
different calls, and here is where the one is told from the other.
"""

from dataclasses import dataclass
from typing import Any

from google.genai import types

from .rejection import FUNCTION_CALL, NO_PARTS, Rejection


@dataclass(frozen=True)
class Text:
    """Words that open a run; `content` is the whole message as JSON, with whatever other parts it has."""

    words: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """
    Function responses; `text` is what stands beside them, which gets the message refused (B02).

    `beside` are parts of other kinds, each with its position: they are kept
    (B03). An empty text part says nothing and is left out.
    """

    responses: tuple[types.FunctionResponse, ...]
    text: str
    beside: tuple[tuple[int, dict[str, Any]], ...]


def read(message: types.Content) -> Text | Reply:
    """Tell what a message is; `Rejection` for one that is neither (B12, no parts, nothing said)."""
    parts = message.parts or []
    if not parts:
        raise Rejection("no_message", NO_PARTS)
    words = "".join(part.text for part in parts if part.text)
    responses = tuple(part.function_response for part in parts if part.function_response is not None)
    if responses:
        others = tuple(
            (position, as_json(part))
            for position, part in enumerate(parts)
            if part.function_response is None and part.text is None
        )
        if any(part.function_call for part in parts) and not words:
            raise Rejection("function_call", FUNCTION_CALL)
        return Reply(responses, words, others)
    if any(part.function_call for part in parts):
        raise Rejection("function_call", FUNCTION_CALL)
    if not words.strip() and all(part.text is not None for part in parts):
        raise Rejection("no_message", "The message says nothing, so there is nothing to open a run with.")
    return Text(words, {"parts": [as_json(part) for part in parts], "role": "user"})


def as_json(part: types.Part) -> dict[str, Any]:
    """A part in ADK's casing, without what it does not have."""
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)
