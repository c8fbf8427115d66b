"""The form of an answer: what a browser sends back is what was typed, and what was typed is never lost."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, StrEnum
from html.parser import HTMLParser
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel, Field

from gatewright.protocol.canonical import json_path
from gatewright.protocol.decoding import Decoded, Undecodable, decode
from gatewright.protocol.faults import Fault
from gatewright.protocol.question import ABSENT, Kind, Question, question
from gatewright.protocol.schema import render_schema
from gatewright.server.inbox.form import MAX_ITEMS, Draft, blank, parse, pointer, unreadable, value_of, view
from tests.protocol.models import Cat, Dog

# A browser


@dataclass
class Control:
    """A thing on the page that has a value or can be pressed."""

    tag: str
    attributes: dict[str, str]
    kind: str
    text: str = ""
    options: list[tuple[str, str, bool]] = field(default_factory=list)
    label: str | None = None

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    @property
    def checked(self) -> bool:
        return "checked" in self.attributes


class Page(HTMLParser):
    """What a browser makes of a form's HTML: its controls, and the pairs that it would submit."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.controls: list[Control] = []
        self.ids: list[str] = []
        self.skeleton: list[tuple[str, tuple[str, ...]]] = []
        self._labels_for: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._open: list[tuple[str, dict[str, str]]] = []
        self._wrapped: Control | None = None
        self._label = ""
        self.feed(html)
        self.close()
        for control in self.controls:
            control.label = control.label or self._labels_for.get(control.attributes.get("id", ""))
            if control.tag == "textarea":
                control.text = control.text.removeprefix("\n")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), "an attribute is there twice"
        attributes = {name: value or "" for name, value in attrs}
        self.skeleton.append((tag, tuple(sorted(attributes))))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag in {"input", "textarea", "select", "button"}:
            kind = attributes.get("type", "text") if tag == "input" else tag
            control = Control(tag, attributes, kind, attributes.get("value", ""))
            self.controls.append(control)
            if any(each == "label" for each, _ in self._open):
                self._wrapped = control
        if tag == "option":
            self.controls[-1].options.append((attributes["value"], "", "selected" in attributes))
        if tag != "input":
            self._open.append((tag, attributes))
        if tag == "label":
            self._label, self._wrapped = "", None

    def handle_data(self, data: str) -> None:
        tag = self._open[-1][0] if self._open else ""
        if tag == "textarea":
            self.controls[-1].text += data
        if tag == "option":
            value, label, chosen = self.controls[-1].options[-1]
            self.controls[-1].options[-1] = (value, label + data, chosen)
        if tag == "button":
            self.controls[-1].label = (self.controls[-1].label or "") + data
        if any(each == "label" for each, _ in self._open):
            self._label += data
        for _, attributes in self._open:
            if "id" in attributes:
                self._texts[attributes["id"]] = self._texts.get(attributes["id"], "") + data

    def handle_endtag(self, tag: str) -> None:
        open_, attributes = self._open.pop()
        assert open_ == tag, "the HTML is not well nested"
        if tag == "label" and self._wrapped is not None:
            self._wrapped.label = self._label.strip()
        elif tag == "label":
            self._labels_for[attributes["for"]] = self._label.strip()

    def text(self, id_: str) -> str:
        """What an element says."""
        return self._texts[id_].strip()

    def of(self, name: str) -> list[Control]:
        """The controls of that name."""
        return [each for each in self.controls if each.name == name and each.tag != "button"]

    def buttons(self) -> dict[str, str]:
        """What each button does, and what it says."""
        return {each.attributes["value"]: each.label or "" for each in self.controls if each.tag == "button"}

    def pairs(self) -> list[tuple[str, str]]:
        """What a browser submits of the fields, in their order."""
        return [(each.name, value) for each in self.controls for value in _sent(each)]

    def check(self) -> None:
        """What holds for every page: it can be used with a screen reader, and no two places share a name."""
        assert not self._open
        ids = set(self.ids)
        assert len(self.ids) == len(ids), "an id is there twice"
        for control in self.controls:
            assert control.kind == "hidden" or control.label, f"{control} has no label"
            for id_ in control.attributes.get("aria-describedby", "").split():
                assert id_ in ids, f"{id_} is not there"
        fields = [each for each in self.controls if each.tag != "button"]
        named: dict[str, list[int]] = {}
        for place, each in enumerate(fields):
            named.setdefault(each.name, []).append(place)
        for name, places in named.items():
            alike = [fields[place] for place in places]
            assert len(alike) == 1 or {each.kind for each in alike} in ({"radio"}, {"checkbox"}), f"{name} is shared"
            assert places == list(range(places[0], places[0] + len(places))), f"{name} is shared"
            assert len(alike) == len({each.text for each in alike}) or alike[0].kind not in {"radio", "checkbox"}


