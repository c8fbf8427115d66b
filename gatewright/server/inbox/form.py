"""
The form of an answer, made from its JSON Schema: what was typed, the value that it stands for, and what is shown.

A `Draft` holds what was typed, place by place, whether or not it makes sense; so
nothing is lost however often the page comes back. Four rules:

1. Nothing that decides is chosen beforehand. A yes-or-no and a choice begin
   unset; a default is stated, and counts where they stay unset.
2. What is left blank is left out, and the run says what is missing. A text that
   had a default and was emptied is the empty text; a blank that must be given and
   may be null is null.
3. What cannot be read as its kind is passed on as it was typed, so that the
   run's own words about it are shown at the field.
4. What no simple field fits, and whatever is nested or repeated too far, is
   asked for as JSON.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import quote

from gatewright.protocol.canonical import check_json, json_path
from gatewright.protocol.faults import Fault
from gatewright.protocol.question import ABSENT, Kind, Question, variant_name

MAX_PLACES = 2_000
"""How many fields a form has; what comes after them is asked for as JSON."""

MAX_ITEMS = 500
MAX_DEPTH = 12
MAX_RADIOS = 7

Path = tuple[str | int, ...]

_UNSET, _NULL = "", "null"

_WORDY = re.compile(
    r"(?i)(?:^|_)(?:comments?|notes?|reasons?|description|text|body|message|feedback|explanation|summary|instructions?|prompt|draft)(?:_|$)"
)
"""Names of what takes more than a line."""


@dataclass(frozen=True)
class Draft:
    """
    What was typed at one place of the answer.

    `text` is the text of a field, `true`, `false` or `null` of a yes-or-no, and
    the number of what was chosen of a choice or of several forms. `inner` are the
    fields of an object, the items of a list, or the one form that was chosen.
    """

    asked: Question
    path: Path
    text: str = ""
    chosen: frozenset[int] = frozenset()
    used: bool = True
    inner: tuple["Draft", ...] = ()
    clear: bool = False
    """Whether it had a default on the page, so that blank means emptied."""


def blank(asked: Question) -> Draft:
    """The form as it is first shown: with the defaults of what does not decide."""
    return _Maker().draft(asked, ())


def parse(asked: Question, pairs: Iterable[tuple[str, str]]) -> Draft:
    """
    The form as it was sent.

    A field `do` names what is to be done to it first: `add:PLACE` and
    `remove:PLACE` for items of lists, anything else only shows it again.
    """
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return _Maker(given).draft(asked, ())


def value_of(draft: Draft) -> Any:
    """The value that a form stands for; `ABSENT` where the place is left out."""
    match draft.asked.kind:
        case Kind.OBJECT if draft.used:
            values = ((inner.path[-1], value_of(inner)) for inner in draft.inner)
            return {key: value for key, value in values if value is not ABSENT}
        case Kind.OBJECT:
            return _left_blank(draft)
        case Kind.VARIANT:
            return value_of(draft.inner[0]) if draft.inner else _left_blank(draft)
        case Kind.LIST:
            items = [value_of(inner) for inner in draft.inner]
            return [None if item is ABSENT else item for item in items] if items else _none_listed(draft)
        case Kind.CHOICES:
            chosen = [choice for number, choice in enumerate(draft.asked.choices) if number in draft.chosen]
            return chosen or _none_listed(draft)
        case Kind.CHOICE:
            return _chosen(draft)
        case Kind.BOOLEAN:
            return {"true": True, "false": False, _NULL: None}.get(draft.text, ABSENT)
        case _:
            return _read(draft)


def unreadable(draft: Draft) -> Iterator[Fault]:
    """What is wrong with a form that cannot even be sent: JSON that is none, or an answer that is not there."""
    if not draft.path and value_of(draft) is ABSENT:
        yield Fault(path="$", message="is missing: an answer is needed")
    if draft.asked.kind is Kind.JSON and draft.text.strip() and not draft.asked.takes_text:
        try:
            _loads(draft.text)
        except ValueError as wrong:
            yield Fault(path=json_path(draft.path), message=f"this is not JSON: {wrong}")
    for inner in draft.inner:
        yield from unreadable(inner)


def _left_blank(draft: Draft) -> Any:
    asked = draft.asked
    if draft.clear and asked.nullable and asked.default is not None:
        return None
    return None if asked.required and asked.nullable and asked.default is ABSENT else ABSENT


def _none_listed(draft: Draft) -> Any:
    asked = draft.asked
    if asked.required or (asked.default is not ABSENT and asked.default):
        return [] if not asked.nullable or asked.required else None
    return ABSENT


def _chosen(draft: Draft) -> Any:
    asked = draft.asked
    if _foregone(asked):
        return asked.choices[0]
    if draft.text == _NULL:
        return None
    number = _counted(draft.text)
    return asked.choices[number] if 0 <= number < len(asked.choices) else ABSENT


def _counted(text: str) -> int:
    """The number that the form itself wrote into a field; -1 where it is none, or is longer than any of these."""
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else -1


def _read(draft: Draft) -> Any:
    asked, text = draft.asked, draft.text
    if asked.kind is Kind.TEXT:
        return text or ("" if draft.clear and not asked.nullable else _left_blank(draft))
    if not text.strip():
        return _left_blank(draft)
    try:
        return _READERS[asked.kind](text.strip())
    except ValueError:
        return text


def _loads(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_constant)
        check_json(value)
    except RecursionError as deep:
        raise ValueError("nested too deeply") from deep
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
        raise ValueError("no whole number")
    return int(text)


def _number(text: str) -> float | int:
    if re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        return int(text)
    if not re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]{1,3})?", text):
        raise ValueError("no number")
    number = float(text)
    check_json(number)
    return number


_READERS = {Kind.INTEGER: _integer, Kind.NUMBER: _number, Kind.JSON: _loads}


def _foregone(asked: Question) -> bool:
    """Whether there is but one answer, as where a field only says which of several forms this is."""
    return len(asked.choices) == 1 and not asked.nullable and (asked.required or asked.default == asked.choices[0])


def _omissible(asked: Question, path: Path) -> bool:
    """Whether an object need not be there."""
    return bool(path) and (not asked.required or asked.nullable)


# Making drafts


def pointer(path: Path) -> str:
    """A place as a part of a field's name: no two places have the same, whatever their keys are."""
    return "".join(f"/{quote(str(step), safe='')}" for step in path)


