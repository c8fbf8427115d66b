"""What an answer must look like: rendered from a type, or checked as JSON Schema."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from gatewright.protocol.schema import MAX_SCHEMA_BYTES, UnrenderableSchema, adapter, positions, render_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Decision(BaseModel):
    zulu: bool
    alpha: str = "dflt"
    level: int = Field(default=1, ge=1, le=5)


class Node(BaseModel):
    children: "list[Node]" = []


@dataclass
class Point:
    x: int
    y: int = 0


class Entry(TypedDict, total=False):
    name: str


class PythonPattern(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")

    code: str = Field(pattern=r"^(?=a)")


class Opaque:
    pass


class TestTypes:
    @pytest.mark.parametrize(
        ("answer", "schema"),
        [
            (bool, {"type": "boolean"}),
            (str, {"type": "string"}),
            (Literal["yes", "no"], {"enum": ["yes", "no"], "type": "string"}),
            (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - people write both
            (list[str], {"items": {"type": "string"}, "type": "array"}),
            (Annotated[int, Field(ge=3)], {"minimum": 3, "type": "integer"}),
            (Colour, {"enum": ["red", "blue"], "title": "Colour", "type": "string"}),
            (datetime, {"format": "date-time", "type": "string"}),
            (Any, {}),
        ],
    )
    def test_a_type_is_rendered_as_pydantic_renders_it(self, answer: Any, schema: Any) -> None:
        """A13: Literal included, which ADK cannot render."""
        assert schema == render_schema(answer)

    @pytest.mark.parametrize("answer", [Point, Entry, Node, Decimal, set[str], tuple[int, str], dict[str, int], None])
    def test_whatever_pydantic_can_describe_can_be_asked_for(self, answer: Any) -> None:
        """None asks for any JSON and has no schema."""
        expected = None if answer is None else TypeAdapter(answer).json_schema()

        assert expected == render_schema(answer)

    def test_fields_keep_the_order_in_which_they_were_written(self) -> None:
        """It is the order of the form that a person fills in."""
        schema = render_schema(Decision)

        assert schema is not None
        assert list(schema["properties"]) == ["zulu", "alpha", "level"]

    @pytest.mark.parametrize("answer", [Opaque, Callable[[], int], int | Callable[[], int], 5, "Nowhere"])
    def test_what_no_person_could_write_is_refused(self, answer: Any) -> None:
        """When the gate is made, with a hint, and never in front of a person (A13)."""
        with pytest.raises(UnrenderableSchema, match=r"use a pydantic model|leave something out"):
            render_schema(answer)

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Annotated[str, Field(pattern=r"^(?=a)")], "look-around.*simplify"),
            (PythonPattern, r"cannot compile the pattern '\^\(\?=a\)' \(look-around.*simplify"),
            (Annotated[int, Field(le=2**60)], "not portable"),
            (Annotated[float, Field(default=float("nan"))], "not portable"),
            (Literal[tuple(f"{number:0100}" for number in range(2000))], "at most 131,072"),
        ],
    )
    def test_a_schema_that_not_everybody_can_use_is_refused(self, answer: Any, reason: str) -> None:
        """Python's own patterns, numbers that get rounded, and what is too large to be shown."""
        with pytest.raises(UnrenderableSchema, match=reason):
            render_schema(answer)

    def test_a_default_that_cannot_be_written_is_refused(self) -> None:
        """Left out with a warning by pydantic, so that nobody would be shown it."""

        class Holder(BaseModel):
            text: Annotated[str, Field(default=b"\xff")]

        with pytest.raises(UnrenderableSchema, match="non-serializable-default"):
            render_schema(Holder)

    def test_a_default_set_is_rendered_alike_in_every_process(self) -> None:
        """Python orders the text in a set by a hash that differs from process to process."""
        code = (
            "from gatewright.protocol.schema import render_schema; import pydantic;"
            "M = pydantic.create_model('M', tags=(set[str], set('hgfedcba')));"
            "print(render_schema(M)['properties']['tags']['default'])"
        )
        rendered = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for seed in ("1", "2", "3")
        }

        assert {str(list("abcdefgh"))} == rendered


