r"""
What an answer must look like: rendered from a type, or checked as JSON Schema.

A schema that leaves this module can be shown, pinned and answered in any
process: it is portable JSON, valid Draft 2020-12, complete in itself (every
`$ref` is local and resolves), every pattern compiles in Rust's dialect, and no
schema applies itself to the same value again. decoding.py relies on all of
these; a schema that breaks one is refused where the gate is made (A13).

Patterns are matched by pydantic-core's regex engine (Rust's `regex` crate), whose
time is linear in the text: with Python's `re` one answer could stop a worker for
good. Its dialect has no look-around and no backreferences, and none of what only
Python knows (`\Z`, `a{,3}`, `(?a)`); patterns with those are refused. As JSON
Schema has it, a pattern may match anywhere; `$` is the very end of the text.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from pydantic import PydanticUserError, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import SchemaError as BadPattern
from pydantic_core import SchemaValidator, ValidationError, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from .canonical import NotJson, canonical, check_json, json_path, settle

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema (Draft 2020-12) as a JSON object."""

MAX_SCHEMA_BYTES = 128 * 1024
"""The largest schema, as canonical JSON."""

MAX_CHAIN = 16
"""How many schemas may apply to one value, each by way of the one before (`$ref`, `anyOf` and so on)."""

MAX_PATTERNS = 100
"""How many different patterns one schema may have; the first match of each has to compile it."""

MAX_POSITIONS = 2_000
"""How many places all patterns of one schema may have, with what is repeated counted as often as it may be."""

_ADVICE = (
    "use a pydantic model, a dataclass, a TypedDict, an enum, a Literal, a plain type such as bool, str, int or "
    "list[...], a JSON Schema as a dict, or None for any JSON"
)
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("prefixItems", "anyOf", "oneOf", "allOf")
_ONES = (
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
_IN_PLACE = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas apply to the very same value, as `$ref` does."""

_UNTYPABLE = (PydanticUserError, PydanticUndefinedAnnotation, TypeError, ValueError, AttributeError, RecursionError)


class UnrenderableSchema(ValueError):  # noqa: N818 - a ruling on a schema, named for what it says
    """The form of an answer cannot be shown or checked: what was given, why not, and what to do instead."""


def render_schema(answer: Any) -> JsonSchema | None:
    """
    The JSON Schema of `answer`, in the key order in which a form shows it.

    None means that any JSON is an answer, and stays None. A dict is taken as a
    JSON Schema, checked and copied. Anything else is rendered by pydantic's
    `TypeAdapter`. Raises `UnrenderableSchema`.
    """
    if answer is None:
        return None
    try:
        if isinstance(answer, dict):
            check_json(answer)
            _check_schema(json.dumps(answer))
            schema = answer
        else:
            schema = _hashed(_rendered, answer)
    except NotJson as wrong:
        raise UnrenderableSchema(f"the schema of {_named(answer)} is not portable JSON: {wrong}") from wrong
    except _Unusable as wrong:
        raise UnrenderableSchema(f"the schema of {_named(answer)} cannot be used: {wrong}") from wrong
    return copy.deepcopy(schema)


def adapter(answer: Any) -> TypeAdapter[Any] | None:
    """
    The pydantic adapter of a type, or None where `answer` is None or a JSON Schema.

    Raises `UnrenderableSchema`.
    """
    return None if answer is None or isinstance(answer, dict) else _hashed(_adapter, answer)


def _hashed(function: Any, answer: Any) -> Any:
    """
    What a cached function makes of a type, which depends on the type alone.

    The key holds the type's text too, because `int | str == str | int` and
    their schemas differ. A type that cannot be hashed is not cached. The caches
    are bounded, because Temporal's sandbox gives each run classes of its own.
    """
    try:
        hash(answer)
    except TypeError:
        return function.__wrapped__(answer, "")
    return function(answer, repr(answer))


@lru_cache(maxsize=256)
def _rendered(answer: Any, _text: str) -> JsonSchema:
    schema = _render_type(answer)
    check_json(schema)
    _check_schema(json.dumps(schema))
    return schema


@lru_cache(maxsize=256)
def _adapter(answer: Any, _text: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(answer)
    except BadPattern as wrong:
        raise UnrenderableSchema(
            f"{_named(answer)} cannot be checked: pydantic cannot compile it ({_reason(wrong)}); simplify it (patterns "
            "are taken without look-around, backreferences and what only Python knows)"
        ) from wrong
    except _UNTYPABLE as wrong:
        raise UnrenderableSchema(
            f"{_named(answer)} is not a type of answer: {_first_line(wrong)}; {_ADVICE}"
        ) from wrong


class _Renderer(GenerateJsonSchema):
    """pydantic's renderer, which refuses where the original warns and leaves something out."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise _Unusable(f"pydantic would leave something out ({kind}): {detail}")

    def encode_default(self, dft: Any) -> Any:
        # A set has no order of its own, and the schema's digest must not depend on one.
        return settle(dft, super().encode_default(dft), numbers=False)


def _render_type(answer: Any) -> JsonSchema:
    known = adapter(answer)
    try:
        return {} if known is None else known.json_schema(schema_generator=_Renderer)
    except _Unusable:
        raise
    except _UNTYPABLE as wrong:
        raise UnrenderableSchema(
            f"{_named(answer)} has no JSON Schema that a person could be shown: {_first_line(wrong)}; {_ADVICE}"
        ) from wrong


class _Unusable(Exception):  # noqa: N818 - internal, always turned into UnrenderableSchema
    """What is wrong with a schema, before it is said whose schema it is."""


@lru_cache(maxsize=256)
def _check_schema(text: str) -> None:
    """Raise `_Unusable` for what cannot be used; the schema is given as text, because that can be remembered."""
    schema: JsonSchema = json.loads(text)
    if (size := len(canonical(schema))) > MAX_SCHEMA_BYTES:
        raise _Unusable(f"it has {size:,} bytes, at most {MAX_SCHEMA_BYTES:,} are shown; ask for less at one gate")
    if str(schema.get("$schema", _DIALECT)).rstrip("#") != _DIALECT:
        raise _Unusable(f"it is written for {schema['$schema']!r}; write it for {_DIALECT!r} or leave `$schema` out")
    try:
        # Without format checks, which depend on what else is installed.
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as wrong:
        raise _Unusable(f"{json_path(wrong.path)}: {_shortened(wrong.message)}") from wrong
    except RecursionError as wrong:
        raise _Unusable("it is nested too deep; name the inner schemas in `$defs` and refer to them") from wrong
    nodes = dict(_nodes(schema, ()))
    for path, node in nodes.items():
        _check_node(node, path)
    _check_refs(schema, nodes)
    _check_patterns({pattern for node in nodes.values() for pattern in _patterns(node)})
    try:
        chain = longest_chain(schema)
    except (UnrenderableSchema, RecursionError) as wrong:
        raise _Unusable(str(wrong)) from wrong
    if chain > MAX_CHAIN:
        raise _Unusable(f"{chain} schemas in a row apply to one value, at most {MAX_CHAIN} may; merge some of them")


def _nodes(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], JsonSchema]]:
    """Every schema object within `node`, with its path; true and false are schemas too, but have no parts."""
    if isinstance(node, dict):
        yield path, node
        for keyword, key, part in _subschemas(node):
            yield from _nodes(part, (*path, keyword) if key is None else (*path, keyword, key))


