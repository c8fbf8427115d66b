"""
The door: from whatever was delivered to a message, or to the reason why it is none.

Nothing may fail here. A signal handler that raises wedges the run, and one with
a declared argument drops what it cannot decode without a word, so deliveries
arrive raw and are read by hand.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError
from temporalio.common import RawValue

from gatewright.protocol.answer import MAX_MESSAGE_BYTES, Evidence, Message

PREVIEW = 200
"""How many characters of an unreadable delivery are kept."""


@dataclass(frozen=True)
class Read:
    """A delivery that is a message (which may still be refused)."""

    message: Message
    evidence: Evidence


@dataclass(frozen=True)
class Unreadable:
    """A delivery that is none: why, and how it began."""

    reason: str
    preview: str
    evidence: Evidence


def read(args: Sequence[RawValue], door: str) -> Read | Unreadable:
    """Read the arguments of a signal or update; never raises, whatever they are."""
    size = sum(len(arg.payload.data) for arg in args)
    evidence = Evidence(size=size, door=door)
    if size > MAX_MESSAGE_BYTES:
        # Not even parsed: admission refuses it by its size alone.
        return Read(Message(), evidence)
    shown = preview(args)
    if len(args) != 1:
        return Unreadable(f"it carries {len(args)} arguments instead of one", shown, evidence)
    encoding = args[0].payload.metadata.get("encoding", b"").decode("ascii", "replace")
    if encoding not in {"json/plain", "json/protobuf"}:
        return Unreadable(f"its encoding is {encoding or 'not stated'}, not json/plain", shown, evidence)
    try:
        # Never a RecursionError: json's scanner raises it as such, and it is caught like any other damage.
        data = json.loads(args[0].payload.data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as wrong:
        return Unreadable(f"it is not JSON ({_first_line(wrong)})", shown, evidence)
    if not isinstance(data, dict):
        return Unreadable(f"it is {_kind(data)}, not a JSON object", shown, evidence)
    try:
        return Read(Message.model_validate(data), evidence)
    except ValidationError as wrong:
        return Unreadable(_explain(wrong), shown, evidence)
    except RecursionError:
        return Unreadable("it is nested too deeply", shown, evidence)


def preview(args: Sequence[RawValue]) -> str:
    """How a delivery begins, for whoever has to find out what it was."""
    return " | ".join(arg.payload.data[:PREVIEW].decode("utf-8", "backslashreplace") for arg in args[:5])[:PREVIEW]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON leaves open which of two equal keys counts; an approval must not depend on it."""
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        _twice(next(key for key in keys if keys.count(key) > 1))
    return data


def _twice(key: str) -> NoReturn:
    msg = f"the key {key!r} stands twice in one object"
    raise ValueError(msg)


def _kind(data: Any) -> str:
    names = {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false"}
    return names.get(type(data), "null")


def _first_line(wrong: BaseException) -> str:
    return (str(wrong) or type(wrong).__name__).splitlines()[0][:200]


def _explain(wrong: ValidationError) -> str:
    words = []
    for error in wrong.errors(include_url=False, include_context=False, include_input=False)[:3]:
        place = ".".join(str(part) for part in error["loc"]) or "the message"
        words.append(f"{place}: {error['msg']}")
    return "; ".join(words).encode("utf-8", "backslashreplace").decode()
