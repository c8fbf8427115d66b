"""Recorded histories with the receipts that their runs wrote, and ways to spoil either."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from gatewright.protocol import Book, Receipt
from gatewright.temporal import GatewrightPlugin
from gatewright.temporal.frame import hosted
from gatewright.temporal.history import HistoryReport, chained, check_history, read_history
from tests.effects.outside import Doing
from tests.temporal import pipelines
from workflows import DatasetRelease

RECORDED = Path(__file__).parents[1] / "histories"
NAMES = sorted(f"{path.parent.name}/{path.stem}" for path in RECORDED.glob("*/*.json"))

REVIEWED = "effects/reviewed_in_a_loop"
"""An answer by update, one by signal, and an effect that the second one authorised: four receipts."""
HAPPENED = "effects/an_effect_that_happened"
"""Of which nobody knew, until a person said by signal that it had: three receipts."""
AGAIN = "effects/an_effect_that_did_not_happen"
"""Of which a person said that it had not, and which was made again: three receipts."""
ASKED = "effects/an_effect_that_the_outside_was_asked_about"
"""The outside said that it had happened: one receipt."""

Events = list[dict[str, Any]]


@cache
def _texts() -> dict[str, str]:
    return {name: (RECORDED / f"{name}.json").read_text() for name in NAMES}


def events(name: str) -> Events:
    """The events of a recorded history, to be changed at will."""
    recorded: Events = json.loads(_texts()[name])["events"]
    return recorded


class _Listening(Interceptor):
    """Keeps the book that a replayed run has written when it ends."""

    def __init__(self) -> None:
        self.books: list[Book] = []

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        books = self.books

        class Inbound(WorkflowInboundInterceptor):
            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
                try:
                    return await super().execute_workflow(input)
                finally:
                    frame = hosted()
                    assert frame is not None
                    books.append(frame.book)

        return Inbound


async def book_of(name: str) -> Book:
    """The book of a recorded run, as a replay of its history writes it."""
    listening = _Listening()
    replayer = Replayer(
        workflows=[DatasetRelease, Doing, *pipelines.ALL],
        plugins=[GatewrightPlugin()],
        interceptors=[listening],
        workflow_runner=UnsandboxedWorkflowRunner(),
        namespace="default",
    )
    workflow_id = events(name)[0]["workflowExecutionStartedEventAttributes"]["workflowId"]
    await replayer.replay_workflow(WorkflowHistory.from_json(workflow_id, _texts()[name]))
    return listening.books[-1]


def checked(book: Book, *histories: Events, receipts: Sequence[Receipt] | None = None) -> HistoryReport:
    """What these histories say of the book's receipts, or of those that are given in their place."""
    executions = [
        execution
        for number, history in enumerate(histories)
        for execution in read_history(json.dumps({"events": history}), f"history {number}")
    ]
    chain = book.receipts if receipts is None else receipts
    return check_history(chain, book.anchor, book.identity, chained(executions))


def said(report: HistoryReport) -> list[tuple[int | None, str, str]]:
    """What is not confirmed: number, outcome, words."""
    return [(each.number, each.outcome, each.words) for each in report.findings if each.outcome != "confirmed"]


# Spoiling a history


def find(history: Events, kind: str, nth: int = 0, *, holding: str = "") -> dict[str, Any]:
    """The n-th event of a type (without its prefix) in whose payloads a text stands."""
    found = [event for event in history if event["eventType"] == f"EVENT_TYPE_{kind}" and holding in _readable(event)]
    return found[nth]


def without(history: Events, *gone: dict[str, Any]) -> Events:
    """The history as if these events had never been: the others are numbered anew, and point to one another as before."""
    left = [event for event in history if event not in gone]
    numbers = {event["eventId"]: str(number) for number, event in enumerate(left, start=1)}

    def renumbered(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: numbers.get(part, part) if key.endswith("ventId") else renumbered(part)
                for key, part in value.items()
            }
        return [renumbered(part) for part in value] if isinstance(value, list) else value

    changed: Events = renumbered(left)
    return changed


def rewritten(event: dict[str, Any], change: Callable[[str], str]) -> None:
    """Change the text of every payload of an event that is JSON."""
    for payload in _payloads(event):
        text = base64.b64decode(payload.get("data", "")).decode()
        payload["data"] = base64.b64encode(change(text).encode()).decode()


def replaced(event: dict[str, Any], old: str, new: str) -> None:
    """Replace a text in an event's payloads, where it must stand."""
    assert old in _readable(event), _readable(event)
    rewritten(event, lambda text: text.replace(old, new))


def encrypted(history: Events) -> None:
    """Every payload as a codec would have written it; not the headers, which the SDK leaves as they are."""
    for event in history:
        for payload in _payloads({key: value for key, value in event.items() if key != "header"}):
            payload["metadata"] = {"encoding": base64.b64encode(b"binary/encrypted").decode()}
            payload["data"] = base64.b64encode(payload.get("data", "").encode()[::-1]).decode()


def _payloads(value: Any) -> Iterable[dict[str, Any]]:
    if isinstance(value, dict):
        if "metadata" in value and isinstance(value["metadata"], dict) and "encoding" in value["metadata"]:
            yield value
        for key, part in value.items():
            if key != "header":
                yield from _payloads(part)
    elif isinstance(value, list):
        for part in value:
            yield from _payloads(part)


def _readable(event: Any) -> str:
    return "\n".join(
        base64.b64decode(payload.get("data", "")).decode("utf-8", "replace") for payload in _payloads(event)
    )


def header(event: dict[str, Any], **changes: Any) -> None:
    """Change fields of the call that an activity was scheduled with."""
    payload = event["activityTaskScheduledEventAttributes"]["header"]["fields"]["gatewright-call"]
    called = json.loads(base64.b64decode(payload["data"])) | changes
    payload["data"] = base64.b64encode(json.dumps(called).encode()).decode()


def later(event: dict[str, Any], year: str = "2036") -> None:
    """The event happened years later."""
    event["eventTime"] = re.sub(r"^\d{4}", year, event["eventTime"])


# Forging receipts


def forged(receipts: Sequence[Receipt], number: int, **changes: Any) -> list[Receipt]:
    """The chain with other facts in one receipt (a path such as `responder__principal`), sealed anew from there on."""
    changed = receipts[number - 1].model_dump(mode="json")
    for path, value in changes.items():
        *way, last = path.split("__")
        place = changed
        for step in way:
            place = place[step]
        place[last] = value
    return sealed([*receipts[: number - 1], Receipt.model_validate(changed), *receipts[number:]])


def sealed(receipts: Sequence[Receipt]) -> list[Receipt]:
    """A chain of these facts that holds by itself: what somebody can make who may write all of it."""
    chain: list[Receipt] = []
    for receipt in receipts:
        facts = {name: getattr(receipt, name) for name in Receipt.model_fields}
        for name in ("number", "previous", "digest"):
            del facts[name]
        chain.append(Receipt.seal(chain[-1] if chain else None, **facts))
    return chain


def moved(at: datetime, seconds: float) -> str:
    """A time some seconds away, as JSON has it."""
    return datetime.fromtimestamp(at.timestamp() + seconds, at.tzinfo).isoformat()
