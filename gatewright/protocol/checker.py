"""
One schema, ready to judge values: jsonschema's Draft 2020-12 validator, made safe for what anyone may send.

It differs from the original in five places, each for a reason:

1. A `$ref` is judged once per value and decoding. A recursive union would
   otherwise take time exponential in the depth of an answer.
2. `multipleOf` counts in decimals, as people do: 19.99 is a multiple of 0.01.
3. An integer is a number without fraction that every reader keeps exactly.
4. Errors of a union are counted up to a limit, and `uniqueItems` takes linear
   time, because an answer of a quarter megabyte must not stop a worker.
5. `format` is checked for the formats that pydantic renders, with pydantic's
   own rules, whatever else is installed. Unknown formats are not checked.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from typing import Any, Protocol, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaValidator, core_schema

from .canonical import MAX_DEPTH, MAX_SAFE_INTEGER, canonical
from .schema import JsonSchema, longest_chain, resolve

MAX_ERRORS = 1000
"""How many errors of one value under one schema are kept; nobody reads more."""

_FRAMES = 700
"""Python frames that judging one value may take: three for each schema that applies to it or its parts, two more a level.

The limit is counted and not left to Python's own (1000 in all), because how many of those are left differs from
call to call, and a replay must come to the same verdict.
"""

_Memo: TypeAlias = dict[tuple[int, str], tuple[Any, list[ValidationError]]]
_memo: ContextVar[_Memo] = ContextVar("_memo")
_plain_ref = Draft202012Validator.VALIDATORS["$ref"]


class _Validator(Protocol):
    """The part of jsonschema's validators that is used here; its classes are made at run time."""

    def evolve(self, **changes: Any) -> "_Validator": ...
    def descend(self, instance: Any, schema: Any, *, schema_path: Any) -> Iterator[ValidationError]: ...
    def iter_errors(self, instance: Any) -> Iterator[ValidationError]: ...
    def is_valid(self, instance: Any) -> bool: ...
    def is_type(self, instance: Any, type: str) -> bool: ...  # noqa: A002 - jsonschema's name


class Checker:
    """
    Judges values and their parts under one schema that `render_schema` took.

    Lives as long as one decoding: it remembers verdicts by the identity of the
    values it saw, keeps those alive, and relies on nobody changing them.
    """

    def __init__(self, schema: JsonSchema) -> None:
        # Text and not canonical form: key order is the order of a form, and json is ten times faster.
        self.schema, self._validator, self._targets, self.max_depth = _compiled(json.dumps(schema))
        self._refs: _Memo = {}
        self._verdicts: dict[tuple[int, int], tuple[Any, bool]] = {}

    def target(self, ref: str) -> Any:
        """The schema that a local reference names."""
        if ref not in self._targets:
            self._targets[ref] = resolve(self.schema, ref)
        return self._targets[ref]

    def takes(self, value: Any, node: Any) -> bool:
        """Whether `value` as it stands satisfies `node`, which is a part of the schema and not a copy of one."""
        if isinstance(node, bool):
            return node
        key = (id(value), id(node))
        if key not in self._verdicts:
            token = _memo.set(self._refs)
            try:
                self._verdicts[key] = (value, self._validator.evolve(schema=node).is_valid(value))
            finally:
                _memo.reset(token)
        return self._verdicts[key][1]

    def is_type(self, value: Any, name: str) -> bool:
        """Whether `value` is of the JSON type `name`."""
        return self._validator.is_type(value, name)

    def wants_kind_of(self, value: Any, node: Any) -> bool:
        """Whether `node` asks for that kind of value at all: text, a list and so on, whatever is in it."""
        if not isinstance(node, dict):
            return bool(node)
        parts = [*node.get("allOf", ()), *([self.target(node["$ref"])] if "$ref" in node else ())]
        unions = [node[keyword] for keyword in ("anyOf", "oneOf") if keyword in node]
        types = node.get("type", ())
        return (
            (not types or any(self.is_type(value, name) for name in ([types] if isinstance(types, str) else types)))
            and all(self.wants_kind_of(value, part) for part in parts)
            and all(any(self.wants_kind_of(value, branch) for branch in union) for union in unions)
        )

    def has_field(self, name: str, node: Any = None) -> bool:
        """
        Whether the schema knows a field of that name: declared, or as one of any name.

        A model that merely does not forbid unknown fields does not know them.
        """
        node = self.schema if node is None else node
        if not isinstance(node, dict):
            return False
        parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in node.get(keyword, ())]
        parts += [self.target(node["$ref"])] if "$ref" in node else []
        return (
            name in node.get("properties", ())
            or any(re.search(pattern, name) for pattern in node.get("patternProperties", ()))
            or node.get("additionalProperties", node.get("type") == "object" and "properties" not in node) is not False
            or any(self.has_field(name, part) for part in parts)
        )

    def errors(self, value: Any) -> list[ValidationError]:
        """Everything that is wrong with `value` under the whole schema; at most MAX_ERRORS."""
        token = _memo.set(self._refs)
        try:
            return list(islice(self._validator.iter_errors(value), MAX_ERRORS))
        finally:
            _memo.reset(token)


