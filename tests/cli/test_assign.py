"""`--set` makes the object that the gate's schema asks for, and refuses what it does not know."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from gatewright.cli.assign import assemble
from gatewright.cli.exits import USAGE, Stop
from gatewright.cli.jsonarg import parse_json, read_json
from gatewright.protocol.schema import render_schema


class Inner(BaseModel):
    name: str = ""
    count: int = 0


class Form(BaseModel):
    approved: bool = False
    note: str = ""
    comment: str | None = None
    limit: int | None = None
    kind: Literal["1", "2"] = "1"
    tags: list[str] = []
    numbers: list[int] = []
    inner: Inner = Inner()
    either: int | str = 0


SCHEMA = render_schema(Form)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (["approved=true"], {"approved": True}),
        (["note=true"], {"note": "true"}),
        (["note="], {"note": ""}),
        (["note=a=b"], {"note": "a=b"}),
        (["comment=null"], {"comment": "null"}),
        (["comment:=null"], {"comment": None}),
        (["limit="], {"limit": None}),
        (["limit=3"], {"limit": 3}),
        (["limit=three"], {"limit": "three"}),
        (["kind=2"], {"kind": "2"}),
        (["tags+=1", "tags+=b,c"], {"tags": ["1", "b,c"]}),
        (["numbers+=1", "numbers+=2"], {"numbers": [1, 2]}),
        (['tags=["a"]', "tags+=b"], {"tags": ["a", "b"]}),
        (["inner.name=5", "inner.count=5"], {"inner": {"name": "5", "count": 5}}),
        (["either=5"], {"either": 5}),
        (["either=five"], {"either": "five"}),
    ],
)
def test_a_value_is_read_as_its_field_asks(given: list[str], value: Any) -> None:
    """Text where text is asked for, JSON where it is not, text where it is no JSON."""
    assert value == assemble(SCHEMA, given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["approved"], "key=value"),
        (["=x"], "key=value"),
        (["aproved=true"], "there is no field 'aproved'; there are: approved, note"),
        (["inner.nam=x"], "no field 'nam' of inner"),
        (["note=a", "note=b"], "set twice"),
        (["note=a", "note+=b"], "no list"),
        (["note=a", "note.b=c"], "no object"),
        (["limit:=3x"], "line 1, column 2"),
        (["inner.=x"], "does not end with a dot"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_before_anything_is_sent(given: list[str], said: str) -> None:
    """A misspelt field would otherwise be an extra that is taken and ignored."""
    with pytest.raises(Stop) as stopped:
        assemble(SCHEMA, given)

    assert stopped.value.code == USAGE
    assert said in stopped.value.message


def test_a_field_whose_name_has_a_dot_is_found_before_a_path() -> None:
    """A name that the schema has is not taken apart."""
    schema = {"type": "object", "properties": {"a.b": {"type": "string"}, "a": {"type": "integer"}}}

    assert {"a.b": "1", "a": 2} == assemble(schema, ["a.b=1", "a=2"])


def test_without_a_schema_any_field_may_be_set() -> None:
    """What reads as JSON is JSON."""
    assert {"n": 1, "t": "x", "o": {"p": [True]}} == assemble(None, ["n=1", "t=x", "o.p+=true"])


def test_a_gate_that_asks_for_no_object_is_answered_with_json() -> None:
    """There is no key to set."""
    with pytest.raises(Stop, match="--json"):
        assemble({"type": "boolean"}, ["x=true"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": }', "line 1, column 7"),
        ("yes", "quotes of its own"),
        ("NaN", "finite number"),
        ('{"a": 1, "a": 2}', "twice"),
        ('"\\ud800"', "surrogate"),
        ("[" * 100_000, "deep"),
        ("1" * 5000, "too long"),
    ],
)
def test_what_is_not_json_is_named_by_its_place(text: str, said: str) -> None:
    """Nothing is sent that the other side could read in two ways."""
    with pytest.raises(Stop) as stopped:
        parse_json(text, "--json")

    assert stopped.value.code == USAGE
    assert said in stopped.value.message


def test_json_is_read_from_a_file_and_a_missing_file_is_named(tmp_path: Any) -> None:
    """`@FILE`, also with a byte order mark."""
    file = tmp_path / "answer.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')

    assert {"a": 1} == read_json(f"@{file}", "--json")
    with pytest.raises(Stop, match="cannot be read"):
        read_json(f"@{file}.missing", "--json")
