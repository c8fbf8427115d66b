"""A form asks for what the schema asks, takes only that, and needs no terminal to be tried."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from gatewright.cli.form import Prompt, fill
from gatewright.protocol.question import field_lines
from gatewright.protocol.schema import render_schema


class Address(BaseModel):
    street: str
    number: int = 1


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Order(BaseModel):
    approved: bool
    level: Annotated[int, Field(ge=1, le=5, description="how urgent")] = 2
    size: Literal["small", "large"]
    share: float | None = None
    tags: list[str] = []
    lines: list[int]
    address: Address
    other: Address | None = None
    pet: Cat | Dog


class Chosen(BaseModel):
    columns: list[Literal["id", "name", "a, b", "2"]] = []


def conversation(answer: Any, *lines: str, strict: bool = False) -> tuple[Any, list[Prompt]]:
    """Fill the form of `answer` with these lines; what came of it, and every prompt that was shown."""
    form = fill(render_schema(answer), strict=strict)
    prompts = [next(form)]
    for number, line in enumerate(lines):
        try:
            prompts.append(form.send(line))
        except StopIteration as filled:
            assert number == len(lines) - 1, f"lines are left over: {lines[number + 1 :]}"
            return filled.value, prompts
    raise AssertionError(f"the form still asks: {prompts[-1]}")


def test_every_kind_of_field_is_asked_for_in_its_own_way() -> None:
    """Empty lines take defaults and skip what is optional; lists end with an empty line."""
    lines = ("y", "", "2", "", "red", "blue", "", "7", "8", "", "High St", "", "", "Dog", "Rex")
    value, _ = conversation(Order, *lines)

    assert {
        "approved": True,
        "level": 2,
        "size": "large",
        "share": None,
        "tags": ["red", "blue"],
        "lines": [7, 8],
        "address": {"street": "High St", "number": 1},
        "other": None,
        "pet": {"kind": "dog", "name": "Rex"},
    } == value


@pytest.mark.parametrize(
    ("answer", "wrong", "said", "right", "value"),
    [
        (bool, "", "an answer is needed", "n", False),
        (bool, "maybe", "y or n", "YES", True),
        (int, "4.5", "whole number", "-4", -4),
        (Annotated[int, Field(le=5)], "6", "5", "5", 5),
        (float, "NaN", "number is needed", "2.5", 2.5),
        (str, "", "an answer is needed", '""', ""),
        (Annotated[str, Field(min_length=3)], "ab", "3", "abc", "abc"),
        (Literal["yes", "no"], "maybe", "none of the choices", "YES", "yes"),
        (Literal["yes", "no"], "3", "none of the choices", "2", "no"),
        (dict[str, int], "{", "not JSON", '{"a": 1}', {"a": 1}),
        (tuple[int, str], '["a", 1]', "whole number", '[1, "a"]', [1, "a"]),
        (int | None, "x", "whole number", "null", None),
    ],
)
def test_a_slip_is_named_and_the_same_question_is_asked_again(
    answer: Any, wrong: str, said: str, right: str, value: Any
) -> None:
    """Nothing that the run would refuse gets past the question that it answers."""
    got, prompts = conversation(answer, wrong, right)

    assert value == got
    assert said in (prompts[1].fault or "")
    assert prompts[0].label == prompts[1].label


@pytest.mark.parametrize("text", ["42", "true", "null", "[1]", "  spaced  ", "y"])
def test_text_stays_text_whatever_it_looks_like(text: str) -> None:
    """A field of text never becomes a number, a boolean or null."""
    assert conversation(str, text)[0] == text


def test_the_whole_answer_may_be_typed_as_json_at_the_first_prompt() -> None:
    """Whoever knows what to say need not be asked field by field; a slip in it is named and can be made good."""
    value, prompts = conversation(Address, '{"street": ', '{"street": "High St"}')

    assert {"street": "High St"} == value
    assert "not JSON" in (prompts[1].fault or "")


def test_what_the_whole_form_gets_wrong_is_said_and_the_form_begins_anew() -> None:
    """An answer that was typed as JSON is checked by the whole schema."""
    value, prompts = conversation(Address, '{"number": 2}', '{"street": "High St"}')

    assert {"street": "High St"} == value
    assert "street" in (prompts[1].fault or "")


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("", []),
        ("id, name", ["id", "name"]),
        ("1,2", ["id", "2"]),
        ("a, b", ["a, b"]),
        ('["id", "a, b"]', ["id", "a, b"]),
        ("id, id", ["id"]),
    ],
)
def test_choices_are_taken_by_name_before_number(line: str, columns: list[str]) -> None:
    """A name that has a comma in it, or is a number, is still that name."""
    assert {"columns": columns} == conversation(Chosen, line)[0]


def test_an_optional_object_is_filled_in_only_if_it_is_wanted() -> None:
    """Yes asks for its fields, Enter leaves it at its default, a slip is named."""

    class Parcel(BaseModel):
        to: Address | None = None

    assert {"to": None} == conversation(Parcel, "")[0]
    assert {"to": {"street": "A", "number": 3}} == conversation(Parcel, "y", "A", "3")[0]
    assert "not JSON" in (conversation(Parcel, "perhaps", "n")[1][1].fault or "")


def test_without_a_schema_json_is_read_as_json_and_anything_else_as_text() -> None:
    """A gate that takes any JSON takes words too."""
    assert conversation(None, "[1, 2]")[0] == [1, 2]
    assert conversation(None, "go on")[0] == "go on"


def test_a_schema_that_contains_itself_is_asked_as_deep_as_somebody_goes() -> None:
    """Questions are made when they are reached."""

    class Tree(BaseModel):
        name: str
        left: "Tree | None" = None

    assert {"name": "a", "left": {"name": "b", "left": None}} == conversation(Tree, "a", "y", "b", "")[0]


def test_fields_are_listed_with_bounds_defaults_and_descriptions() -> None:
    """What `show` prints of a schema."""
    lines = field_lines(render_schema(Order))

    assert "level: whole number, at least 1, at most 5, default 2 — how urgent" in lines
    assert "size: one of small, large" in lines
    assert "  street: text" in lines
    assert ["any JSON"] == field_lines(None)
