"""
What a JSON Schema asks for, one question at a time, as a person would be asked it.

Pure. Questions about what lies inside another one are made when they are
reached, so that a schema may contain itself.
"""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

ABSENT: Final = object()
"""No value: the field is left out. (None is JSON's null.)"""

_DEEPEST = 32
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters or fewer",
    "pattern": "matching {}",
    "format": "{}",
    "minItems": "{} or more of them",
    "maxItems": "{} or fewer of them",
}


class Kind(StrEnum):
    """How a question is asked; the value is its name in a list of fields."""

    TEXT = "text"
    INTEGER = "whole number"
    NUMBER = "number"
    BOOLEAN = "yes or no"
    CHOICE = "one of"
    CHOICES = "any of"
    LIST = "list"
    OBJECT = "object"
    VARIANT = "one form of"
    JSON = "JSON"


@dataclass(frozen=True)
class Question:
    """One thing to be asked; `schema` is what its answer must satisfy, with `root` to resolve references."""

    name: str
    kind: Kind
    schema: dict[str, Any]
    root: dict[str, Any] = field(repr=False)
    required: bool = True
    nullable: bool = False
    default: Any = ABSENT
    choices: tuple[Any, ...] = ()
    variants: tuple[dict[str, Any], ...] = ()
    takes_text: bool = False
    """Whether text that is not JSON is an answer to a question of kind JSON."""

    @property
    def description(self) -> str:
        """What the schema says about it."""
        text = self.schema.get("description", "")
        return text if isinstance(text, str) else ""

    def words(self) -> str:
        """What is wanted, in words: kind, choices, bounds, default."""
        what = self.kind.value
        if self.kind is Kind.LIST and (item := self.item()) is not None:
            what = f"list of {item.kind.value}" + (f" ({item.bounds()})" if item.bounds() else "")
        if self.choices:
            what += " " + ", ".join(_plain(choice) for choice in self.choices)
        if self.kind is Kind.VARIANT:
            what += " " + ", ".join(variant_name(each, number) for number, each in enumerate(self.variants, 1))
        parts = [what, self.bounds(), "or null" if self.nullable else ""]
        if self.default is not ABSENT:
            parts.append(f"default {_plain(self.default)}")
        elif not self.required:
            parts.append("optional")
        return ", ".join(part for part in parts if part)

    def bounds(self) -> str:
        """The bounds that the schema sets, in words."""
        said = [words.format(self.schema[key]) for key, words in _BOUNDS.items() if key in self.schema]
        return ", ".join(said)

    def fields(self) -> "list[Question]":
        """The questions inside an object, in the order of its schema."""
        required = self.schema.get("required", ())
        return [
            question(part, self.root, name=f"{self.name}.{key}" if self.name else key, required=key in required)
            for key, part in self.schema.get("properties", {}).items()
        ]

    def item(self) -> "Question | None":
        """The question of each item of a list."""
        items = self.schema.get("items")
        return question(items, self.root, name=self.name) if isinstance(items, dict) else None

    def variant(self, number: int) -> "Question":
        """The question that one form of this one asks."""
        return question(self.variants[number], self.root, name=self.name)

    def checkable(self) -> dict[str, Any]:
        """The schema of the answer with what its references need."""
        return {**{key: part for key, part in self.root.items() if key in {"$defs", "definitions"}}, **self.schema}


def question(schema: Any, root: dict[str, Any], *, name: str = "", required: bool = True) -> Question:
    """The question that a part of the schema `root` asks; what no simpler one fits is asked for as JSON."""
    node, nullable = _resolved(schema if isinstance(schema, dict) else {}, root)
    default = node.get("default", ABSENT)
    kind, choices, variants = _kind(node, root)
    return Question(
        name=name,
        kind=kind,
        schema=node,
        root=root,
        required=required,
        nullable=nullable or None in choices,
        default=default,
        choices=tuple(choice for choice in choices if choice is not None),
        variants=variants,
        takes_text=kind is Kind.JSON and _takes_text(node, root),
    )


def variant_name(schema: dict[str, Any], number: int) -> str:
    """What one of several forms is called."""
    title = schema.get("title") or schema.get("$ref", "").rpartition("/")[2] or schema.get("type")
    return str(title or f"form {number}")


