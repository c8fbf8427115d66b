"""One schema, ready to judge values: what jsonschema says, made safe for what anyone may send."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gatewright.protocol.canonical import NotJson
from gatewright.protocol.checker import MAX_ERRORS, Checker

TREE: dict[str, Any] = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 2},
                "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                "right": {"oneOf": [{"$ref": "#/$defs/tree"}, {"type": "integer"}]},
                "many": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "uniqueItems": True},
            },
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/tree",
}
trees = st.recursive(
    st.sampled_from([None, 0, 1, True, "a", "abc", 1.5]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "left", "right", "many", "other"]), inner, max_size=4)
    ),
)

ANY = {"type": ["string", "null", "boolean"]}
KEYWORDS: list[dict[str, Any]] = [
    {"properties": {"name": ANY, "left": False}, "patternProperties": {"^m": {"type": "array"}, "t$": True}},
    {"patternProperties": {"^(n|m)": ANY}, "additionalProperties": {"minimum": 1}},
    {"patternProperties": {"^(n|m)": True}, "properties": {"left": True}, "additionalProperties": False},
    {"propertyNames": {"maxLength": 4}, "minProperties": 1, "maxProperties": 2},
    {"required": ["name"], "dependentRequired": {"name": ["left", "many"]}},
    {"dependentSchemas": {"name": {"required": ["left"]}, "left": False}},
    {"prefixItems": [{"type": "integer"}, ANY], "items": {"type": "object"}},
    {"prefixItems": [True], "items": False, "minItems": 1},
    {"items": {"contains": {"type": "integer"}, "minContains": 0, "maxContains": 1}, "maxItems": 2},
    {"contains": {"type": "integer"}, "minContains": 2},
    {"contains": ANY, "uniqueItems": True},
    {"if": {"type": "object"}, "then": {"required": ["name"]}, "else": {"enum": [1, True, [], [1, {}], "a"]}},
    {"enum": [0, False, {"name": "a"}, [True]]},
    {"not": {"const": 1}, "anyOf": [{"type": "object"}, {"minimum": 1}, {"type": "array"}, False]},
    {"oneOf": [{"type": "array"}, {"maxItems": 1}, {"const": {"name": 1}}]},
    {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"left": {"$ref": "#"}}}], "$defs": {"a": {"minItems": 1}}},
    {"properties": {"name": True}, "anyOf": [{"required": ["left"], "properties": {"left": True}}, True],
     "unevaluatedProperties": False},
    {"$ref": "#/$defs/a", "if": {"required": ["left"]}, "then": {"properties": {"left": True}}, "else": {},
     "unevaluatedProperties": ANY, "$defs": {"a": {"patternProperties": {"^m": True}}}},
    {"dependentSchemas": {"name": {"properties": {"name": True}}}, "allOf": [{"additionalProperties": ANY}],
     "unevaluatedProperties": False},
    {"allOf": [{"prefixItems": [True]}], "contains": {"type": "integer"}, "unevaluatedItems": False},
    {"anyOf": [{"items": {"type": "integer"}}, {"prefixItems": [ANY]}, True], "unevaluatedItems": ANY},
    {"minimum": 1, "exclusiveMaximum": 1.5, "minLength": 2, "pattern": "b", "type": ["number", "string", "array"]},
    {"maximum": 0.5, "exclusiveMinimum": 0, "maxLength": 1},
]  # fmt: skip


class TestAgainstJsonschema:
    @settings(deadline=None, max_examples=1000)
    @given(trees, st.sampled_from(KEYWORDS))
    def test_every_keyword_rules_as_jsonschema_does(self, value: Any, schema: dict[str, Any]) -> None:
        """Alone, and beside what it depends on."""
        checker = Checker(schema)

        assert Draft202012Validator(schema).is_valid(value) == (not checker.errors(value))
        assert Draft202012Validator(schema).is_valid(value) == checker.takes(value, checker.schema)

    @settings(deadline=None)
    @given(trees)
    def test_the_verdict_is_that_of_jsonschema(self, value: Any) -> None:
        """What is remembered, counted and reordered here changes no verdict; nor do the places of faults."""
        theirs = sorted(str(list(error.path)) for error in Draft202012Validator(TREE).iter_errors(value))

        assert theirs == sorted(str(list(error.path)) for error in Checker(TREE).errors(value))

    def test_one_checker_judges_many_values(self) -> None:
        """What it remembers of one is not taken for another, though Python may give both the same id."""
        checker = Checker(TREE)

        assert [
            [error.validator for error in checker.errors({"name": name * 2, "left": {}})] for name in ["a", "ab"] * 20
        ] == [[], ["maxLength"]] * 20


class TestDifferences:
    @pytest.mark.parametrize(
        ("schema", "value", "taken"),
        [
            ({"multipleOf": 0.01}, 19.99, True),
            ({"multipleOf": 0.01}, 19.999, False),
            ({"multipleOf": 0.1}, 1e300, True),
            ({"multipleOf": 3}, 9.0, True),
            ({"type": "integer"}, 4.0, True),
            ({"type": "integer"}, 1e21, False),
            ({"type": "integer"}, True, False),
            ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], True),
            ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ],
    )
    def test_numbers_are_counted_as_people_count(self, schema: dict[str, Any], value: Any, taken: bool) -> None:
        """In decimals; 4.0 is a whole number, 10^21 is not read alike everywhere, and true is no number."""
        assert taken == Checker(schema).takes(value, Checker(schema).schema)

    @pytest.mark.parametrize(
        ("name", "right", "wrong"),
        [
            ("date-time", "2024-05-01T12:30:00Z", "2024-13-01T00:00:00"),
            ("date-time", "2024-05-01T12:30:00", "soon"),
            ("date", "2024-05-01", "2024-02-30"),
            ("time", "12:30:00", "25:00"),
            ("duration", "P1DT2H", "two days"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
            ("ipv4", "127.0.0.1", "127.0.0.256"),
            ("ipv6", "::1", "1::2::3"),
            ("uri", "https://example.com/?q=1", "example"),
            ("email", "someone@example.com", "someone"),
        ],
    )
    def test_formats_are_checked_as_pydantic_does(self, name: str, right: str, wrong: str) -> None:
        """A date and time needs no zone, since pydantic asks for none; what is not text has no format."""
        checker = Checker({"format": name})

        assert [checker.takes(value, checker.schema) for value in (right, wrong, 5)] == [True, False, True]

    def test_an_unknown_format_is_not_checked(self) -> None:
        """It is a note to whoever fills in the form."""
        assert not Checker({"format": "iban"}).errors("anything")

    def test_errors_are_counted_up_to_a_limit(self) -> None:
        """Within unions and beyond references too."""
        items = {"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "null"}}}

        assert len(Checker(items).errors([1] * 5000)) == MAX_ERRORS
        (error,) = Checker({"anyOf": [{"items": {"type": "null"}}, {"type": "null"}]}).errors([1] * 5000)
        assert [MAX_ERRORS, 1] == [len(branch) for branch in error.context]

    def test_a_pattern_is_found_anywhere_in_linear_time(self) -> None:
        """As in JSON Schema, and `$` is the very end; Python's `re` would not come to an end with the last of these."""
        taken = [
            not Checker({"pattern": pattern}).errors(text)
            for pattern, text in [
                ("b", "abc"),
                ("^b", "a\nb"),
                ("a$", "a\n"),
                (r"^\w+$", "né"),
                ("^.$", "😀"),
                ("", ""),
            ]
        ]

        assert [True, False, False, True, True, True] == taken
        assert Checker({"pattern": "^([a-z]+)+$"}).errors("a" * 100_000 + "!")

    def test_work_is_counted_alike_however_often_one_object_is_met(self) -> None:
        """Small integers are one object in Python and large ones are not; a replay must count the same."""
        schema = {"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
        small, large = Checker(schema), Checker(schema)

        assert small.errors([1] * 100) == large.errors([int("10000") for _ in range(100)]) == []
        assert small.steps == large.steps > 100

    def test_what_is_too_much_work_is_refused(self) -> None:
        """Each step is counted before it is done."""
        with pytest.raises(NotJson, match="too many attempts"):
            Checker({"pattern": "[ab]{0,1000}!"}).errors("ab" * 100_000)

    def test_a_schema_may_name_its_dialect_and_refer_to_itself(self) -> None:
        """Below such a reference jsonschema alone would fall back to its own rules."""
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {"child": {"$ref": "#"}, "price": {"multipleOf": 0.01}},
        }

        assert not Checker(schema).errors({"child": {"price": 19.99}})