def _around(name: str) -> Iterator[str]:
    """The places that a field's name lies in, and its own."""
    _, _, place = name.partition(":")
    steps = place.split("/", MAX_DEPTH + 2)[: MAX_DEPTH + 2]
    return ("/".join(steps[:count]) for count in range(1, len(steps) + 1))


class _Maker:
    """Makes drafts: from what was sent, and blank ones of what was not on the page that sent it."""

    def __init__(self, given: dict[str, list[str]] | None = None) -> None:
        self._given = given
        self._left = MAX_PLACES
        self._undecided = False
        self._shown = {place for name in given or () for place in _around(name)}
        done, _, place = (given or {}).get("do", [""])[0].partition(":")
        self._adds = place if done == "add" else None
        self._removes = place if done == "remove" else None

    def draft(self, asked: Question, path: Path) -> Draft:
        self._left -= 1
        if asked.kind in {Kind.OBJECT, Kind.VARIANT, Kind.LIST} and self._as_json(asked, path):
            asked = replace(asked, kind=Kind.JSON)
        match asked.kind:
            case Kind.OBJECT:
                return self._object(asked, path)
            case Kind.VARIANT:
                return self._variant(asked, path)
            case Kind.LIST:
                return self._list(asked, path)
            case Kind.CHOICES:
                return self._choices(asked, path)
            case _:
                return self._field(asked, path)

    def _as_json(self, asked: Question, path: Path) -> bool:
        """Whether fields are not what asks for it: too many, nested too deeply, or none that fit."""
        if len(path) > MAX_DEPTH or self._said("a", path) is not None:
            return True
        if asked.kind is Kind.VARIANT:
            forms = (asked.variant(number) for number in range(len(asked.variants)))
            if any(form.kind is not Kind.OBJECT for form in forms):
                return True
        # What was typed into fields is not lost because others have become more.
        return self._left < (-MAX_PLACES if pointer(path) in self._shown else 0)

    def _said(self, what: str, path: Path) -> str | None:
        said = (self._given or {}).get(f"{what}:{pointer(path)}")
        return said[0] if said else None

    def _object(self, asked: Question, path: Path) -> Draft:
        used = not _omissible(asked, path) or self._said("u", path) is not None
        inner: tuple[Draft, ...] = ()
        if used:
            keys = zip(asked.schema["properties"], asked.fields(), strict=True)
            inner = tuple(self.draft(field, (*path, key)) for key, field in keys)
        return Draft(asked, path, used=used, inner=inner)

    def _variant(self, asked: Question, path: Path) -> Draft:
        text = _UNSET if self._undecided else self._said("v", path) or _UNSET
        number = _counted(text)
        if not 0 <= number < len(asked.variants):
            return Draft(asked, path)
        before = self._undecided
        # A field of another form may have the same name: what was typed into it is kept, what was decided is not.
        self._undecided = before or self._said("w", path) != text
        # Required, because it was chosen.
        inner = self._object(replace(asked.variant(number), required=True, nullable=False), path)
        self._undecided = before
        return Draft(asked, path, text, inner=(inner,))

    def _list(self, asked: Question, path: Path) -> Draft:
        item = asked.item()
        if item is None:
            return self._field(replace(asked, kind=Kind.JSON), path)
        said = self._said("c", path)
        if said is None:
            values = asked.default if isinstance(asked.default, list) else []
            simple = all(_fits(item, value) for value in values)
            if not simple or len(values) > MAX_ITEMS:
                # Something that no field can show beforehand.
                return self._field(replace(asked, kind=Kind.JSON), path)
            inner = [_holding(self.draft(item, (*path, number)), value) for number, value in enumerate(values)]
            return Draft(asked, path, inner=tuple(inner))
        count = min(max(_counted(said), 0), MAX_ITEMS)
        drafts = [self.draft(item, (*path, number)) for number in range(count)]
        kept = [draft for draft in drafts if pointer(draft.path) != self._removes]
        if self._adds == pointer(path) and count < MAX_ITEMS:
            kept.append(_Maker().draft(item, (*path, count)))
        return Draft(asked, path, inner=tuple(_moved(draft, path, number) for number, draft in enumerate(kept)))

    def _choices(self, asked: Question, path: Path) -> Draft:
        if self._undecided or self._said("c", path) is None:
            default = asked.default if isinstance(asked.default, list) else []
            return Draft(asked, path, chosen=frozenset(n for n, each in enumerate(asked.choices) if each in default))
        said = (self._given or {}).get(f"a:{pointer(path)}", [])
        return Draft(asked, path, chosen=frozenset(map(_counted, said)) - {-1})

    def _field(self, asked: Question, path: Path) -> Draft:
        decides = asked.kind in {Kind.BOOLEAN, Kind.CHOICE}
        shows = asked.default not in (ABSENT, None) and not decides
        default = _written(asked, asked.default) if shows else ""
        said = _UNSET if decides and self._undecided else self._said("a", path)
        draft = Draft(asked, path, default if said is None else said, clear=default != "")
        return draft if not decides or _choosable(draft) else replace(draft, text=_UNSET)


