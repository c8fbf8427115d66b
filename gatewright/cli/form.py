"""
A form made from a JSON Schema, without a terminal: it yields prompts, is sent lines, and returns the answer.

    form = fill(schema)
    prompt = next(form)
    prompt = form.send("yes")    # until StopIteration, whose value is the answer

An empty line takes the default, or leaves an optional field out. A line that
begins with `{` at the first prompt is the whole answer as JSON.
"""

import json
import math
import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from gatewright.protocol.decoding import Undecodable, decode
from gatewright.protocol.faults import Fault
from gatewright.protocol.question import ABSENT, Kind, Question, question, variant_name

from .exits import Stop
from .jsonarg import parse_json

_NO_WORDS = {"n": False, "no": False, "false": False}
_YES_WORDS = {"y": True, "yes": True, "true": True}
_SHOWN_CHOICES = 60


class Misread(ValueError):  # noqa: N818 - what happened to a line
    """A line that is no answer to its question; the message says what is."""


@dataclass(frozen=True)
class Prompt:
    """One line to be read: what is shown above it, its label, and what was wrong with the line before."""

    label: str
    lines: tuple[str, ...] = ()
    fault: str | None = None


Asking = Generator[Prompt, str, Any]


class _Whole(Exception):  # noqa: N818 - not an error: the whole answer came as one line
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def fill(schema: dict[str, Any] | None, *, strict: bool = False) -> Generator[Prompt, str, JsonValue]:
    """
    Ask for an answer that satisfies `schema`; None asks for any JSON.

    The whole answer is checked in the end as the run will check it; what is
    wrong is said, and the form begins anew.
    """
    top = question(schema or {}, schema or {})
    faults: tuple[Fault, ...] = ()
    while True:
        try:
            value = yield from _first(_ask(top), faults, whole=top.kind in {Kind.OBJECT, Kind.VARIANT})
        except _Whole as given:
            value = given.value
        verdict = decode(value, schema, strict=strict)
        if not isinstance(verdict, Undecodable):
            return value  # type: ignore[no-any-return]
        faults = verdict.faults


def read(asked: Question, line: str) -> Any:
    """
    The value that one line gives to a question; `ABSENT` where it leaves it out.

    Raises `Misread`.
    """
    text = line.strip()
    if not text:
        return _blank(asked)
    if text == "null" and asked.nullable:
        return None
    value = _READERS[asked.kind](asked, line if asked.kind is Kind.TEXT else text)
    return _checked(asked, value)


def _first(asking: Asking, faults: tuple[Fault, ...], *, whole: bool) -> Asking:
    """Pass a form on, except that its first line may be the whole answer, and its first prompt says what was wrong."""
    try:
        prompt = next(asking)
    except StopIteration as done:
        return done.value
    fault = "; ".join(_said(fault) for fault in faults) or prompt.fault
    line = yield replace(prompt, fault=fault)
    while whole and line.lstrip().startswith("{"):
        try:
            value = parse_json(line, "the answer")
        except Stop as wrong:
            line = yield replace(prompt, fault=wrong.message)
        else:
            raise _Whole(value)
    while True:
        try:
            line = yield asking.send(line)
        except StopIteration as done:
            return done.value


def _ask(asked: Question) -> Asking:
    """The value for one question, or `ABSENT`."""
    match asked.kind:
        case Kind.OBJECT if not asked.name or asked.required:
            return (yield from _fields(asked))
        case Kind.OBJECT:
            return (yield from _optional_object(asked))
        case Kind.VARIANT:
            return (yield from _variant(asked))
        case Kind.LIST:
            return (yield from _list(asked))
        case Kind.CHOICE if _foregone(asked):
            return asked.choices[0]
        case _:
            return (yield from _one_line(asked))


def _foregone(asked: Question) -> bool:
    """Whether there is but one answer, as where a field only says which of several forms this is."""
    only = list(asked.choices)
    return len(only) == 1 and not asked.nullable and (asked.required or asked.default == only[0])


def _one_line(asked: Question) -> Asking:
    fault = None
    while True:
        line = yield Prompt(_label(asked), _above(asked), fault)
        try:
            return read(asked, line)
        except Misread as wrong:
            fault = str(wrong)


def _fields(asked: Question) -> Asking:
    value: dict[str, Any] = {}
    for inner, key in zip(asked.fields(), asked.schema["properties"], strict=True):
        given = yield from _ask(inner)
        if given is not ABSENT:
            value[key] = given
    return value


def _optional_object(asked: Question) -> Asking:
    fault = None
    while True:
        above = (*_above(asked), "  y to fill it in, {...} to give it as JSON, Enter to leave it")
        line = yield Prompt(_label(asked), above, fault)
        try:
            text = line.strip()
            if text.lower() in _YES_WORDS:
                return (yield from _fields(asked))
            if text.lower() in _NO_WORDS:
                return _blank(asked)
            if not text or text == "null":
                return read(asked, line)
            return _checked(asked, _json(asked, text))
        except Misread as wrong:
            fault = str(wrong)


