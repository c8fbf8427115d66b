"""
What is wrong with an answer, in words that the person who gave it can act on.

jsonschema says which rule was broken and prints the rule; here it is said what
was got and what is wanted. Of a union, only the branch that the answer comes
closest to is spoken of.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from jsonschema import ValidationError
from pydantic import BaseModel, ConfigDict

from .canonical import json_path

MAX_FAULTS = 50
"""How many faults of one answer are told; the last line then says how many more there are."""

_MAX_SHOWN = 60
_MAX_LISTED = 12

_TYPES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "an object",
    "null": "nothing (null)",
}
_FORMATS = {
    "date-time": "a date and time such as 2024-05-01T12:30:00Z",
    "date": "a date such as 2024-05-01",
    "time": "a time such as 12:30:00",
    "duration": "a duration such as P1DT2H",
    "uuid": "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
    "uri": "a URL such as https://example.com/",
    "email": "an e-mail address",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
}

_Path = tuple[str | int, ...]


class Fault(BaseModel):
    """One thing that is wrong with an answer: where ("$.columns[2].name"), what was got and what is wanted."""

    model_config = ConfigDict(frozen=True)

    path: str
    message: str


def describe(errors: Iterable[ValidationError], target: Callable[[str], Any]) -> tuple[Fault, ...]:
    """
    Each error as a fault, without repeats; at most 50, and then one that counts the rest.

    `target` resolves a local `$ref` of the schema.
    """
    words = _Words(target)
    errors = list(errors)
    # "Wanted text" says nothing where "wanted one of ..." is said as well.
    listed = {tuple(error.path) for error in errors if error.validator in ("enum", "const")}
    faults = tuple(
        dict.fromkeys(
            Fault(path=json_path(path), message=message)
            for error in errors
            if not (error.validator == "type" and tuple(error.path) in listed)
            for path, message in words.of(error, tuple(error.relative_path))
        )
    )
    if len(faults) <= MAX_FAULTS:
        return faults
    return (*faults[:MAX_FAULTS], Fault(path="$", message=f"and {len(faults) - MAX_FAULTS} more"))


def shown(value: Any) -> str:
    """A JSON value in a few words, whatever its size."""
    if isinstance(value, list):
        return f"a list of {len(value)} item{'' if len(value) == 1 else 's'}" if value else "an empty list"
    if isinstance(value, dict):
        return f"an object of {len(value)} field{'' if len(value) == 1 else 's'}" if value else "an empty object"
    if isinstance(value, str):
        value = shorten(value, _MAX_SHOWN)
    return json.dumps(value, ensure_ascii=False)


def shorten(text: str, length: int) -> str:
    """`text`, cut to `length` characters with an ellipsis at the end."""
    return text if len(text) <= length else text[: length - 1] + "…"


class _Words:
    """Puts jsonschema's errors into words."""

    def __init__(self, target: Callable[[str], Any]) -> None:
        self._target = target

    def of(self, error: ValidationError, path: _Path) -> Iterator[tuple[_Path, str]]:
        """The places and messages of one error that was found at `path`."""
        rule = error.validator
        want: Any = error.validator_value
        got: Any = error.instance
        if rule == "required":
            yield from (((*path, name), "is missing; it is required") for name in want if name not in got)
        elif rule == "dependentRequired":
            yield from (
                ((*path, name), f"is missing; it is required beside {shown(key)}")
                for key, names in want.items()
                if key in got
                for name in names
                if name not in got
            )
        elif rule == "additionalProperties" and want is False:
            yield from (((*path, name), self._unknown(error.schema)) for name in _extras(error))
        elif rule in ("anyOf", "oneOf"):
            yield from self._of_union(error, path)
        else:
            yield path, self._of_one(error)

    def _of_union(self, error: ValidationError, path: _Path) -> Iterator[tuple[_Path, str]]:
        """What the branch that comes closest objects; where none comes close, what is wanted at all."""
        branches = [list(group) for _, group in groupby(error.context or (), key=lambda each: each.schema_path[0])]
        forms: Any = error.validator_value
        if len(branches) < len(forms):
            yield (
                path,
                f"got {shown(error.instance)}, which fits several forms where one is wanted; be more specific",
            )
            return
        close = [branch for branch in branches if not any(map(_is_of_another_kind, branch))]
        tags = [each for branch in branches for each in branch if _is_of_another_tag(each)]
        if not close and tags:
            wanted = _one_of([tag.validator_value for tag in tags])
            yield (*path, *tags[0].relative_path), f"got {shown(tags[0].instance)}, wanted {wanted}"
            return
        if not close:
            wants = dict.fromkeys(self.wanted(branch) for branch in forms)
            yield path, f"got {shown(error.instance)}, wanted {' or '.join(wants)}"
            return
        for each in min(close, key=len):
            yield from self.of(each, path + tuple(each.relative_path))

    def _of_one(self, error: ValidationError) -> str:
        rule: Any = error.validator
        want: Any = error.validator_value
        got: Any = error.instance
        if rule == "format":
            want = _FORMATS.get(want, f"text of the form {want!r}")
        elif rule == "not":
            want = f"anything but {self.wanted(want)}"
        elif rule in ("type", "enum", "const"):
            want = self.wanted({rule: want})
        elif rule == "pattern":
            want = f"text that matches {shorten(want, 200)}"
        elif rule in _BOUNDS:
            want = _BOUNDS[rule].format(want)
        elif rule is None:
            return f"got {shown(got)}, and nothing is wanted here; leave it out"
        else:
            return f"got {shown(got)}: {shorten(error.message, 200)}"
        size = f" ({len(got)} characters)" if rule in ("minLength", "maxLength") else ""
        return f"got {shown(got)}{size}, wanted {want}"

    def wanted(self, node: Any, room: int = 4) -> str:
        """What a schema asks for, in a few words."""
        if not isinstance(node, dict) or room == 0:
            return "something else"
        if "const" in node or "enum" in node:
            return _one_of([node["const"]] if "const" in node else node["enum"])
        branches = [self._target(node["$ref"])] if "$ref" in node else node.get("anyOf") or node.get("oneOf") or ()
        types = node.get("type", ())
        names = [_TYPES.get(name, name) for name in ([types] if isinstance(types, str) else types)]
        if node.get("format") in _FORMATS:
            names = [_FORMATS[node["format"]]]
        parts = dict.fromkeys([*names, *(self.wanted(branch, room - 1) for branch in branches)])
        return " or ".join(parts) or "something else"

    @staticmethod
    def _unknown(schema: Any) -> str:
        known = list(schema.get("properties", ()))
        names = ", ".join(known[:_MAX_LISTED]) + (", …" if len(known) > _MAX_LISTED else "")
        return f"is not a field here; remove it{f' (the fields are: {names})' if known else ''}"


