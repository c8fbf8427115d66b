"""
What is wrong with an answer, in words that the person who gave it can act on.

The checker says which rule was broken; here it is said what was got and what is
wanted, in bounded time and space whatever the answer and the schema. Of a union, only the branch that the answer comes
closest to is spoken of.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from pydantic import BaseModel, ConfigDict

from .canonical import json_path
from .checker import Error, Path
from .schema import matches

MAX_FAULTS = 50
"""How many faults of one answer are told; the last line then says how many more there are."""

_MAX_COUNTED = 1000
_MAX_SHOWN = 60
_MAX_LISTED = 12
_MAX_WANTED = 300

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


class Fault(BaseModel):
    """One thing that is wrong with an answer: where ("$.columns[2].name"), what was got and what is wanted."""

    model_config = ConfigDict(frozen=True)

    path: str
    message: str


def describe(errors: Iterable[Error], target: Callable[[str], Any]) -> tuple[Fault, ...]:
    """
    Each error as a fault, without repeats; at most 50, and then one that counts the rest.

    `target` resolves a local `$ref` of the schema.
    """
    words = _Words(target)
    errors = list(errors)
    # "Wanted text" says nothing where "wanted one of ..." is said as well.
    listed = {error.path for error in errors if error.validator in ("enum", "const")}
    told = (
        found
        for error in errors
        if not (error.validator == "type" and error.path in listed)
        for found in words.of(error)
    )
    found = list(dict.fromkeys(islice(told, _MAX_COUNTED)))
    faults = tuple(Fault(path=json_path(path), message=message) for path, message in found[:MAX_FAULTS])
    if len(found) <= MAX_FAULTS:
        return faults
    return (*faults, Fault(path="$", message=f"and {len(found) - MAX_FAULTS} more"))


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
    """Puts the checker's errors into words."""

    def __init__(self, target: Callable[[str], Any]) -> None:
        self._target = target
        self._wanted: dict[tuple[int, int], str] = {}

    def of(self, error: Error) -> Iterator[tuple[Path, str]]:
        """The places and messages of one error."""
        rule, want, got, path = error.validator, error.wanted, error.instance, error.path
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
            yield from self._of_union(error)
        else:
            yield path, self._of_one(error)

    def _of_union(self, error: Error) -> Iterator[tuple[Path, str]]:
        """What the branch that comes closest objects; where none comes close, what is wanted at all."""
        path, branches = error.path, error.context
        if len(branches) < len(error.wanted):
            yield (
                path,
                f"got {shown(error.instance)}, which fits several forms where one is wanted; be more specific",
            )
            return
        close = [branch for branch in branches if not any(_is_of_another_kind(each, path) for each in branch)]
        tags = [each for branch in branches for each in branch if _is_of_another_tag(each, path)]
        if not close and tags:
            wanted = _one_of([tag.wanted for tag in tags])
            yield tags[0].path, f"got {shown(tags[0].instance)}, wanted {wanted}"
            return
        if not close:
            yield path, f"got {shown(error.instance)}, wanted {self._any(error.wanted)}"
            return
        for each in min(close, key=len):
            yield from self.of(each)

    def _of_one(self, error: Error) -> str:
        rule, want, got = error.validator, error.wanted, error.instance
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
        key = (id(node), room)
        if key not in self._wanted:
            branches = [self._target(node["$ref"])] if "$ref" in node else node.get("anyOf") or node.get("oneOf") or ()
            types = node.get("type", ())
            names = [_TYPES.get(name, name) for name in ([types] if isinstance(types, str) else types)]
            if node.get("format") in _FORMATS:
                names = [_FORMATS[node["format"]]]
            self._wanted[key] = self._any(branches, names, room - 1)
        return self._wanted[key]

    def _any(self, branches: Iterable[Any], names: Iterable[str] = (), room: int = 4) -> str:
        parts = dict.fromkeys([*names, *(self.wanted(each, room) for each in islice(branches, _MAX_LISTED))])
        return shorten(" or ".join(parts), _MAX_WANTED) or "something else"

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


def _extras(error: Error) -> list[str]:
    """The fields that a closed object schema does not know; a few more than are told."""
    known = error.schema.get("properties", ())
    patterns = error.schema.get("patternProperties", ())
    extras = (
        name for name in error.instance if name not in known and not any(matches(each, name) for each in patterns)
    )
    return list(islice(extras, _MAX_COUNTED))


def _is_of_another_kind(error: Error, union: Path) -> bool:
    """Whether the branch wants another kind of value altogether: another type, or another tag of a tagged union."""
    return (error.path == union and error.validator in ("type", "enum", "const", None)) or _is_of_another_tag(
        error, union
    )


def _is_of_another_tag(error: Error, union: Path) -> bool:
    return len(error.path) == len(union) + 1 and error.validator == "const"