def _sent(control: Control) -> list[str]:
    if control.kind == "button":
        return []
    if control.kind in {"radio", "checkbox"}:
        return [control.text] if control.checked else []
    if control.kind == "select":
        chosen = [value for value, _, selected in control.options if selected]
        return chosen[-1:] or [control.options[0][0]]
    if control.kind == "textarea":
        return [control.text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")]
    if control.kind == "hidden":
        return [control.text]
    text = control.text.replace("\r", "").replace("\n", "")
    if control.kind == "date" and text:
        try:
            return [text if date.fromisoformat(text).isoformat() == text else ""]
        except ValueError:
            return [""]
    return [text]


ENVIRONMENT = Environment(
    loader=PackageLoader("gatewright.server.inbox"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
MACROS = '{% import "_form.html" as forms %}{{ forms.general(form) }}{{ forms.field(form.root) }}'


def shown(draft: Draft, faults: Sequence[Fault] = ()) -> Page:
    """The page of a form, checked for what holds on every one."""
    page = Page(ENVIRONMENT.from_string(MACROS).render(form=view(draft, faults)))
    page.check()
    return page


class Visit:
    """Somebody at the form of one answer: `answer` is a type or a JSON Schema, places are as in the names of fields."""

    def __init__(self, answer: Any) -> None:
        self.schema = render_schema(answer)
        self.asked = question(self.schema or {}, self.schema or {})
        self.draft = blank(self.asked)
        self.page = shown(self.draft)

    def type(self, place: str, text: str) -> "Visit":
        (control,) = self.page.of(f"a:{place}")
        assert control.kind in {"text", "date", "textarea"}
        control.text = text
        return self

    def text(self, place: str) -> str:
        (control,) = self.page.of(f"a:{place}")
        return _sent(control)[0].replace("\r\n", "\n")

    def choose(self, place: str, label: str, *, what: str = "a") -> "Visit":
        """Choose by what is said beside it: of radios and options one, of checkboxes one more."""
        found = self.page.of(f"{what}:{place}")
        if found[0].kind == "select":
            assert label in [said for _, said, _ in found[0].options]
            found[0].options = [(value, said, said == label) for value, said, _ in found[0].options]
            return self
        (chosen,) = [each for each in found if each.label == label]
        for each in found if chosen.kind == "radio" else ():
            each.attributes.pop("checked", None)
        chosen.attributes["checked"] = ""
        return self

    def untick(self, place: str, label: str, *, what: str = "a") -> "Visit":
        (chosen,) = [each for each in self.page.of(f"{what}:{place}") if each.label == label]
        del chosen.attributes["checked"]
        return self

    def fill_in(self, place: str) -> "Visit":
        """Tick that something optional is given, and ask for its fields."""
        return self.choose(place, "Fill it in", what="u").press("show")

    def press(self, do: str) -> "Visit":
        """Press a button that changes the form."""
        assert do in self.page.buttons()
        self.draft = parse(self.asked, [*self.page.pairs(), ("do", do)])
        self.page = shown(self.draft)
        return self

    def send(self) -> Any:
        """The value of what stands on the page."""
        self.draft = parse(self.asked, self.page.pairs())
        value = value_of(self.draft)
        # What is sent back is the same page again, whatever it is.
        again = parse(self.asked, shown(self.draft).pairs())
        assert value == value_of(again) or value is value_of(again)
        return value

    def taken(self) -> Any:
        """The value that the run makes of what stands on the page."""
        decoded = decode(self.send(), self.schema)
        assert isinstance(decoded, Decoded), decoded
        return decoded.value

    def faults(self) -> tuple[Fault, ...]:
        """What the run says about it, shown on the page."""
        decoded = decode(self.send(), self.schema)
        assert isinstance(decoded, Undecodable)
        self.page = shown(self.draft, decoded.faults)
        return decoded.faults


def short(words: str) -> str:
    """The name of a case that may be very long."""
    return ascii(words[:20])


# A model with every kind


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


Country = Enum("Country", {name: name for name in ("at", "be", "ch", "de", "ee", "fr", "gb", "hu", "it")})  # type: ignore[misc]


class Address(BaseModel):
    street: str
    zip: str = "0000"
    floors: list[int] = []


class Branch(BaseModel):
    name: str
    children: list["Branch"] = []
    left: "Branch | None" = None


Pet = Annotated[Cat | Dog, Field(discriminator="pet")]
Email = Annotated[str, Field(json_schema_extra={"format": "email"})]


class Everything(BaseModel):
    agreed: bool
    perhaps: bool | None = None
    polite: bool = True
    size: Size
    country: Country
    level: Literal[1, 2, False]
    count: int = Field(ge=1, le=9)
    share: float = Field(gt=0, lt=1)
    code: str = Field(pattern="^[A-Z]{2}$", max_length=2)
    note: str | None = None
    comment: str = "none"
    day: date
    mail: Email
    home: Address
    office: Address | None = None
    tags: list[str] = []
    sizes: list[int] = [1, 2]
    people: list[Address]
    sorts: set[Size] = set()
    pet: Pet
    limit: int | None
    extra: dict[str, Any]
    tree: Branch | None = None


def filled() -> Visit:
    """Everything, with what must be given."""
    visit = Visit(Everything).choose("/agreed", "No").choose("/size", "large").choose("/country", "de")
    visit.choose("/level", "no").type("/count", "3").type("/share", "0.5").type("/code", "AB").type(
        "/day", "2024-02-29"
    )
    visit.type("/mail", "a@b.example").type("/home/street", "Mill Lane").choose("/pet", "Dog", what="v")
    return visit.press("show").type("/extra", '{"a": [1, {"b": null}]}')


FILLED = {
    "agreed": False,
    "perhaps": None,
    "polite": True,
    "size": "large",
    "country": "de",
    "level": False,
    "count": 3,
    "share": 0.5,
    "code": "AB",
    "note": None,
    "comment": "none",
    "day": "2024-02-29",
    "mail": "a@b.example",
    "home": {"street": "Mill Lane", "zip": "0000", "floors": []},
    "office": None,
    "tags": [],
    "sizes": [1, 2],
    "people": [],
    "sorts": [],
    "pet": {"pet": "dog", "good": True},
    "limit": None,
    "extra": {"a": [1, {"b": None}]},
    "tree": None,
}


def test_what_is_typed_is_what_the_run_takes_and_what_is_left_has_its_default() -> None:
    assert FILLED == filled().taken()


CHANGES: dict[str, tuple[Callable[[Visit], Visit], Any]] = {
    "agreed": (lambda at: at.choose("/agreed", "Yes"), True),
    "perhaps": (lambda at: at.choose("/perhaps", "No"), False),
    "polite": (lambda at: at.choose("/polite", "No"), False),
    "size": (lambda at: at.choose("/size", "small"), "small"),
    "country": (lambda at: at.choose("/country", "it"), "it"),
    "level": (lambda at: at.choose("/level", "2"), 2),
    "count": (lambda at: at.type("/count", " +9 "), 9),
    "share": (lambda at: at.type("/share", "25e-2"), 0.25),
    "code": (lambda at: at.type("/code", "ZZ"), "ZZ"),
    "note": (lambda at: at.type("/note", "\n two\nlines\n"), "\n two\nlines\n"),
    "comment": (lambda at: at.type("/comment", ""), ""),
    "day": (lambda at: at.type("/day", "1999-12-31"), "1999-12-31"),
    "mail": (lambda at: at.type("/mail", "é@b.example"), "é@b.example"),
    "home": (
        lambda at: at.press("add:/home/floors").type("/home/floors/0", "-1").type("/home/zip", ""),
        {"street": "Mill Lane", "zip": "", "floors": [-1]},
    ),
    "office": (
        lambda at: at.fill_in("/office").type("/office/street", "Quay"),
        {"street": "Quay", "zip": "0000", "floors": []},
    ),
    "tags": (lambda at: at.press("add:/tags").press("add:/tags").type("/tags/0", "a").type("/tags/1", "b"), ["a", "b"]),
    "sizes": (lambda at: at.press("remove:/sizes/0").press("remove:/sizes/0"), []),
    "people": (
        lambda at: at.press("add:/people").type("/people/0/street", "Hill"),
        [{"street": "Hill", "zip": "0000", "floors": []}],
    ),
    "sorts": (lambda at: at.choose("/sorts", "large").choose("/sorts", "small"), ["small", "large"]),
    "pet": (
        lambda at: at.choose("/pet", "Cat", what="v").press("show").type("/pet/lives", "7"),
        {"pet": "cat", "lives": 7},
    ),
    "limit": (lambda at: at.type("/limit", "-7"), -7),
    "extra": (lambda at: at.type("/extra", "{}"), {}),
    "tree": (
        lambda at: at.fill_in("/tree").type("/tree/name", "a").fill_in("/tree/left").type("/tree/left/name", "b"),
        {"name": "a", "children": [], "left": {"name": "b", "children": [], "left": None}},
    ),
}


@pytest.mark.parametrize("key", Everything.model_fields)
def test_each_field_can_be_given(key: str) -> None:
    """And changes nothing else."""
    change, value = CHANGES[key]

    assert {**FILLED, key: value} == change(filled()).taken()


def test_a_form_that_is_sent_as_it_came_says_only_what_the_defaults_say() -> None:
    """What must be given is missing, and is named."""
    visit = Visit(Everything)

    sent = visit.send()
    must = {
        key for key, part in Everything.model_fields.items() if part.is_required() and key not in {"people", "limit"}
    }
    assert {"comment", "sizes", "people", "limit", "home"} == {key for key in sent if key in FILLED} - {"tags", "sorts"}
    assert {"zip": "0000"} == {key: part for key, part in sent["home"].items() if part}
    assert must - {"home"} == {fault.path[2:].partition(".")[0] for fault in visit.faults()} - {"home"}
    assert "is missing; it is required" == visit.page.text("fault/agreed")


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (bool, True),
        (str, "text"),
        (str, ""),
        (str, "\n<a>\n"),
        (str | None, "text"),
        (str | None, ""),
        (str | None, None),
        (int, 0),
        (int | None, 5),
        (float, 0.1),
        (Size, "large"),
        (Country, "it"),
        (date, "2024-01-01"),
        (Size | None, "small"),
        (list[str], ["a", ""]),
        (list[int] | None, None),
        (list[bool], [True]),
        (list[Address], [{"street": "a", "zip": "b", "floors": [1]}]),
        (set[Size], ["large"]),
        (Address, {"street": "a", "zip": "b", "floors": []}),
        (Address | None, {"street": "a", "zip": "b", "floors": []}),
        (Pet, {"pet": "cat", "lives": 3}),
        (dict[str, int], {"a": 1}),
        (str | int, "text"),
        (Any, None),
    ],
)
def test_a_default_counts_where_nothing_was_typed(kind: Any, default: Any) -> None:
    """Whatever its kind: alone, and inside of something that is only given when it is ticked."""

    class Inner(BaseModel):
        it: kind = default

    class Outer(BaseModel):
        inner: Inner | None = None

    assert {"it": default} == Visit(Inner).taken()
    assert {"inner": {"it": default}} == Visit(Outer).fill_in("/inner").taken()
    assert {"inner": {"it": default}} == Visit(Outer).choose("/inner", "Fill it in", what="u").taken()


class Deciding(BaseModel):
    yes: bool
    sure: bool = True
    known: bool | None
    size: Size
    given: Size = Size.LARGE
    country: Country
    stated: Country = Country["fr"]
    pet: Pet
    other: Pet | None = None


def test_nothing_that_decides_is_chosen_beforehand() -> None:
    """A yes-or-no and a choice begin unset, with a default as without one."""
    visit = Visit(Deciding)

    chosen = [each for each in visit.page.controls if each.kind == "radio" and each.checked]
    assert {""} == {each.text for each in chosen}
    assert ["Not said: yes", "Not said: large", "Not said"] == [each.label for each in chosen]
    selects = [each for each in visit.page.controls if each.kind == "select"]
    assert ["", ""] == [value for each in selects for value in _sent(each)]
    assert {} == visit.send()


@pytest.mark.parametrize("answer", [bool, Size, Country, Pet, Literal[1, 2]])
def test_nothing_is_chosen_beforehand_of_an_answer_that_is_one_choice(answer: Any) -> None:
    visit = Visit(answer)

    assert ABSENT is visit.send()
    assert [Fault(path="$", message="is missing: an answer is needed")] == list(unreadable(visit.draft))


def test_a_choice_does_not_count_for_another_form_than_it_was_made_in() -> None:
    """Two forms may have a field of the same name: what was typed is kept, what was decided is not."""

    class Red(BaseModel):
        colour: Literal["red"]
        keep: bool
        grade: Literal["good", "bad"]
        why: str

    class Blue(BaseModel):
        colour: Literal["blue"]
        keep: bool
        grade: Literal["awful", "fine"]
        why: str

    visit = Visit(Annotated[Red | Blue, Field(discriminator="colour")]).choose("", "Red", what="v").press("show")
    visit.choose("/keep", "Yes").choose("/grade", "good").type("/why", "so")

    assert {"colour": "red", "keep": True, "grade": "good", "why": "so"} == visit.send()
    assert {"colour": "blue", "why": "so"} == visit.choose("", "Blue", what="v").send()
    assert {"colour": "blue", "why": "so"} == visit.press("show").send()
    visit.choose("/keep", "No").choose("/grade", "fine")
    assert {"colour": "blue", "keep": False, "grade": "fine", "why": "so"} == visit.send()


def test_what_must_be_given_and_may_be_null_is_null_when_it_is_left_blank() -> None:
    """But not where that would decide."""

    class Nulls(BaseModel):
        number: int | None
        words: str | None
        inner: Address | None
        pet: Pet | None
        anything: dict[str, int] | None

    class Decides(BaseModel):
        sure: bool | None
        size: Size | None

    assert dict.fromkeys(Nulls.model_fields) == Visit(Nulls).taken()
    assert {} == Visit(Decides).send()
    assert {"sure": None, "size": None} == Visit(Decides).choose("/sure", "None").choose("/size", "None").taken()
    given = Visit(Nulls).fill_in("/inner").type("/inner/street", "a").choose("/pet", "Cat", what="v").press("show")
    assert {"street": "a", "zip": "0000", "floors": []} == given.taken()["inner"]
    assert given.choose("/pet", "None", what="v").taken()["pet"] is None


def test_what_an_empty_field_means_is_said_beside_it() -> None:
    class Told(BaseModel):
        five: int = 5
        either: int | None = 5
        none: int | None
        listed: list[int] | None
        home: Address = Address(street="a", zip="b")

    page = Visit(Told).page

    assert "whole number, left empty: 5" == page.text("hint/five")
    assert "whole number, empty: none" == page.text("hint/either")
    assert "whole number, empty: none" == page.text("hint/none")
    assert "hint/listed" not in page.ids
    assert 'left empty: {"street": "a", "zip": "b", "floors": []}' == page.text("hint/home")
    assert {"either": None, "five": 5} == {
        key: value
        for key, value in Visit(Told).type("/five", "").type("/either", "").taken().items()
        if key in {"five", "either"}
    }


# Answers that are no object


@pytest.mark.parametrize(
    ("answer", "type_it", "value"),
    [
        (None, lambda at: at.type("", '{"a": [1]}'), {"a": [1]}),
        (None, lambda at: at.type("", "plain words"), "plain words"),
        (None, lambda at: at.type("", "null"), None),
        (Any, lambda at: at.type("", '"1"'), "1"),
        ({"type": "object"}, lambda at: at.type("", "{}"), {}),
        (bool, lambda at: at.choose("", "No"), False),
        (int, lambda at: at.type("", "0"), 0),
        (str, lambda at: at.type("", " a "), " a "),
        (float, lambda at: at.type("", "-.5"), -0.5),
        (Country, lambda at: at.choose("", "hu"), "hu"),
        (list[str], lambda at: at, []),
        (list[str], lambda at: at.press("add:").type("/0", "a"), ["a"]),
        (set[Size], lambda at: at.choose("", "large"), ["large"]),
        (list[list[int]], lambda at: at.press("add:").press("add:/0").type("/0/0", "1"), [[1]]),
        (Pet, lambda at: at.choose("", "Cat", what="v").press("show").type("/lives", "1"), {"pet": "cat", "lives": 1}),
        (Literal["only"], lambda at: at, "only"),
    ],
)
def test_an_answer_need_not_be_an_object(answer: Any, type_it: Callable[[Visit], Visit], value: Any) -> None:
    assert value == type_it(Visit(answer)).taken()


@pytest.mark.parametrize("answer", [None, bool, int, str, Country, dict[str, int], Pet])
def test_an_answer_that_is_not_there_cannot_be_sent(answer: Any) -> None:
    visit = Visit(answer)

    assert ABSENT is visit.send()
    assert ["$"] == [each.path for each in unreadable(visit.draft)]


# Lists


class Person(BaseModel):
    name: str
    sure: bool
    size: Size
    tags: list[str] = []
    sorts: set[Size] = set()
    pet: Pet | None = None
    home: Address | None = None


class People(BaseModel):
    title: str
    people: list[Person] = []


def three() -> Visit:
    """Three people, of whom all is given, in a list that was filled from its buttons."""
    visit = Visit(People).type("/title", "all")
    for number, name in enumerate("abc"):
        at = f"/people/{number}"
        visit.press("add:/people").type(f"{at}/name", name).choose(f"{at}/sure", "No" if name == "b" else "Yes")
        visit.choose(f"{at}/size", "large" if name == "b" else "small").choose(f"{at}/sorts", "small")
        for tag in range(3):
            visit.press(f"add:{at}/tags").type(f"{at}/tags/{tag}", f"{name}{tag}")
        visit.choose(f"{at}/pet", "Dog", what="v").press("show").choose(f"{at}/pet/good", "No")
        visit.fill_in(f"{at}/home").type(f"{at}/home/street", name)
        visit.press(f"add:{at}/home/floors").type(f"{at}/home/floors/0", f"no {name}")
    return visit


def person(name: str, *tags: str) -> dict[str, Any]:
    return {
        "name": name,
        "sure": name != "b",
        "size": "large" if name == "b" else "small",
        "tags": list(tags),
        "sorts": ["small"],
        "pet": {"pet": "dog", "good": False},
        "home": {"street": name, "zip": "0000", "floors": [f"no {name}"]},
    }


A, B, C = person("a", "a0", "a1", "a2"), person("b", "b0", "b1", "b2"), person("c", "c0", "c1", "c2")


def test_adding_items_keeps_all_that_was_typed() -> None:
    """In nested lists too, and what cannot be read as its kind as well."""
    assert {"title": "all", "people": [A, B, C]} == three().send()


@pytest.mark.parametrize(
    ("which", "left"), [("/people/0", [B, C]), ("/people/1", [A, C]), ("/people/2", [A, B])], ids=["1st", "2nd", "3rd"]
)
def test_removing_an_item_moves_up_those_behind_it_with_all_that_was_typed(which: str, left: list[Any]) -> None:
    assert {"title": "all", "people": left} == three().press(f"remove:{which}").send()


def test_removing_from_a_list_inside_a_list_leaves_the_others() -> None:
    visit = three().press("remove:/people/1/tags/1")

    assert {"title": "all", "people": [A, person("b", "b0", "b2"), C]} == visit.send()


def test_buttons_of_lists_say_what_they_do() -> None:
    buttons = three().page.buttons()

    assert "Add one to People" == buttons["add:/people"]
    assert "Remove 2" == buttons["remove:/people/1"]


def test_an_item_that_is_left_blank_is_told_at_its_place() -> None:
    visit = Visit(list[str]).press("add:").press("add:").type("/1", "b")

    assert [None, "b"] == visit.send()
    assert ["$[0]"] == [each.path for each in visit.faults()]
    assert "fault/0" in visit.page.ids


def test_a_list_grows_no_further_than_it_may() -> None:
    asked = question({"type": "array", "items": {"type": "string"}}, {})
    pairs = [("c:", str(MAX_ITEMS)), *((f"a:/{number}", "x") for number in range(MAX_ITEMS)), ("do", "add:")]

    assert ["x"] * MAX_ITEMS == value_of(parse(asked, pairs))


# What cannot be read, and faults


class Wrong(BaseModel):
    count: int = Field(le=9)
    share: float
    extra: dict[str, Any]
    code: str = Field(max_length=3)
    inner: Address
    numbers: list[int] = []


def wrong() -> Visit:
    visit = Visit(Wrong).type("/count", "a few").type("/share", "½").type("/extra", '{"a": ').type("/code", "long text")
    return visit.press("add:/numbers").press("add:/numbers").type("/numbers/0", "1").type("/numbers/1", "²")


def test_what_cannot_be_read_is_kept_and_passed_on_as_it_was_typed() -> None:
    visit = wrong()

    value = visit.send()
    assert ("a few", "½", '{"a": ', "long text") == tuple(value[key] for key in ("count", "share", "extra", "code"))
    assert [1, "²"] == value["numbers"]
    assert ("a few", "½", '{"a": ', "²") == tuple(
        visit.text(place) for place in ("/count", "/share", "/extra", "/numbers/1")
    )


def test_what_the_run_says_lands_at_its_field() -> None:
    """Each field is marked, says what is wrong with it, and keeps what was typed."""
    visit = wrong()
    faults = visit.faults()

    assert {"$.count", "$.share", "$.extra", "$.code", "$.inner.street", "$.numbers[1]"} == {f.path for f in faults}
    for fault in faults:
        place = fault.path[1:].replace(".", "/").replace("[", "/").replace("]", "")
        (control,) = visit.page.of(f"a:{place}")
        assert "true" == control.attributes["aria-invalid"]
        assert f"fault{place}" in control.attributes["aria-describedby"].split()
        assert fault.message == visit.page.text(f"fault{place}")
    assert "a few" == visit.text("/count")
    assert "false" not in {each.attributes.get("aria-invalid") for each in visit.page.controls}


def test_text_that_is_no_json_is_told_before_it_is_sent() -> None:
    visit = wrong()
    visit.send()
    (fault,) = unreadable(visit.draft)

    assert "$.extra" == fault.path
    assert fault.message.startswith("this is not JSON: ")


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", "1e999", '"\\ud800"', "9" * 5000, "[" * 100_000, "{'a': 1}", "[1e17]", "[" * 65 + "]" * 65],
    ids=short,
)
def test_json_that_cannot_be_sent_is_told_and_kept(text: str) -> None:
    visit = Visit(dict[str, Any]).type("", text)

    assert text == visit.send()
    assert ["$"] == [each.path for each in unreadable(visit.draft)]


@pytest.mark.parametrize(
    "text", ["1e999", "-1e999", "nan", "inf", "1_000", "٣", "0x10", "1,5", "9" * 5000, "--1"], ids=short
)
def test_a_number_that_is_none_in_json_is_passed_on_as_text(text: str) -> None:
    for kind in (int, float):
        visit = Visit(kind).type("", text)

        assert text == visit.send() or (kind, text) == (float, "9" * 5000)


def view_of(visit: Visit, *faults: tuple[str, str]) -> tuple[Page, tuple[str, ...]]:
    found = [Fault(path=path, message=message) for path, message in faults]
    return shown(visit.draft, found), view(visit.draft, found).general


def test_a_fault_inside_json_lands_at_the_field_with_the_rest_of_its_path() -> None:
    visit = filled()
    page, general = view_of(
        visit, ("$.extra.a[1].b", "is odd"), ('$.extra["c.d[0]"].e', "is odd"), ("$.extra", "is bad")
    )

    assert 'a[1].b: is odd; ["c.d[0]"].e: is odd; is bad' == page.text("fault/extra")
    assert () == general


@pytest.mark.parametrize(
    ("path", "said"),
    [("$", "wrong"), ("$.gone", "gone wrong"), ("$.gone[1].x", "gone[1].x wrong"), ("", "wrong"), ("%", "% wrong")],
)
def test_a_fault_of_no_field_is_kept(path: str, said: str) -> None:
    page, general = view_of(filled(), (path, "wrong"))

    assert (said,) == general
    assert f'<p class="fault">{said}</p>' in page.html


@pytest.mark.parametrize(
    "place", ["agreed", "level", "country", "home", "office", "tags", "people", "sorts", "pet", "tree"]
)
def test_a_fault_is_shown_at_a_field_of_any_kind(place: str) -> None:
    """Also at one whose own fields are not shown."""
    page, general = view_of(filled(), (f"$.{place}", "is wrong"), (f"$.{place}.deep[0]", "is wrong"))

    assert "is wrong; deep[0]: is wrong" == page.text(f"fault/{place}")
    assert () == general


def test_a_fault_of_the_only_possible_value_is_shown() -> None:
    """A run may object to anything."""

    class Fixed(BaseModel):
        kind: Literal["a"] = Field(description="why it is")

    page, _ = view_of(Visit(Fixed), ("$.kind", "is wrong"))

    assert "is wrong" == page.text("fault/kind")
    assert "why it is" == page.text("hint/kind")


@pytest.mark.parametrize("answer", [int, str, bool, dict[str, int], Country, None])
def test_a_fault_of_an_answer_that_is_one_field_is_shown_at_it(answer: Any) -> None:
    page, general = view_of(Visit(answer), ("$", "is wrong"), ("$.a", "is odd"))

    assert "is wrong; a: is odd" == page.text("fault")
    assert () == general


# Hostile words

KEYS = [
    "",
    " ",
    '"',
    "'",
    '"><script>alert(1)</script>',
    "a.b",
    "a[0]",
    "a/b",
    "a%2Fb",
    "..",
    "0",
    "a b",
    "é",
    "💥",
    "\u202e",
    "\n",
    "x",
    "x-hint",
    "x-fault",
    "hint",
    "add:/x",
    "{{ 7*7 }}",
    "k" * 5000,
    "k" * 4999 + "l",
]


def of_keys(part: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(KEYS, part)}
    return {**schema, "required": KEYS} if required else schema


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "description": "said"},
        {"type": "integer"},
        {"type": "boolean"},
        {"enum": ["a", "b"]},
        {"enum": list(range(20))},
        {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"type": "object", "properties": {key: {"type": "string", "description": "said"} for key in KEYS}},
        {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]},
        {},
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_whatever_keys_are_called_each_has_a_place_of_its_own(part: dict[str, Any], required: bool) -> None:
    """Names and ids stay unique (as they are on every page), also where everything is marked."""
    schema = of_keys(part, required=required)
    asked = question(schema, schema)
    draft = blank(asked)
    pairs = shown(draft).pairs()
    if not required:
        pairs += [(f"u:{pointer((key,))}", "1") for key in KEYS]
    pairs += [(f"v:{pointer((key,))}", "1") for key in KEYS]
    again = parse(asked, pairs)

    shown(again, [Fault(path=json_path(path), message="bad") for path in [(key,) for key in KEYS]])


