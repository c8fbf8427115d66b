"""The example answer that a script which ran dry is shown."""

import json
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from gatewright.protocol.decoding import Undecodable, decode
from gatewright.protocol.example import example
from gatewright.protocol.question import ABSENT
from tests.cli.pipelines import Verdict
from workflows.dataset_release import Confirmation, ProfileReview


class Colour(StrEnum):
    """Choices behind a reference."""

    RED = "red"


class Order(BaseModel):
    """Nested, bounded, with items that must be there."""

    who: str = Field(min_length=5)
    colour: Colour
    sizes: list[int] = Field(min_length=2)
    share: float = Field(le=-0.5)
    agreed: bool
    inner: Verdict
    either: Literal["a"] | None
    note: str | None = None


class Tree(BaseModel):
    """A schema that contains itself."""

    children: list["Tree"] = []


@pytest.mark.parametrize("model", [Verdict, Confirmation, ProfileReview, Order, Tree])
def test_an_example_is_an_answer_that_the_gate_would_take(model: type[BaseModel]) -> None:
    """Also where everything is strict."""
    schema = model.model_json_schema()
    shown = example(schema, strict=True)

    assert not isinstance(decode(json.loads(json.dumps(shown)), schema, strict=True), Undecodable)


def test_an_example_names_the_fields_that_can_be_given() -> None:
    """Those with a default as well: an empty object would say nothing."""
    assert {"drop": [], "mask": [], "comment": ""} == example(ProfileReview.model_json_schema())
    assert {"decision": "release", "comment": ""} == example(Confirmation.model_json_schema())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[A-Z]{7}$"},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "array"}]}}, "required": ["a"]},
        {"$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}}, "$ref": "#/$defs/n"},
    ],
)
def test_where_none_is_found_none_is_shown(schema: dict[str, Any]) -> None:
    """A wrong example is worse than none."""
    assert example(schema) is ABSENT
