"""Receipts are borne out by the history of their run, and whatever was changed in either is named."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from gatewright.protocol import Anchor, Book
from gatewright.protocol.gate import shown_digest
from gatewright.temporal.history import chained, check_history, read_history
from tests.temporal.histories import (
    AGAIN,
    HAPPENED,
    NAMES,
    REVIEWED,
    Events,
    book_of,
    checked,
    encrypted,
    events,
    find,
    forged,
    header,
    later,
    replaced,
    rewritten,
    said,
    without,
)

REWRITTEN = [name for name in NAMES if name.endswith("dataset_release_revised_once")]
"""Whose file paths were replaced when they were recorded."""
LAST_OF_THREE = [name for name in NAMES if name.endswith("the_last_of_three_executions")]


@pytest.mark.parametrize("name", sorted({*NAMES} - {*REWRITTEN, *LAST_OF_THREE}))
async def test_every_recorded_run_bears_out_its_receipts(name: str) -> None:
    """All ways of answering, and effects that failed, were blocked, examined, made again."""
    report = checked(await book_of(name), events(name))

    assert [] == said(report)
    assert report.ok


@pytest.mark.parametrize("name", REWRITTEN)
async def test_a_payload_that_was_rewritten_in_the_history_is_named(name: str) -> None:
    """Here a path in the answer of a job: the verdict that it was given is of what it had said."""
    report = checked(await book_of(name), events(name))

    assert [(5, "contradicted"), (None, "contradicted")] == [(number, outcome) for number, outcome, _ in said(report)]


@pytest.mark.parametrize("name", LAST_OF_THREE)
async def test_what_executions_wrote_that_were_not_given_is_not_covered(name: str) -> None:
    """And it is said how to export them."""
    report = checked(await book_of(name), events(name))

    missing = [(number, outcome) for number, outcome, _ in said(report)]
    assert [(1, "not_covered"), (2, "not_covered"), (None, "not_covered")] == missing
    assert "temporal workflow show --workflow-id Rolling" in said(report)[-1][2]
    assert report.ok


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_encrypted_is_not_covered_and_contradicts_nothing(name: str) -> None:
    history = events(name)
    encrypted(history)
    report = checked(await book_of(name), history)

    assert report.ok, said(report)
    answers = [each for each in report.findings if "answered by" in each.what]
    assert {"not_covered"} >= {each.outcome for each in answers}


class Spoiled(NamedTuple):
    """What somebody did to the history or to the receipts, and what is said of it."""

    name: str
    spoil: Callable[[Events, Book], Any]
    number: int | None
    outcome: str
    words: str


def at(kind: str, **how: Any) -> Callable[[Events], dict[str, Any]]:
    return lambda history: find(history, kind, **how)


FIRST = at("WORKFLOW_EXECUTION_UPDATE_ACCEPTED", holding='"first"')
VERDICT = at("WORKFLOW_EXECUTION_UPDATE_COMPLETED", holding='"admitted"')
SECOND = at("WORKFLOW_EXECUTION_SIGNALED", holding='"bob"')
WORD = at("WORKFLOW_EXECUTION_SIGNALED", holding='"ops"')
PAID = at("ACTIVITY_TASK_COMPLETED", holding='"paid 4"')
LOST = at("ACTIVITY_TASK_FAILED", holding='"unknown"')


def scheduled(history: Events, name: str, nth: int = 0) -> dict[str, Any]:
    return [
        event
        for event in history
        if event.get("activityTaskScheduledEventAttributes", {}).get("activityType", {}).get("name") == name
    ][nth]


def once(change: Callable[[Events], None]) -> Callable[[Events, Book], Events]:
    """The change in a history without the repetition of the first answer."""

    def spoil(history: Events, _: Book) -> Events:
        change(history)
        again = find(history, "WORKFLOW_EXECUTION_UPDATE_ACCEPTED", holding='"first"', nth=-1)
        told = find(history, "WORKFLOW_EXECUTION_UPDATE_COMPLETED", holding='"repeated"')
        return without(history, again, told)

    return spoil


def by_signal(history: Events, update: dict[str, Any]) -> Events:
    """The update's answer as a signal, at the same place and in time."""
    asked = update["workflowExecutionUpdateAcceptedEventAttributes"]["acceptedRequest"]["input"]
    signal = {
        "eventId": "0",
        "eventTime": find(history, "WORKFLOW_EXECUTION_STARTED")["eventTime"],
        "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED",
        "workflowExecutionSignaledEventAttributes": {"signalName": "answer", "input": asked["args"]},
    }
    place = history.index(update)
    updates = [event for event in history if "UPDATE" in event["eventType"]]
    return without([*history[:place], signal, *history[place:]], *updates)