def test_values_under_any_keys_come_out() -> None:
    schema = {"type": "object", "properties": {"in": of_keys({"type": "string"})}, "required": ["in"]}
    visit = Visit(schema)
    for number, key in enumerate(KEYS):
        visit.type(f"/in/{quote(key, safe='')}", f"{number}")

    assert {"in": {key: f"{number}" for number, key in enumerate(KEYS)}} == visit.taken()


@pytest.mark.parametrize("key", [key for key in KEYS if len(key) < 40])
def test_a_fault_finds_its_field_whatever_that_is_called(key: str) -> None:
    schema = of_keys({"type": "object", "properties": {"n": of_keys({"type": "string"})}, "required": ["n"]})
    draft = blank(question(schema, schema))
    form = view(draft, [Fault(path=json_path((key, "n", key)), message="here"), Fault(path="$.no", message="x")])
    outer = next(each for each in form.root.inner if each.place == pointer((key,)))
    found = next(each for each in outer.inner[0].inner if each.place == pointer((key, "n", key)))

    assert ("here",) == found.faults
    assert ("no x",) == form.general


HOSTILE = [
    '"><script>alert(1)</script>',
    "' onfocus='alert(1)' autofocus='",
    '" onfocus="alert(1)',
    "</textarea><img src=x onerror=alert(1)>",
    "</option></select><b>",
    "</legend></fieldset></form>",
    "<!-- ",
    "]]>",
    "&lt;b&gt;&amp;&#39;&quot;",
    "{{ 7*7 }}{% raw %}",
    "\u202e\u0000\u2028",
    "<",
]


