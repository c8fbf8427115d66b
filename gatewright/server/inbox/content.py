"""
What a gate shows, made readable: its message as markdown, its payload as tables and text, and what changed in it.

All of it comes from a pipeline and may come from anywhere, so nothing of it is
taken as HTML, and everything has a bound: what is larger is shown as JSON.
"""

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from gatewright.protocol.canonical import json_path

MAX_MARKDOWN = 64 * 1024
"""The longest message that is read as markdown, in characters; a longer one is shown as it is."""

MAX_CELLS = 5_000
"""How many values a table view shows."""

MAX_DEPTH = 6
MAX_COLUMNS = 16
MAX_CHANGES = 200
"""How many differences to the previous round are listed."""

MAX_TEXT_LINES = 400
LONG_TEXT = 280


# Raw HTML stays text, javascript: and data: links stay text, and no picture is fetched from anywhere.
_MARKDOWN = MarkdownIt("js-default", {"html": False, "linkify": False}).disable("image")


@lru_cache(maxsize=512)
def markdown(text: str) -> Markup:
    """A message as HTML. Its headings begin at the third level, below the page's own; links open elsewhere."""
    if len(text) > MAX_MARKDOWN:
        return Markup("<pre>{}</pre>").format(text)
    tokens = _MARKDOWN.parse(text)
    for token in _all(tokens):
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"
        if token.type == "link_open":
            token.attrSet("rel", "noopener noreferrer nofollow")
            token.attrSet("target", "_blank")
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704 - rendered without raw HTML


def _all(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or ())


@lru_cache(maxsize=2048)
def headline(text: str, limit: int = 160) -> str:
    """The first line of a message without its marks, for a list."""
    tokens = _MARKDOWN.parse(text[:2000])
    first = next((token for token in tokens if token.type == "inline" and token.content.strip()), None)
    words = "".join(each.content or " " for each in _all([first]) if each.type != "inline") if first else ""
    plain = " ".join((words or text).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def pretty(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


# Tables


@dataclass(frozen=True)
class Shown:
    """
    A value as it is laid out.

    `fields`: an object, name by name. `table`: objects with the same fields, a
    row each. `items`: a list. `text`: what has lines. `word`: everything else.
    """

    kind: Literal["fields", "table", "items", "text", "word"]
    text: str = ""
    heads: tuple[str, ...] = ()
    rows: tuple[tuple["Shown", ...], ...] = ()
    missing: int = 0
    """How many rows are not shown."""


def laid_out(value: Any) -> Shown:
    """A payload as fields and tables, shortened after `MAX_CELLS` values."""
    return _Layout().shown(value, 0)


class _Layout:
    def __init__(self) -> None:
        self._left = MAX_CELLS

    def shown(self, value: Any, depth: int) -> Shown:
        self._left -= 1
        if isinstance(value, dict | list) and value:
            if depth >= MAX_DEPTH or self._left <= 0:
                return Shown("text", _cut(pretty(value)))
            if isinstance(value, dict):
                return self._fields(value, depth)
            return self._table(value, depth) if _uniform(value) else self._items(value, depth)
        if isinstance(value, str):
            return Shown("text" if "\n" in value or len(value) > LONG_TEXT else "word", value)
        words = {None: "none", True: "yes", False: "no"} if value is None or isinstance(value, bool) else {}
        return Shown("word", words[value] if words else json.dumps(value, ensure_ascii=False))

    def _fields(self, value: dict[str, Any], depth: int) -> Shown:
        heads, rows = [], []
        for name, inner in value.items():
            if self._left <= 0:
                break
            heads.append(name)
            rows.append((self.shown(inner, depth + 1),))
        return Shown("fields", heads=tuple(heads), rows=tuple(rows), missing=len(value) - len(rows))

    def _table(self, value: list[dict[str, Any]], depth: int) -> Shown:
        heads = tuple(dict.fromkeys(name for each in value for name in each))
        rows = []
        for each in value:
            if self._left <= 0:
                break
            rows.append(tuple(self.shown(each[name], depth + 2) if name in each else Shown("word") for name in heads))
        return Shown("table", heads=heads, rows=tuple(rows), missing=len(value) - len(rows))

    def _items(self, value: list[Any], depth: int) -> Shown:
        rows = []
        for each in value:
            if self._left <= 0:
                break
            rows.append((self.shown(each, depth + 1),))
        return Shown("items", rows=tuple(rows), missing=len(value) - len(rows))


def _uniform(values: list[Any]) -> bool:
    """Whether these are objects whose fields are mostly the same."""
    if not all(isinstance(each, dict) and each for each in values):
        return False
    names = {name for each in values for name in each}
    return len(names) <= MAX_COLUMNS and sum(len(each) for each in values) * 2 > len(names) * len(values)


def _cut(text: str, limit: int = 20_000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit} more characters: see the JSON"


def as_text(value: Any) -> str:
    """A payload as indented lines, without marks."""
    return "\n".join(_lines(value, ""))


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _entry(f"{indent}{name}:", inner, indent)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _entry(f"{indent}-", inner, indent)
    else:
        yield from (f"{indent}{line}" for line in _plain(value).split("\n"))


def _entry(label: str, inner: Any, indent: str) -> Iterator[str]:
    if (isinstance(inner, dict | list) and inner) or (isinstance(inner, str) and "\n" in inner):
        yield label
        yield from _lines(inner, indent + "  ")
    else:
        yield f"{label} {_plain(inner)}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# Differences


@dataclass(frozen=True)
class Difference:
    """One place that changed; `lines` tell how, where it is a longer text, marked by `+`, `-` or a space."""

    path: str
    before: str | None = None
    after: str | None = None
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Differences:
    """What changed since the previous round; `more` that there is more than is listed."""

    listed: tuple[Difference, ...]
    more: bool = False


def differences(before: Any, after: Any) -> Differences:
    """What changed between two payloads, place by place."""
    found: list[Difference] = []
    for difference in _differences(before, after, ()):
        if len(found) == MAX_CHANGES:
            return Differences(tuple(found), more=True)
        found.append(difference)
    return Differences(tuple(found))


def _differences(before: Any, after: Any, at: tuple[str | int, ...]) -> Iterator[Difference]:
    if type(before) is type(after) and before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _place(before, after, name, (*at, name), name in before, name in after)
    elif isinstance(before, list) and isinstance(after, list):
        for number in range(max(len(before), len(after))):
            yield from _place(before, after, number, (*at, number), number < len(before), number < len(after))
    elif isinstance(before, str) and isinstance(after, str) and ("\n" in before or "\n" in after):
        yield Difference(json_path(at), lines=_changed_lines(before, after))
    else:
        yield Difference(json_path(at), _word(before), _word(after))


def _place(
    before: Any, after: Any, key: Any, at: tuple[str | int, ...], was: bool, is_now: bool
) -> Iterator[Difference]:
    if was and is_now:
        yield from _differences(before[key], after[key], at)
    else:
        yield Difference(json_path(at), _word(before[key]) if was else None, _word(after[key]) if is_now else None)


def _changed_lines(before: str, after: str) -> tuple[tuple[str, str], ...]:
    old, new = before.split("\n"), after.split("\n")
    if len(old) + len(new) > 2 * MAX_TEXT_LINES:
        # Comparing takes the product of the two.
        return (("-", f"{len(old)} lines"), ("+", f"{len(new)} lines: see the text"))
    marked = difflib.unified_diff(old, new, lineterm="", n=2)
    return tuple((line[0], line[1:]) for line in marked if not line.startswith(("---", "+++", "@@")))


def _word(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 500 else f"{text[:499]}…"
