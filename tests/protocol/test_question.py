"""A schema is a row of questions, each in words that a person can answer."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from gatewright.protocol.question import Kind, field_lines, question
from gatewright.protocol.schema import render_schema


class Address(BaseModel):
    street: str
    number: int = 1


class Order(BaseModel):
    level: Annotated[int, Field(ge=1, le=5, description="how urgent")] = 2
    size: Literal["small", "large"]
    address: Address


def test_fields_are_listed_with_bounds_defaults_and_descriptions() -> None:
    """What `show` prints of a schema."""
    lines = field_lines(render_schema(Order))

    assert "level: whole number, at least 1, at most 5, default 2 — how urgent" in lines
    assert "size: one of small, large" in lines
    assert "  street: text" in lines
    assert ["any JSON"] == field_lines(None)


def test_a_list_of_lists_of_itself_is_one_question() -> None:
    """What lies inside is asked about when it is reached."""
    schema = render_schema({"type": "array", "items": {"$ref": "#"}})
    asked = question(schema, schema or {})

    assert Kind.LIST is asked.kind
    assert (item := asked.item()) is not None
    assert Kind.LIST is item.kind