def worded(words: str, *, faulty: bool = False) -> tuple[Page, Draft]:
    """A form with these words wherever words may be: keys, titles, descriptions, choices, defaults, typed text."""
    said = {"description": words, "title": words}
    parts: dict[str, Any] = {
        "text": {"type": "string", **said},
        "line": {"type": "string", "maxLength": 9, "default": words, "pattern": words if faulty else "tame", **said},
        "few": {"enum": [words, f"{words}2"], "default": words, **said},
        "many": {"enum": [f"{words}{number}" for number in range(10)], **said},
        "fixed": {"const": words, **said},
        "several": {"type": "array", "items": {"enum": [words, 1]}, **said},
        "number": {"type": "integer", **said},
        "json": {"default": {words: words}, **said},
        "list": {"type": "array", "items": {"type": "string"}, "default": [words], **said},
        "forms": {"anyOf": [{"properties": {words: {}}, **said}, {"properties": {"b": {}}}], **said},
        f"{words}k": {"type": "object", "properties": {words: {"type": "string", **said}}, **said},
        "given": {"type": "object", "properties": {words: {"type": "boolean", **said}}, "default": {words: 1}, **said},
    }
    required = [key for key in parts if key != "given"]
    schema = {"type": "object", "properties": parts, "required": required, **said}
    asked = question(schema, schema)
    pairs = [*shown(blank(asked)).pairs(), ("v:/forms", "0"), ("u:/given", "1")]
    pairs = [(name, words if name in {"a:/text", "a:/number"} else value) for name, value in pairs]
    draft = parse(asked, pairs)
    keys = [("text",), ("fixed",), ("list",), ("few",), ("many",), ("given",), ()]
    faults = [Fault(path=json_path(key), message=words) for key in keys]
    faults.append(Fault(path=f"$.json.{words}", message=words))
    return shown(draft, faults), draft


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_stay_words(words: str) -> None:
    """No element and no attribute is there that was not there with tame words."""
    page, draft = worded(words, faulty=True)
    tame, _ = worded("tame")

    assert tame.skeleton == page.skeleton
    assert words == value_of(draft)["text"]
    assert words == value_of(draft)["number"]
    (typed,) = page.of("a:/text")
    assert words == typed.text
    assert words.strip() == page.text("fault/text")