def field_lines(schema: Any, *, indent: str = "") -> list[str]:
    """The fields of a schema, one a line, for people to read."""
    if schema is None:
        return [f"{indent}any JSON"]
    top = question(schema, schema)
    return _lines(top, indent, 0)


def _lines(asked: Question, indent: str, depth: int) -> list[str]:
    if asked.kind is not Kind.OBJECT or depth > 4:
        label = f"{asked.name.rpartition('.')[2]}: " if asked.name else ""
        said = f" — {asked.description}" if asked.description else ""
        return [f"{indent}{label}{asked.words()}{said}"]
    lines: list[str] = []
    if asked.name:
        lines.append(f"{indent}{asked.name.rpartition('.')[2]}: {asked.words()}")
        indent += "  "
    for inner in asked.fields():
        lines += _lines(inner, indent, depth + 1)
    return lines


def target(root: dict[str, Any], reference: str) -> dict[str, Any]:
    """The part of `root` that a local reference names; empty (any JSON) where it names none."""
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema with references followed and lone alternatives taken; and whether null is taken too."""
    node, nullable = dict(schema), False
    for _ in range(_DEEPEST):
        if "$ref" in node:
            reference = node.pop("$ref")
            node = {**target(root, reference), **node}
        elif len(node.get("allOf", ())) == 1 and isinstance(node["allOf"][0], dict):
            (only,) = node.pop("allOf")
            node = {**only, **node}
        elif (name := next((key for key in ("anyOf", "oneOf") if key in node), None)) and _lone(node[name]):
            branches = node.pop(name)
            nullable = nullable or len(branches) > 1
            node = {**_some(branches)[0], **node}
        elif isinstance(node.get("type"), list):
            types = [each for each in node["type"] if each != "null"]
            nullable = nullable or len(types) < len(node["type"])
            if len(types) != 1:
                return node, nullable
            node["type"] = types[0]
        else:
            break
    return node, nullable


def _some(branches: list[Any]) -> list[dict[str, Any]]:
    return [each for each in branches if isinstance(each, dict) and each.get("type") != "null"]


def _lone(branches: list[Any]) -> bool:
    return len(_some(branches)) == 1 and all(isinstance(each, dict) for each in branches)


def _kind(node: dict[str, Any], root: dict[str, Any]) -> tuple[Kind, tuple[Any, ...], tuple[dict[str, Any], ...]]:
    if "const" in node:
        return Kind.CHOICE, (node["const"],), ()
    if "enum" in node:
        return Kind.CHOICE, tuple(node["enum"]), ()
    if branches := _some(node.get("anyOf") or node.get("oneOf") or []):
        inner = [_resolved(each, root)[0] for each in branches]
        if all("properties" in each for each in inner):
            return Kind.VARIANT, (), tuple(branches)
        return Kind.JSON, (), ()
    simple = {"string": Kind.TEXT, "integer": Kind.INTEGER, "number": Kind.NUMBER, "boolean": Kind.BOOLEAN}
    declared = node.get("type")
    if isinstance(declared, str) and declared in simple:
        return simple[declared], (), ()
    if node.get("properties") and declared in {"object", None} and "allOf" not in node:
        return Kind.OBJECT, (), ()
    if declared == "array" and isinstance(node.get("items"), dict) and "prefixItems" not in node:
        # Not the question of the item, which may be such a list itself, and so on without end.
        item, nullable = _resolved(node["items"], root)
        choices = (item["const"],) if "const" in item else tuple(item.get("enum", ()))
        return (Kind.CHOICES, choices, ()) if choices and not nullable and None not in choices else (Kind.LIST, (), ())
    return Kind.JSON, (), ()


def _takes_text(node: dict[str, Any], root: dict[str, Any]) -> bool:
    branches = _some(node.get("anyOf") or node.get("oneOf") or [])
    if branches:
        return any(_takes_text(_resolved(each, root)[0], root) for each in branches)
    declared = node.get("type")
    if declared is None:
        return not {"properties", "items", "prefixItems", "allOf", "const", "enum"} & set(node)
    return "string" in ([declared] if isinstance(declared, str) else declared)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