def _choosable(draft: Draft) -> bool:
    """Whether what was chosen is there to be chosen."""
    if draft.asked.kind is Kind.BOOLEAN:
        there = draft.text in {"true", "false"}
    else:
        there = draft.text in map(str, range(len(draft.asked.choices)))
    return there or any(draft.text == other.value for other in _others(draft))


def _fits(asked: Question, value: Any) -> bool:
    """Whether a field can show `value`; one that shows the empty text would be taken for left blank."""
    simple = {Kind.TEXT: str, Kind.INTEGER: int, Kind.NUMBER: (int, float)}
    fits = asked.kind in simple and isinstance(value, simple[asked.kind])  # type: ignore[arg-type]
    return fits and value != "" and not isinstance(value, bool)


def _holding(draft: Draft, value: Any) -> Draft:
    return replace(draft, text=_written(draft.asked, value))


def _written(asked: Question, value: Any) -> str:
    if isinstance(value, str) and asked.kind is not Kind.JSON:
        return value
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)


def _moved(draft: Draft, path: Path, number: int) -> Draft:
    """The item, and all that is in it, at another position of its list."""
    step = len(path)

    def at(inner: Draft) -> Draft:
        moved = (*path, number, *inner.path[step + 1 :])
        return replace(inner, path=moved, inner=tuple(at(each) for each in inner.inner))

    return at(draft)