def showed(history: Events, message: str) -> None:
    """All arrivals at the gate showed another message, under its own digest."""
    for event in history:
        if "markerRecordedEventAttributes" in event:
            rewritten(event, lambda text: _shown(text, message))


def _shown(text: str, message: str) -> str:
    told = json.loads(text) if text.startswith("{") else None
    if not isinstance(told, dict) or "gate" not in told:
        return text
    gate = told["gate"] | {"message": message}
    gate["digest"] = shown_digest(message, gate["payload"], gate["response_schema"])
    return json.dumps(told | {"gate": gate})


HISTORY_SPOILED = {
    "the answer says something else": Spoiled(
        REVIEWED, once(lambda h: replaced(FIRST(h), "false", "true")), 1, "contradicted", "with other content"
    ),
    "only the repetition says so": Spoiled(
        REVIEWED, lambda h, _: replaced(FIRST(h), "false", "true"), 1, "contradicted", "after the receipt says"
    ),
    "somebody else answered": Spoiled(
        REVIEWED, lambda h, _: replaced(SECOND(h), "bob", "eve"), 2, "contradicted", "no signal brought answer"
    ),
    "the answer has another id": Spoiled(
        REVIEWED, once(lambda h: replaced(FIRST(h), '"first"', '"last"')), 1, "contradicted", "answer id 'last'"
    ),
    "it came by another door": Spoiled(
        REVIEWED, lambda h, _: by_signal(h, FIRST(h)), 1, "contradicted", "came by signal, and not by update"
    ),
    "the answer was never delivered": Spoiled(
        REVIEWED, lambda h, _: without(h, SECOND(h)), 2, "contradicted", "no signal brought answer"
    ),
    "the answer came later": Spoiled(
        REVIEWED, lambda h, _: later(SECOND(h)), 2, "contradicted", "after the receipt says that it was admitted"
    ),
    "the verdict was another": Spoiled(
        REVIEWED,
        lambda h, book: replaced(VERDICT(h), book.receipts[0].digest, "sha256:0"),
        1,
        "contradicted",
        "its verdict is another receipt",
    ),
    "the answer was refused": Spoiled(
        REVIEWED,
        lambda h, _: replaced(VERDICT(h), '"verdict":"admitted"', '"verdict":"refused"'),
        1,
        "contradicted",
        "the run refused it",
    ),
    "the gate showed something else": Spoiled(
        REVIEWED, lambda h, _: showed(h, "Approve this?"), 2, "contradicted", "the gate review never showed"
    ),
    "the effect came to something else": Spoiled(
        REVIEWED, lambda h, _: replaced(PAID(h), "paid 4", "paid 5"), 4, "contradicted", "a result of the digest"
    ),
    "the effect never came back": Spoiled(
        REVIEWED, lambda h, _: without(h, PAID(h)), 4, "contradicted", "no activity of this key came back"
    ),
    "the effect came back later": Spoiled(
        REVIEWED, lambda h, _: later(PAID(h)), 4, "contradicted", "came back only after the receipt says so"
    ),
    "the effect has another key": Spoiled(
        REVIEWED,
        lambda h, _: header(scheduled(h, "pay"), key="gw1-0"),
        None,
        "contradicted",
        "carries a key that is not its call's",
    ),
    "the effect is of another name": Spoiled(
        REVIEWED, lambda h, _: header(scheduled(h, "pay"), name="pray"), 4, "contradicted", "the name 'pray'"
    ),
    "another answer authorised the effect": Spoiled(
        REVIEWED,
        lambda h, _: header(scheduled(h, "pay"), authorised_by="review"),
        3,
        "contradicted",
        "the authorising answer 'review'",
    ),
    "the effect was never scheduled": Spoiled(
        REVIEWED,
        lambda h, _: without(h, scheduled(h, "pay"), PAID(h)),
        4,
        "contradicted",
        "was ever scheduled",
    ),
    "the call was never scheduled": Spoiled(
        REVIEWED,
        lambda h, _: without(h, scheduled(h, "pay"), PAID(h)),
        3,
        "not_covered",
        "its call was never scheduled",
    ),
    "the attempt that nobody knows of had come back": Spoiled(
        AGAIN, lambda h, _: replaced(LOST(h), '"unknown"', '"failed"'), 1, "confirmed", "failed"
    ),
    "the person never gave their word": Spoiled(
        HAPPENED, lambda h, _: without(h, WORD(h)), 2, "contradicted", "no signal brought answer"
    ),
    "what rests on a word that was not given": Spoiled(
        HAPPENED, lambda h, _: without(h, WORD(h)), 3, "not_covered", "rests on the word of ops in receipt 2"
    ),
}


