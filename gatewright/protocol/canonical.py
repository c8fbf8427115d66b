"""
JSON that every party reads alike, its one canonical form, and its digest.

Three things hold throughout:

1. Portable means I-JSON (RFC 7493): no NaN, no number that another reader
   would round, no text that UTF-8 cannot carry, at most 64 levels.
2. What `check_json` lets pass reads back equal from its canonical form.
3. Nothing here depends on hash order, so a digest is the same in any process.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, NamedTuple, cast

import rfc8785
from pydantic import BaseModel, JsonValue, RootModel
from pydantic_core import to_jsonable_python

MAX_DEPTH = 64
"""How many lists and objects may lie inside one another."""

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 7493, 2.2)."""

_MAX_KEY_SHOWN = 40
_UNRENDERABLE = (ValueError, TypeError, RecursionError)


class NotJson(ValueError):  # noqa: N818 - a ruling on a value, named for what it says
    """
    A value is not portable JSON, or cannot be shown as such.

    `path` names the place ("$.a[2]") and `reason` says what is wrong there.
    """

    def __init__(self, reason: str, *, path: str = "$") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def json_path(parts: Iterable[str | int]) -> str:
    """The place that `parts` lead to, as "$.columns[2].name"; keys that are no identifiers are quoted and cut short."""
    return "$" + "".join(_path_step(part) for part in parts)


def _path_step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    short = part if len(part) <= _MAX_KEY_SHOWN else part[: _MAX_KEY_SHOWN - 1] + "…"
    # Escaped to ASCII, so that a path to a broken key is itself portable.
    return f".{short}" if part.isidentifier() and len(part) <= _MAX_KEY_SHOWN else f"[{json.dumps(short)}]"


class _Objection(NamedTuple):
    """What is wrong, and where: the steps from the value checked down to the culprit."""

    reason: str
    steps: tuple[str | int, ...] = ()

    def below(self, step: str | int) -> "_Objection":
        return _Objection(self.reason, (step, *self.steps))

    def error(self) -> NotJson:
        return NotJson(self.reason, path=json_path(self.steps))


def check_json(value: object) -> None:
    """
    Raise `NotJson` unless `value` is portable JSON (I-JSON, RFC 7493).

    Taken are None, bool, int, float, str, list and dict with text keys, and no
    subclasses of them. Refused are NaN, infinities, integers beyond 2^53-1,
    floats whose canonical form would read back as such an integer, lone
    surrogates, and more than 64 levels.
    """
    if (objection := _objection(value, MAX_DEPTH, portable=True)) is not None:
        raise objection.error()


def canonical(value: object) -> bytes:
    """
    The one canonical form of a JSON value (RFC 8785), in UTF-8.

    Raises `NotJson` as `check_json` does, except that every finite float is
    taken, as the RFC prescribes.
    """
    if (objection := _objection(value, MAX_DEPTH, portable=False)) is not None:
        raise objection.error()
    if _as_json_has_it(value):
        return _PLAIN(value).encode()
    try:
        return rfc8785.dumps(cast("Any", value))
    except rfc8785.CanonicalizationError as wrong:
        raise NotJson(str(wrong)) from wrong


_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, check_circular=False).encode


def _as_json_has_it(value: object) -> bool:
    """
    Whether `json` writes a value as the RFC does, only many times faster.

    Not floats, and not keys beyond ASCII, which the RFC sorts by UTF-16.
    """
    if type(value) is dict:
        return all(key.isascii() and _as_json_has_it(part) for key, part in value.items())
    if type(value) is list:
        return all(map(_as_json_has_it, value))
    return type(value) is not float


def digest(value: object) -> str:
    """`sha256:` and 64 hex digits over the canonical form of a JSON value. Raises `NotJson`."""
    return digest_of(canonical(value))


