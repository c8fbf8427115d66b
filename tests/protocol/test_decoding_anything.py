"""What holds for any response and any schema: decoding rules, in good time, and changes nothing."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from gatewright.protocol.canonical import MAX_SAFE_INTEGER, canonical, check_json
from gatewright.protocol.checker import Checker
from gatewright.protocol.decoding import Decoded, Undecodable, decode
from gatewright.protocol.schema import JsonSchema, render_schema
from tests.protocol.models import Cat, Decision, Dog, Tree


class And(BaseModel):
    op: Literal["and"] = "and"
    of: "And | Or | None" = None


class Or(BaseModel):
    op: Literal["or"] = "or"
    of: "And | Or | None" = None


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    result: bool
    note: str = ""


def schema_of(answer: Any) -> JsonSchema:
    schema = render_schema(answer)
    assert schema is not None
    return schema


def value_of(response: object, answer: Any, *, strict: bool = False) -> Any:
    """The decoded value; fails with the faults where there is none."""
    ruling = decode(response, render_schema(answer), strict=strict)
    assert isinstance(ruling, Decoded), ruling
    return ruling.value


def faults_of(response: object, answer: Any, *, strict: bool = False) -> dict[str, str]:
    """The messages by path; fails where the answer was decoded."""
    ruling = decode(response, render_schema(answer), strict=strict)
    assert isinstance(ruling, Undecodable), ruling
    return {fault.path: fault.message for fault in ruling.faults}


def exactly(value: Any) -> str:
    """Text that tells 1 from 1.0 and from true, which Python's == does not."""
    return repr(value)


ANSWERS: list[Any] = [
    bool,
    str,
    int | str,
    Decision,
    Tree,
    And,
    Closed,
    Cat | Dog,
    Annotated[Cat | Dog, Field(discriminator="pet")] | None,
    list[Decision] | dict[str, int | None],
    {"anyOf": [{"required": ["a"], "properties": {"b": {"default": 1}}}, {"properties": {"a": {"default": "2"}}}]},
    {"properties": {"a": {"type": "integer", "default": None}, "b": False}, "additionalProperties": {"type": "number"}},
    {"allOf": [{"$ref": "#/$defs/x"}, {"properties": {"b": {"$ref": "#"}}}], "$defs": {"x": {"minProperties": 1}}},
    {"type": ["integer", "array", "null"], "items": {"enum": [1, "a", True]}, "uniqueItems": True, "multipleOf": 0.1},
    {
        "if": {"type": "string"},
        "then": {"minLength": 2},
        "else": {"not": {"const": 0}},
        "propertyNames": {"maxLength": 1},
    },
]
SCHEMAS = [schema_of(answer) for answer in ANSWERS]
keys = st.sampled_from(["approved", "level", "note", "result", "children", "name", "op", "of", "pet", "a", "b", "kind"])
scalars = (
    st.sampled_from(
        [None, True, False, 0, 1, 2.0, "1", "yes", "cat", "dog", "and", "or", "road", "", "null", "{}", "NaN"]
    )
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
)
responses = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=15,
)


class TestAlways:
    @settings(deadline=None)
    @given(responses, st.sampled_from(SCHEMAS), st.booleans())
    @example({"of": {"of": {"of": 3}}}, schema_of(And), False)
    @example({"result": {"result": "{}"}}, schema_of(Closed), False)
    def test_decoding_rules_on_anything(self, response: Any, schema: JsonSchema, strict: bool) -> None:
        """It never raises, what it delivers satisfies the schema, decodes to itself, and what it refuses has a reason."""
        ruling = decode(response, schema, strict=strict)

        if isinstance(ruling, Undecodable):
            assert ruling.faults
            assert all(fault.message for fault in ruling.faults)
            return
        check_json(ruling.value)
        assert Checker(schema).errors(ruling.value) == []
        # One envelope is taken off at each decoding, and an answer may look like one.
        if not (isinstance(ruling.value, dict) and ruling.value.keys() == {"result"}):
            assert exactly(ruling) == exactly(decode(ruling.value, schema, strict=strict))

    @settings(deadline=None)
    @given(responses, st.sampled_from(SCHEMAS))
    def test_decoding_changes_nothing_in_place(self, response: Any, schema: JsonSchema) -> None:
        """Neither the response nor the schema, which others hold too."""
        before = repr((response, schema))
        decode(response, schema)

        assert before == repr((response, schema))

    @settings(deadline=None)
    @given(responses)
    def test_what_is_right_as_sent_is_never_refused(self, response: Any) -> None:
        """Whatever fitting would do to it; what looks like an envelope is another matter."""
        assume(not (isinstance(response, dict) and response.keys() == {"result"}))
        assume(isinstance(decode(response, None), Decoded))
        for schema in SCHEMAS:
            if not Checker(schema).errors(response):
                assert isinstance(decode(response, schema), Decoded)

    @pytest.mark.parametrize("leaf", [None, 3, {"op": "xor"}])
    def test_a_recursive_union_takes_no_exponential_time(self, leaf: Any) -> None:
        """Each level of this answer has two readings: unless they are remembered, this test does not end."""
        value = leaf
        for _ in range(50):
            value = {"of": value}

        assert isinstance(decode(value, schema_of(And)), Decoded if leaf is None else Undecodable)

    def test_depth_is_refused_by_count(self) -> None:
        """A limit that depended on Python's stack would rule differently on a replay."""
        deepest = Checker(schema_of(And)).max_depth
        value: Any = None
        for _ in range(deepest):
            value = {"of": value}

        assert isinstance(decode(value, schema_of(And)), Decoded)
        assert f"nested more than {deepest} levels deep; send less" == faults_of({"of": value}, And)["$"]

    def test_a_default_is_nobodys_to_change(self) -> None:
        """Changing a decoded answer does not change the next one."""
        first = value_of({"approved": True}, Decision)
        first["tags"].append("p")

        assert value_of({"approved": True}, Decision)["tags"] == []

    @settings(deadline=None)
    @given(st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.text(st.characters(codec="utf-8")))
    def test_value_in_is_value_out(self, value: Any) -> None:
        """F7: for whoever sends what was asked for, wrapped or not."""
        answer = str if isinstance(value, str) else int

        assert canonical(value) == canonical(value_of({"result": value}, answer))