# Showing them


@dataclass(frozen=True)
class Option:
    """One thing that can be chosen."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class Node:
    """
    One place as it is shown; `kind` is the macro's.

    `name` is the input's, `place` what `add:` and `remove:` are said of.
    """

    kind: str
    name: str
    place: str
    label: str
    hint: str = ""
    description: str = ""
    needed: str = ""
    text: str = ""
    input_type: str = "text"
    input_mode: str = "text"
    options: tuple[Option, ...] = ()
    used: bool = True
    optional: bool = False
    inner: tuple["Node", ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The input's id."""
        return f"at{self.place}"

    @property
    def described_by(self) -> str:
        """The ids of what describes the input."""
        parts = [("hint", self.hint or self.description), ("fault", self.faults)]
        # Ahead of the place, for a key may end in anything.
        return " ".join(f"{name}{self.place}" for name, there in parts if there)


@dataclass(frozen=True)
class Form:
    """A form as it is shown; `general` are the faults that belong to no field."""

    root: Node
    general: tuple[str, ...]


def view(draft: Draft, faults: Sequence[Fault] = ()) -> Form:
    """The form as it is shown, with each fault at its field, or at the closest one around it."""
    places = {json_path(each.path) for each in _all(draft)}
    at: dict[str, list[str]] = {}
    general = []
    for fault in faults:
        place, rest = fault.path, ""
        while place not in places and place != "$":
            cut = max(place.rfind("."), place.rfind("["))
            place, rest = (place[:cut], place[cut:] + rest) if cut > 0 else ("$", fault.path)
        if place == "$" and draft.asked.kind in {Kind.OBJECT, Kind.VARIANT, Kind.LIST}:
            general.append(f"{fault.path.removeprefix('$').lstrip('.')} {fault.message}".strip())
        else:
            at.setdefault(place, []).append(f"{rest.lstrip('.')}: {fault.message}" if rest else fault.message)
    return Form(_node(draft, at), tuple(general))


def _all(draft: Draft) -> Iterator[Draft]:
    yield draft
    for inner in draft.inner:
        yield from _all(inner)


def _node(draft: Draft, faults: dict[str, list[str]]) -> Node:
    asked = draft.asked
    here = pointer(draft.path)
    kind, extra = _looks(draft)
    return Node(
        kind=kind,
        name=f"{'v' if asked.kind is Kind.VARIANT else 'a'}:{here}",
        place=here,
        label=_label(draft),
        hint=_hint(asked),
        description=asked.description[:2000],
        needed="" if _foregone(asked) or not draft.path else "needed" if asked.required else "optional",
        used=draft.used,
        optional=_omissible(asked, draft.path),
        inner=tuple(_node(inner, faults) for inner in draft.inner),
        faults=tuple(faults.get(json_path(draft.path), ())),
        **{"text": draft.text, **extra},
    )


def _looks(draft: Draft) -> tuple[str, dict[str, Any]]:
    asked = draft.asked
    match asked.kind:
        case Kind.OBJECT | Kind.LIST:
            return asked.kind.name.lower(), {}
        case Kind.VARIANT:
            names = [variant_name(each, number) for number, each in enumerate(asked.variants, 1)]
            return "variant", {"options": _options(draft, names)}
        case Kind.CHOICES | Kind.CHOICE:
            return _choosing(draft, [_word(choice) for choice in asked.choices])
        case Kind.BOOLEAN:
            pair = [Option("true", "Yes", draft.text == "true"), Option("false", "No", draft.text == "false")]
            return "radios", {"options": (*pair, *_others(draft))}
        case Kind.INTEGER | Kind.NUMBER:
            return "line", {"input_mode": "numeric" if asked.kind is Kind.INTEGER else "decimal"}
        case Kind.JSON:
            return "area", {}
        case _:
            return _text_field(draft)


