"""
ADK's events, rendered from a run's transcript.

The same transcript always gives the same events, ids and times included, so
what was streamed and what a reload shows are one. ADK's casing, its order of
keys and its left-out Nones are kept (contract A and M05), because clients rely
on them.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from gatewright.protocol.canonical import digest
from gatewright.protocol.entries import (
    Answered,
    Asked,
    Closed,
    Consumed,
    Entry,
    Expired,
    Opened,
    Performed,
    Said,
    Superseded,
)
from gatewright.protocol.identity import BranchPath, Standing

from . import names
from .names import REQUEST_INPUT

Event = dict[str, Any]
"""An event of ADK as JSON, in its casing and order of keys."""

_ENTRY: TypeAdapter[Any] = TypeAdapter(Entry)
_KEYS = (
    "content",
    "errorCode",
    "errorMessage",
    "customMetadata",
    "invocationId",
    "author",
    "actions",
    "output",
    "nodeInfo",
    "longRunningToolIds",
    "branch",
    "id",
    "timestamp",
)
_NOTHING = digest(None)
_ENDED = {
    Standing.CANCELLED: "RUN_CANCELLED",
    Standing.ABANDONED: "RUN_ABANDONED",
    Standing.SUPERSEDED: "RUN_SUPERSEDED",
}


def entry_of(line: dict[str, Any]) -> Any:
    """A line of a transcript page as an entry; None for one of a kind that this release does not know."""
    fields = {key: value for key, value in line.items() if key not in {"interrupt_id", "call_id"}}
    try:
        return _ENTRY.validate_python(fields)
    except ValidationError:
        return None


def event(
    *,
    event_id: str,
    at: datetime,
    invocation: str,
    author: str,
    path: str = "",
    output_for: Iterable[str] = (),
    state_delta: dict[str, JsonValue] | None = None,
    route: JsonValue = None,
    **fields: Any,
) -> Event:
    """An event with ADK's own keys in ADK's order; fields that are None are left out, as ADK leaves them out."""
    actions: dict[str, Any] = {
        "stateDelta": state_delta or {},
        "artifactDelta": {},
        "requestedAuthConfigs": {},
        "requestedToolConfirmations": {},
    }
    if route is not None:
        actions["route"] = route
    node: dict[str, Any] = {"path": path}
    if output_for:
        node["outputFor"] = list(output_for)
    told = {
        **fields,
        "invocationId": invocation,
        "author": author,
        "actions": actions,
        "nodeInfo": node,
        "id": event_id,
        "timestamp": at.timestamp(),
    }
    return {key: told[key] for key in _KEYS if told.get(key) is not None}


def gate_call(interrupt_id: str, *, shown_as: str, message: str | None, payload: JsonValue, schema: Any) -> Event:
    """The content of a gate event (A01, A02): `shown_as` is the function call's id."""
    args = {"interruptId": interrupt_id, "payload": payload, "message": message, "response_schema": schema}
    call = {"id": shown_as, "args": args, "name": REQUEST_INPUT}
    return {"parts": [{"functionCall": call}], "role": "model"}


def author_of(branch: BranchPath) -> str:
    """The innermost workflow that owns a node (A05)."""
    return branch[-2].name if len(branch) > 1 else branch[-1].name if branch else ""