def _subschemas(node: JsonSchema) -> Iterator[tuple[str, str | int | None, Any]]:
    """The schemas directly within `node`: keyword, key or index, schema."""
    for keyword, value in node.items():
        if keyword in _MAPS:
            yield from ((keyword, key, part) for key, part in value.items())
        elif keyword in _LISTS:
            yield from ((keyword, index, part) for index, part in enumerate(value))
        elif keyword in _ONES:
            yield keyword, None, value


def _check_node(node: JsonSchema, path: tuple[str | int, ...]) -> None:
    """Refuse what one schema object alone can get wrong beyond the rules of its dialect."""
    for keyword in ("$dynamicRef", "$dynamicAnchor", "$recursiveRef"):
        if keyword in node:
            raise _Unusable(f"{json_path(path)}: `{keyword}` is not supported; use `$ref`")
    for keyword in ("$id", "$schema"):
        if path and keyword in node:
            raise _Unusable(f"{json_path(path)}: `{keyword}` is only taken at the root; remove it")
    for pattern in _patterns(node):
        try:
            _matcher(pattern)
        except BadPattern as wrong:
            raise _Unusable(
                f"{json_path(path)}: Rust's linear-time regex engine cannot compile the pattern "
                f"{_shortened(repr(pattern))} ({_reason(wrong)}); simplify it, without look-around, backreferences "
                "and what only Python knows, or check it in the pipeline"
            ) from wrong


def _check_patterns(patterns: set[str]) -> None:
    if len(patterns) > MAX_PATTERNS:
        raise _Unusable(f"it has {len(patterns):,} different patterns, at most {MAX_PATTERNS} are matched; use fewer")
    if (longest := max(map(len, patterns), default=0)) > MAX_POSITIONS:
        raise _Unusable(f"one of its patterns has {longest:,} characters, at most {MAX_POSITIONS:,} are matched")
    if (unfolded := sum(map(positions, patterns))) > MAX_POSITIONS:
        raise _Unusable(
            f"its patterns unfold to {unfolded:,} characters, at most {MAX_POSITIONS:,} are matched; repeat less in "
            "them, and bound lengths with `maxLength`"
        )