def _variant(asked: Question) -> Asking:
    names = [variant_name(each, number) for number, each in enumerate(asked.variants, 1)]
    fault = None
    while True:
        above = (*_above(asked), *(f"  {number}. {name}" for number, name in enumerate(names, 1)))
        line = (yield Prompt(_label(asked), above, fault)).strip()
        try:
            if not line or (line == "null" and asked.nullable):
                return read(asked, line)
            return (yield from _fields(asked.variant(_pick(line, names))))
        except Misread as wrong:
            fault = str(wrong)


def _list(asked: Question) -> Asking:
    item = asked.item()
    values: list[Any] = []
    fault = None
    while True:
        above = (*_above(asked), "  one a line, an empty line ends; or [...] as JSON") if not values else ()
        line = yield Prompt(f"{_label(asked)}[{len(values)}]" if values else _label(asked), above, fault)
        text = line.strip()
        try:
            if not text:
                return _checked(asked, values) if values else _blank(asked)
            if not values and (text.startswith("[") or (text == "null" and asked.nullable)):
                return read(asked, line)
            if item is not None and item.kind in {Kind.OBJECT, Kind.LIST, Kind.CHOICES, Kind.VARIANT}:
                values.append(_checked(item, _json(item, text)))
            else:
                values.append(read(item, line) if item is not None else _json(asked, text))
            fault = None
        except Misread as wrong:
            fault = str(wrong)


def _blank(asked: Question) -> Any:
    """What an empty line means."""
    if asked.default is not ABSENT:
        return asked.default
    if not asked.required:
        return ABSENT
    if asked.kind in {Kind.LIST, Kind.CHOICES}:
        return _checked(asked, [])
    hint = ', "" for empty text' if asked.kind is Kind.TEXT else ", null for none" if asked.nullable else ""
    raise Misread(f"an answer is needed: {asked.kind.value}{hint}")


def _text(_asked: Question, line: str) -> str:
    return "" if line.strip() == '""' else line


def _integer(_asked: Question, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        raise Misread("a whole number is needed, in digits")
    return int(text)


def _number(_asked: Question, text: str) -> float | int:
    if re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Misread("a number is needed, such as 3 or 2.5")
    return value


def _boolean(_asked: Question, text: str) -> bool:
    known = _YES_WORDS | _NO_WORDS
    if text.lower() not in known:
        raise Misread("y or n is needed")
    return known[text.lower()]


def _choice(asked: Question, text: str) -> Any:
    return asked.choices[_pick(text, [_name(choice) for choice in asked.choices])]


def _choices(asked: Question, text: str) -> list[Any]:
    if text.startswith("["):
        return _json(asked, text)  # type: ignore[no-any-return]
    if text in {_name(choice) for choice in asked.choices}:
        return [_choice(asked, text)]
    return list(dict.fromkeys(_choice(asked, part.strip()) for part in text.split(",") if part.strip()))


def _pick(text: str, names: list[str]) -> int:
    """Which of the names is meant: by name, by name whatever its case, by number from 1; in this order."""
    if text in names:
        return names.index(text)
    folded = [number for number, name in enumerate(names) if name.casefold() == text.casefold()]
    if len(folded) == 1:
        return folded[0]
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= len(names):
        return int(text) - 1
    raise Misread(f"{text!r} is none of the choices; give a name or a number from 1 to {len(names)}")


def _json(asked: Question, text: str) -> Any:
    try:
        return parse_json(text, asked.name or "the answer")
    except Stop as wrong:
        if asked.takes_text:
            return text
        raise Misread(wrong.message) from wrong


_READERS = {
    Kind.TEXT: _text,
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.CHOICE: _choice,
    Kind.CHOICES: _choices,
    Kind.LIST: _json,
    Kind.OBJECT: _json,
    Kind.VARIANT: _json,
    Kind.JSON: _json,
}


def _checked(asked: Question, value: Any) -> Any:
    """`value`, which satisfies what the question's own schema asks; `Misread` with each fault where it does not."""
    verdict = decode(value, asked.checkable(), strict=True)
    if isinstance(verdict, Undecodable):
        raise Misread("; ".join(_said(fault) for fault in verdict.faults[:5]))
    return value


def _said(fault: Fault) -> str:
    return fault.message if fault.path == "$" else f"{fault.path.removeprefix('$').lstrip('.')}: {fault.message}"


def _name(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice, ensure_ascii=False)


def _label(asked: Question) -> str:
    return asked.name or "answer"


def _above(asked: Question) -> tuple[str, ...]:
    """What is shown above a prompt: the name, what is wanted, and the choices with their numbers."""
    bare = replace(asked, choices=()).words() if asked.choices else asked.words()
    said = f" — {asked.description}" if asked.description else ""
    lines = [f"{_label(asked)}: {bare}{said}"]
    shown = asked.choices[:_SHOWN_CHOICES]
    lines += [f"  {number}. {_name(choice)}" for number, choice in enumerate(shown, 1)]
    if len(asked.choices) > _SHOWN_CHOICES:
        lines.append(f"  ... and {len(asked.choices) - _SHOWN_CHOICES} more")
    if asked.kind is Kind.CHOICES:
        lines.append("  names or numbers, with commas between them")
    return tuple(lines)
