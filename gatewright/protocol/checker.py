"""
One schema, ready to judge values: JSON Schema, Draft 2020-12, made safe for what anyone may send.

The verdicts are those of jsonschema, and a test holds them against it, except that:

1. Work is counted, in steps of about a microsecond, and refused beyond a limit
   instead of done: an answer must not stop a worker, and a replay must come to
   the same verdict, so neither clock nor hash order has a say in it.
2. A `$ref` is judged once per value and decoding. A recursive union would
   otherwise take time exponential in the depth of an answer.
3. `multipleOf` counts in decimals, as people do: 19.99 is a multiple of 0.01.
4. An integer is a number without fraction that every reader keeps exactly.
5. `format` is checked for the formats that pydantic renders, with pydantic's
   own rules, whatever else is installed. Unknown formats are not checked.
6. Patterns are matched in linear time, in Rust's dialect (see schema.py).
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, TypeAlias

from pydantic_core import SchemaValidator, core_schema

from .canonical import MAX_DEPTH, MAX_SAFE_INTEGER, NotJson, canonical
from .schema import JsonSchema, longest_chain, matches, positions, resolver

MAX_ERRORS = 200
"""How many errors of one value under one schema are kept; nobody reads more."""

MAX_STEPS = 150_000
"""How much work one decoding may take, fitting included: at most about an eighth of a second."""

_FRAMES = 700
"""Python frames that judging one value may take: three for each schema that applies to it or its parts, two more a level.

