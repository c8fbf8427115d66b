"""L. Text at an open gate, and answers that come twice, at once or too late."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from tests.parity.contract.pipelines import RAN
from tests.parity.contract.saying import Saying, gate_of, response, text

Begin = Callable[..., Awaitable[Saying]]


async def test_l01_text_at_an_open_gate_runs_nothing_again(paused: Begin) -> None:
    """
    L01, differs.

    ADK: Text while a gate is open starts a fresh invocation from the start: all nodes run again, expensive ones included.

    Gatewright: It is refused with the list of open gates. `on_text="open"` opens a second run, whose gates have ids of their own; the first stays answerable.
    """
    session = await paused("two")
    await session.say(response("a", "A"))

    error = await session.refused(text("hello"))

    assert "it waits at b), so text would open another beside it" in str(error)
    assert [gate["interruptId"] for gate in vars(error)["rejection"].open] == ["b"]
    await session.say(response("b", "late"))
    assert session.took() == [("m", "A"), ("d", "late")]

    both = await paused("two", on_text="open")
    assert gate_of(await both.open("two", "again")).id == "a@2"
    await both.say(response("a", "A"))
    await both.say(response("b", "B"))
    assert both.took() == [("prep", f"two {both.session} again"), ("m", "A"), ("d", "B")]


async def test_l02_the_first_answer_is_final(paused: Begin) -> None:
    """
    L02, differs.

    ADK: A second answer to the same gate is kept, runs nothing and is no error.

    Gatewright: Other words are refused, by whom and when it was answered. The same words again get the first turn again, and nothing is kept twice.
    """
    session = await paused("two")
    first = await session.say(response("a", "1"))
    kept = await session.read()

    assert "a was answered by u at " in str(await session.refused(response("a", "2")))
    assert await session.say(response("a", "1")) == first
    assert await session.read() == kept
    assert session.took() == [("m", 1)]


async def test_l04_after_the_end_nothing_is_taken(paused: Begin) -> None:
    """
    L04, differs.

    ADK: An answer after the end is kept without an error; a gate with `rerun_on_resume` runs again.

    Gatewright: It is refused: the run is completed.
    """
    session = await paused("bare")
    await session.say(response("g", "1"))

    error = await session.refused(response("g", "2"))

    assert str(error).startswith("the run is completed; it takes no more answers.")
    assert vars(error)["rejection"].code == "frame_closed"


async def clicked_twice(session: Saying) -> None:
    """Two answers at once that contradict each other: one counts, and what follows runs once, with it."""
    outcomes = await asyncio.gather(
        session.say(response("g", "approve")), session.say(response("g", "reject")), return_exceptions=True
    )

    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [vars(each)["rejection"].code for each in refused] in (["already_answered"], ["frame_closed"])
    taken = "approve" if outcomes.index(refused[0]) else "reject"
    assert session.took() == [("d", taken)]
    assert sum(bool(event.get_function_responses()) for event in (await session.read()).events) == 1


async def test_l05_of_two_answers_at_once_one_counts(paused: Begin) -> None:
    """
    L05, differs.

    ADK: Of two answers at once both run what follows: approve and reject take effect.

    Gatewright: Exactly one is accepted, and what follows runs once, with it.
    """
    await clicked_twice(await paused("bare"))


async def test_l06_an_older_run_stays_answerable(paused: Begin) -> None:
    """
    L06, mirrored.

    ADK: A gate of an older invocation can still be answered after newer ones were started.
    """
    session = await paused("bare", on_text="open")
    await session.open("bare", "1")
    await session.open("bare", "2")
    session.took()

    await session.say(response("g", "x"))

    assert session.took() == [("d", "x")]


async def test_l07_an_answered_gate_beside_an_open_one_is_refused(paused: Begin) -> None:
    """
    L07, differs.

    ADK: A message with an id that was answered and one that is open is accepted, and the open one proceeds.

    Gatewright: The message is refused whole.
    """
    session = await paused("two")
    await session.say(response("a", "1"))
    session.took()

    assert "a was answered by u at" in str(await session.refused(response("a", "2"), response("b", "B")))
    await session.say(response("b", "B"))
    assert session.took() == [("d", "B")]


async def test_l08_that_holds_however_often_it_is_tried(paused: Begin) -> None:
    """
    L08, differs.

    ADK: On SQLite, too, both of two answers at once run what follows, in 32 of 40 trials.

    Gatewright: As L05, in every trial: the run itself rules, whatever the store is.
    """
    sessions = [await paused("bare") for _ in range(10)]

    await asyncio.gather(*(clicked_twice(session) for session in sessions))

    assert [len(RAN[session.session]) for session in sessions] == [2] * 10
