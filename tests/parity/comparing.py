"""
Where two transcripts differ, and whether that is meant.

The intended differences stand in `differences.py`, and nowhere else. One that
is found and not listed fails, and so does one that is listed and not found.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, cast

from .differences import DIFFERENCES, Difference, Says
from .normal import Id, normalised

ABSENT = "absent"
"""What is written for a side that has nothing at a place."""


@dataclass(frozen=True)
class Found:
    """One place where the two sides differ, with what each says there as JSON text."""

    place: str
    adk: str
    gatewright: str

    def __str__(self) -> str:
        return f"{self.place}\n    ADK         {self.adk}\n    Gatewright  {self.gatewright}"


def alone(script: str) -> list[str]:
    """The messages of a script that change nothing with Gatewright."""
    says = [each for difference in DIFFERENCES for each in difference.says if each.alone]
    return [place.removeprefix("turns.") for each in says for place in each.places(script)]


def compared(script: str, adk: Any, gatewright: Any, meant: Sequence[Difference] = DIFFERENCES) -> list[str]:
    """What is wrong with how the two sides compare: differences that are not listed, and listed ones that are not there."""
    rules = [
        (difference.title, place, says)
        for difference in meant
        for says in difference.says
        for place in says.places(script)
    ]
    wholes = [place for _, place, says in rules if says.whole or says.alone]
    missing = {(title, place, says.adk, says.gatewright) for title, place, says in rules}
    wrong = []
    theirs, ours = normalised(adk), normalised(gatewright)
    for found in [*differences(theirs, ours, wholes), *_unlike(theirs, ours, rules)]:
        listed = {
            (title, place, says.adk, says.gatewright)
            for title, place, says in rules
            if _place(place).fullmatch(found.place)
            and _glob(says.adk).fullmatch(found.adk)
            and _glob(says.gatewright).fullmatch(found.gatewright)
        }
        if not listed:
            wrong.append(f"not listed: {found}")
        missing -= listed
    for title, place, adks, ours in sorted(missing):
        wrong.append(f"listed as {title!r}, and not there: {Found(place, adks, ours)}")
    return wrong


def _unlike(adk: Any, gatewright: Any, rules: list[tuple[str, str, Says]]) -> Iterator[Found]:
    """Where a step of a recording differs from the one that it is said to be like."""
    for _, pattern, says in rules:
        for step in filter(_place(pattern).fullmatch, gatewright if says.like else ()):
            yield from _Walk([]).differences(step, adk[says.like], gatewright[step])


def differences(adk: Any, gatewright: Any, wholes: Iterable[str] = ()) -> list[Found]:
    """Where two normalised transcripts differ; the places of `wholes` are not looked into."""
    return list(_Walk([_place(place) for place in wholes]).differences("", adk, gatewright))


class _Walk:
    """One walk through two transcripts, which remembers which drawn id stands for which."""

    def __init__(self, wholes: list[re.Pattern[str]]) -> None:
        self._wholes = wholes
        self._partner: dict[tuple[str, Id], Id] = {}

    def differences(self, place: str, adk: Any, ours: Any) -> Iterator[Found]:
        if any(whole.fullmatch(place) for whole in self._wholes):
            if next(_Walk([]).differences(place, adk, ours), None):
                yield Found(place, _text(adk), _text(ours))
            return
        match adk, ours:
            case dict(), dict():
                yield from self._of_objects(place, adk, ours)
            case list(), list():
                yield from self._of_lists(place, adk, ours)
            case Id(), Id():
                if not self._partners(adk, ours):
                    yield Found(place, f"{adk} of another place", f"{ours} of another place")
            case _:
                if type(adk) is not type(ours) or adk != ours:
                    yield Found(place, _text(adk), _text(ours))

    def _partners(self, adk: Id, ours: Id) -> bool:
        return (
            adk.kind == ours.kind
            and self._partner.setdefault(("adk", adk), ours) == ours
            and self._partner.setdefault(("ours", ours), adk) == adk
        )

    def _of_objects(self, place: str, adk: dict[str, Any], ours: dict[str, Any]) -> Iterator[Found]:
        for name in dict.fromkeys([*adk, *ours]):
            below = f"{place}.{name}".removeprefix(".")
            if name not in adk:
                yield Found(below, ABSENT, _text(ours[name]))
            elif name not in ours:
                yield Found(below, _text(adk[name]), ABSENT)
            else:
                yield from self.differences(below, adk[name], ours[name])
        if "author" in adk and list(filter(ours.__contains__, adk)) != list(filter(adk.__contains__, ours)):
            yield Found(f"{place}.order of keys", _text(list(adk)), _text(list(ours)))

    def _of_lists(self, place: str, adk: list[Any], ours: list[Any]) -> Iterator[Found]:
        for a, b in _aligned(list(enumerate(adk)), list(enumerate(ours)), [_place_of, _words_of]):
            if b is None:
                yield Found(f"{place}.{a}", _text(adk[cast("int", a)]), ABSENT)
            elif a is None:
                yield Found(f"{place}.+{b}", ABSENT, _text(ours[b]))
            else:
                yield from self.differences(f"{place}.{a}", adk[a], ours[b])


Numbered = list[tuple[int, Any]]


def _aligned(
    adk: Numbered, ours: Numbered, likenesses: list[Callable[[Any], str]]
) -> Iterator[tuple[int | None, int | None]]:
    """Which item stands for which, by number: those that are alike in the first way, else in the next, else in turn."""
    if not likenesses or len(adk) == len(ours) == 1:
        yield from zip_longest((number for number, _ in adk), (number for number, _ in ours))
        return
    like, *others = likenesses
    matcher = SequenceMatcher(None, [like(item) for _, item in adk], [like(item) for _, item in ours], autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        yield from _aligned(adk[a0:a1], ours[b0:b1], [] if tag == "equal" else others)


def _place_of(item: Any) -> str:
    """Where an event comes from and of what kind it is; anything else is like its equals."""
    if not isinstance(item, dict):
        return _text(item)
    if "author" not in item:
        return "object"
    kinds = [kind for part in item.get("content", {}).get("parts", ()) if isinstance(part, dict) for kind in part]
    beside = [name for name in ("output", "errorCode") if name in item]
    path = item.get("nodeInfo", {}).get("path")
    return " ".join(map(str, [item["author"], path, *kinds, *beside]))


def _words_of(item: Any) -> str:
    """What an event says."""
    return _text([item.get("content"), item.get("output")] if isinstance(item, dict) else item)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _place(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(r"[^.]*".join(map(re.escape, part.split("*"))) for part in pattern.split("**")))
