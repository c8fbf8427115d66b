"""ADK's session service over runs: reads transcripts, and keeps no events of its own."""

from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session

from gatewright.adk import Gateway, Rejection

from .errors import raised, told

_OWN = {"id", "timestamp", "author", "invocation_id"}


class TemporalSessionService(BaseSessionService):
    """
    The sessions of a gateway's apps.

    Events come from runs alone, so that nothing appended beside them can answer
    a gate, or poison one (B18, D02). `app:` and `user:` state is the session's
    own here and shared with no other.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Make a session; `AlreadyExistsError`."""
        with told():
            return Session.model_validate(await self.gateway.create_session(app_name, user_id, session_id, state=state))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session, or None; `config` bounds its events, never its state."""
        try:
            session = Session.model_validate(await self.gateway.session(app_name, user_id, session_id.strip()))
        except Rejection as rejection:
            if rejection.code == "unknown_session":
                return None
            raise raised(rejection) from rejection
        if config and config.num_recent_events is not None:
            session.events = session.events[-config.num_recent_events :] if config.num_recent_events else []
        if config and config.after_timestamp is not None:
            session.events = [event for event in session.events if event.timestamp >= config.after_timestamp]
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """A user's sessions (everybody's for None) without events, the one that was touched last at the end."""
        with told():
            listed = await self.gateway.sessions(app_name, user_id)
        return ListSessionsResponse(sessions=[Session.model_validate(each) for each in listed])

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; `ValueError` while a run of it is open."""
        with told():
            await self.gateway.delete_session(app_name, user_id, session_id.strip())

    async def append_event(self, session: Session, event: Event) -> Event:
        """
        Change the session's state, which is all that ADK appends outside of runs.

        `ValueError` for every other event: what a run did is told by the run.
        """
        if event.partial:
            return event
        delta = event.actions.state_delta
        if not delta or _more_than(event, delta):
            msg = (
                "Only a change of state can be appended to a session whose events are told by runs on Temporal. "
                "Send text or functionResponses through run_async, and end a run by cancelling its workflow."
            )
            raise ValueError(msg)
        with told():
            await self.gateway.patch_session(session.app_name, session.user_id, session.id, delta, event_id=event.id)
        return await super().append_event(session, event)


def _more_than(event: Event, delta: dict[str, Any]) -> bool:
    """Whether an event does anything besides changing state."""
    bare = Event(author=event.author, invocation_id=event.invocation_id, actions=EventActions(state_delta=delta))
    return event.model_dump(exclude=_OWN, exclude_none=True) != bare.model_dump(exclude=_OWN, exclude_none=True)
