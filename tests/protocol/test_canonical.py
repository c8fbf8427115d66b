"""JSON that every party reads alike, its one canonical form, and its digest."""

import json
import math
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel

from gatewright.protocol.canonical import MAX_DEPTH, MAX_SAFE_INTEGER, NotJson, canonical, check_json, digest, plain


def is_portable(number: float) -> bool:
    return not MAX_SAFE_INTEGER < abs(number) < 1e21


numbers = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.floats(allow_nan=False, allow_infinity=False).filter(
    is_portable
)
texts = st.text(st.characters(codec="utf-8"), max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


class TestCanonical:
    @pytest.mark.parametrize(
        ("bits", "text"),
        [
            ("0000000000000000", "0"),
            ("8000000000000000", "0"),
            ("0000000000000001", "5e-324"),
            ("8000000000000001", "-5e-324"),
            ("7fefffffffffffff", "1.7976931348623157e+308"),
            ("ffefffffffffffff", "-1.7976931348623157e+308"),
            ("4340000000000000", "9007199254740992"),
            ("c340000000000000", "-9007199254740992"),
            ("4430000000000000", "295147905179352830000"),
            ("44b52d02c7e14af5", "9.999999999999997e+22"),
            ("44b52d02c7e14af6", "1e+23"),
            ("44b52d02c7e14af7", "1.0000000000000001e+23"),
            ("444b1ae4d6e2ef4e", "999999999999999700000"),
            ("444b1ae4d6e2ef4f", "999999999999999900000"),
            ("444b1ae4d6e2ef50", "1e+21"),
            ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
            ("3eb0c6f7a0b5ed8d", "0.000001"),
            ("41b3de4355555553", "333333333.3333332"),
            ("41b3de4355555554", "333333333.33333325"),
            ("41b3de4355555555", "333333333.3333333"),
            ("41b3de4355555556", "333333333.3333334"),
            ("41b3de4355555557", "333333333.33333343"),
            ("becbf647612f3696", "-0.0000033333333333333333"),
            ("43143ff3c1cb0959", "1424953923781206.2"),
        ],
    )
    def test_floats_are_written_as_in_rfc_8785_appendix_b(self, bits: str, text: str) -> None:
        """Every sample of the appendix, by its bits."""
        (number,) = struct.unpack(">d", bytes.fromhex(bits))

        assert text.encode() == canonical(number)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (1.0, "1"),
            (1, "1"),
            (-0.0, "0"),
            (1e21, "1e+21"),
            (True, "true"),
            (None, "null"),
            ({"b": [1, {"d": 2, "c": 3}], "a": {}}, '{"a":{},"b":[1,{"c":3,"d":2}]}'),
            ('a"\\\n\x1f\x7f/', '"a\\"\\\\\\n\\u001f\x7f/"'),
            ("é", '"é"'),
            ("e\u0301", '"e\u0301"'),
            ("€ 😀 \ufb33", '"€ 😀 \ufb33"'),
        ],
    )
    def test_there_is_one_text_for_a_value(self, value: Any, text: str) -> None:
        """No blanks, keys in order, only what must be escaped is, and nothing is normalised."""
        assert text.encode() == canonical(value)

    def test_keys_are_ordered_by_utf_16_code_units(self) -> None:
        """The sample of RFC 8785, 3.2.3: the astral 😀 comes before U+FB33, although its code point is higher."""
        keys = ["€", "\r", "\ufb33", "1", "😀", "\x80", "ö"]

        assert list(json.loads(canonical(dict.fromkeys(keys, 0)))) == ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]

    @settings(deadline=None)
    @given(values)
    def test_what_is_portable_reads_back_equal(self, value: Any) -> None:
        """Any JSON reader finds the value again, and its canonical form is the same."""
        check_json(value)
        read = json.loads(canonical(value))

        assert value == read
        assert canonical(value) == canonical(read)

    @pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, -(2**53), "\ud800", {"\udfff": 1}, (1,), nested(65)])
    def test_what_has_no_canonical_form_is_refused(self, value: Any) -> None:
        """With our own error, whatever rfc8785 would say or forgive."""
        with pytest.raises(NotJson):
            canonical(value)


class TestDigest:
    def test_a_digest_names_its_algorithm(self) -> None:
        """The digest of `{}`, as any SHA-256 tool computes it."""
        assert digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

    @settings(deadline=None)
    @given(st.dictionaries(texts, values, min_size=2, max_size=5), st.randoms(use_true_random=False))
    def test_a_digest_does_not_depend_on_the_order_of_keys(self, value: dict[str, Any], random: Any) -> None:
        """Two clients that build the same object differently mean the same."""
        items = list(value.items())
        random.shuffle(items)

        assert digest(value) == digest(dict(items))

    def test_true_and_one_differ(self) -> None:
        """Python calls them equal; a person who ticked a box did not write a number."""
        assert digest([True]) != digest([1])