def test_a_long_description_is_cut() -> None:
    schema = {"type": "string", "description": "d" * 100_000}

    assert 2_100 > len(shown(blank(question(schema, schema))).text("hint"))


# Recursion, size


def test_a_schema_that_contains_itself_is_asked_level_by_level() -> None:
    """As far down as somebody goes; there, the rest is asked for as JSON."""
    visit = Visit(Branch).type("/name", "0")
    place, depth = "", 0
    while visit.page.of(f"u:{place}/left"):
        visit.fill_in(f"{place}/left")
        place, depth = f"{place}/left", depth + 1
        visit.type(f"{place}/name", str(depth))
    visit.type(f"{place}/left", '{"name": "last"}')

    value, names = visit.taken(), []
    while value is not None:
        names.append(value["name"])
        value = value["left"]
    assert [*map(str, range(depth + 1)), "last"] == names
    assert 5 < depth < 20


def nested(depth: int, leaf: dict[str, Any], *, lists: bool) -> dict[str, Any]:
    for _ in range(depth):
        leaf = (
            {"type": "array", "items": leaf}
            if lists
            else {"type": "object", "properties": {"in": leaf}, "required": ["in"]}
        )
    return leaf


PROPERTIES = {f"p{number}": {"type": "string", "default": "x"} for number in range(5_000)}
WIDE = {f"p{n}": {"type": "object", "properties": dict(list(PROPERTIES.items())[:100])} for n in range(200)}
HUGE = {
    "5,000 properties": {"type": "object", "properties": PROPERTIES},
    "5,000 properties, all required": {"type": "object", "properties": PROPERTIES, "required": list(PROPERTIES)},
    "200 objects of 100": {"type": "object", "properties": WIDE, "required": list(WIDE)},
    "100 objects deep": nested(100, {"type": "string"}, lists=False),
    "100 lists deep": nested(100, {"type": "string"}, lists=True),
    "100 lists of objects deep": nested(50, nested(50, {}, lists=True), lists=False),
    "5,000 choices": {"enum": list(range(5_000))},
    "a long default": {"type": "array", "items": {"type": "string"}, "default": ["x"] * 5_000},
}


