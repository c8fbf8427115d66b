"""
What exported histories tell of a run's gates and calls: deliveries and verdicts, deadlines, what was shown, activities.

Facts and no judgement (that is `history.py`). What an application's codec has
encrypted cannot be read here; it is counted, so that nobody takes silence for
an answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Request
from temporalio.common import RawValue

from gatewright.effects.results import finding_of, recorded
from gatewright.effects.wire import CALL_HEADER, ERRAND_HEADER
from gatewright.protocol.answer import Answer
from gatewright.protocol.call import Call
from gatewright.protocol.canonical import NotJson, digest, plain
from gatewright.protocol.finding import Errand, Finding
from gatewright.protocol.gate import PinnedGate, shown_digest
from gatewright.protocol.receipt import EffectState

from . import names
from .door import Read, read
from .history_files import READABLE, VEILED, Execution, History, first_value, model_of, value_of


@dataclass(frozen=True)
class Delivery:
    """An answer message as it came in: by which door, when at the latest it was there, and what was ruled on it."""

    where: str
    door: str
    there_by: datetime
    answers: tuple[Answer, ...]
    veiled: bool = False
    verdict: Any = None
    """The verdict of an update as JSON; None where the history has none, `VEILED` where it cannot be read."""


@dataclass
class Made:
    """One activity that was scheduled for a call, and what came of it."""

    where: str
    call: Call
    errand: Errand | None
    noted: datetime | None = None
    """When the run took note of its end, if it has."""
    ended: str | None = None
    """completed, failed, timed_out or cancelled; None while it runs."""
    at: datetime | None = None
    result_digest: str | None = None
    finding: Finding | None = None
    veiled: bool = False
    """Whether its result cannot be read."""

    @property
    def performed(self) -> bool:
        """Whether it says that the effect was performed: an attempt that came back does, whether or not it can be read."""
        if self.ended != "completed" or (self.veiled and self.examined):
            return False
        return self.finding is None or self.finding.state is EffectState.PERFORMED

    @property
    def examined(self) -> bool:
        """Whether it was only to find out."""
        return self.errand is not None and self.errand.mode == "examine"


@dataclass(frozen=True)
class Fired:
    """A timer that fired; `summary` says what for (None: nobody said), unless it is `veiled`."""

    where: str
    at: datetime
    summary: str | None
    veiled: bool = False


@dataclass(frozen=True)
class Heard:
    """What the ledger said of a call, in the result of an activity of ours."""

    where: str
    key: str
    state: EffectState
    at: datetime


@dataclass(frozen=True)
class Span:
    """
    From when to when one execution's history tells.

    `times` are those that the workflow's clock can have shown: when each workflow task began that was completed, in
    order, and then when each local activity ended, which the SDK lets the clock go on to.
    """

    begins: datetime
    ends: datetime
    times: tuple[datetime, ...]
    settled: bool
    """Whether it ended in its own time, with everything listed that was asked."""
    continued: bool
    """Whether it goes on from an execution before it."""


@dataclass
class Facts:
    """Everything that matters of a history."""

    deliveries: list[Delivery] = field(default_factory=list)
    made: dict[str, list[Made]] = field(default_factory=dict)
    fired: list[Fired] = field(default_factory=list)
    shown: list[PinnedGate] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    veiled: dict[str, int] = field(default_factory=dict)
    """How many things of a kind cannot be read."""

    def veil(self, what: str) -> None:
        """Count something that cannot be read."""
        self.veiled[what] = self.veiled.get(what, 0) + 1


def facts_of(history: History) -> Facts:
    """The facts of all executions, in order."""
    facts = Facts()
    for execution in history.executions:
        suffix = f" of execution {execution.run_id}" if len(history.executions) > 1 else ""
        _Reader(execution, suffix, facts).read()
    return facts


def moment(event: HistoryEvent) -> datetime:
    """When an event was recorded, to the microsecond."""
    return event.event_time.ToDatetime(tzinfo=UTC)


def content_of(answer: Answer) -> str | None:
    """The content digest of an answer; None of one that is no portable JSON, which no run has admitted."""
    try:
        return answer.content_digest
    except NotJson:
        return None


class _Reader:
    """Reads one execution's events into `facts`."""

    def __init__(self, execution: Execution, suffix: str, facts: Facts) -> None:
        self._execution = execution
        self._events = execution.events
        self._suffix = suffix
        self._facts = facts
        self._tasks = list(self._completed_tasks())
        self._requests: dict[int, Request] = {}
        self._verdicts = dict(self._all_verdicts())
        self._scheduled: dict[int, Made] = {}
        self._asked: dict[int, str] = {}
        """Keys that the ledger was asked about, by the event that scheduled the question."""
        self._timers: dict[int, Any] = {}

    def read(self) -> None:
        times = (*(at for _, at in self._tasks), *self._ends_of_local_activities())
        ended = self._execution.ended
        settled = ended is not None and ended not in {"terminated", "timed_out"}
        continued = bool(self._execution.started.continued_execution_run_id)
        begins, ends = moment(self._events[0]), max(map(moment, self._events))
        self._facts.spans.append(Span(begins, ends, times, settled, continued))
        for event in self._events:
            match event.WhichOneof("attributes"):
                case "workflow_execution_signaled_event_attributes":
                    self._signaled(event)
                case "workflow_execution_update_admitted_event_attributes":
                    self._requests[event.event_id] = event.workflow_execution_update_admitted_event_attributes.request
                case "workflow_execution_update_accepted_event_attributes":
                    self._accepted(event)
                case "activity_task_scheduled_event_attributes":
                    self._schedule(event)
                case "activity_task_completed_event_attributes":
                    self._completed(event)
                case "activity_task_failed_event_attributes":
                    self._failed(event)
                case "activity_task_timed_out_event_attributes":
                    self._end(event, event.activity_task_timed_out_event_attributes.scheduled_event_id, "timed_out")
                case "activity_task_canceled_event_attributes":
                    self._end(event, event.activity_task_canceled_event_attributes.scheduled_event_id, "cancelled")
                case "timer_started_event_attributes":
                    if event.user_metadata.HasField("summary"):
                        self._timers[event.event_id] = value_of(event.user_metadata.summary)
                case "timer_fired_event_attributes":
                    told = self._timers.get(event.timer_fired_event_attributes.started_event_id)
                    summary = told if isinstance(told, str) else None
                    self._facts.fired.append(Fired(self._where(event), moment(event), summary, told is VEILED))
                case "marker_recorded_event_attributes":
                    self._marked(event)
                case _:
                    pass

    def _where(self, event: HistoryEvent) -> str:
        return f"event {event.event_id}{self._suffix}"

    def _completed_tasks(self) -> Iterator[tuple[int, datetime]]:
        """The workflow tasks that were completed: each one's started event and time."""
        started = {
            event.workflow_task_completed_event_attributes.started_event_id
            for event in self._events
            if event.HasField("workflow_task_completed_event_attributes")
        }
        return ((event.event_id, moment(event)) for event in self._events if event.event_id in started)

    def _ends_of_local_activities(self) -> Iterator[datetime]:
        for event in self._events:
            match self._local_activity(event)[0]:
                case {"complete_time": {"seconds": int(seconds), "nanos": int(nanos)}}:
                    yield datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=nanos // 1000)
                case _:
                    pass

    # Deliveries

    def _signaled(self, event: HistoryEvent) -> None:
        signal = event.workflow_execution_signaled_event_attributes
        if signal.signal_name == names.ANSWER:
            self._deliver(event, "signal", signal.input.payloads, moment(event))

    def _accepted(self, event: HistoryEvent) -> None:
        accepted = event.workflow_execution_update_accepted_event_attributes
        place = accepted.accepted_request_sequencing_event_id
        request = accepted.accepted_request if accepted.HasField("accepted_request") else self._requests.get(place)
        if request is None or request.input.name != names.ANSWER:
            return
        # It is accepted when its task is completed, and was there when the task was asked for.
        there_by = moment(self._events[place - 1]) if 0 < place <= len(self._events) else moment(self._events[0])
        verdict = self._verdicts.get(event.event_id)
        if verdict is VEILED:
            self._facts.veil("verdicts")
        self._deliver(event, "update", request.input.args.payloads, there_by, verdict)

    def _deliver(
        self, event: HistoryEvent, door: str, payloads: Sequence[Payload], there_by: datetime, verdict: Any = None
    ) -> None:
        delivery = read([RawValue(payload) for payload in payloads], door)
        answers = delivery.message.answers if isinstance(delivery, Read) else ()
        veiled = any(payload.metadata.get("encoding") not in READABLE for payload in payloads)
        if veiled:
            self._facts.veil("deliveries")
        self._facts.deliveries.append(Delivery(self._where(event), door, there_by, answers, veiled, verdict))

    def _all_verdicts(self) -> Iterator[tuple[int, Any]]:
        """What was ruled on updates, by the event that accepted them."""
        for event in self._events:
            if event.HasField("workflow_execution_update_completed_event_attributes"):
                completed = event.workflow_execution_update_completed_event_attributes
                payloads = completed.outcome.success.payloads
                if len(payloads) == 1:
                    yield completed.accepted_event_id, value_of(payloads[0])

    # Calls

    def _schedule(self, event: HistoryEvent) -> None:
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name in {names.PLAN_EFFECT, names.RESOLVE_EFFECT}:
            match first_value(scheduled.input.payloads):
                case {"replaces": str(key)} | {"call": {"key": str(key)}}:
                    self._asked[event.event_id] = key
                case _:
                    pass
            return
        if CALL_HEADER not in scheduled.header.fields:
            return
        call = model_of(Call, scheduled.header.fields[CALL_HEADER])
        if call is None:
            self._facts.veil("calls")
            return
        errand = (
            model_of(Errand, scheduled.header.fields[ERRAND_HEADER])
            if ERRAND_HEADER in scheduled.header.fields
            else None
        )
        made = self._scheduled[event.event_id] = Made(self._where(event), call, errand)
        self._facts.made.setdefault(call.key, []).append(made)

    def _completed(self, event: HistoryEvent) -> None:
        completed = event.activity_task_completed_event_attributes
        payloads = completed.result.payloads
        if (key := self._asked.get(completed.scheduled_event_id)) is not None:
            match first_value(payloads):
                case {"finding": {"state": str(state)}} if state in set(EffectState):
                    self._hear(event, key, EffectState(state))
                case _:
                    pass
            return
        made = self._end(event, completed.scheduled_event_id, "completed")
        if made is None:
            return
        payload = payloads[0] if payloads else Payload(metadata={"encoding": b"binary/null"})
        try:
            made.finding = finding_of(payload)
            made.result_digest = digest(plain(recorded(payload)))
        except (ValueError, RecursionError):
            made.veiled = True
        if payload.metadata.get("encoding") not in {*READABLE, b"binary/null"}:
            made.veiled = True
        if made.veiled and made.call.effect:
            self._facts.veil("results")
        if made.finding is not None:
            self._hear(event, made.call.key, made.finding.state)

    def _failed(self, event: HistoryEvent) -> None:
        failed = event.activity_task_failed_event_attributes
        made = self._end(event, failed.scheduled_event_id, "failed")
        details = failed.failure.application_failure_info.details.payloads
        if made is None or not details:
            return
        if value_of(details[-1]) is VEILED:
            made.veiled = True
            self._facts.veil("failures")
        elif (finding := model_of(Finding, details[-1])) is not None:
            made.finding = finding
            self._hear(event, made.call.key, finding.state)

    def _end(self, event: HistoryEvent, scheduled: int, how: str) -> Made | None:
        made = self._scheduled.get(scheduled)
        if made is not None:
            made.ended, made.at = how, moment(event)
            made.noted = next((at for place, at in self._tasks if place > event.event_id), None)
        return made

    def _hear(self, event: HistoryEvent, key: str, state: EffectState) -> None:
        self._facts.heard.append(Heard(self._where(event), key, state, moment(event)))

    # Gates

    def _marked(self, event: HistoryEvent) -> None:
        """What a gate showed when it opened, which a local activity recorded."""
        match self._local_activity(event):
            case {"activity_type": names.OPEN_GATE}, {"gate": dict(pinned)}:
                try:
                    gate = PinnedGate.model_validate(pinned)
                except ValidationError:
                    return
                if shown_digest(gate.message, gate.payload, gate.response_schema) == gate.digest:
                    self._facts.shown.append(gate)
            case what, result if VEILED in (what, result):
                self._facts.veil("local activities")
            case _:
                pass

    def _local_activity(self, event: HistoryEvent) -> tuple[Any, Any]:
        """What the SDK has recorded of a local activity, and what that returned; None where the event is of none."""
        marker = event.marker_recorded_event_attributes
        if marker.marker_name != "core_local_activity":
            return None, None
        what, result = (marker.details[name].payloads if name in marker.details else () for name in ("data", "result"))
        return first_value(what), first_value(result)


__all__ = [
    "Delivery",
    "Facts",
    "Fired",
    "Heard",
    "Made",
    "Span",
    "content_of",
    "facts_of",
    "moment",
]
