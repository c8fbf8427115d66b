"""Files of exported histories: what is no use is named in one line that says what to do, and several make one run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.temporal import history_files
from gatewright.temporal.history import HistoryError, read_histories
from tests.temporal.histories import HAPPENED, REVIEWED, Events, events


def without_its_start(history: Events) -> Events:
    return [event | {"eventId": str(number)} for number, event in enumerate(history[1:], start=1)]


def of_no_run(history: Events) -> Events:
    history[0]["workflowExecutionStartedEventAttributes"]["workflowId"] = ""
    return history


def text(history: Events) -> str:
    return json.dumps({"events": history})


USELESS: dict[str, tuple[Callable[[Events], str | bytes], str]] = {
    "empty": (lambda _: " \n", "is empty"),
    "no JSON": (lambda _: "Progress:\n  ID  Time", "is not JSON: Expecting value at line 1, column 1"),
    "cut off": (lambda h: text(h)[:-40], "is not JSON"),
    "not UTF-8": (lambda _: b"\xff\xfe{}", "is not UTF-8 (byte 0)"),
    "other JSON": (lambda _: '{"receipts": []}', 'there are no "events" in it'),
    "a number": (lambda _: "7", 'there are no "events" in it'),
    "no events": (lambda _: '{"events": []}', "holds no events"),
    "nested without end": (lambda _: "[" * 200_000, "cannot be read"),
    "no events of Temporal": (lambda _: '{"events": [{"eventId": "one"}]}', "not as Temporal writes"),
    "an event is missing": (lambda h: text([*h[:5], *h[6:]]), "event 6 is missing, event 7 stands in its place"),
    "the beginning is missing": (lambda h: text(h[5:]), "event 1 is missing"),
    "no start": (lambda h: text(without_its_start(h)), "does not begin with the start of a workflow"),
    "of no run": (lambda h: text(of_no_run(h)), "does not say which run it is of"),
}


@pytest.mark.parametrize("what", USELESS)
def test_each_file_that_is_no_use_is_named_in_one_line_that_says_what_to_do(what: str, tmp_path: Path) -> None:
    spoil, words = USELESS[what]
    file = tmp_path / "history.json"
    spoilt = spoil(events(REVIEWED))
    file.write_bytes(spoilt if isinstance(spoilt, bytes) else spoilt.encode())

    with pytest.raises(HistoryError) as wrong:
        read_histories([file])
    said = str(wrong.value)
    assert words in said
    assert str(file) in said
    assert "\n" not in said
    if what != "nested without end":
        assert "temporal workflow show" in said


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for file in (tmp_path / "none.json", tmp_path):
        with pytest.raises(HistoryError, match=f"{file} cannot be read"):
            read_histories([file])


def test_a_file_that_is_larger_than_any_history_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "large.json"
    file.write_text(text(events(REVIEWED)))
    monkeypatch.setattr(history_files, "MAX_FILE_BYTES", 1024)

    with pytest.raises(HistoryError, match="give each execution's own file"):
        read_histories([file])


def test_no_file_is_no_history() -> None:
    with pytest.raises(HistoryError, match="no history was given"):
        read_histories([])


def test_files_of_two_runs_are_named(tmp_path: Path) -> None:
    files: list[Path] = []
    for name in (REVIEWED, HAPPENED):
        files.append(tmp_path / f"{len(files)}.json")
        files[-1].write_text(text(events(name)))

    with pytest.raises(HistoryError, match="give the histories of one run"):
        read_histories(files)


def test_one_execution_twice_is_named(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text(text(events(REVIEWED)))

    with pytest.raises(HistoryError, match="are the same execution"):
        read_histories([file, file])


@pytest.mark.parametrize(
    "form",
    [
        lambda history: {"history": {"events": history}},
        lambda history: history,
        lambda history: [{"events": history}],
        lambda history: {"events": history[::-1]},
    ],
    ids=["the API's", "only events", "a list of histories", "reversed"],
)
def test_other_forms_of_an_export_are_read(form: Callable[[Events], object], tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps(form(events(REVIEWED))))

    [execution] = read_histories([file]).executions
    assert len(execution.events) == len(events(REVIEWED))
    assert execution.ended == "completed"
