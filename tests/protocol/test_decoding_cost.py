"""
What decoding may cost: a worker runs it inside a workflow task, which must not take long, whoever answers.

The worst found among these pairs of schema and answer (up to 256 KB) was 114 ms
on a machine of two cores: 1,900 objects against a `oneOf` of 20 tagged objects.
A step takes 0.1 to 0.8 microseconds there. Steps are asserted and not seconds,
because that is what makes the verdict the same on every machine.
"""

import json
import time
from typing import Any, Literal

import pytest
from pydantic import BaseModel, JsonValue

from gatewright.protocol.checker import MAX_STEPS, Checker
from gatewright.protocol.decoding import MAX_VALUES, Decoded, Undecodable, decode
from gatewright.protocol.schema import JsonSchema, render_schema


class And(BaseModel):
    op: Literal["and"] = "and"
    of: "list[And | Or | int]" = []


class Or(BaseModel):
    op: Literal["or"] = "or"
    of: "list[And | Or | int]" = []


class Row(BaseModel):
    a: int
    b: str = "x"
    c: float | None = None
    d: list[int | str] = []


def wide(levels: int, leaf: Any) -> Any:
    return {"of": [wide(levels - 1, leaf) for _ in range(4)]} if levels else leaf


TAGGED = [
    {"type": "object", "properties": {"k": {"const": tag}, "v": {"type": "integer"}}, "required": ["k"]}
    for tag in range(20)
]
DOUBLING = {f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(7)}
UNIONS = {f"a{level}": {"anyOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 20} for level in range(5)}
KEYS = {f"k{number}": number for number in range(4900)}

TOO_MUCH: dict[str, tuple[Any, Any]] = {
    "scalars that fit no branch": (list[int | bool | float], ["x"] * 9990),
    "rows to be coerced": (list[Row], [{"a": "1", "d": ["1", 2]}] * 1100),
    "a union of twenty": ({"items": {"oneOf": TAGGED}}, [{"k": 19, "v": "1"}] * 1900),
    "a union of twenty lists": ({"anyOf": [{"items": {"maxLength": size}} for size in range(20)]}, ["x" * 20] * 9900),
    "a union of thousands": ({"items": {"anyOf": [{"type": "null"}] * 5000}}, [1] * 9000),
    "unions of unions": ({"$defs": {**UNIONS, "a5": {"type": "null"}}, "items": {"$ref": "#/$defs/a0"}}, ["x"] * 900),
    "a recursive union": (And | Or, wide(6, "x")),
    "a schema that doubles": ({"$defs": {**DOUBLING, "a7": {}}, "items": {"$ref": "#/$defs/a0"}}, [1] * 9000),
    "uniqueness a thousand times": ({"allOf": [{"uniqueItems": True}] * 1000}, [[n] for n in range(4900)]),
    "many patterns": ({"patternProperties": {f"^(k[a-z0-9_]*{n})+$": {} for n in range(100)}}, KEYS),
    "a pattern of many places": ({"pattern": "[ab]{0,1900}!"}, "ab" * 120_000),
    "addresses in punycode": ({"items": {"format": "uri"}}, ["http://xn--" + "a" * 1990] * 125),
    "fractions": ({"items": {"multipleOf": 1e-300}}, [1.7e300] * 9900),
    "a large enum": ({"items": {"enum": list(range(10_000))}}, [str(n) for n in range(9900)]),
    "a large constant": ({"items": {"const": list(range(4900))}}, [[1]] * 4000),
    "a large default": ({"items": {"properties": {"d": {"default": list(range(4900))}}}}, [{}] * 9000),
    "a default of much text": ({"items": {"properties": {"d": {"default": "x" * 100_000}}}}, [{}] * 9000),
    "many defaults": ({"items": {"properties": {f"d{n}": {"default": 1} for n in range(3000)}}}, [{}] * 9000),
    "many required fields": ({"items": {"required": [f"field_{n}" for n in range(6000)]}}, [{}] * 9000),
    "unevaluated properties": (
        {
            "allOf": [{"anyOf": [{"properties": {f"k{n}": True}} for n in range(20)]}] * 10,
            "unevaluatedProperties": False,
        },
        KEYS,
    ),
}
"""Each takes more than MAX_STEPS."""

AFFORDABLE: dict[str, tuple[Any, Any]] = {
    "integers": (list[int], list(range(9990))),
    "scalars in a union": (list[int | str], list(range(9990))),
    "rows": (list[Row], [{"a": 1, "b": "q", "c": 1.5, "d": [1]}] * 800),
    "a union of twenty": ({"items": {"oneOf": TAGGED}}, [{"k": 19, "v": 1}] * 300),
    "a recursive union": (And | Or, wide(4, 1)),
    "a map": (dict[str, int], {key: str(value) for key, value in KEYS.items()}),
    "different items": ({"uniqueItems": True}, [[n] for n in range(4900)]),
    "addresses": ({"items": {"format": "date-time"}}, ["2024-05-01T12:30:00Z"] * 9900),
    "text with a pattern": ({"pattern": r"^(\w+\s?)*$"}, "word " * 50_000),
    "much text": (list[int] | str, "x" * 256_000),
}


def schema_of(answer: Any) -> JsonSchema:
    schema = render_schema(answer)
    assert schema is not None
    return schema


@pytest.fixture
def checkers(monkeypatch: pytest.MonkeyPatch) -> list[Checker]:
    """The checkers that come to be, each with the steps of one decoding."""
    made: list[Checker] = []

    class Watched(Checker):
        def __init__(self, schema: JsonSchema) -> None:
            super().__init__(schema)
            made.append(self)

    monkeypatch.setattr("gatewright.protocol.decoding.Checker", Watched)
    return made


class TestSteps:
    @pytest.mark.parametrize("wrapped", [False, True])
    @pytest.mark.parametrize(("answer", "response"), TOO_MUCH.values(), ids=TOO_MUCH)
    def test_what_is_too_much_work_is_refused_in_one_clear_line(
        self, answer: Any, response: Any, wrapped: bool, checkers: list[Checker]
    ) -> None:
        """Whatever makes it so; and the same answer is refused at the same step each time."""
        sent = {"result": response} if wrapped else response
        schema = schema_of(answer)
        first, second = decode(sent, schema), decode(json.loads(json.dumps(sent)), schema)

        assert isinstance(first, Undecodable)
        assert ["$"] == [fault.path for fault in first.faults]
        assert "too many attempts to fit the answer" in first.faults[0].message
        assert first == second
        assert checkers[0].steps == checkers[1].steps > MAX_STEPS

    @pytest.mark.parametrize(("answer", "response"), AFFORDABLE.values(), ids=AFFORDABLE)
    def test_what_people_answer_is_affordable(self, answer: Any, response: Any, checkers: list[Checker]) -> None:
        """Wrapped or not, thousands of values are read."""
        schema = schema_of(answer)

        assert isinstance(decode(response, schema), Decoded)
        assert isinstance(decode({"result": response}, schema), Decoded)
        assert all(0 < checker.steps <= MAX_STEPS for checker in checkers)

    def test_text_is_no_more_work_than_it_is_long(self, checkers: list[Checker]) -> None:
        """An answer that would have frozen Python's `re` for hours costs less than a millisecond."""
        schema = {"properties": {"code": {"pattern": "^([a-z]+)+$"}}}

        assert isinstance(decode({"code": "a" * 29 + "!"}, schema), Undecodable)
        assert checkers[0].steps < 100

    def test_the_worst_answer_takes_no_second(self) -> None:
        """A guard, and a generous one: the counting is what is relied on. Of this thread's own time, not of a busy machine's."""
        answer, response = TOO_MUCH["a union of twenty"]
        schema = schema_of(answer)
        start = time.thread_time()
        decode(response, schema)

        assert time.thread_time() - start < 1


class TestValues:
    @pytest.mark.parametrize("answer", [None, Any, list[int | str]])
    @pytest.mark.parametrize("response", [list(range(10_000, 46_000)), {str(n): n for n in range(6000)}])
    def test_an_answer_of_too_many_parts_is_refused(self, answer: Any, response: Any) -> None:
        """Before anything else is done with it, and with advice."""
        for sent in (response, {"result": response}):
            ruling = decode(sent, render_schema(answer))

            assert isinstance(ruling, Undecodable)
            assert [("$", True)] == [
                (fault.path, "more than 10,000 values" in fault.message) for fault in ruling.faults
            ]

    def test_text_that_reads_as_too_many_parts_is_refused(self) -> None:
        """Unless it is wanted as the text that it is."""
        text = json.dumps([[]] * 60_000)

        assert isinstance(decode({"result": text}, None), Undecodable)
        assert isinstance(decode({"result": text}, schema_of(list[int])), Undecodable)
        assert Decoded(text) == decode({"result": text}, schema_of(str))
        assert isinstance(decode({"result": '"' + '\\"' * 120_000 + '"'}, None), Decoded)

    def test_as_many_as_are_said_are_read(self) -> None:
        """The list itself is one of them, and each key of an object too."""
        most: list[JsonValue] = [None] * (MAX_VALUES - 1)

        assert Decoded(most) == decode(most, None)
        assert isinstance(decode([*most, None], None), Undecodable)
        assert isinstance(decode({str(n): n for n in range(MAX_VALUES // 2)}, None), Undecodable)

    def test_what_holds_itself_comes_to_an_end(self) -> None:
        """It is no JSON, but anything may be given."""
        endless: list[Any] = [1]
        endless += [endless, endless]

        assert isinstance(decode(endless, None), Undecodable)