@pytest.mark.parametrize("schema", HUGE.values(), ids=HUGE.keys())
def test_a_huge_schema_is_finite_and_quick(schema: dict[str, Any]) -> None:
    asked = question(schema, schema)
    begun = time.process_time()
    draft = blank(asked)
    page = shown(draft)
    again = parse(asked, page.pairs())

    assert draft == again
    assert 5 > time.process_time() - begun


def test_a_list_of_huge_items_is_finite_and_quick() -> None:
    """However many are said to be there."""
    item = {"type": "object", "properties": {**PROPERTIES, "n": {"type": "array", "items": {"$ref": "#/$defs/i"}}}}
    schema = {"type": "array", "items": {"$ref": "#/$defs/i"}, "$defs": {"i": item}}
    asked = question(schema, schema)
    begun = time.process_time()
    shown(parse(asked, [("c:", "500"), *((f"c:/{n}/n", "500") for n in range(500))]))

    assert 5 > time.process_time() - begun


def test_json_in_place_of_fields_is_kept_when_there_is_room_for_fields_again() -> None:
    """Nothing that was typed is lost by removing something else."""
    many = {"type": "array", "items": {"type": "string"}, "default": ["x"] * 400}
    parts: dict[str, Any] = {f"p{number}": many for number in range(5)}
    last = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {"type": "object", "properties": {**parts, "last": last}, "required": ["last"]}
    visit = Visit(schema).type("/last", '{"a": "typed"}').press("remove:/p0/0").press("remove:/p0/0")
    for _ in range(5):
        visit.press("remove:/p0/0")

    assert {"a": "typed"} == visit.send()["last"]


