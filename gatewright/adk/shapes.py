"""Small shapes on the way between ADK's JSON and ours, and what the world's mistakes are told as."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import uuid4  # noqa: TID251 - an adapter mints what its clients leave out

from google.genai import types
from pydantic import ValidationError

from gatewright.protocol.canonical import NotJson, canonical, plain
from gatewright.store import Conversation, GateRow, OpeningConflict, SessionKey, StoreError, StoreUnavailable
from gatewright.temporal.errors import NoWorkerError, ServerUnavailableError, TemporalShellError

from .events import Event, event
from .names import PROTOCOL_CALLS
from .rejection import Rejection


def session_key(app: str, user: str, session: str) -> SessionKey:
    """The session's key; `Rejection` `bad_name` for what cannot be part of a workflow id."""
    try:
        return SessionKey(app=app, user=user, session=session)
    except ValidationError as wrong:
        raise Rejection("bad_name", brief(wrong), todo="Use another name.") from wrong


def state_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """State as it is kept: as JSON, and without `temp:` keys, which ADK does not keep either (K01)."""
    kept = {name: value for name, value in state.items() if not name.startswith("temp:")}
    try:
        shown = plain(kept)
        canonical(shown)
    except NotJson as wrong:
        raise Rejection("bad_state", f"state must be JSON: {wrong}", todo="Send portable JSON.") from wrong
    return shown if isinstance(shown, dict) else {}


def delta_of(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What an event changes in its session's state."""
    actions = shown.get("actions")
    delta = actions.get("stateDelta") if isinstance(actions, dict) else None
    return delta if isinstance(delta, dict) else {}


def open_gates(rows: Sequence[GateRow]) -> tuple[dict[str, Any], ...]:
    """Open gates as a rejection tells of them, oldest first."""
    listed = sorted(rows, key=lambda row: row.opened_at)
    return tuple({"interruptId": row.interrupt_id, "gate": row.gate, "message": row.message} for row in listed)


def initial_event(position: int, given: Mapping[str, Any], at: datetime) -> Event:
    """An event that a session begins with, in ADK's shape; `Rejection` `not_initial` for ADK's own calls."""
    content = given.get("content")
    try:
        said = types.Content.model_validate(content) if content else None
    except (ValueError, AttributeError, TypeError) as wrong:
        # google-genai's own validators stumble over some odd values.
        raise Rejection(
            "unreadable", f"Session initialization event {position}: {brief(wrong)}", todo="Mend the event."
        ) from wrong
    for part in (said.parts or []) if said else []:
        call = part.function_call or part.function_response
        if call is not None and (call.name or "").startswith(PROTOCOL_CALLS):
            raise Rejection(
                "not_initial",
                f"Session initialization event {position} cannot include ADK protocol function calls.",
                todo="Leave it out: a gate is opened by a run.",
            )
    return event(
        event_id=str(uuid4()),
        at=at,
        invocation=str(given.get("invocationId") or ""),
        author=str(given.get("author") or "user"),
        content=said.model_dump(mode="json", by_alias=True, exclude_none=True) if said else None,
    )


def session_json(talk: Conversation, state: dict[str, Any], events: list[Event], updated: float) -> dict[str, Any]:
    """ADK's `Session` as JSON; `updated` is a Unix time."""
    return {
        "id": talk.session.session,
        "appName": talk.session.app,
        "userId": talk.session.user,
        "state": state,
        "events": events,
        "lastUpdateTime": updated,
    }


def brief(wrong: Exception) -> str:
    """What is wrong, in one line."""
    if isinstance(wrong, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}" if each["loc"] else each["msg"]
            for each in wrong.errors(include_url=False, include_context=False, include_input=False)[:5]
        )
    return re.sub(r"\s+", " ", str(wrong))[:1000]


@asynccontextmanager
async def reported() -> AsyncIterator[None]:
    """Tell what is the world's mistake as a rejection that says so."""
    try:
        yield
    except OpeningConflict as conflict:
        raise Rejection("conflict", str(conflict)) from conflict
    except StoreUnavailable as away:
        raise Rejection("store_away", f"The store cannot be reached: {away}") from away
    except StoreError as wrong:
        raise Rejection("store_refused", str(wrong)) from wrong
    except NoWorkerError as nobody:
        raise Rejection("no_worker", str(nobody)) from nobody
    except ServerUnavailableError as away:
        raise Rejection("unreachable", str(away)) from away
    except TemporalShellError as wrong:
        raise Rejection("not_set_up", str(wrong), todo="See the message.") from wrong
