"""
What somebody answered, decoded by the schema that was shown to them.

ADK's clients wrap an answer as `{"result": ...}` (C01), send text for anything
(C02), null for blanks, and leave out what has a default. Decoding undoes this
under the eyes of the schema, checks the outcome in full (D09), and never raises:
an answer that cannot be decoded is a value that says why.

Nothing here reads a clock or depends on hash order, so that a replay decodes alike.
For the same reason work is bounded by counting it: values here, steps in checker.py.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from .canonical import MAX_DEPTH, NotJson, check_json
from .checker import Checker
from .faults import Fault, describe
from .fitting import Fitter
from .schema import JsonSchema

__all__ = ["MAX_VALUES", "Decoded", "Decoding", "Fault", "Undecodable", "decode"]

MAX_VALUES = 10_000
"""How many values, keys included, one answer may have; text of any length is one."""

_ROUNDS = 8
_SAFE_DIGITS = 20
_NO_JSON: Final = object()


@dataclass(frozen=True)
class Decoded:
    """The answer: it satisfies the schema, defaults are filled in, and text that was asked for as text is text."""

    value: JsonValue


@dataclass(frozen=True)
class Undecodable:
    """What is wrong with the answer: at least one fault, at most 50 and a line that counts the rest."""

    faults: tuple[Fault, ...]


Decoding: TypeAlias = Decoded | Undecodable


def decode(response: object, schema: JsonSchema | None, *, strict: bool = False) -> Decoding:
    """
    Decode `response` by `schema`, which `render_schema` took; None takes any JSON.

    One `{"result": ...}` is taken off, unless only the whole satisfies the
    schema. Text under `result` is read as JSON where the schema does not take
    it as text (D06, D11); without a schema it is read as ADK reads it, except
    that NaN, infinities and what else is not portable JSON are refused. Scalars
    are coerced by pydantic's lax rules (D10) and a null for an optional
    property that takes none counts as left blank, unless `strict`; defaults are
    filled in (D07, D08). Paths in faults start at the answer, not at its envelope.

    An answer of more than MAX_VALUES values is refused, and so is one that takes
    more than the checker's MAX_STEPS to fit and check, with a fault at "$" (or at
    the text that was read as JSON). The same answer and schema always come to the
    same ruling, within about an eighth of a second.

    Never raises and changes nothing in place.
    """
    wrapped = isinstance(response, dict) and list(response) == ["result"]
    try:
        _count(response)
        check_json(response)
        # A value that is in there twice becomes two, so that all that follows is the same as in another process.
        response = _copied(response)
        inner: Any = response["result"] if wrapped else response  # type: ignore[index]
        if schema is not None:
            return _decode_by(Checker(schema), response, inner, wrapped=wrapped, strict=strict)
        if wrapped and isinstance(inner, str):
            return _decode_text(inner)
        return Decoded(inner)
    except NotJson as wrong:
        # The envelope is the client's, not the person's: paths start at what it holds.
        path = wrong.path.replace("$.result", "$", 1) if wrapped else wrong.path
        return _refused(wrong.reason, path)
    except RecursionError:
        return _refused("nested too deep for this schema; send less")


def _count(value: Any) -> None:
    """Raise `NotJson` where `value` has too many parts; it may be anything, and may even hold itself."""
    count = 1
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            count += 2 * len(part)
            todo += part.values()
        elif isinstance(part, list):
            count += len(part)
            todo += part
        if count > MAX_VALUES:
            raise NotJson(
                f"too many parts (more than {MAX_VALUES:,} values); put a long list into a file and answer with a "
                "reference to it"
            )


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return list(map(_copied, value)) if isinstance(value, list) else value


def _refused(reason: str, path: str = "$") -> Undecodable:
    return Undecodable((Fault(path=path, message=reason),))


def _decode_text(text: str) -> Decoding:
    """Text under `result`, read as ADK reads it where nobody said what is wanted (C02)."""
    try:
        value = _parse(text)
    except NotJson as wrong:
        advice = "the text was read as JSON; put double quotes around it to keep it as text"
        return _refused(f"{wrong.reason} ({advice})", wrong.path)
    return Decoded(text if value is _NO_JSON else value)


def _decode_by(checker: Checker, whole: Any, inner: Any, *, wrapped: bool, strict: bool) -> Decoding:
    """The first reading of the answer that satisfies the schema, or what is wrong with the likeliest one."""
    judge = _Judge(checker, strict=strict)
    if not wrapped or checker.takes(inner, checker.schema):
        return judge(inner)
    readings: list[Any] = [inner]
    refusal: Undecodable | None = None
    if isinstance(inner, str):
        try:
            readings = [value for value in (_parse(inner), inner) if value is not _NO_JSON]
        except NotJson as wrong:
            refusal = _refused(f"the text was read as JSON: {wrong.reason}", wrong.path)
    if checker.has_field("result"):
        readings.append(whole)
    verdicts = []
    for reading in readings:
        verdict = judge(reading)
        if isinstance(verdict, Decoded):
            return verdict
        if checker.wants_kind_of(reading, checker.schema):
            verdicts.append(verdict)
    return next(iter(verdicts), refusal or judge(inner))


class _Judge:
    """Fits a value to a schema and checks it in full."""

    def __init__(self, checker: Checker, *, strict: bool) -> None:
        self._checker = checker
        self._fitter = Fitter(checker, strict=strict)

    def __call__(self, value: Any) -> Decoding:
        if _levels(value) > self._checker.max_depth:
            return _refused(f"nested more than {self._checker.max_depth} levels deep; send less")
        fitted = self._fit(value)
        errors = self._checker.errors(fitted)
        # What is right as it was sent must not fail because of what was done to it.
        if not errors or self._checker.takes(value, self._checker.schema):
            return Decoded(value if errors else fitted)
        return Undecodable(describe(errors, self._checker.target))

    def _fit(self, value: Any) -> Any:
        """Fitted until it no longer changes, so that decoding twice comes to the same; else as it was."""
        fitted = value
        for _ in range(_ROUNDS):
            last, fitted = fitted, self._fitter.fit(fitted, self._checker.schema)
            if fitted is last:
                return fitted if _levels(fitted) <= self._checker.max_depth else value
        return value


def _levels(value: Any) -> int:
    """How many lists and objects lie inside one another."""
    if isinstance(value, dict):
        return 1 + max(map(_levels, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_levels, value), default=0)
    return 0


def _parse(text: str) -> Any:
    """
    The value that `text` writes as JSON, or `_NO_JSON` where it does not.

    Raises `NotJson` where it writes something that is not portable: NaN, an
    infinity, a number beyond 2^53-1, a repeated key, more than 64 levels.
    """
    if _brackets(text) > MAX_DEPTH:
        # Not left to the parser, whose own limit differs from call to call.
        raise NotJson(f"nested more than {MAX_DEPTH} levels deep")
    complaints: list[str] = []

    def constant(name: str) -> None:
        complaints.append(f"{name} is not JSON; send a finite number")

    def integer(digits: str) -> int:
        # Python refuses to read very long integers, with an error of its own.
        return int(digits) if len(digits) <= _SAFE_DIGITS else int(digits[:_SAFE_DIGITS])

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(mapping := dict(items)) < len(items):
            complaints.append("a key is there twice in one object; send it once")
        return mapping

    try:
        value = json.loads(text, parse_constant=constant, parse_int=integer, object_pairs_hook=pairs)
    except json.JSONDecodeError:
        return _NO_JSON
    # Only now: before the end of the text, "Infinity War" might have been a number.
    for complaint in complaints:
        raise NotJson(complaint)
    _count(value)
    check_json(value)
    return value


def _brackets(text: str) -> int:
    """How many brackets are open at most, outside of quotes."""
    open_ = deepest = 0
    quoted = False
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return 0
    for mark in re.findall(r"\\.|[\"\[\]{}]", text, re.DOTALL):
        if mark == '"':
            quoted = not quoted
        elif not quoted and len(mark) == 1:
            open_ += 1 if mark in "[{" else -1
            deepest = max(deepest, open_)
    return deepest
