"""What is wrong with an answer, in words that the person who gave it can act on."""

from typing import Any

import pytest

from gatewright.protocol.checker import Checker
from gatewright.protocol.faults import MAX_FAULTS, Fault, describe, shown

TAGGED: dict[str, Any] = {
    "oneOf": [
        {"properties": {"pet": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["pet"]},
        {"properties": {"pet": {"const": "dog"}, "good": {"type": "boolean"}}, "required": ["pet"]},
    ]
}


def told(value: Any, schema: dict[str, Any]) -> list[tuple[str, str]]:
    checker = Checker(schema)
    return [(fault.path, fault.message) for fault in describe(checker.errors(value), checker.target)]


class TestWords:
    @pytest.mark.parametrize(
        ("value", "schema", "path", "message"),
        [
            (5, {"type": "string"}, "$", "got 5, wanted text"),
            ([1], {"type": ["string", "null"]}, "$", "got a list of 1 item, wanted text or nothing (null)"),
            ("x", {"enum": ["a", "b"], "type": "string"}, "$", 'got "x", wanted one of "a", "b"'),
            (5, {"enum": ["a", "b"], "type": "string"}, "$", 'got 5, wanted one of "a", "b"'),
            (5, {"const": "a"}, "$", 'got 5, wanted "a"'),
            (9, {"maximum": 5}, "$", "got 9, wanted at most 5"),
            (1, {"exclusiveMinimum": 1}, "$", "got 1, wanted more than 1"),
            (3, {"multipleOf": 2}, "$", "got 3, wanted a multiple of 2"),
            ("ab", {"minLength": 3}, "$", 'got "ab" (2 characters), wanted 3 or more characters'),
            ("ab", {"pattern": "^b"}, "$", 'got "ab", wanted text that matches ^b'),
            ([], {"minItems": 1}, "$", "got an empty list, wanted 1 or more items"),
            ([1, 1], {"uniqueItems": True}, "$", "got a list of 2 items, wanted items that are all different"),
            ("x", {"format": "uuid"}, "$", 'got "x", wanted a UUID such as 123e4567-e89b-12d3-a456-426614174000'),
            ({}, {"required": ["a b"]}, '$["a b"]', "is missing; it is required"),
            ({"a": 1}, {"dependentRequired": {"a": ["b"]}}, "$.b", 'is missing; it is required beside "a"'),
            (
                {"b": 1},
                {"properties": {"a": {}}, "additionalProperties": False},
                "$.b",
                "is not a field here; remove it (the fields are: a)",
            ),
            ({"b": 1}, {"properties": {"b": False}}, "$.b", "got 1, and nothing is wanted here; leave it out"),
            ("x", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "$", 'got "x", wanted a whole number or nothing (null)'),
            (9, {"anyOf": [{"maximum": 5, "type": "integer"}, {"type": "null"}]}, "$", "got 9, wanted at most 5"),
            (1, {"anyOf": [{"$ref": "#/$defs/t"}, False], "$defs": {"t": {"type": "string", "format": "date"}}}, "$", "got 1, wanted a date such as 2024-05-01 or something else"),
            ({"pet": "cat", "lives": "x"}, TAGGED, "$.lives", 'got "x", wanted a whole number'),
            ({"pet": "cow"}, TAGGED, "$.pet", 'got "cow", wanted one of "cat", "dog"'),
            ({}, TAGGED, "$.pet", "is missing; it is required"),
            (3, {"oneOf": [{"minimum": 1}, {"minimum": 2}]}, "$", "got 3, which fits several forms where one is wanted; be more specific"),
            (None, {"not": {"type": "null"}}, "$", "got null, wanted anything but nothing (null)"),
        ],
    )  # fmt: skip
    def test_a_fault_says_what_was_got_and_what_is_wanted(
        self, value: Any, schema: dict[str, Any], path: str, message: str
    ) -> None:
        """At the place where it is to be mended."""
        assert [(path, message)] == told(value, schema)

    def test_every_missing_field_is_told_once(self) -> None:
        """Each at its own place, so that a form can mark it."""
        assert [path for path, _ in told({}, {"required": ["a", "b"]})] == ["$.a", "$.b"]

    def test_more_than_fifty_faults_are_counted(self) -> None:
        """Nobody mends more at a time."""
        faults = told(list(range(80)), {"items": {"type": "string"}})

        assert len(faults) == MAX_FAULTS + 1
        assert faults[-1] == ("$", "and 30 more")

    def test_faults_take_no_room_beyond_what_is_read(self) -> None:
        """Each of a thousand missing fields was told a thousand times, and each of many forms was spelled out."""
        names = [f"field_{number}" for number in range(3000)]
        forms = {"items": {"anyOf": [{"type": "object", "required": [name]} for name in names]}}

        assert ("$", "and 950 more") == told({}, {"required": names})[-1]
        assert all(len(message) < 500 for _, message in told(["x"] * 5, forms))


class TestShown:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, "null"),
            (True, "true"),
            (1.5, "1.5"),
            ("é\n", '"é\\n"'),
            ("x" * 100, '"' + "x" * 59 + '…"'),
            ([], "an empty list"),
            ([1, 2], "a list of 2 items"),
            ({}, "an empty object"),
            ({"a": 1}, "an object of 1 field"),
        ],
    )
    def test_a_value_is_shown_in_a_few_words(self, value: Any, text: str) -> None:
        """Whatever its size: it may be a quarter of a megabyte."""
        assert text == shown(value)


def test_a_fault_is_a_value() -> None:
    """It is recorded as evidence, so it compares by content and cannot be edited."""
    assert Fault(path="$", message="m") == Fault.model_validate_json('{"path": "$", "message": "m"}')
    with pytest.raises(ValueError, match="frozen"):
        Fault(path="$", message="m").path = "$.a"  # type: ignore[misc]
