"""What somebody sent, brought to the form that a schema asks for: rows D07, D08 and D10 of ADK's contract."""

import json
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter

from gatewright.protocol.decoding import Decoded, Undecodable, decode
from gatewright.protocol.schema import render_schema
from tests.protocol.models import Address, Cat, Decision, Dog, Tree


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


class TestDefaults:
    @pytest.mark.parametrize(
        ("answer", "response", "value"),
        [
            (Address, {"street": "s"}, {"street": "s", "zip": "0000"}),
            (list[Address], [{"street": "s"}], [{"street": "s", "zip": "0000"}]),
            (dict[str, Address], {"k": {"street": "s"}}, {"k": {"street": "s", "zip": "0000"}}),
            (tuple[int, Address], [1, {"street": "s"}], [1, {"street": "s", "zip": "0000"}]),
            (Cat | Dog, {"pet": "dog"}, {"pet": "dog", "good": True}),
            (Tree, {"children": [{}]}, {"children": [{"name": "leaf", "children": []}], "name": "leaf"}),
            (
                {"properties": {"a": {"$ref": "#/$defs/a", "default": 2}}, "$defs": {"a": {"default": 1}}},
                {},
                {"a": 2},
            ),
            ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"default": 1}}}, {}, {"a": 1}),
            ({"allOf": [{"properties": {"a": {"default": 1}}}]}, {}, {"a": 1}),
            ({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}, {}, {"a": {"b": 1}}),
        ],
    )
    def test_what_is_left_out_gets_its_default(self, answer: Any, response: Any, value: Any) -> None:
        """D07, PORT DIFFER: the schema's own default and not None, at any depth."""
        assert value == value_of(response, answer)
        assert value == value_of(response, answer, strict=True)

    def test_a_consumer_of_the_same_model_takes_the_answer(self) -> None:
        """D08, PORT DIFFER: ADK's own pair of gate and node fails there."""
        value = value_of({"approved": True}, Decision)

        assert Decision(approved=True) == TypeAdapter(Decision).validate_python(value)

    @pytest.mark.parametrize(
        ("default", "schema"),
        [(None, {"type": "integer"}), ("x", {"type": "integer"}), (9, {"maximum": 5})],
    )
    def test_a_default_that_breaks_its_own_schema_is_not_filled_in(self, default: Any, schema: Any) -> None:
        """It would turn a right answer into a wrong one."""
        assert value_of({}, {"properties": {"a": {**schema, "default": default}}}) == {}

    def test_defaults_never_spoil_what_was_right(self) -> None:
        """An answer that satisfies the schema as it was sent is taken as it was sent."""
        assert value_of({}, {"maxProperties": 0, "properties": {"a": {"default": 1}}}) == {}

    def test_a_default_that_leads_back_to_itself_comes_to_an_end(self) -> None:
        """The tree that this schema describes has no end; the answer has."""
        schema = {"type": "object", "properties": {"child": {"$ref": "#", "default": {}}}}

        assert value_of({}, schema) == {}

    def test_a_blank_in_a_form_counts_as_left_out(self) -> None:
        """ADK's UI sends null for every blank field; where null is an answer of its own, it stays."""
        blank = {"approved": True, "note": None, "level": None, "limit": None, "kind": None}
        filled = {"approved": True, "note": "dflt", "level": 1, "limit": None, "addr": None, "kind": "road", "tags": []}

        assert filled == value_of(blank, Decision)
        assert {"$.approved"} == faults_of({"approved": None}, Decision).keys()
        assert {"$.note", "$.level", "$.kind"} == faults_of(blank, Decision, strict=True).keys()

    def test_a_blank_without_a_default_is_dropped(self) -> None:
        """There is nothing to put in its place."""
        assert value_of({"a": None, "b": 1}, {"properties": {"a": {"type": "string"}}}) == {"b": 1}


class TestCoercion:
    @pytest.mark.parametrize(
        ("answer", "sent", "value"),
        [
            *((bool, sent, True) for sent in ("yes", "on", "true", "1", "TRUE", 1, True)),
            *((bool, sent, False) for sent in ("no", "off", "false", "0", 0, False)),
            (int, "42", 42),
            (int, True, 1),
            (int, 4.0, 4),
            (int, "4.0", 4),
            (float, "1.5", 1.5),
            (float, True, 1.0),
            (int | None, "7", 7),
            (bool | int, 1, 1),
            (Literal[1, 2], "2", 2),
            ({"enum": ["a", 1]}, "1", 1),
            ({"const": True}, "yes", True),
            ({"const": "1"}, 1, None),
            (list[int], ["1", 2.0], [1, 2]),
            (dict[str, bool], {"a": "no"}, {"a": False}),
            (tuple[int, bool], ["1", "1"], [1, True]),
            (Cat | Dog, {"pet": "dog", "good": "no"}, {"pet": "dog", "good": False}),
            ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "integer"}}}, {"a": "1"}, {"a": 1}),
            ({"patternProperties": {"^n": {"type": "number"}}}, {"n": "2", "x": "2"}, {"n": 2.0, "x": "2"}),
        ],
    )
    def test_scalars_are_coerced_by_pydantics_lax_rules(self, answer: Any, sent: Any, value: Any) -> None:
        """D10: wherever the schema names the scalar and the value as sent does not do."""
        if value is None:
            assert "$" in faults_of(sent, answer)
        else:
            assert exactly(value) == exactly(value_of(sent, answer))
            assert exactly(value) == exactly(value_of({"result": sent}, answer))

    @pytest.mark.parametrize(
        ("answer", "sent"),
        [(bool, "maybe"), (bool, 2), (int, "4.5"), (int, 1e21), (int, "9" * 20), (float, "NaN"), (float, "1e999")],
    )
    def test_what_no_rule_makes_a_scalar_is_refused(self, answer: Any, sent: Any) -> None:
        """D10: nor anything that would not be portable afterwards."""
        assert "$" in faults_of(sent, answer)
        assert "$" in faults_of({"result": sent}, answer)

    @pytest.mark.parametrize(("answer", "sent"), [(bool, "yes"), (bool, 1), (int, "42"), (int, True), (float, "1.5")])
    def test_a_strict_gate_coerces_nothing(self, answer: Any, sent: Any) -> None:
        """D10: the opt-in. JSON text under `result` is still read, since it is how clients send it."""
        assert "$" in faults_of(sent, answer, strict=True)
        assert value_of({"result": json.dumps(value_of(sent, answer))}, answer, strict=True) == value_of(sent, answer)

    @pytest.mark.parametrize("strict", [False, True])
    def test_an_integer_has_one_form(self, strict: bool) -> None:
        """JSON has no two kinds of number: 4.0 and 4 are one answer, and one digest."""
        assert exactly([4, 5]) == exactly(value_of([4.0, 5], list[int], strict=strict))
