"""
`--set`: an answer put together from `key=value`, by the schema that asks for it.

    k=v       v is text where the field takes text, JSON where it does not and v parses; text otherwise
    k=        empty text where the field takes text, null where it takes null and no text
    k:=JSON   v is JSON whatever the field takes (`level:=null`, `tags:=["a"]`)
    k+=v      v is appended to a list
    a.b=v     a field of an object (a field whose own name has a dot is found first)

A field that the schema does not name is refused here: as an optional extra it
would be taken and ignored, and a misspelt one would not be noticed.
"""

from dataclasses import dataclass
from typing import Any, Literal

from gatewright.protocol.question import Kind, Question, question

from .exits import Stop, usage
from .jsonarg import parse_json


@dataclass(frozen=True)
class Setting:
    """One `--set`, taken apart."""

    key: str
    sign: Literal["=", ":=", "+="]
    text: str

    @classmethod
    def parse(cls, given: str) -> "Setting":
        """Read `key=value`; `Stop` (usage) for anything else."""
        key, equals, text = given.partition("=")
        sign: Literal["=", ":=", "+="] = "="
        if key.endswith(":"):
            key, sign = key[:-1], ":="
        elif key.endswith("+"):
            key, sign = key[:-1], "+="
        if not equals or not key.strip():
            raise usage(f"--set {given!r}: write key=value (or key:=JSON, key+=value)")
        return cls(key.strip(), sign, text)


def assemble(schema: dict[str, Any] | None, given: list[str]) -> dict[str, Any]:
    """
    The object that these settings make by `schema` (None: any JSON).

    Raises `Stop` (usage) that names the setting and what to write instead.
    """
    top = question(schema or {}, schema or {})
    makes_object = top.kind in {Kind.OBJECT, Kind.VARIANT} or (
        top.kind is Kind.JSON and top.schema.get("type") in {None, "object"}
    )
    if not makes_object:
        raise usage(f"--set makes an object, and this gate asks for {top.words()}: answer with --json")
    value: dict[str, Any] = {}
    for one in given:
        _put(value, Setting.parse(one), top)
    return value


def _put(value: dict[str, Any], setting: Setting, top: Question) -> None:
    path = _path(setting, top)
    here = value
    for key, _ in path[:-1]:
        here = here.setdefault(key, {})
        if not isinstance(here, dict):
            raise usage(f"--set {setting.key}: {key} is set to something that is no object")
    key, field = path[-1]
    if setting.sign == "+=":
        held = here.setdefault(key, [])
        if not isinstance(held, list):
            raise usage(f"--set {setting.key}+=: {key} is set to something that is no list")
        held.append(_value(setting, field.item() if field is not None and field.kind is Kind.LIST else _item(field)))
        return
    if key in here:
        raise usage(f"--set {setting.key}: it is set twice; {setting.key}+=... appends to a list")
    here[key] = _value(setting, field)


def _item(field: Question | None) -> Question | None:
    return field.item() if field is not None and field.kind is Kind.CHOICES else None


def _path(setting: Setting, top: Question) -> list[tuple[str, Question | None]]:
    """The keys that lead to the field, each with its question where the schema names it."""
    path: list[tuple[str, Question | None]] = []
    rest, here = setting.key, top
    asked: Question | None = top
    while True:
        known = _known(asked)
        if known is not None and rest in known:
            return [*path, (rest, known[rest])]
        key, dot, after = rest.partition(".")
        if known is not None and key not in known and not _open(asked):
            where = f" of {here.name}" if here.name else ""
            raise usage(f"--set {setting.key}: there is no field {key!r}{where}; there are: {', '.join(known)}")
        asked = known.get(key) if known is not None else None
        path.append((key, asked))
        if not dot:
            return path
        if not after:
            raise usage(f"--set {setting.key}: a key does not end with a dot")
        rest, here = after, asked or here


def _known(asked: Question | None) -> dict[str, Question] | None:
    """The fields that a question has by name, or None where its schema names none."""
    if asked is None:
        return None
    forms = [asked.variant(number) for number in range(len(asked.variants))] if asked.kind is Kind.VARIANT else [asked]
    named: dict[str, Question] = {}
    for form in forms:
        if form.kind is Kind.OBJECT:
            for key, field in zip(form.schema["properties"], form.fields(), strict=True):
                named.setdefault(key, field)
    return named or None


def _open(asked: Question | None) -> bool:
    """Whether the schema says itself that other fields may be given."""
    if asked is None or asked.kind is Kind.VARIANT:
        return asked is None
    return bool(asked.schema.get("additionalProperties")) or "patternProperties" in asked.schema


def _value(setting: Setting, field: Question | None) -> Any:
    where = f"--set {setting.key}"
    if setting.sign == ":=":
        return parse_json(setting.text, where)
    if field is not None and _is_text(field, setting.text):
        return setting.text
    if not setting.text and field is not None and field.nullable and not field.takes_text:
        return None
    try:
        return parse_json(setting.text, where)
    except Stop:
        return setting.text


def _is_text(field: Question, text: str) -> bool:
    if field.kind is Kind.CHOICE:
        return text in field.choices
    return field.kind is Kind.TEXT