class TestDicts:
    @pytest.mark.parametrize(
        "schema",
        [
            {},
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": {"type": "string"}}},
            {"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"},
            {"properties": {"child": {"$ref": "#"}}},
            {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "null"}}},
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "boolean"},
            {"$id": "https://example.com/s", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": True}},
            {"default": {"$ref": "not a reference"}, "enum": [{"pattern": "["}]},
        ],
    )
    def test_a_json_schema_is_taken_as_it_is(self, schema: dict[str, Any]) -> None:
        """And copied, so that nobody changes what was shown."""
        rendered = render_schema(schema)

        assert schema == rendered
        assert schema is not rendered

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ({"type": "text"}, "'text' is not valid"),
            ({"type": "object", "properties": []}, "is not of type 'object'"),
            ({"$ref": "https://example.com/other"}, "leaves the schema"),
            ({"$ref": "other.json#/a"}, "leaves the schema"),
            ({"$ref": "#/$defs/missing"}, "leads nowhere"),
            ({"$ref": "#nowhere"}, "leads nowhere"),
            ({"$ref": "#/properties", "properties": {"a": {}}}, "does not lead to a schema"),
            ({"$ref": "#/title", "title": "x"}, "does not lead to a schema"),
            ({"pattern": "("}, "cannot compile"),
            ({"properties": {"a": {"items": {"pattern": "a{99999999999}"}}}}, "cannot compile"),
            ({"patternProperties": {"[": {}}}, "cannot compile"),
            ({"pattern": r"(a)\1"}, "backreferences are not supported"),
            ({"pattern": r"a\Z"}, "unrecognized escape sequence"),
            ({"pattern": "(?x)#" + "[" * 2000}, "has 2,005 characters"),
            ({"pattern": "(a{100}){30}"}, "unfold to 3,000 characters"),
            ({"patternProperties": {f"^{name}$": {} for name in range(101)}}, "101 different patterns"),
            ({"$ref": "#"}, "without end"),
            ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "without end"),
            ({"$dynamicRef": "#a"}, "is not supported"),
            ({"items": {"$id": "https://example.com/x"}}, "only taken at the root"),
            ({"$schema": "http://json-schema.org/draft-07/schema#"}, "is written for"),
            ({"const": float("nan")}, "not portable"),
            ({"enum": (1, 2)}, "not portable"),
            ({"description": "x" * MAX_SCHEMA_BYTES}, "at most 131,072"),
        ],
    )
    def test_a_json_schema_that_decoding_could_not_rely_on_is_refused(
        self, schema: dict[str, Any], reason: str
    ) -> None:
        """Each with what is wrong in it."""
        with pytest.raises(UnrenderableSchema, match=reason):
            render_schema(schema)

    def test_hostile_nesting_is_refused_by_name(self) -> None:
        """Neither depth nor a long row of references may end in Python's own limit."""
        deep: dict[str, Any] = {}
        for _ in range(100_000):
            deep = {"not": deep}
        row = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(900)} | {"d900": {}}

        for schema in (deep, {"$defs": row, "$ref": "#/$defs/d0"}):
            with pytest.raises(UnrenderableSchema):
                render_schema(schema)


class TestPatterns:
    @pytest.mark.parametrize("pattern", [r"^\p{Lu}+$", r"^\w{1,64}$", "^([a-z]+)+$", r"^\d{4}-\d{2}$", "(?i)a|b"])
    def test_what_can_be_matched_in_linear_time_is_taken(self, pattern: str) -> None:
        """pydantic's own dialect, in which most people write theirs."""
        assert render_schema(Annotated[str, Field(pattern=pattern)]) == {"pattern": pattern, "type": "string"}

    @pytest.mark.parametrize(
        ("pattern", "count"),
        [
            ("", 1),
            ("^a$", 1),
            ("[a-z\\]]+", 1),
            ("[[:alpha:]x]b?", 2),
            ("(a[b-z]){2}", 4),
            (r"\p{Lu}\.", 2),
            ("a{3,}", 4),
            ("((a{2}b){3}|c){10}", 100),
        ],
    )
    def test_repeats_are_counted_out(self, pattern: str, count: int) -> None:
        """A character class counts once, whatever is in it."""
        assert count == positions(pattern)

    def test_many_anchors_take_no_quadratic_time(self) -> None:
        """Gathering them anew for each reference took half a minute for this one."""
        defs = {
            f"d{n}": {"$anchor": f"x{n}", "properties": {"a": {"$ref": f"#x{(n + 1) % 1000}"}}} for n in range(1000)
        }
        schema = {"$defs": defs, "$ref": "#x0"}

        assert schema == render_schema(schema)


class TestAdapter:
    def test_one_type_has_one_adapter(self) -> None:
        """Building one takes a thousand times as long as finding it."""
        assert adapter(Decision) is adapter(Decision)

    @pytest.mark.parametrize("answer", [None, {"type": "string"}])
    def test_what_is_no_type_has_no_adapter(self, answer: Any) -> None:
        """Any JSON, and JSON Schema, are checked without pydantic."""
        assert adapter(answer) is None

    def test_unions_in_another_order_are_not_taken_for_one_another(self) -> None:
        """`int | str == str | int` in Python, and the first of the two asked for would decide what is shown."""
        render_schema(list[int | str])

        assert render_schema(list[str | int]) == {
            "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "type": "array",
        }

    def test_a_type_that_cannot_be_hashed_has_an_adapter(self) -> None:
        """It is built anew each time."""
        found = adapter(Annotated[int, Field(ge=1), ["unhashable"]])

        assert found is not None
        assert found.validate_python("3") == 3