def _patterns(node: JsonSchema) -> list[str]:
    return [*([node["pattern"]] if "pattern" in node else ()), *node.get("patternProperties", ())]


def _reason(error: BadPattern) -> str:
    """The last line of what Rust says, which draws the pattern before."""
    return _shortened(str(error).strip().splitlines()[-1].removeprefix("error: ").strip())


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern`, which `render_schema` took, is found anywhere in `text`; in time linear in both."""
    try:
        _matcher(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


_TOKEN = re.compile(
    r"\\[pPxuU]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|\[[^\]]*\]|[^\]\[\\])*\]|\{(?P<least>\d+)(?P<more>,?)(?P<most>\d*)\}|.",
    re.DOTALL,
)


@lru_cache(maxsize=1024)
def positions(pattern: str) -> int:
    """
    How many characters `pattern` speaks of, each as often as it may be repeated: 4 for "(a[b-z]){2}".

    A linear matcher may have to keep track of every one of them at each
    character of a text, so this times the text's length is what a match costs.
    """
    totals, lasts = [0], [0]
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "(":
            totals.append(0)
            lasts.append(0)
        elif text == ")" and len(totals) > 1:
            lasts.pop()
            lasts[-1] = totals.pop()
            totals[-1] += lasts[-1]
        elif token["least"] is not None:
            times = max(1, int(token["most"] or token["least"]) + (token["more"] == "," and not token["most"]))
            totals[-1] += lasts[-1] * (times - 1)
            lasts[-1] *= times
        elif text not in "?*+|^$:":
            totals[-1] += 1
            lasts[-1] = 1
    return max(1, sum(totals))


def _check_refs(schema: JsonSchema, nodes: dict[tuple[str | int, ...], JsonSchema]) -> None:
    """Refuse a reference that leaves `schema` or does not lead to one of the schemas in it."""
    referring = {path: node["$ref"] for path, node in nodes.items() if "$ref" in node}
    for path, ref in referring.items():
        if not ref.startswith("#"):
            raise _Unusable(
                f"{json_path(path)}: `$ref` {_shortened(repr(ref))} leaves the schema; copy it under `$defs`"
            )
    resolve = resolver(schema)
    known = {id(node) for node in nodes.values()}
    for path, ref in referring.items():
        try:
            target = resolve(ref)
        except (Unresolvable, ValueError, TypeError, LookupError) as wrong:
            raise _Unusable(
                f"{json_path(path)}: `$ref` {_shortened(repr(ref))} leads nowhere; name a schema"
            ) from wrong
        if not isinstance(target, bool) and id(target) not in known:
            raise _Unusable(
                f"{json_path(path)}: `$ref` {_shortened(repr(ref))} does not lead to a schema; keep shared ones in `$defs`"
            )


def resolver(schema: JsonSchema) -> Callable[[str], Any]:
    """
    What a local reference ("#", "#/$defs/Node", "#anchor") names within `schema`.

    The anchors are gathered once; to look for each anew would take quadratic time.
    """
    root = DRAFT202012.create_resource(schema)
    uri = root.id() or ""
    found = Registry().with_resource(uri, root).crawl().resolver(base_uri=uri)
    return lambda ref: found.lookup(ref).contents


def longest_chain(schema: JsonSchema) -> int:
    """
    How many schemas within `schema` at most apply to one value, each by way of the one before.

    Raises `UnrenderableSchema` where one applies itself to the same value
    again: checking it would never end.
    """
    lengths: dict[int, int] = {}
    resolve = resolver(schema)

    def length(node: Any, open_: frozenset[int]) -> int:
        if not isinstance(node, dict):
            return 0
        if id(node) in open_:
            raise UnrenderableSchema("the schema applies itself to the same value without end; untie it")
        if id(node) not in lengths:
            parts = [part for keyword, _, part in _subschemas(node) if keyword in _IN_PLACE]
            if "$ref" in node:
                parts.append(resolve(node["$ref"]))
            within = open_ | {id(node)}
            lengths[id(node)] = 1 + max((length(part, within) for part in parts), default=0)
        return lengths[id(node)]

    return max(length(node, frozenset()) for _, node in _nodes(schema, ()))


def _named(answer: Any) -> str:
    if isinstance(answer, dict):
        return "the gate's JSON Schema"
    return _shortened(answer.__qualname__ if isinstance(answer, type) else repr(answer))


def _first_line(error: BaseException) -> str:
    return _shortened(str(error).partition("\n")[0])


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"