def test_fields_are_kept_when_there_is_no_room_for_them_any_more() -> None:
    """Nothing that was typed is lost by adding something else."""
    parts = {f"p{n}": {"type": "array", "items": {"type": "string"}, "default": ["x"] * 498} for n in range(4)}
    last = {"type": "array", "items": {"type": "string"}}
    visit = Visit({"type": "object", "properties": {**parts, "last": last}}).type("/p0/0", "y")
    visit.draft = parse(visit.asked, [*visit.page.pairs(), ("do", "add:/last")])
    visit.page = shown(visit.draft)
    visit.type("/last/0", "typed")
    for number in range(4):
        visit.press(f"add:/p{number}").type(f"/p{number}/498", "z")

    assert ["typed"] == visit.send()["last"]


# Hostile pairs


def names_of(asked: Question) -> list[str]:
    """The names of all fields that a filled form has, and of some that it does not have."""
    names = {name for name, _ in parse_filled(asked)}
    return sorted(names | {f"{what}{name[1:]}" for name in names for what in "acuvw"} | {"", "a", "a:", "zzz", "a:/no"})


def parse_filled(asked: Question) -> list[tuple[str, str]]:
    visit = filled().press("add:/people").press("add:/people/0/floors").fill_in("/tree").press("add:/tree/children")
    assert visit.asked == asked
    return visit.page.pairs()


EVERYTHING = Visit(Everything).asked
NAMES = names_of(EVERYTHING)
ODD = [
    "",
    "0",
    "1",
    "-1",
    "²",
    "٣",
    "999999999999",
    "9" * 5000,
    "1e9",
    "null",
    "true",
    "\x00",
    "[" * 3000,
    '"\\ud800"',
    "NaN",
    "1e999",
    " ",
    "\r\n",
]
DOES = [
    "",
    "add",
    "add:",
    "add:/no",
    "add:/tags",
    "add:/people/0",
    "remove",
    "remove:",
    "remove:/no",
    "remove:/tags/9",
    "remove:/tags",
    "remove:/people/-1",
    "show:x",
    "add:" + "/x" * 5000,
]