class Renderer:
    """
    Renders one run's transcript, entry by entry.

    An event is held back until it is known whether the next entry belongs to
    it: the terminal node's output is the workflow's (M05), and several answers
    of one message are one event. `flush` gives out what is held.
    """

    def __init__(self, workflow_id: str, root: str) -> None:
        self.workflow_id = workflow_id
        self.root = BranchPath().child(root, 1)
        """What is said of the run as a whole is said by its root."""
        self.invocation = names.invocation_id(workflow_id)
        self.metadata: dict[str, JsonValue] | None = None
        """ADK's `customMetadata` of the turn: it is on every event of it."""
        self.failure: str | None = None
        """Why the run failed, once it has."""
        self.closed = False
        """Whether the run is over."""
        self._held: Event | None = None
        self._returned: str | None = None
        """The digest of what the last step or answer gave, which may be what the run returns."""
        self._place: BranchPath | None = None
        self._open: dict[str, BranchPath] = {}
        self._error: str | None = None

    def feed(self, entry: Any, cursor: int) -> Iterator[Event]:
        """The events that are complete now that this entry, the `cursor`-th of the transcript, is known."""
        match entry:
            case Opened():
                yield from self._opened(entry, cursor)
            case Asked():
                yield from self._asked(entry, cursor)
            case Answered():
                yield from self._answered(entry, cursor)
            case Performed():
                yield from self._performed(entry, cursor)
            case Said():
                yield from self.flush()
                content = {"parts": [{"text": entry.text}], "role": "user"}
                yield self._event(cursor, entry.at, entry.branch, content=content)
            case Expired(outcome="fail") | Superseded():
                why = "the deadline passed" if isinstance(entry, Expired) else entry.reason
                yield from self.flush()
                yield from self._given_up(entry.occurrence.interrupt_id, why, cursor, entry.at)
            case Closed():
                yield from self._closed(entry, cursor)
            case Consumed() | _:
                pass

    def flush(self) -> Iterator[Event]:
        """What is held back."""
        held, self._held = self._held, None
        if held is not None:
            yield held

    def _event(self, cursor: int, at: datetime, branch: BranchPath, *, part: int = 0, **fields: Any) -> Event:
        fields = {"author": author_of(branch), "path": str(branch), "customMetadata": self.metadata} | fields
        return event(
            event_id=names.event_id(self.workflow_id, cursor, part), at=at, invocation=self.invocation, **fields
        )

    def _user_event(self, cursor: int, at: datetime, note: dict[str, JsonValue] | None, content: Event) -> Event:
        note = note or {}
        metadata, delta = note.get("custom_metadata"), note.get("state_delta")
        self.metadata = metadata if isinstance(metadata, dict) and metadata else None
        return event(
            event_id=names.event_id(self.workflow_id, cursor),
            at=at,
            invocation=self.invocation,
            author="user",
            content=content,
            customMetadata=self.metadata,
            state_delta=delta if isinstance(delta, dict) else None,
        )

    def _opened(self, entry: Opened, cursor: int) -> Iterator[Event]:
        content = (entry.note or {}).get("content")
        if not isinstance(content, dict):
            words = entry.text
            if words is None:
                words = entry.input if isinstance(entry.input, str) else json.dumps(entry.input, ensure_ascii=False)
            content = {"parts": [{"text": words}], "role": "user"}
        yield self._user_event(cursor, entry.at, entry.note, content)

    def _asked(self, entry: Asked, cursor: int) -> Iterator[Event]:
        yield from self.flush()
        self._open[entry.occurrence.interrupt_id] = entry.branch
        interrupt_id, gate = entry.occurrence.interrupt_id, entry.gate
        content = gate_call(
            interrupt_id,
            shown_as=interrupt_id,
            message=gate.message,
            payload=gate.payload,
            schema=gate.response_schema,
        )
        yield self._event(cursor, entry.at, entry.branch, content=content, longRunningToolIds=[interrupt_id])

    def _answered(self, entry: Answered, cursor: int) -> Iterator[Event]:
        interrupt_id = entry.occurrence.interrupt_id
        self._place = self._open.pop(interrupt_id, entry.receipt.branch)
        self._returned = digest(entry.value) if entry.value is not None else None
        part = {"functionResponse": {"id": interrupt_id, "name": REQUEST_INPUT, "response": _response(entry)}}
        if entry.part and self._held is not None and self._held["author"] == "user":
            self._held["content"]["parts"].append(part)
            return
        yield from self.flush()
        if entry.answer.principal.startswith("engine:"):
            # Nobody said it, so it is not shown as a user's word (as ADK authors what it makes up itself, N03).
            content = {"parts": [part], "role": "user"}
            yield self._event(cursor, entry.at, self._place, path="", content=content)
            return
        parts: list[Any] = [part]
        beside: Any = (entry.note or {}).get("beside")
        for each in beside if isinstance(beside, list) else ():
            # As `read` wrote it; a note may come from anybody who may call Temporal.
            if isinstance(each, list) and len(each) == 2 and isinstance(each[0], int) and isinstance(each[1], dict):
                parts.insert(each[0], each[1])
        self._held = self._user_event(cursor, entry.at, entry.note, {"parts": parts, "role": "user"})

    def _performed(self, entry: Performed, cursor: int) -> Iterator[Event]:
        yield from self.flush()
        path = str(entry.call.branch)
        if entry.outcome == "failed":
            self._error = entry.error
            code, message = entry.error_type or "Error", (entry.error or "").removeprefix(f"{entry.error_type}: ")
            yield self._event(cursor, entry.at, entry.call.branch, errorCode=code, errorMessage=message)
            return
        self._returned, self._place = entry.output_digest, entry.call.branch
        nothing = entry.output is None and entry.output_digest in {None, _NOTHING}
        if nothing and not entry.state_delta and entry.route is None:
            return  # E07: ADK shows nothing of a node that gave nothing
        fields: dict[str, Any] = {"state_delta": entry.state_delta, "route": entry.route}
        if not nothing:
            fields |= {"output": entry.output, "output_for": [path]}
        if entry.output is None and not nothing:
            # Too large for the transcript: that there is one, and which, is said all the same.
            fields["customMetadata"] = {**(self.metadata or {}), "gatewright": {"outputDigest": entry.output_digest}}
        self._held = self._event(cursor, entry.at, entry.call.branch, **fields)

    def _closed(self, entry: Closed, cursor: int) -> Iterator[Event]:
        self.closed = True
        root = str(self.root)
        if entry.standing is Standing.COMPLETED:
            yield from self._completed(entry, cursor, root)
            return
        yield from self.flush()
        reason = entry.reason or f"the run is {entry.standing.value}"
        for part, interrupt_id in enumerate(list(self._open), start=1):
            yield from self._given_up(interrupt_id, reason, cursor, entry.at, part=part)
        if entry.standing is Standing.FAILED:
            self.failure = reason
            if reason == self._error:
                return
            code, _, message = reason.partition(": ")
            named = bool(message) and code.isidentifier()
            code, message = (code, message) if named else ("RunFailed", reason)
        else:
            code, message = _ENDED.get(entry.standing, "RUN_ENDED"), reason
        yield self._event(cursor, entry.at, self.root, errorCode=code, errorMessage=message)

    def _completed(self, entry: Closed, cursor: int, root: str) -> Iterator[Event]:
        """The terminal output is the workflow's as well (M05); an answer that is the end gets an event of its own (E04)."""
        returned = digest(entry.output) if entry.output is not None else None
        last_word = returned is not None and returned == self._returned
        if last_word and self._held is not None and "output" in self._held:
            self._held["nodeInfo"]["outputFor"].append(root)
            yield from self.flush()
            return
        yield from self.flush()
        if returned is None:
            return
        place = self._place if last_word and self._place else self.root
        output_for = dict.fromkeys((str(place), root))
        yield self._event(cursor, entry.at, place, output=entry.output, output_for=output_for)

    def _given_up(self, interrupt_id: str, why: str, cursor: int, at: datetime, *, part: int = 0) -> Iterator[Event]:
        """A gate that nobody will answer any more: ADK's clients take its form away when they see a response to it (N03)."""
        branch = self._open.pop(interrupt_id, self.root)
        response = {"id": interrupt_id, "name": REQUEST_INPUT, "response": {"error": why}}
        content = {"parts": [{"functionResponse": response}], "role": "user"}
        yield self._event(
            cursor, at, branch, part=part, path="", content=content, errorCode="GATE_CLOSED", errorMessage=why
        )


def _response(entry: Answered) -> Any:
    """The functionResponse's payload as it was given: an object, or what stands for one (C01)."""
    if entry.answer.failure is not None:
        failure = entry.answer.failure
        return {"error": f"{failure.type}: {failure.message}"}
    response = entry.answer.response
    return response if isinstance(response, dict) else {"result": response}
