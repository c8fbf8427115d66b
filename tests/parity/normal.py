"""
What a transcript says, whatever ids were drawn and whenever it was.

Only ids and times are touched, and ids not blindly: one that was drawn becomes
an `Id`, which is compared by whether both sides use theirs at the same places.
Interrupt ids are names that clients see, and stay.
"""

import re
from dataclasses import dataclass
from typing import Any

_TIMES = {"timestamp", "lastUpdateTime"}
_SAID = {"rejected", "error", "error_message", "detail"}
"""Where a side speaks in sentences of its own, in which a drawn id or a moment may stand."""
_INVOCATION = re.compile(r"\be-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_SET = re.compile(r"\{'[^{}]*'\}")


@dataclass(frozen=True)
class Id:
    """An id that was drawn; `kind` says for what."""

    kind: str
    drawn: str

    def __str__(self) -> str:
        return f"<{self.kind}>"


def normalised(value: Any, *, key: str = "") -> Any:
    """A transcript, or a part of one that stands under `key`, with its drawn ids and its times as what they are."""
    match value:
        case dict():
            return {name: _field(value, name) for name in value}
        case list():
            return [normalised(item, key=key) for item in value]
        case str() if key in _SAID:
            # A set of ids is written in an order that changes from process to process.
            ordered = _SET.sub(lambda found: "{" + ", ".join(sorted(found[0][1:-1].split(", "))) + "}", value)
            return _MOMENT.sub("<time>", _INVOCATION.sub("<invocation>", ordered))
        case _:
            return value


def _field(whole: dict[str, Any], name: str) -> Any:
    value = whole[name]
    is_event, is_session = "invocationId" in whole and "author" in whole, "appName" in whole and "userId" in whole
    match name, value:
        case _, float() if name in _TIMES:
            return "<time>"
        case "id", str() if is_event or is_session:
            return Id("event" if is_event else "session", value)
        case "invocationId", str() if is_event:
            return Id("change" if value.startswith("p-") else "invocation", value)
        case (("output" | "response" | "payload" | "args"), _):
            return value
        case _:
            return normalised(value, key=name)