@pytest.mark.parametrize("what", HISTORY_SPOILED)
async def test_each_change_of_the_history_is_named(what: str) -> None:
    case = HISTORY_SPOILED[what]
    history, book = events(case.name), await book_of(case.name)
    changed = case.spoil(history, book)
    report = checked(book, changed if isinstance(changed, list) else history)

    found = [each for each in report.findings if each.number == case.number and each.what != "chain"]
    assert any(each.outcome == case.outcome and case.words in each.words for each in found), report.findings


async def test_a_chain_that_was_altered_is_named_and_its_receipts_are_looked_for_all_the_same() -> None:
    book = await book_of(REVIEWED)
    report = checked(book, events(REVIEWED), receipts=[book.receipts[0], *book.receipts[2:]])

    broken = report.findings[0]
    assert (broken.number, broken.outcome) == (2, "contradicted")
    assert "number 2 is missing" in broken.words
    assert len(report.findings) > len(book.receipts) - 1


async def test_receipts_of_another_run_are_named() -> None:
    """Each by itself, and what has no receipt among them."""
    other = await book_of(HAPPENED)
    report = checked(other, events(REVIEWED))

    assert {"contradicted"} == {each.outcome for each in report.findings if each.number}
    assert "it is of transfer-happened" in report.findings[0].words
    assert any("there is no receipt of it" in each.words for each in report.findings)


async def test_a_beginning_that_is_kept_elsewhere_is_said_and_counted() -> None:
    """As after continue-as-new, where a book keeps its last receipts."""
    book = await book_of(REVIEWED)
    history = chained(read_history(json.dumps({"events": events(REVIEWED)}), "history"))
    kept = book.receipts[2:]
    report = check_history(kept, Anchor(number=2, digest=book.receipts[1].digest), book.identity, history)

    assert report.ok, said(report)
    assert (3, "not_covered") in [(number, outcome) for number, outcome, _ in said(report)]
    assert "receipts 1 to 2 are kept elsewhere" in str(said(report))


@pytest.mark.parametrize("length", [13, 32, 42, 48, 59])
async def test_a_history_that_was_read_before_the_receipts_covers_what_it_can(length: int) -> None:
    """The run was going on when the history was exported: nothing is contradicted by that."""
    report = checked(await book_of(REVIEWED), events(REVIEWED)[:length])

    assert report.ok, said(report)
    assert report.count("not_covered")


@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_receipts_that_were_read_before_the_history_are_borne_out(count: int) -> None:
    """The run went on after they were saved; whether it was over by then is what decides."""
    book, history = await book_of(REVIEWED), events(REVIEWED)
    over = checked(book, history, receipts=book.receipts[:count])
    going_on = checked(book, history[:-2], receipts=book.receipts[:count])

    assert not over.ok
    assert any("it was left out, or the receipts were saved before" in words for *_, words in said(over))
    assert going_on.ok, said(going_on)


async def test_a_clock_that_a_local_activity_moved_is_no_contradiction() -> None:
    """The SDK takes the time at which a local activity ended for the workflow's own."""
    book, history = await book_of(REVIEWED), events(REVIEWED)
    marker = find(history, "MARKER_RECORDED", holding="complete_time", nth=-1)
    later_on = book.receipts[-1].at + timedelta(seconds=5)
    text = f'"complete_time":{{"seconds":{int(later_on.timestamp())},"nanos":{later_on.microsecond * 1000}}}'
    rewritten(marker, lambda told: re.sub(r'"complete_time":\{[^}]*\}', text, told))
    chain = forged(book.receipts, 4, at=later_on.isoformat())

    assert [] == said(checked(book, history, receipts=chain))
