"""An answer that a JSON Schema would take, to show somebody what to write. Pure."""

import json
from typing import Any

from .decoding import Undecodable, decode
from .question import ABSENT, Kind, Question, question

_DEEPEST = 8


def example(schema: dict[str, Any] | None, *, strict: bool = False) -> Any:
    """A value that satisfies `schema`, with its required fields and those with a default; `ABSENT` if none was found."""
    if schema is None:
        return "..."
    value = _example(question(schema, schema), 0)
    fits = value is not ABSENT and not isinstance(decode(value, schema, strict=strict), Undecodable)
    # Only what can be copied into a file is shown.
    return json.loads(json.dumps(value)) if fits else ABSENT


def _example(asked: Question, depth: int) -> Any:
    if asked.default is not ABSENT or depth > _DEEPEST:
        return asked.default
    value: Any = ABSENT
    match asked.kind:
        case Kind.TEXT:
            value = "." * max(asked.schema.get("minLength", 0), 3)
        case Kind.INTEGER | Kind.NUMBER:
            value = next((asked.schema[bound] for bound in ("minimum", "maximum") if bound in asked.schema), 1)
        case Kind.BOOLEAN:
            value = True
        case Kind.CHOICE:
            value = asked.choices[0] if asked.choices else None
        case Kind.CHOICES:
            value = list(asked.choices[: asked.schema.get("minItems", 0)])
        case Kind.LIST:
            value = _items(asked, depth)
        case Kind.OBJECT:
            value = _fields(asked, depth)
        case Kind.VARIANT:
            value = _example(asked.variant(0), depth + 1)
        case Kind.JSON:
            value = "..." if asked.takes_text else ABSENT
    return value


def _items(asked: Question, depth: int) -> Any:
    count, item = asked.schema.get("minItems", 0), asked.item()
    inner = _example(item, depth + 1) if count and item is not None else None
    return ABSENT if inner is ABSENT else [inner] * count


def _fields(asked: Question, depth: int) -> Any:
    values: dict[str, Any] = {}
    for inner in asked.fields():
        if not inner.required and inner.default is ABSENT:
            continue
        value = _example(inner, depth + 1)
        if value is ABSENT:
            return ABSENT
        values[inner.name.removeprefix(f"{asked.name}.") if asked.name else inner.name] = value
    return values