The limit is counted and not left to Python's own (1000 in all), because how many of those are left differs from
call to call, and a replay must come to the same verdict.
"""

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Error:
    """
    One keyword of a schema that a value breaks.

    `validator` is the keyword, or None for the schema `false`; `wanted` is what
    the keyword asks for; `context` has, for a union, what each branch that does
    not take the value objects.
    """

    validator: str | None
    wanted: Any
    instance: Any
    schema: Any
    path: Path
    message: str = ""
    context: tuple["list[Error]", ...] = ()


@dataclass(frozen=True)
class _Compiled:
    """What is kept of a schema between decodings; the two tables grow as they are asked for, and are never counted."""

    schema: JsonSchema
    max_depth: int
    resolve: Callable[[str], Any]
    targets: dict[str, Any]
    members: dict[int, frozenset[Any]]


class Checker:
    """
    Judges values and their parts under one schema that `render_schema` took.

    Lives as long as one decoding: it remembers verdicts by the identity of the
    lists and objects it saw, keeps those alive, and relies on nobody changing
    them (`passed` has what satisfied which schema). `steps` counts the work; beyond MAX_STEPS everything raises `NotJson`.
    """

    def __init__(self, schema: JsonSchema) -> None:
        # Text and not canonical form: key order is the order of a form, and json is ten times faster.
        self._compiled = _compiled(json.dumps(schema))
        self.schema = self._compiled.schema
        self.max_depth = self._compiled.max_depth
        self.steps = 0
        self._quiet = _Judge(self, limit=1)
        self._verdicts: dict[tuple[int, int], tuple[Any, bool]] = {}
        self.passed: dict[tuple[int, int], Any] = {}

    def spend(self, steps: int) -> None:
        """Count work before it is done. Raises `NotJson` where it is too much."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise NotJson(
                "too many attempts to fit the answer to so intricate a schema; send less, or put what is large into "
                "a file and answer with a reference"
            )

    def target(self, ref: str) -> Any:
        """The schema that a local reference names."""
        targets = self._compiled.targets
        if ref not in targets:
            targets[ref] = self._compiled.resolve(ref)
        return targets[ref]

    def takes(self, value: Any, node: Any) -> bool:
        """Whether `value` as it stands satisfies `node`, which is a part of the schema and not a copy of one."""
        if not isinstance(value, list | dict):
            # Equal scalars may or may not be one object, and the count of steps must not depend on it.
            return not self._quiet.judge(value, node, ())
        key = (id(value), id(node))
        if key not in self._verdicts:
            self._verdicts[key] = (value, not self._quiet.judge(value, node, ()))
        return self._verdicts[key][1]

    @staticmethod
    def is_type(value: Any, name: str) -> bool:
        """Whether `value` is of the JSON type `name`."""
        return _TYPES[name](value)

    def wants_kind_of(self, value: Any, node: Any) -> bool:
        """Whether `node` asks for that kind of value at all: text, a list and so on, whatever is in it."""
        if not isinstance(node, dict):
            return bool(node)
        self.spend(2)
        parts = [*node.get("allOf", ()), *([self.target(node["$ref"])] if "$ref" in node else ())]
        unions = [node[keyword] for keyword in ("anyOf", "oneOf") if keyword in node]
        types = node.get("type", ())
        return (
            (not types or any(self.is_type(value, name) for name in _listed(types)))
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
        self.spend(2)
        parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in node.get(keyword, ())]
        parts += [self.target(node["$ref"])] if "$ref" in node else []
        return (
            name in node.get("properties", ())
            or any(self.matches(pattern, name) for pattern in node.get("patternProperties", ()))
            or node.get("additionalProperties", node.get("type") == "object" and "properties" not in node) is not False
            or any(self.has_field(name, part) for part in parts)
        )

    def matches(self, pattern: str, text: str) -> bool:
        """Whether the author's `pattern` is found in `text`."""
        # A matcher may be in every position of the pattern at once, at 15 to 30 ns each.
        self.spend(1 + positions(pattern) * len(text) // 40)
        return matches(pattern, text)

    def members(self, values: list[Any]) -> frozenset[Any]:
        """The members of an `enum` of this schema, in a form that `identified` values are found in."""
        members = self._compiled.members
        if id(values) not in members:
            members[id(values)] = frozenset(map(_identity, values))
        return members[id(values)]

    def identified(self, value: Any) -> Any:
        """Something hashable that two values have in common where JSON Schema takes them for equal."""
        if isinstance(value, list | dict):
            self.spend(5 + 2 * weight(value))
        return _identity(value)

    def errors(self, value: Any) -> list[Error]:
        """What is wrong with `value` under the whole schema; at most MAX_ERRORS."""
        return _Judge(self, limit=MAX_ERRORS).judge(value, self.schema, ())

    def valid(self, value: Any, node: Any) -> bool:
        """As `takes`, for the rules of a schema, which ask once."""
        return not self._quiet.judge(value, node, ())


class _Judge:
    """Applies schemas to values and gathers at most `limit` errors of each."""

    def __init__(self, checker: Checker, *, limit: int) -> None:
        self.checker = checker
        self.limit = limit
        self._memo: dict[tuple[int, str], tuple[Any, list[Error]]] = {}

    def judge(self, value: Any, node: Any, path: Path) -> list[Error]:
        if not isinstance(node, dict):
            self.checker.spend(1)
            return [] if node else [Error(None, None, value, False, path)]
        if not isinstance(value, list | dict):
            return self._apply(value, node, path)
        key = (id(value), id(node))
        if key in self.checker.passed:
            self.checker.spend(1)
            return []
        if not (found := self._apply(value, node, path)):
            self.checker.passed[key] = value
        return found

    def _apply(self, value: Any, node: JsonSchema, path: Path) -> list[Error]:
        self.checker.spend(1 + len(node))
        found: list[Error] = []
        for keyword, want in node.items():
            if (rule := _RULES.get(keyword)) is not None:
                for error in rule(self, want, value, node, path):
                    self.checker.spend(1)
                    found.append(error)
                    if len(found) >= self.limit:
                        return found
        return found

    def refer(self, ref: str, value: Any, path: Path) -> list[Error]:
        target = self.checker.target(ref)
        if not isinstance(value, list | dict):
            return self.judge(value, target, path)
        key = (id(value), ref)
        if key not in self._memo:
            self._memo[key] = (value, self.judge(value, target, path))
        return self._memo[key][1]


_Rule: TypeAlias = Callable[[_Judge, Any, Any, JsonSchema, Path], "Iterator[Error] | list[Error]"]
_RULES: Final[dict[str, _Rule]] = {}


@lru_cache(maxsize=256)
def _compiled(text: str) -> _Compiled:
    schema = json.loads(text)
    max_depth = min(MAX_DEPTH, _FRAMES // (2 + 3 * longest_chain(schema)))
    return _Compiled(schema, max_depth, resolver(schema), {}, {})


def weight(value: Any) -> int:
    """How large a value is: one for each value and key in it, and one for each 32 characters of text."""
    if isinstance(value, dict):
        return 1 + sum(1 + len(key) // 32 + weight(item) for key, item in value.items())
    if isinstance(value, list):
        return 1 + sum(map(weight, value))
    return 1 + len(value) // 32 if isinstance(value, str) else 1


def _identity(value: Any) -> Any:
    return canonical(value) if isinstance(value, list | dict) else (isinstance(value, bool), value)


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else types


def _is_integer(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer() and abs(value) <= MAX_SAFE_INTEGER
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _plain(keyword: str, kind: str, holds: Callable[[Checker, Any, Any], bool]) -> None:
    """A keyword that a value of that kind ("" for any) keeps or breaks by itself."""
    is_kind = _TYPES.get(kind, lambda _value: True)

    def rule(judge: _Judge, want: Any, value: Any, node: JsonSchema, path: Path) -> list[Error]:
        if not is_kind(value) or holds(judge.checker, value, want):
            return []
        return [Error(keyword, want, value, node, path)]

    _RULES[keyword] = rule


def _is_multiple(checker: Checker, value: float, divisor: float) -> bool:
    checker.spend(15)
    return not Fraction(str(value)) % Fraction(str(divisor))


def _is_unique(checker: Checker, items: list[Any], unique: bool) -> bool:
    checker.spend(len(items) // 2)
    return not unique or len({checker.identified(item) for item in items}) == len(items)


def _has_format(checker: Checker, text: str, name: str) -> bool:
    # Reading punycode takes time quadratic in the length of a label.
    checker.spend(2 + len(text) // (1 if "xn--" in text.lower() else 16))
    try:
        _FORMATS.get(name, str)(text)
    except (ValueError, OverflowError):
        return False
    return True


_plain("type", "", lambda _, value, want: any(_TYPES[name](value) for name in _listed(want)))
_plain("enum", "", lambda checker, value, want: checker.identified(value) in checker.members(want))
_plain("const", "", lambda checker, value, want: checker.identified(value) == checker.identified(want))
_plain("minimum", "number", lambda _, value, want: value >= want)
_plain("maximum", "number", lambda _, value, want: value <= want)
_plain("exclusiveMinimum", "number", lambda _, value, want: value > want)
_plain("exclusiveMaximum", "number", lambda _, value, want: value < want)
_plain("multipleOf", "number", _is_multiple)
_plain("minLength", "string", lambda _, value, want: len(value) >= want)
_plain("maxLength", "string", lambda _, value, want: len(value) <= want)
_plain("pattern", "string", lambda checker, value, want: checker.matches(want, value))
_plain("format", "string", _has_format)
_plain("minItems", "array", lambda _, value, want: len(value) >= want)
_plain("maxItems", "array", lambda _, value, want: len(value) <= want)
_plain("uniqueItems", "array", _is_unique)
_plain("minProperties", "object", lambda _, value, want: len(value) >= want)
_plain("maxProperties", "object", lambda _, value, want: len(value) <= want)
_plain("not", "", lambda checker, value, want: not checker.valid(value, want))


def _rule(keyword: str, kind: str = "") -> Callable[[_Rule], _Rule]:
    """Register a keyword that says something about parts of a value of that kind, or by way of other schemas."""
    is_kind = _TYPES.get(kind)

    def register(rule: _Rule) -> _Rule:
        def of_kind(judge: _Judge, want: Any, value: Any, node: JsonSchema, path: Path) -> Any:
            return rule(judge, want, value, node, path) if is_kind is None or is_kind(value) else ()

        _RULES[keyword] = of_kind
        return rule

    return register


@_rule("$ref")
def _ref(judge: _Judge, ref: str, value: Any, _node: JsonSchema, path: Path) -> list[Error]:
    return judge.refer(ref, value, path)


@_rule("allOf")
def _all_of(judge: _Judge, parts: list[Any], value: Any, _node: JsonSchema, path: Path) -> Iterator[Error]:
    for part in parts:
        yield from judge.judge(value, part, path)


@_rule("anyOf")
def _any_of(judge: _Judge, branches: list[Any], value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    context = []
    for branch in branches:
        if not (errors := judge.judge(value, branch, path)):
            return
        context.append(errors)
    yield Error("anyOf", branches, value, node, path, context=tuple(context))


@_rule("oneOf")
def _one_of(judge: _Judge, branches: list[Any], value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    context = [errors for branch in branches if (errors := judge.judge(value, branch, path))]
    if len(context) != len(branches) - 1:
        yield Error("oneOf", branches, value, node, path, context=tuple(context))


@_rule("if")
def _if(judge: _Judge, condition: Any, value: Any, node: JsonSchema, path: Path) -> list[Error]:
    return judge.judge(value, node.get("then" if judge.checker.valid(value, condition) else "else", True), path)


@_rule("properties", "object")
def _properties(judge: _Judge, parts: JsonSchema, value: Any, _node: JsonSchema, path: Path) -> Iterator[Error]:
    judge.checker.spend(len(parts) // 8)
    for key, part in parts.items():
        if key in value:
            yield from judge.judge(value[key], part, (*path, key))


@_rule("patternProperties", "object")
def _pattern_properties(judge: _Judge, parts: JsonSchema, value: Any, _: JsonSchema, path: Path) -> Iterator[Error]:
    for pattern, part in parts.items():
        for key, item in value.items():
            if judge.checker.matches(pattern, key):
                yield from judge.judge(item, part, (*path, key))


@_rule("additionalProperties", "object")
def _additional(judge: _Judge, part: Any, value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    known = _known(judge.checker, node, value)
    extras = [key for key in value if key not in known]
    if extras and part is False:
        yield Error("additionalProperties", part, value, node, path, context=())
        return
    for key in extras:
        yield from judge.judge(value[key], part, (*path, key))


def _known(checker: Checker, node: JsonSchema, value: dict[str, Any]) -> set[str]:
    """The keys of `value` that `properties` and `patternProperties` of one schema speak of."""
    checker.spend(len(value) // 2)
    properties = node.get("properties", {})
    patterns = node.get("patternProperties", ())
    return {key for key in value if key in properties or any(checker.matches(each, key) for each in patterns)}


@_rule("propertyNames", "object")
def _property_names(judge: _Judge, part: Any, value: Any, _node: JsonSchema, path: Path) -> Iterator[Error]:
    for key in value:
        yield from judge.judge(key, part, path)


@_rule("required", "object")
def _required(judge: _Judge, names: list[str], value: Any, node: JsonSchema, path: Path) -> list[Error]:
    judge.checker.spend(len(names) // 8)
    return [Error("required", names, value, node, path)] if any(name not in value for name in names) else []


@_rule("dependentRequired", "object")
def _dependent_required(judge: _Judge, names: Any, value: Any, node: JsonSchema, path: Path) -> list[Error]:
    judge.checker.spend(weight(names) // 4)
    broken = any(name not in value for key in names if key in value for name in names[key])
    return [Error("dependentRequired", names, value, node, path)] if broken else []


@_rule("dependentSchemas", "object")
def _dependent_schemas(judge: _Judge, parts: JsonSchema, value: Any, _: JsonSchema, path: Path) -> Iterator[Error]:
    judge.checker.spend(len(parts) // 8)
    for key, part in parts.items():
        if key in value:
            yield from judge.judge(value, part, path)


@_rule("prefixItems", "array")
def _prefix_items(judge: _Judge, parts: list[Any], value: Any, _node: JsonSchema, path: Path) -> Iterator[Error]:
    for index, (item, part) in enumerate(zip(value, parts, strict=False)):
        yield from judge.judge(item, part, (*path, index))


@_rule("items", "array")
def _items(judge: _Judge, part: Any, value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    first = len(node.get("prefixItems", ()))
    if part is False and len(value) > first:
        yield Error("items", part, value, node, path, f"at most {first} items are wanted")
    elif not isinstance(part, bool):
        for index in range(first, len(value)):
            yield from judge.judge(value[index], part, (*path, index))


@_rule("contains", "array")
def _contains(judge: _Judge, part: Any, value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    least, most = node.get("minContains", 1), node.get("maxContains", len(value))
    count = sum(judge.checker.valid(item, part) for item in value)
    if not least <= count <= most:
        bound = f"at least {least}" if count < least else f"at most {most}"
        yield Error(
            "contains", part, value, node, path, f"{count} of its items are of the kind of which {bound} must be"
        )


@_rule("unevaluatedProperties", "object")
def _unevaluated_properties(judge: _Judge, part: Any, value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    known: set[str] = set()
    for each in _in_force(judge.checker, node, value):
        if "additionalProperties" in each or ("unevaluatedProperties" in each and each is not node):
            return
        known |= _known(judge.checker, each, value)
    extras = [key for key in value if key not in known and not judge.checker.valid(value[key], part)]
    if extras:
        names = ", ".join(json.dumps(key, ensure_ascii=False) for key in extras[:12])
        yield Error("unevaluatedProperties", part, value, node, path, f"these fields are not wanted: {names}")


@_rule("unevaluatedItems", "array")
def _unevaluated_items(judge: _Judge, part: Any, value: Any, node: JsonSchema, path: Path) -> Iterator[Error]:
    known: set[int] = set()
    for each in _in_force(judge.checker, node, value):
        if "items" in each or ("unevaluatedItems" in each and each is not node):
            return
        known |= set(range(len(each.get("prefixItems", ()))))
        if "contains" in each:
            known |= {index for index, item in enumerate(value) if judge.checker.valid(item, each["contains"])}
    extras = [i for i, item in enumerate(value) if i not in known and not judge.checker.valid(item, part)]
    if extras:
        yield Error("unevaluatedItems", part, value, node, path, f"these items are not wanted: {extras[:12]}")


def _in_force(checker: Checker, node: Any, value: Any) -> Iterator[JsonSchema]:
    """The schemas that speak of `value` itself by way of `node`, and take it: `node`, and what it refers to."""
    if not isinstance(node, dict):
        return
    checker.spend(3)
    yield node
    parts = [*([checker.target(node["$ref"])] if "$ref" in node else ()), *node.get("allOf", ())]
    parts += [part for keyword in ("anyOf", "oneOf") for part in node.get(keyword, ()) if checker.valid(value, part)]
    parts += [part for key, part in node.get("dependentSchemas", {}).items() if key in value]
    if "if" in node:
        holds = checker.valid(value, node["if"])
        parts += [node["if"], node.get("then")] if holds else [node.get("else")]
    for part in parts:
        yield from _in_force(checker, part, value)


def _email(text: str) -> None:
    # Only what every address has; whether it exists is for whoever writes to it.
    if re.fullmatch(r"[^@\s]+@[^@\s]+", text) is None:
        raise ValueError(text)


_FORMATS: Final[dict[str, Callable[[str], object]]] = {
    "date-time": SchemaValidator(core_schema.datetime_schema()).validate_python,
    "date": SchemaValidator(core_schema.date_schema()).validate_python,
    "time": SchemaValidator(core_schema.time_schema()).validate_python,
    "duration": SchemaValidator(core_schema.timedelta_schema()).validate_python,
    "uuid": SchemaValidator(core_schema.uuid_schema()).validate_python,
    "uri": SchemaValidator(core_schema.url_schema()).validate_python,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "email": _email,
}