@lru_cache(maxsize=256)
def _compiled(text: str) -> tuple[JsonSchema, _Validator, dict[str, Any], int]:
    """The schema of that text, its validator, the (growing) table of its references, and how deep its values may be."""
    schema = json.loads(text)
    # With `$schema`, jsonschema would fall back to its own class below a reference to the root.
    schema.pop("$schema", None)
    return (
        schema,
        _LocalValidator(schema, format_checker=_FORMATS),
        {},
        min(MAX_DEPTH, _FRAMES // (2 + 3 * longest_chain(schema))),
    )


def _ref(validator: _Validator, ref: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    memo = _memo.get()
    key = (id(instance), ref)
    if key not in memo:
        memo[key] = (instance, list(islice(_plain_ref(validator, ref, instance, schema), MAX_ERRORS)))
    # Copies, because an error gathers its path on the way up.
    yield from map(ValidationError.create_from, memo[key][1])


def _any_of(validator: _Validator, branches: list[Any], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    fitting, context = _try_branches(validator, branches, instance)
    if not fitting:
        yield ValidationError("fits none of the forms", context=context)


def _one_of(validator: _Validator, branches: list[Any], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    fitting, context = _try_branches(validator, branches, instance)
    if fitting != 1:
        yield ValidationError("fits several of the forms" if fitting else "fits none of the forms", context=context)


def _try_branches(validator: _Validator, branches: list[Any], instance: Any) -> tuple[int, list[ValidationError]]:
    """How many of the branches take `instance`, and what the others object."""
    fitting = 0
    context: list[ValidationError] = []
    for index, branch in enumerate(branches):
        if branch is False:
            # jsonschema leaves out the path of this error.
            context.append(ValidationError("nothing is wanted", validator="type", schema_path=(index,)))
            continue
        errors = list(islice(validator.descend(instance, branch, schema_path=index), MAX_ERRORS))
        fitting += not errors
        context += errors
    return fitting, context


def _unique_items(validator: _Validator, unique: bool, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if unique and validator.is_type(instance, "array") and len({canonical(item) for item in instance}) < len(instance):
        yield ValidationError("the items are not all different")


def _multiple_of(validator: _Validator, divisor: float, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(divisor)):
        yield ValidationError(f"{instance} is not a multiple of {divisor}")


def _is_integer(_checker: Any, instance: Any) -> bool:
    if isinstance(instance, float):
        return instance.is_integer() and abs(instance) <= MAX_SAFE_INTEGER
    return isinstance(instance, int) and not isinstance(instance, bool)


_LocalValidator: Callable[..., _Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={
        "$ref": _ref,
        "anyOf": _any_of,
        "oneOf": _one_of,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)

_FORMATS = FormatChecker(formats=())


def _format(name: str, parse: Callable[[str], object]) -> None:
    def holds(value: object) -> bool:
        if isinstance(value, str):
            parse(value)
        return True

    _FORMATS.checks(name, raises=(ValueError, OverflowError))(holds)


def _email(text: str) -> None:
    # Only what every address has; whether it exists is for whoever writes to it.
    if re.fullmatch(r"[^@\s]+@[^@\s]+", text) is None:
        raise ValueError(text)


for _name, _core in (
    ("date-time", core_schema.datetime_schema()),
    ("date", core_schema.date_schema()),
    ("time", core_schema.time_schema()),
    ("duration", core_schema.timedelta_schema()),
    ("uuid", core_schema.uuid_schema()),
    ("uri", core_schema.url_schema()),
):
    _format(_name, SchemaValidator(_core).validate_python)
_format("ipv4", IPv4Address)
_format("ipv6", IPv6Address)
_format("email", _email)
