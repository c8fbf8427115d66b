"""
Exported histories: from the files that `temporal workflow show -o json` or the SDK wrote to the executions of one run.

Nothing here asks a server. A run that continued as new has one history for each
of its executions, in a file each or together in one.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeVar

from google.protobuf.json_format import ParseError
from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import ContinueAsNewInitiator
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionStartedEventAttributes
from temporalio.client import WorkflowHistory

from .errors import TemporalShellError

MAX_FILE_BYTES = 256 * 1024 * 1024
"""The largest file that is read, in bytes: Temporal ends a run at 50 MiB of history, which is about 100 MB of JSON."""

EXPORT = "temporal workflow show --workflow-id ID --run-id RUN_ID --output json"
"""The command that exports one execution; named wherever a file is of no use."""

VEILED: Final = object()
"""The value of a payload that cannot be read without the application's codec."""

READABLE: Final = {b"json/plain", b"json/protobuf"}
"""The encodings in which a payload is JSON."""

M = TypeVar("M", bound=BaseModel)

_CLOSING = {
    "workflow_execution_completed_event_attributes": "completed",
    "workflow_execution_failed_event_attributes": "failed",
    "workflow_execution_timed_out_event_attributes": "timed_out",
    "workflow_execution_canceled_event_attributes": "cancelled",
    "workflow_execution_terminated_event_attributes": "terminated",
    "workflow_execution_continued_as_new_event_attributes": "continued",
}

_RESTARTED = {
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY,
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE,
}


class HistoryError(TemporalShellError):
    """A file is no history that can be used; the message names the file, what is wrong and what to do, in one line."""


@dataclass(frozen=True)
class Execution:
    """One execution of a run, as its history tells it; `source` is the file that it was read from."""

    source: str
    events: tuple[HistoryEvent, ...]

    @property
    def started(self) -> WorkflowExecutionStartedEventAttributes:
        """What the first event says."""
        return self.events[0].workflow_execution_started_event_attributes

    @property
    def run_id(self) -> str:
        """Its own id: the one that it was started with, or the one that the last reset gave it."""
        named = self.started.original_execution_run_id
        for event in self.events:
            if event.HasField("workflow_task_failed_event_attributes"):
                named = event.workflow_task_failed_event_attributes.new_run_id or named
        return named

    @property
    def ended(self) -> str | None:
        """How it ended: completed, failed, timed_out, cancelled, terminated or continued; None while it goes on."""
        return _CLOSING.get(self.events[-1].WhichOneof("attributes") or "")

    @property
    def next_run_id(self) -> str:
        """The execution in which the run goes on (continue-as-new, retry, cron); empty where there is none."""
        attributes = self.events[-1].WhichOneof("attributes") or ""
        return str(getattr(getattr(self.events[-1], attributes, None), "new_execution_run_id", ""))

    def follows(self, before: "Execution") -> bool:
        """Whether it is the next execution after `before`."""
        return before.next_run_id in {self.run_id, self.started.original_execution_run_id}


@dataclass(frozen=True)
class History:
    """The executions of one run that were given, in order; there may be others between, before and after them."""

    executions: tuple[Execution, ...]

    @property
    def workflow_id(self) -> str:
        """The run's workflow id."""
        return self.executions[0].started.workflow_id

    @property
    def first_execution_run_id(self) -> str:
        """The run id of the execution that heads the run's chain."""
        return self.executions[0].started.first_execution_run_id

    @property
    def begins(self) -> bool:
        """Whether the run's beginning is among them (of a run that Temporal retried: of its last attempt)."""
        first = self.executions[0].started
        return not first.continued_execution_run_id or first.initiator in _RESTARTED

    @property
    def ends(self) -> Literal["over", "open", "elsewhere"]:
        """Whether the run is over with the last of them, goes on there, or goes on in one that was not given."""
        last = self.executions[-1]
        if last.next_run_id:
            return "elsewhere"
        return "open" if last.ended is None else "over"

    @property
    def gaps(self) -> tuple[tuple[Execution, Execution], ...]:
        """Neighbours between which an execution is missing."""
        pairs = zip(self.executions, self.executions[1:], strict=False)
        return tuple((before, after) for before, after in pairs if not after.follows(before))


def read_histories(files: Iterable[Path]) -> History:
    """
    The run that these files tell of.

    A file holds one execution or several (a list of histories, or one after
    the other). Raises `HistoryError`, also where the files are of two runs.
    """
    return chained([execution for file in files for execution in read_history(_text(file), str(file))])


def read_history(text: str, source: str) -> list[Execution]:
    """The executions that a text tells of, in its order; `HistoryError` names `source`."""
    if not text.strip():
        raise HistoryError(f"{source} is empty; export the history again: {EXPORT}")
    events = [event for document in _documents(text, source) for event in _events_of(document, source)]
    if not events:
        raise HistoryError(f"{source} holds no events; export the history again: {EXPORT}")
    parsed = _parsed(events, source)
    if len(parsed) > 1 and parsed[0].event_id > parsed[-1].event_id == 1:
        # `temporal workflow show --reverse`
        parsed.reverse()
    return list(_split(parsed, source))


