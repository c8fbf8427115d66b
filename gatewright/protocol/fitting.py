"""
Bring what somebody sent to the form that a schema asks for, where that loses nothing.

People send "yes" for true, a form's blanks as null, and leave out what has a
default (D07, D08, D10). Three things hold throughout:

1. What satisfies its schema is never retyped; text above all stays text (D06).
2. Fitting never judges. What cannot be fitted is left for the check to name.
3. Nothing is changed in place, and what does not change is the same object.
"""

import copy
from typing import Any

from pydantic_core import SchemaValidator, ValidationError, core_schema

from .canonical import MAX_SAFE_INTEGER, NotJson, check_json
from .checker import Checker, weight

_COERCIONS = {
    "boolean": SchemaValidator(core_schema.bool_schema()),
    "integer": SchemaValidator(core_schema.int_schema()),
    "number": SchemaValidator(core_schema.float_schema()),
}
"""pydantic's lax rules for scalars. Text is never made of anything else."""

_ABSENT = object()


class Fitter:
    """
    Fits values to one schema, for the time of one decoding.

    `strict` leaves scalars and blanks as they are: only defaults are filled in,
    and 4.0 becomes 4 where an integer is asked for. Counts its work with the
    checker's, which raises `NotJson` where the two are too much.
    """

    def __init__(self, checker: Checker, *, strict: bool) -> None:
        self._checker = checker
        self._strict = strict
        self._fitted: dict[tuple[int, int], tuple[Any, Any]] = {}

    def fit(self, value: Any, node: Any) -> Any:
        """`value` in the form that `node`, a part of the schema, asks for."""
        if not isinstance(node, dict):
            return value
        self._checker.spend(3)
        if not isinstance(value, list | dict):
            # Equal scalars may or may not be one object, and the count of steps must not depend on it.
            return self._fit(value, node)
        key = (id(value), id(node))
        if key not in self._fitted:
            # The first half keeps the value alive, so that its id stays its own. Where a default leads back
            # to itself, it is met as it is, and so comes to an end.
            self._fitted[key] = (value, value)
            self._fitted[key] = (value, self._fit(value, node))
        return self._fitted[key][1]

    def _fit(self, value: Any, node: dict[str, Any]) -> Any:
        if "$ref" in node:
            value = self.fit(value, self._checker.target(node["$ref"]))
        for part in node.get("allOf", ()):
            value = self.fit(value, part)
        for branches in (node.get("anyOf"), node.get("oneOf")):
            if branches is not None:
                value = self._fit_branch(value, branches)
        if isinstance(value, dict):
            return self._fit_object(value, node)
        if isinstance(value, list):
            return self._fit_list(value, node)
        return self._fit_scalar(value, node)

    def _fit_branch(self, value: Any, branches: list[Any]) -> Any:
        """Fitted to the first branch that takes the value as it is, or else to the first that takes it fitted."""
        for branch in branches:
            if self._checker.takes(value, branch):
                return self.fit(value, branch)
        for branch in branches:
            fitted = self.fit(value, branch)
            if fitted is not value and self._checker.takes(fitted, branch):
                return fitted
        return value

    def _fit_object(self, value: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
        properties: dict[str, Any] = node.get("properties", {})
        self._checker.spend(len(value) // 2 + len(properties) // 2)
        required = node.get("required", ())
        fitted = {}
        for key, item in value.items():
            if key in properties:
                part = properties[key]
                blank = item is None and not self._strict and key not in required
                if blank and not self._checker.takes(None, part):
                    continue
                item = self.fit(item, part)  # noqa: PLW2901 - the item, fitted
            for part in self._others(key, properties, node):
                item = self.fit(item, part)  # noqa: PLW2901 - the item, fitted
            fitted[key] = item
        for key, part in properties.items():
            if key not in fitted and (default := self._default(part)) is not _ABSENT:
                fitted[key] = default
        return value if _same(fitted, value) else fitted

    def _others(self, key: str, properties: dict[str, Any], node: dict[str, Any]) -> list[Any]:
        """The schemas for a key besides its own in `properties`."""
        matching = [
            part for pattern, part in node.get("patternProperties", {}).items() if self._checker.matches(pattern, key)
        ]
        if matching or key in properties or "additionalProperties" not in node:
            return matching
        return [node["additionalProperties"]]

    def _default(self, node: Any) -> Any:
        """The default of a property, fitted; absent where there is none or where it breaks its own schema."""
        declared: Any = _ABSENT
        part = node
        while isinstance(part, dict) and declared is _ABSENT:
            declared = part.get("default", _ABSENT)
            part = self._checker.target(part["$ref"]) if "$ref" in part else None
        if declared is _ABSENT:
            return _ABSENT
        default = self.fit(declared, node)
        # Not only to be copied: an answer must not grow without bound by what was left out of it.
        self._checker.spend(4 * weight(default))
        return copy.deepcopy(default) if self._checker.takes(default, node) else _ABSENT

    def _fit_list(self, value: list[Any], node: dict[str, Any]) -> list[Any]:
        self._checker.spend(len(value) // 4)
        first = node.get("prefixItems", ())
        rest = node.get("items", True)
        parts = [*first[: len(value)], *[rest] * (len(value) - len(first))]
        fitted = [self.fit(item, part) for item, part in zip(value, parts, strict=True)]
        return value if all(new is old for new, old in zip(fitted, value, strict=True)) else fitted

    def _fit_scalar(self, value: Any, node: dict[str, Any]) -> Any:
        declared = node.get("type", ())
        types = [declared] if isinstance(declared, str) else declared
        if "integer" in types and "number" not in types and isinstance(value, float):
            value = int(value) if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER else value
        if self._strict or value is None:
            return value
        if types and not any(self._checker.is_type(value, name) for name in types):
            return self._first_taken([self._coerced(value, name) for name in types], value, node)
        if not types and ("enum" in node or "const" in node) and not self._checker.takes(value, node):
            return self._member(value, node)
        return value

    def _first_taken(self, candidates: list[Any], value: Any, node: dict[str, Any]) -> Any:
        """The first candidate that satisfies `node`; else the first at all, whose fault says more than a wrong type."""
        known = [candidate for candidate in candidates if candidate is not _ABSENT]
        return next((each for each in known if self._checker.takes(each, node)), known[0] if known else value)

    def _member(self, value: Any, node: dict[str, Any]) -> Any:
        """The member of an untyped `enum` or `const` that `value` is coerced to, if there is one."""
        members = [*node.get("enum", ()), *([node["const"]] if "const" in node else [])]
        self._checker.spend(len(members) // 2)
        coerced = {kind: self._coerced(value, name) for kind, name in _TYPE_NAMES.items()}
        for member in members:
            kind = type(member)
            if kind in coerced and coerced[kind] == member and self._checker.takes(member, node):
                return member
        return value

    def _coerced(self, value: Any, name: str) -> Any:
        """`value` as that scalar type by pydantic's lax rules, or absent where these or JSON forbid it."""
        if name not in _COERCIONS or not isinstance(value, bool | int | float | str):
            return _ABSENT
        self._checker.spend(3 + (len(value) // 32 if isinstance(value, str) else 0))
        try:
            coerced = _COERCIONS[name].validate_python(value)
            check_json(coerced)
        except (ValidationError, NotJson):
            return _ABSENT
        return coerced


_TYPE_NAMES: dict[type, str] = {bool: "boolean", int: "integer", float: "number"}


def _same(fitted: dict[str, Any], value: dict[str, Any]) -> bool:
    return len(fitted) == len(value) and all(key in value and value[key] is item for key, item in fitted.items())