_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "{} or more characters",
    "maxLength": "{} or fewer characters",
    "minItems": "{} or more items",
    "maxItems": "{} or fewer items",
    "minProperties": "{} or more fields",
    "maxProperties": "{} or fewer fields",
    "uniqueItems": "items that are all different",
}


def _one_of(members: list[Any]) -> str:
    if len(members) == 1:
        return shown(members[0])
    listed = ", ".join(map(shown, members[:_MAX_LISTED]))
    return f"one of {listed}{', …' if len(members) > _MAX_LISTED else ''}"


def _extras(error: ValidationError) -> list[str]:
    """The fields that a closed object schema does not know."""
    schema: Any = error.schema
    instance: Any = error.instance
    patterns = schema.get("patternProperties", ())
    known = schema.get("properties", ())
    extras = [name for name in instance if name not in known and not any(re.search(each, name) for each in patterns)]
    return extras or list(instance)


def _is_of_another_kind(error: ValidationError) -> bool:
    """Whether the branch wants another kind of value altogether: another type, or another tag of a tagged union."""
    return (not error.relative_path and error.validator in ("type", "enum", "const")) or _is_of_another_tag(error)


def _is_of_another_tag(error: ValidationError) -> bool:
    return len(error.relative_path) == 1 and error.validator == "const"
