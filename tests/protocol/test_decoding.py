"""What somebody answered, decoded by the schema that was shown to them: rows C01 to C03, D06, D09 and D11 of ADK's contract."""

import math
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from gatewright.protocol.decoding import Decoded, Undecodable, decode
from gatewright.protocol.schema import render_schema
from tests.protocol.models import Address, Cat, Decision, Dog, Tree


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    result: bool
    note: str = ""


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


class TestEnvelope:
    @pytest.mark.parametrize(
        ("response", "value"),
        [
            ({"result": 5}, 5),
            ({"result": {"result": "deep"}}, {"result": "deep"}),
            ({"result": 1, "x": 2}, {"result": 1, "x": 2}),
            ({"x": 1}, {"x": 1}),
            ({}, {}),
            ([{"result": 1}], [{"result": 1}]),
        ],
    )
    def test_one_result_is_unwrapped_once(self, response: Any, value: Any) -> None:
        """C01: any other dict is delivered as it is, {} too."""
        assert value == value_of(response, None)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("true", True),
            ("42", 42),
            ("[1]", [1]),
            ("null", None),
            (" 7 ", 7),
            ('"q"', "q"),
            ("yes", "yes"),
            ("007", "007"),
            ("", ""),
            ('"NaN"', "NaN"),
            ("Infinity War", "Infinity War"),
            ("NaN!", "NaN!"),
            ('{"a":1,"a":2', '{"a":1,"a":2'),
            ('{"result": "1"}', {"result": "1"}),
        ],
    )
    def test_text_without_a_schema_is_read_as_adk_reads_it(self, text: str, value: Any) -> None:
        """C02: as JSON where all of it is JSON, and else as the text that it is."""
        assert exactly(value) == exactly(value_of({"result": text}, None))

    @pytest.mark.parametrize(
        "text",
        ["NaN", "-Infinity", "1e999", "[1e400]", "9" * 17, "9" * 5000, '{"a":1,"a":2}', "[" * 100_000, '"\\ud800"'],
    )
    def test_text_that_reads_as_unportable_json_is_refused(self, text: str) -> None:
        """C02, PORT DIFFER: NaN and its kind are rejected, with advice on how to send them as text."""
        assert "double quotes" in faults_of({"result": text}, None)["$[0]" if text == "[1e400]" else "$"]

    @pytest.mark.parametrize("response", [None, {"result": None}, {"result": "null"}])
    def test_nothing_is_an_answer(self, response: Any) -> None:
        """C03: all three deliver None, which is not the same as no answer."""
        assert Decoded(None) == decode(response, None)

    @pytest.mark.parametrize(
        ("response", "value"),
        [
            ({"result": True}, {"result": True, "note": ""}),
            ({"result": "yes"}, {"result": True, "note": ""}),
            ({"result": {"result": False}}, {"result": False, "note": ""}),
            ({"result": True, "note": "n"}, {"result": True, "note": "n"}),
        ],
    )
    def test_a_schema_that_declares_result_keeps_it(self, response: Any, value: Any) -> None:
        """The whole dict is the answer where only the whole satisfies the schema."""
        assert value == value_of(response, Closed)

    def test_a_dict_of_any_fields_may_have_one_called_result(self) -> None:
        """It is declared by being allowed."""
        assert value_of({"result": 5}, dict[str, int]) == {"result": 5}

    def test_an_answer_is_not_lost_as_an_unknown_field(self) -> None:
        """A model of defaults would take {"result": "no"} as a whole, and answer with its defaults."""

        class Settings(BaseModel):
            approved: bool = True

        assert faults_of({"result": "no"}, Settings) == {"$": 'got "no", wanted an object'}

    @pytest.mark.parametrize(
        ("response", "path"),
        [
            ({"result": math.nan}, "$"),
            ({"result": {"a": [1, "\ud800"]}}, "$.a[1]"),
            ({"x": math.inf, "y": 1}, "$.x"),
            ({"result": 2**53}, "$"),
            ({1: 2}, "$"),
            (object(), "$"),
        ],
    )
    def test_what_is_not_portable_json_is_refused_where_it_is(self, response: Any, path: str) -> None:
        """Before any schema is looked at; paths start at the answer, not at its envelope."""
        for answer in (None, Any, Decision):
            assert path in faults_of(response, answer)