def _choosing(draft: Draft, names: Sequence[str]) -> tuple[str, dict[str, Any]]:
    if draft.asked.kind is Kind.CHOICES:
        several = (Option(str(number), name, number in draft.chosen) for number, name in enumerate(names))
        return "checks", {"options": tuple(several)}
    if _foregone(draft.asked):
        return "fixed", {"text": names[0]}
    one = _options(draft, names)
    return ("radios" if len(one) <= MAX_RADIOS else "select"), {"options": one}


def _text_field(draft: Draft) -> tuple[str, dict[str, Any]]:
    asked, text = draft.asked, draft.text
    wanted = asked.schema.get("format")
    if "\n" in text or "\r" in text:
        return "area", {}
    if wanted == "date" and (not text or _is_date(text)):
        return "line", {"input_type": "date"}
    if wanted in {"email", "uri"}:
        return "line", {"input_mode": "email" if wanted == "email" else "url"}
    long = asked.schema.get("maxLength", 0) > 200 or _WORDY.search(asked.name.rpartition(".")[2])
    return ("area" if long else "line"), {}


def _is_date(text: str) -> bool:
    """Whether a browser shows it as a date; anything else, it would leave out."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _options(draft: Draft, names: Sequence[str]) -> tuple[Option, ...]:
    named = [Option(str(number), name, draft.text == str(number)) for number, name in enumerate(names)]
    return (*named, *_others(draft))


def _others(draft: Draft) -> list[Option]:
    """Beside the choices: null, and to say nothing, where that is possible."""
    asked = draft.asked
    others = []
    if asked.nullable and asked.kind is not Kind.VARIANT and (asked.required or asked.default not in (ABSENT, None)):
        others.append(Option(_NULL, "None", draft.text == _NULL))
    if asked.kind is Kind.VARIANT and asked.required and asked.nullable and asked.default is ABSENT:
        others.append(Option(_UNSET, "None", draft.text == _UNSET))
    elif not asked.required or asked.default is not ABSENT:
        said = "Not said" if asked.default in (ABSENT, None) else f"Not said: {_word(asked.default)}"
        others.append(Option(_UNSET, said, draft.text == _UNSET))
    return others


def _label(draft: Draft) -> str:
    if not draft.path:
        title = draft.asked.schema.get("title")
        return title if isinstance(title, str) and title and draft.asked.kind is not Kind.OBJECT else "Answer"
    key = draft.path[-1]
    if isinstance(key, int):
        return str(key + 1)
    words = key.replace("_", " ").strip()
    return words[:1].upper() + words[1:] if words else json.dumps(key)


def _hint(asked: Question) -> str:
    kinds = {Kind.INTEGER: "whole number", Kind.NUMBER: "number", Kind.JSON: "JSON"}
    kind = "text or JSON" if asked.takes_text else kinds.get(asked.kind, "")
    return ", ".join(part for part in (kind, asked.bounds(), _emptied(asked)) if part)


def _emptied(asked: Question) -> str:
    """What it means that a field is empty, where that is not plain to see."""
    if asked.kind in {Kind.BOOLEAN, Kind.CHOICE, Kind.VARIANT}:
        return ""
    listed = asked.kind in {Kind.LIST, Kind.CHOICES}
    if asked.default in (ABSENT, None):
        return "empty: none" if asked.nullable and asked.required and asked.default is ABSENT and not listed else ""
    if asked.kind is Kind.OBJECT:
        return "" if asked.required else f"left empty: {_word(asked.default)}"
    if asked.nullable:
        return "empty: none" if asked.default not in ("", []) and not (listed and asked.required) else ""
    return f"left empty: {_word(asked.default)}" if asked.kind in {Kind.INTEGER, Kind.NUMBER} else ""


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
