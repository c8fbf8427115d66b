"""The comparison finds everything that is no drawn id and no time: each spoiled transcript differs from the one it was."""

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .comparing import compared, differences
from .differences import Difference, Says
from .normal import normalised
from .playing import RunnerSide, play
from .samples import sample
from .scripts import SCRIPTS

Steps = tuple[Any, ...]
SPOILT = ["gated, state and metadata", "gated, again", "loop, revised twice", "par, both", "boom", "mixed, text first"]
often = settings(max_examples=30, deadline=None)


@pytest.fixture(scope="module", params=SPOILT)
async def transcript(request: pytest.FixtureRequest) -> Any:
    """A real conversation with ADK."""
    return await _played(request.param)


async def _played(name: str) -> Any:
    script = SCRIPTS[name]
    return await play(RunnerSide(script.app, sample(script.app), "s"), script)


def found(transcript: Any, spoilt: Any) -> bool:
    """Whether the comparison sees that the two differ."""
    return bool(differences(normalised(transcript), normalised(spoilt)))


@pytest.mark.parametrize("name", SPOILT)
async def test_the_same_conversation_at_another_time_with_other_ids_is_the_same(name: str) -> None:
    assert not differences(normalised(await _played(name)), normalised(await _played(name)))


@often
@given(data=st.data())
def test_two_events_that_change_places_are_found(transcript: Any, data: st.DataObject) -> None:
    spoilt = copy.deepcopy(transcript)
    events = data.draw(st.sampled_from([each for each in _lists(spoilt) if len(each) > 1]))
    a, b = data.draw(st.permutations(range(len(events))))[:2]
    events[a], events[b] = events[b], events[a]

    assert found(transcript, spoilt)


@often
@given(data=st.data())
def test_an_event_that_is_missing_is_found(transcript: Any, data: st.DataObject) -> None:
    spoilt = copy.deepcopy(transcript)
    events = data.draw(st.sampled_from([each for each in _lists(spoilt) if each]))
    del events[data.draw(st.integers(0, len(events) - 1))]

    assert found(transcript, spoilt)


@often
@given(data=st.data())
def test_an_event_that_is_there_twice_is_found(transcript: Any, data: st.DataObject) -> None:
    spoilt = copy.deepcopy(transcript)
    events = data.draw(st.sampled_from([each for each in _lists(spoilt) if each]))
    events.append(copy.deepcopy(data.draw(st.sampled_from(events))))

    assert found(transcript, spoilt)


@settings(often, max_examples=100)
@given(data=st.data())
def test_any_other_word_number_or_truth_value_is_found(transcript: Any, data: st.DataObject) -> None:
    spoilt = copy.deepcopy(transcript)
    *way, last = data.draw(st.sampled_from([place for place in _leaves(spoilt) if not _drawn(spoilt, place)]))
    whole = _at(spoilt, tuple(way))
    whole[last] = data.draw(st.sampled_from(_others(whole[last])))

    assert found(transcript, spoilt)


@often
@given(data=st.data())
def test_a_field_that_is_left_out_is_found(transcript: Any, data: st.DataObject) -> None:
    spoilt = copy.deepcopy(transcript)
    event = data.draw(st.sampled_from([event for events in _lists(spoilt) for event in events]))
    del event[data.draw(st.sampled_from(list(event)))]

    assert found(transcript, spoilt)


@often
@given(data=st.data())
def test_an_events_fields_in_another_order_are_found(transcript: Any, data: st.DataObject) -> None:
    """ADK's clients see them in its order (A02)."""
    spoilt = copy.deepcopy(transcript)
    event = data.draw(st.sampled_from([event for events in _lists(spoilt) for event in events]))
    name = data.draw(st.sampled_from(list(event)[:-1]))
    event[name] = event.pop(name)

    assert found(transcript, spoilt)


@often
@given(data=st.data())
def test_two_ids_that_change_places_are_found(transcript: Any, data: st.DataObject) -> None:
    """Where at least one of them stands elsewhere too: else nobody could tell."""
    spoilt = copy.deepcopy(transcript)
    kind = data.draw(st.sampled_from(["id", "invocationId"]))
    places = [(event, event[kind]) for events in _lists(spoilt) for event in events]
    times = Counter(drawn for _, drawn in places)
    pairs = [
        (a, b)
        for n, (a, drawn) in enumerate(places)
        for b, other in places[n + 1 :]
        if drawn != other and max(times[drawn], times[other]) > 1
    ]
    if not pairs:
        assert kind == "invocationId"
        return
    a, b = data.draw(st.sampled_from(pairs))
    a[kind], b[kind] = b[kind], a[kind]

    assert found(transcript, spoilt)


def test_what_is_not_listed_fails_and_so_does_what_is_listed_and_not_there() -> None:
    """By place, by either side's words, and for its own script alone."""

    def listed(place: str, adk: str, ours: str, script: str = "s", *, whole: bool = False) -> list[Difference]:
        return [Difference("d", [], "", [Says({f"other | {script}": [place]}, adk, ours, whole=whole)])]

    adk, ours = {"a": {"b": [1, "x"]}}, {"a": {"b": [2, "x"]}}

    assert not compared("s", adk, ours, listed("a.b.0", "1", "2"))
    assert not compared("s", adk, ours, listed("*.b.*", "*", "2"))
    assert not compared("s", adk, ours, listed("**.0", "1", "*"))
    assert not compared("s", adk, ours, listed("a.b", "[1, *]", "[2, *]", whole=True))
    assert not compared("s", adk, adk, [])
    assert len(compared("s", adk, ours, [])) == 1
    assert len(compared("s", adk, adk, listed("a.b.0", "1", "2"))) == 1
    for place, a, b in (("a.b.1", "1", "2"), ("*.0", "1", "2"), ("a.b.0", "1", "3"), ("a.b.0", "4", "2")):
        assert len(compared("s", adk, ours, listed(place, a, b))) == 2
    assert len(compared("s", adk, ours, listed("a.b.0", "1", "2", script="t"))) == 1
    assert len(compared("s", adk, ours, listed("a.b", "[1*", "[3*", whole=True))) == 2


def _lists(transcript: Any) -> list[list[Any]]:
    """Every list of events."""
    return [*(turn["events"] for turn in transcript["turns"].values()), transcript["session"]["events"]]


def _leaves(value: Any, way: Steps = ()) -> Iterator[Steps]:
    """The way to each scalar."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not isinstance(value, dict | list):
        yield way
    for step, inner in below:
        yield from _leaves(inner, (*way, step))


def _at(value: Any, way: Steps) -> Any:
    for step in way:
        value = value[step]
    return value


def _drawn(transcript: Any, way: Steps) -> bool:
    """Whether an id that was drawn stands there, or a time."""
    last = way[-1]
    of_event = "author" in (whole if isinstance(whole := _at(transcript, way[:-1]), dict) else ())
    of_session = len(way) == 2 and way[0] in {"created", "session"}
    return (of_event and last in {"id", "invocationId", "timestamp"}) or (
        of_session and last in {"id", "lastUpdateTime"}
    )


def _others(value: Any) -> list[Any]:
    """Values that are not this one, some of them like it."""
    match value:
        case bool():
            return [not value, int(value), None]
        case int() | float():
            return [value + 1, -value - 1, str(value), bool(value)]
        case str():
            return [f"{value} ", value[:-1] if value else "x", value.swapcase() + "!", None]
        case _:
            return [0, "", False]