class TestText:
    @pytest.mark.parametrize("text", ["42", "true", "null", "1.5", "NaN", " 7 ", '{"a": 1}', '"q"', ""])
    @pytest.mark.parametrize("answer", [str, str | None, int | str, Any, dict[str, int] | str])
    def test_text_that_is_wanted_as_text_stays_text(self, text: str, answer: Any) -> None:
        """D06, PORT DIFFER: verbatim, in every reading of a union (adk-js 761)."""
        assert text == value_of({"result": text}, answer)
        assert text == value_of(text, answer)

    @pytest.mark.parametrize("value", [5, 1.5, True, ["x"], {"x": 1}, None])
    def test_nothing_else_becomes_text(self, value: Any) -> None:
        """D06: text is never made of anything."""
        assert "wanted text" in faults_of({"result": value}, str)["$"]

    def test_fields_of_text_stay_text(self) -> None:
        """D06, inside an object."""
        assert value_of({"street": "42", "zip": "true"}, Address) == {"street": "42", "zip": "true"}

    def test_text_that_breaks_a_rule_for_text_is_judged_as_text(self) -> None:
        """And not as the number that it might be read as."""
        faults = faults_of({"result": "NaN"}, Annotated[str, Field(min_length=5)])

        assert faults == {"$": 'got "NaN" (3 characters), wanted 5 or more characters'}


class TestWholeSchema:
    @pytest.mark.parametrize(
        ("answer", "response", "path"),
        [
            (Decision, {"approved": True, "level": 99}, "$.level"),
            (Decision, {"approved": True, "kind": "zzz"}, "$.kind"),
            (Decision, {"approved": True, "tags": ["p", "x"]}, "$.tags[1]"),
            (Decision, {"approved": True, "addr": "str"}, "$.addr"),
            (Decision, {"approved": True, "addr": {"zip": "1"}}, "$.addr.street"),
            (Decision, {"note": "x"}, "$.approved"),
            (Cat | Dog, {"pet": "bird"}, "$.pet"),
            (Tree, {"children": [{"children": [{"name": 5}]}]}, "$.children[0].children[0].name"),
            (Closed, {"result": True, "extra": 1}, "$.extra"),
            ({"const": 5}, 6, "$"),
            ({"pattern": "^a"}, "b", "$"),
            ({"uniqueItems": True}, [1, True, 1.0], "$"),
            ({"maxItems": 1}, [1, 2], "$"),
            ({"not": {"type": "null"}}, None, "$"),
            ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, "$.b"),
            ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "$"),
            ({"type": "string", "format": "date"}, "tomorrow", "$"),
        ],
    )
    def test_every_rule_of_a_schema_is_kept(self, answer: Any, response: Any, path: str) -> None:
        """D09, PORT DIFFER: where ADK looks at the types of the topmost fields only."""
        assert path in faults_of(response, answer)
        assert path in faults_of({"result": response}, answer)

    def test_every_fault_is_told(self) -> None:
        """D09: all at once, so that a person mends them all at once."""
        faults = faults_of({"level": 9, "kind": "x", "tags": "p"}, Decision)

        assert {"$.approved", "$.level", "$.kind", "$.tags"} == faults.keys()


class TestObjects:
    @pytest.mark.parametrize(
        "response",
        [
            {"approved": False},
            {"result": {"approved": False}},
            {"result": '{"approved": false}'},
            {"result": ' {"approved": "no"}\n'},
        ],
    )
    def test_an_object_may_be_bare_wrapped_or_written_as_text(self, response: Any) -> None:
        """D11."""
        expected = Decision(approved=False).model_dump(mode="json")

        assert expected == value_of(response, Decision)

    @pytest.mark.parametrize(
        ("text", "faults"),
        [
            ('{"approved": "perhaps"}', {"$.approved": 'got "perhaps", wanted true or false'}),
            ("perhaps", {"$": 'got "perhaps", wanted an object'}),
            ('{"approved": NaN}', {"$": "the text was read as JSON: NaN is not JSON; send a finite number"}),
        ],
    )
    def test_faults_in_text_are_told_as_the_object_that_was_meant(self, text: str, faults: Any) -> None:
        """D11: of the readings of an answer, the likeliest is spoken of."""
        assert faults == faults_of({"result": text}, Decision)