def digest_of(data: bytes) -> str:
    """`digest` of the value of which these bytes are the canonical form."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _objection(value: object, room: int, *, portable: bool) -> _Objection | None:
    """The first thing in document order that is wrong with `value`, which may have `room` more levels."""
    parts: Iterable[tuple[object, object]]
    if type(value) is list:
        parts = enumerate(value)
    elif type(value) is dict:
        parts = value.items()
    else:
        return _scalar_objection(value, portable=portable)
    if room == 0:
        return _Objection(f"nested more than {MAX_DEPTH} levels deep")
    for step, part in parts:
        found = _key_objection(step) if type(value) is dict else None
        if found is not None:
            return found
        if (found := _objection(part, room - 1, portable=portable)) is not None:
            return found.below(cast("str | int", step))
    return None


def _key_objection(key: object) -> _Objection | None:
    if type(key) is not str:
        return _Objection(f"a key of type {type(key).__name__} is not text")
    return None if (found := _text_objection(key)) is None else found.below(key)


def _scalar_objection(value: object, *, portable: bool) -> _Objection | None:
    kind = type(value)
    if value is None or kind is bool:
        return None
    if kind is str:
        return _text_objection(cast("str", value))
    if kind is int or kind is float:
        return _number_objection(cast("float", value), portable=portable)
    return _Objection(
        f"a Python {kind.__name__} is not JSON; use null, true, false, a number, text, a list or an object"
    )


def _text_objection(text: str) -> _Objection | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _Objection("the text holds half a surrogate pair, which UTF-8 cannot carry")
    return None


def _number_objection(number: float, *, portable: bool) -> _Objection | None:
    if isinstance(number, int):
        unsafe = abs(number) > MAX_SAFE_INTEGER
    elif math.isfinite(number):
        unsafe = portable and _reads_back_unsafe(number)
    else:
        return _Objection(f"{_float_text(number)} is not JSON; send a finite number, or text")
    return (
        _Objection("a whole number beyond ±(2^53-1) is not read alike everywhere; send it as text") if unsafe else None
    )


def _reads_back_unsafe(number: float) -> bool:
    # From 1e21 on RFC 8785 writes an exponent, so that it reads back as a float.
    return MAX_SAFE_INTEGER < abs(number) < 1e21


def _float_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return rfc8785.dumps(number).decode()


def plain(value: object) -> JsonValue:
    """
    Any Python or pydantic value as the portable JSON that a person is shown.

    Models, dataclasses, dates, decimals, enums, tuples and so on become what
    pydantic makes of them. Numbers that are not portable become text, and sets
    are sorted by canonical form, so that every client and process shows the
    same. Raises `NotJson`, naming the place, for what cannot be rendered. A
    custom serialiser that turns a set into a list must sort it by itself.
    """
    try:
        rendered = to_jsonable_python(value)
    except _UNRENDERABLE as wrong:
        raise NotJson(f"cannot be shown as JSON: {wrong}", path=json_path(_way_to_culprit(value))) from wrong
    shown = settle(value, rendered)
    check_json(shown)
    return cast("JsonValue", shown)


def settle(original: object, rendered: object, *, numbers: bool = True, steps: tuple[str | int, ...] = ()) -> object:
    """
    `rendered`, which pydantic made of `original`, with sets in order and unportable numbers as text.

    `numbers=False` leaves numbers as they are; `steps` lead to the value from
    the whole. Raises `NotJson` where two keys fall together, and below 64 levels.
    """
    if isinstance(rendered, dict | list) and len(steps) == MAX_DEPTH:
        raise NotJson(f"nested more than {MAX_DEPTH} levels deep", path=json_path(steps))
    if isinstance(rendered, dict):
        if isinstance(original, Mapping) and len(rendered) < len(original):
            raise NotJson("two keys are the same when written as text; make them differ", path=json_path(steps))
        parts = dict(_parts(original))
        return {
            key: settle(parts.get(key, item), item, numbers=numbers, steps=(*steps, key))
            for key, item in rendered.items()
        }
    if isinstance(rendered, list):
        parts = dict(_parts(original))
        items = [
            settle(parts.get(index, item), item, numbers=numbers, steps=(*steps, index))
            for index, item in enumerate(rendered)
        ]
        return sorted(items, key=canonical) if isinstance(_stand_in(original), AbstractSet) else items
    if numbers and type(rendered) in (int, float) and _number_objection(cast("float", rendered), portable=True):
        return str(rendered) if isinstance(rendered, int) else _float_text(cast("float", rendered))
    return rendered


def _stand_in(original: object) -> object:
    """What is rendered for `original`: an enum's value, a root model's root."""
    while isinstance(original, Enum | RootModel):
        original = original.value if isinstance(original, Enum) else original.root
    return original


def _parts(original: object) -> Iterator[tuple[str | int, object]]:
    """The parts of a container, each under the key or index that pydantic renders it at."""
    original = _stand_in(original)
    if isinstance(original, BaseModel):
        kind = type(original)
        for name, field in kind.model_fields.items():
            yield field.serialization_alias or field.alias or name, getattr(original, name, None)
        for name, computed in kind.model_computed_fields.items():
            yield computed.alias or name, getattr(original, name, None)
        yield from (original.model_extra or {}).items()
    elif dataclasses.is_dataclass(original) and not isinstance(original, type):
        aliases = getattr(original, "__pydantic_fields__", {})
        for field_ in dataclasses.fields(original):
            alias = getattr(aliases.get(field_.name), "serialization_alias", None) or field_.name
            yield alias, getattr(original, field_.name, None)
    elif isinstance(original, Mapping):
        yield from zip(to_jsonable_python(dict.fromkeys(original)), original.values(), strict=False)
    elif isinstance(original, list | tuple | AbstractSet):
        yield from enumerate(original)


def _way_to_culprit(value: object) -> list[str | int]:
    """The steps down to the innermost part of `value` that pydantic cannot render."""
    steps: list[str | int] = []
    while len(steps) < MAX_DEPTH and (step := _failing_part(value)) is not None:
        steps.append(step[0])
        value = step[1]
    return steps


def _failing_part(value: object) -> tuple[str | int, object] | None:
    try:
        for step, part in _parts(value):
            if not _renders(part):
                return step, part
    except _UNRENDERABLE:
        # A key is at fault, and has no place of its own.
        return None
    return None


def _renders(value: object) -> bool:
    try:
        to_jsonable_python(value)
    except _UNRENDERABLE:
        return False
    return True