def chained(executions: Sequence[Execution]) -> History:
    """
    These executions as one run's, in order; `HistoryError` where they are not.

    Of a run that Temporal retried (or runs by a schedule), only the last
    attempt counts: its frame began anew.
    """
    if not executions:
        raise HistoryError(f"no history was given; export one: {EXPORT}")
    first = executions[0]
    known: dict[str, Execution] = {}
    for execution in executions:
        started = execution.started
        if not started.workflow_id or not started.first_execution_run_id:
            raise HistoryError(f"{execution.source} does not say which run it is of; export it again: {EXPORT}")
        if (started.workflow_id, started.first_execution_run_id) != (
            first.started.workflow_id,
            first.started.first_execution_run_id,
        ):
            raise HistoryError(
                f"{first.source} is of {_named(first)}, and {execution.source} of {_named(execution)}; "
                "give the histories of one run"
            )
        other = known.setdefault(started.original_execution_run_id, execution)
        if other is not execution:
            what = "the same execution" if other.run_id == execution.run_id else "one execution and a reset of it"
            raise HistoryError(
                f"{other.source} and {execution.source} are {what}; give the one that the receipts are of"
            )
    ordered = sorted(executions, key=lambda execution: execution.events[0].event_time.ToNanoseconds())
    anew = max((place for place, each in enumerate(ordered) if each.started.initiator in _RESTARTED), default=0)
    return History(tuple(ordered[anew:]))


def _named(execution: Execution) -> str:
    return f"{execution.started.workflow_id} (first execution {execution.started.first_execution_run_id})"


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except OSError as wrong:
        raise HistoryError(f"{file} cannot be read ({wrong.strerror}); give the file of an exported history") from wrong
    if len(data) > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // 1024 // 1024
        raise HistoryError(f"{file} has more than {limit} MiB, more than any history; give each execution's own file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise HistoryError(f"{file} is not UTF-8 (byte {wrong.start}); export the history again: {EXPORT}") from wrong


def _documents(text: str, source: str) -> Iterator[Any]:
    """One JSON document after the other."""
    decoder = json.JSONDecoder()
    place = _after_space(text, 0)
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError as wrong:
            raise HistoryError(
                f"{source} is not JSON: {wrong.msg} at line {wrong.lineno}, column {wrong.colno}; "
                f"export the history again: {EXPORT}"
            ) from wrong
        except (RecursionError, ValueError) as wrong:
            raise HistoryError(f"{source} is JSON that cannot be read: {wrong}") from wrong
        yield document
        place = _after_space(text, place)


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _events_of(document: Any, source: str) -> list[Any]:
    """The events of one history, of an answer of the API that holds one, or of a list of histories or events."""
    match document:
        case {"events": list(events)} | {"history": {"events": list(events)}}:
            return list(events)
        case [{"eventId": _}, *_]:
            return list(document)
        case [dict(), *_]:
            return [
                event for each in document for event in _events_of(each if isinstance(each, dict) else None, source)
            ]
        case _:
            raise HistoryError(f'{source} is JSON and no history: there are no "events" in it; export one: {EXPORT}')


def _parsed(events: list[Any], source: str) -> list[HistoryEvent]:
    try:
        return list(WorkflowHistory.from_json("", {"events": events}).events)
    except (ParseError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as wrong:
        said = (str(wrong) or type(wrong).__name__).splitlines()[0][:300]
        raise HistoryError(
            f"{source} is not as Temporal writes a history ({said}); export it again: {EXPORT}"
        ) from wrong


def _split(events: list[HistoryEvent], source: str) -> Iterator[Execution]:
    """The executions of a list of events, each from its first event on; none of its events may be missing."""
    begun: list[HistoryEvent] = []
    for event in events:
        if event.event_id == 1 and begun:
            yield Execution(source, tuple(begun))
            begun = []
        if event.event_id != len(begun) + 1:
            _incomplete(source, len(begun) + 1, event.event_id)
        if not begun and not event.HasField("workflow_execution_started_event_attributes"):
            raise HistoryError(f"{source} does not begin with the start of a workflow; export it whole: {EXPORT}")
        begun.append(event)
    yield Execution(source, tuple(begun))


def _incomplete(source: str, wanted: int, found: int) -> NoReturn:
    raise HistoryError(
        f"{source} is not complete: event {wanted} is missing, event {found} stands in its place; export it whole: {EXPORT}"
    )


# Payloads


def value_of(payload: Payload) -> Any:
    """The JSON value of a payload; `VEILED` where it is not written as JSON."""
    encoding = payload.metadata.get("encoding")
    if encoding == b"binary/null":
        return None
    if encoding not in READABLE:
        return VEILED
    try:
        return json.loads(payload.data)
    except (ValueError, RecursionError):
        return VEILED


def first_value(payloads: Iterable[Payload]) -> Any:
    """The JSON value of the first payload, `VEILED` like that of any; None where there is none."""
    return next((value_of(payload) for payload in payloads), None)


def model_of(model: type[M], payload: Payload) -> M | None:
    """The payload as this model; None where it is none, or cannot be read."""
    value = value_of(payload)
    try:
        return None if value is VEILED else model.model_validate(value)
    except ValidationError:
        return None


__all__ = [
    "EXPORT",
    "MAX_FILE_BYTES",
    "READABLE",
    "VEILED",
    "Execution",
    "History",
    "HistoryError",
    "chained",
    "first_value",
    "model_of",
    "read_histories",
    "read_history",
    "value_of",
]