class TestCheckJson:
    @pytest.mark.parametrize(
        ("value", "path"),
        [
            (math.nan, "$"),
            ({"a": [1, math.inf]}, "$.a[1]"),
            ({"a": {"b c": 2**53}}, '$.a["b c"]'),
            ([1e17], "$[0]"),
            (["x", "\ud83d"], "$[1]"),
            ({"\ud800": 1}, '$["\\ud800"]'),
            ({1: 2}, "$"),
            ({"when": datetime(2024, 1, 1, tzinfo=UTC)}, "$.when"),
            ((1, 2), "$"),
            (b"x", "$"),
        ],
    )
    def test_a_refusal_names_the_place(self, value: Any, path: str) -> None:
        """So that a person finds it in what they sent."""
        with pytest.raises(NotJson) as refused:
            check_json(value)

        assert path == refused.value.path
        assert f"{path}: {refused.value.reason}" == str(refused.value)

    @pytest.mark.parametrize("value", [MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER, 1e21, 1e300, 5e-324, "😀", nested(64)])
    def test_the_last_of_what_is_portable_is_taken(self, value: Any) -> None:
        """At the very limits nothing is refused."""
        check_json(value)

        assert value == json.loads(canonical(value))

    @pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
    def test_deep_nesting_is_refused_by_name(self, depth: int) -> None:
        """Also where Python itself would run out of stack."""
        with pytest.raises(NotJson, match="64 levels"):
            check_json(nested(depth))

    def test_a_value_that_holds_itself_is_refused(self) -> None:
        """It is deeper than any limit."""
        value: list[Any] = []
        value.append(value)

        with pytest.raises(NotJson, match="64 levels"):
            check_json(value)


class Colour(Enum):
    RED = "red"


class Tags(RootModel[set[str]]):
    pass


@dataclass(frozen=True)
class Point:
    x: int
    labels: frozenset[str]


class Shown(BaseModel):
    ratio: float = math.nan
    count: int = 2**60
    tags: set[str] = Field(default_factory=lambda: {"c", "a", "b"}, serialization_alias="labels")
    points: list[Point] = Field(default_factory=lambda: [Point(1, frozenset({"z", "y"}))])


class TestPlain:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (math.nan, "NaN"),
            (-math.inf, "-Infinity"),
            (2**53, "9007199254740992"),
            (2.5e20, "250000000000000000000"),
            (1e21, 1e21),
            (1.5, 1.5),
            (True, True),
            (Decimal("1.10"), "1.10"),
            (datetime(2024, 5, 1, tzinfo=UTC), "2024-05-01T00:00:00Z"),
            (Colour.RED, "red"),
            ((1, (2,)), [1, [2]]),
            ({2, 10, 1}, [1, 10, 2]),
            ({frozenset("ba"), frozenset("dc")}, [["a", "b"], ["c", "d"]]),
            (Tags({"b", "a"}), ["a", "b"]),
            ({1: {"y", "x"}}, {"1": ["x", "y"]}),
            (
                Shown(),
                {
                    "ratio": "NaN",
                    "count": "1152921504606846976",
                    "labels": ["a", "b", "c"],
                    "points": [{"x": 1, "labels": ["y", "z"]}],
                },
            ),
        ],
    )
    def test_a_person_is_shown_portable_json(self, value: Any, shown: Any) -> None:
        """Whatever the payload is made of; sets are in the order of their canonical forms."""
        assert shown == plain(value)

    @pytest.mark.parametrize(
        ("value", "path", "reason"),
        [
            ({"a": [1, {"b": object()}]}, "$.a[1].b", "object"),
            ([b"\xff"], "$[0]", "utf-8"),
            ({"x": "\ud800"}, "$.x", "surrogate"),
            ({1: "a", "1": "b"}, "$", "two keys"),
            ({"f": print}, "$.f", "function"),
            ({b"\xff": 1}, "$", "utf-8"),
        ],
    )
    def test_what_cannot_be_shown_is_named(self, value: Any, path: str, reason: str) -> None:
        """Where it is, and what it is."""
        with pytest.raises(NotJson, match=reason) as refused:
            plain(value)

        assert path == refused.value.path

    @pytest.mark.parametrize("depth", [65, 200, 100_000])
    def test_what_is_too_deep_is_refused(self, depth: int) -> None:
        """Before and after pydantic would give up."""
        with pytest.raises(NotJson):
            plain(nested(depth))

    def test_sets_are_shown_alike_in_every_process(self) -> None:
        """Python orders the text in a set by a hash that differs from process to process."""
        code = "from gatewright.protocol.canonical import digest, plain; print(digest(plain([set('abcdefgh'), 1])))"
        shown = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for seed in ("1", "2", "3")
        }

        assert {digest([list("abcdefgh"), 1])} == shown

    @settings(deadline=None)
    @given(values)
    def test_json_is_shown_as_it_is(self, value: Any) -> None:
        """Portable JSON needs no rendering."""
        assert canonical(value) == canonical(plain(value))


_ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_ANY)
@settings(max_examples=400)
def test_the_quick_way_writes_what_the_rfc_s_own_library_does(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)