@pytest.mark.parametrize("odd", ODD, ids=short)
def test_no_value_of_any_field_raises(odd: str) -> None:
    for do in ("add:/people", "remove:/people/0", ""):
        draft = parse(EVERYTHING, [*((name, odd) for name in NAMES), ("do", do)])
        value_of(draft)
        list(unreadable(draft))
        shown(draft)


@pytest.mark.parametrize("do", DOES, ids=short)
def test_doing_what_cannot_be_done_changes_nothing(do: str) -> None:
    visit = filled()
    before = visit.send()

    if do != "add:/tags":
        assert before == value_of(parse(visit.asked, [*visit.page.pairs(), ("do", do), ("do", "add:/tags")]))
    else:
        assert {**before, "tags": [None]} == value_of(parse(visit.asked, [*visit.page.pairs(), ("do", do)]))


@pytest.mark.parametrize("choice", ["99", "-1", "²", "x", "9" * 5000], ids=short)
@pytest.mark.parametrize("kind", [Size, Country, bool, Pet])
@pytest.mark.parametrize("default", [True, False])
def test_a_choice_that_is_none_is_shown_as_unset(choice: str, kind: Any, default: bool) -> None:
    class Chosen(BaseModel):
        it: kind | None = None if default else Field()

    asked = question(Chosen.model_json_schema(), Chosen.model_json_schema())
    draft = parse(asked, [(f"{'v' if kind is Pet else 'a'}:/it", choice)])
    pairs = [pair for pair in shown(draft).pairs() if pair[0][:2] in {"a:", "v:"}]

    assert {""} >= {value for _, value in pairs}
    assert value_of(draft).get("it") is None


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(ODD) | st.text(max_size=5)), max_size=60),
    st.sampled_from(DOES),
)
def test_no_pairs_raise(pairs: list[tuple[str, str]], do: str) -> None:
    """Whatever is sent, however often each name is there; and the page that comes back means the same."""
    draft = parse(EVERYTHING, [*pairs, ("do", do)])
    page = shown(draft)
    value = value_of(draft)

    assert isinstance(decode(value, EVERYTHING.schema), Decoded | Undecodable)
    assert value == value_of(parse(EVERYTHING, page.pairs()))


# There and back

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
ADDRESSES = st.builds(Address, street=WORDS, zip=st.just("") | WORDS, floors=st.lists(st.integers(-99, 99), max_size=3))
BRANCHES = st.recursive(
    st.builds(Branch, name=WORDS),
    lambda inner: st.builds(Branch, name=WORDS, children=st.lists(inner, max_size=2), left=st.none() | inner),
    max_leaves=4,
)
PETS = st.builds(Cat, pet=st.just("cat"), lives=st.integers(-99, 99)) | st.builds(
    Dog, pet=st.just("dog"), good=st.booleans()
)
ANSWERS = st.builds(
    Everything,
    agreed=st.booleans(),
    perhaps=st.none() | st.booleans(),
    polite=st.booleans(),
    size=st.sampled_from(Size),
    country=st.sampled_from(Country),
    level=st.sampled_from([1, 2, False]),
    count=st.integers(1, 9),
    share=st.floats(0, 1, exclude_min=True, exclude_max=True),
    code=st.from_regex("[A-Z]{2}", fullmatch=True),
    note=st.none() | WORDS,
    comment=st.just("") | WORDS,
    day=st.dates(),
    mail=st.just("a@b.example"),
    home=ADDRESSES,
    office=st.none() | ADDRESSES,
    tags=st.lists(WORDS, max_size=3),
    sizes=st.lists(st.integers(-99, 99), max_size=3),
    people=st.lists(ADDRESSES, max_size=3),
    sorts=st.sets(st.sampled_from(Size)),
    pet=PETS,
    limit=st.none() | st.integers(-99, 99),
    extra=st.dictionaries(WORDS, VALUES, max_size=3),
    tree=st.none() | BRANCHES,
)


def pairs_of(asked: Question, path: tuple[str | int, ...], value: Any) -> Iterator[tuple[str, str]]:
    """What somebody's browser sends who means `value`."""
    here = pointer(path)
    match asked.kind:
        case _ if value is None:
            yield f"a:{here}", ""
        case Kind.OBJECT:
            yield f"u:{here}", "1"
            for key, inner in zip(asked.schema["properties"], asked.fields(), strict=True):
                yield from pairs_of(inner, (*path, key), value[key])
        case Kind.VARIANT:
            number = [each["$ref"].rpartition("/")[2].lower() for each in asked.variants].index(value["pet"])
            yield from ((f"v:{here}", str(number)), (f"w:{here}", str(number)))
            yield from pairs_of(asked.variant(number), path, value)
        case Kind.LIST:
            item = asked.item()
            assert item is not None
            yield f"c:{here}", str(len(value))
            for number, each in enumerate(value):
                yield from pairs_of(item, (*path, number), each)
        case Kind.CHOICES:
            yield f"c:{here}", ""
            yield from ((f"a:{here}", str(asked.choices.index(each))) for each in value)
        case Kind.CHOICE:
            kinds = [(type(each), each) for each in asked.choices]
            yield f"a:{here}", str(kinds.index((type(value), value)))
        case Kind.TEXT:
            yield f"a:{here}", value.replace("\n", "\r\n")
        case _:
            yield f"a:{here}", json.dumps(value)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(ANSWERS)
def test_any_answer_can_be_typed_and_comes_back(answer: Everything) -> None:
    """And the page that shows it again sends the same."""
    meant = answer.model_dump(mode="json")
    draft = parse(EVERYTHING, pairs_of(EVERYTHING, (), meant))
    decoded = decode(value_of(draft), EVERYTHING.schema)
    assert isinstance(decoded, Decoded), decoded
    value = cast("dict[str, Any]", decoded.value)

    assert {**meant, "sorts": sorted(meant["sorts"])} == {**value, "sorts": sorted(value["sorts"])}
    assert value_of(draft) == value_of(parse(EVERYTHING, shown(draft).pairs()))
