"""ADK's sessions: made, read, changed and deleted, over the store's conversations and the runs' transcripts."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4  # noqa: TID251 - an adapter mints what its clients leave out

from gatewright.protocol.entries import Asked
from gatewright.protocol.gate import shown_digest
from gatewright.store import RUN_OPEN, Conversation, ConversationExists, RunRecord, SessionKey, SessionOpen
from gatewright.temporal import GateClient
from gatewright.temporal.reading import now

from .apps import App
from .events import Event, Renderer, entry_of, event
from .names import invocation_id
from .rejection import Rejection
from .shapes import delta_of, initial_event, open_gates, reported, session_json, session_key, state_of


class Sessions:
    """The sessions of some apps, behind one `GateClient`."""

    def __init__(self, client: GateClient, apps: Iterable[App]) -> None:
        self.client = client
        self.store = client.store
        self.apps: Mapping[str, App] = {app.name: app for app in apps}

    def app(self, name: str) -> App:
        """The app of this name; `Rejection` `unknown_app` where there is none."""
        if app := self.apps.get(name):
            return app
        known = ", ".join(sorted(self.apps)) or "none"
        raise Rejection("unknown_app", f"Agent not found: {name!r}.", todo=f"Apps that are served: {known}.")

    async def create_session(
        self,
        app: str,
        user: str,
        session: str | None = None,
        *,
        state: Mapping[str, Any] | None = None,
        events: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """
        Make a session with this state and these events.

        `Rejection` `session_exists`, and `not_initial` for events that are
        ADK's own calls: a gate is opened by a run alone.
        """
        self.app(app)
        key = session_key(app, user, (session or "").strip() or str(uuid4()))
        at = now()
        initial = [initial_event(position, given, at) for position, given in enumerate(events)]
        async with reported():
            try:
                made = await asyncio.to_thread(
                    self.store.create_conversation, key, state=state_of(state or {}), events=initial, at=at
                )
            except ConversationExists as there:
                message = f"Session already exists: {key.session}"
                raise Rejection("session_exists", message, todo="Use it, or name another.") from there
            return await self._session(made, [])

    async def session(self, app: str, user: str, session: str) -> dict[str, Any]:
        """A session with its events; `Rejection` `unknown_session`."""
        talk = await self._conversation(app, user, session)
        async with reported():
            return await self._session(talk, await self._runs(talk))

    async def sessions(self, app: str, user: str | None) -> list[dict[str, Any]]:
        """
        A user's sessions (everybody's for None), without events, the one that was touched last at the end.

        Their state is what they were made with: what runs changed since is read
        with the session itself.
        """
        self.app(app)
        session_key(app, user or "-", "-")
        async with reported():
            talks = await asyncio.to_thread(self.store.conversations, app, user)
        return [session_json(talk, dict(talk.state), [], talk.updated_at.timestamp()) for talk in talks]

    async def patch_session(
        self, app: str, user: str, session: str, state_delta: Mapping[str, Any], *, event_id: str | None = None
    ) -> dict[str, Any]:
        """Change a session's state, by an event of its own as ADK does; `event_id` where the caller has made it."""
        talk = await self._conversation(app, user, session)
        await self._remark(talk.session, state_delta, event_id=event_id)
        return await self.session(app, user, session)

    async def delete_session(self, app: str, user: str, session: str) -> None:
        """
        Delete a session; there need not be one. Its runs' receipts and archives stay.

        `Rejection` `session_busy` while a run of it is open: nobody could answer
        it there any more.
        """
        self.app(app)
        key = session_key(app, user, session)
        async with reported():
            for run in await asyncio.to_thread(self.store.runs, session=key, standing=RUN_OPEN):
                # The store may not know yet that it ended.
                await self.client.still_open(run)
            try:
                await asyncio.to_thread(self.store.delete_conversation, key, at=now())
            except SessionOpen as busy:
                todo = "Answer its gates, or cancel the run, and delete the session then."
                raise await self._busy(busy.run.workflow_id, "it cannot be deleted", todo=todo) from busy

    async def _busy(self, workflow_id: str, why: str, *, todo: str | None = None) -> Rejection:
        rows = await asyncio.to_thread(self.store.gates, run=workflow_id, states={"open"})
        gates = open_gates(rows)
        waits = (
            f"it waits at {', '.join(gate['interruptId'] for gate in gates)}" if gates else "no gate of it is open yet"
        )
        message = f"Invocation {invocation_id(workflow_id)} of this session is open ({waits}), so {why}."
        return Rejection("session_busy", message, todo=todo, open=gates, workflow_id=workflow_id)

    # Reading

    async def _conversation(self, app: str, user: str, session: str, *, named: bool = False) -> Conversation:
        self.app(app)
        key = session_key(app, user, session)
        async with reported():
            talk = await asyncio.to_thread(self.store.conversation, key)
        if talk is None:
            message = f"Session not found: {session}" if named else "Session not found"
            raise Rejection("unknown_session", message, error_type="SessionNotFoundError", todo="Create it first.")
        return talk

    async def _runs(self, talk: Conversation, *, limit: int = 10_000) -> list[RunRecord]:
        """The runs of a conversation, newest first, but for those that never came to be."""
        listed = await asyncio.to_thread(self.store.runs, session=talk.session, limit=limit)
        return [run for run in listed if _belongs(run, talk)]

    async def _run(self, talk: Conversation, number: int) -> RunRecord | None:
        run = await asyncio.to_thread(self.store.run, talk.session.workflow_id(number))
        return run if run is not None and _belongs(run, talk) else None

    async def _remark(self, key: SessionKey, state_delta: Mapping[str, Any], *, event_id: str | None = None) -> None:
        at = now()
        delta = state_of(state_delta)
        told = event(
            event_id=event_id or str(uuid4()), at=at, invocation=f"p-{uuid4()}", author="user", state_delta=delta
        )
        async with reported():
            await asyncio.to_thread(self.store.remark, key, told, at=at)

    async def _remarked(self, talk: Conversation) -> list[Event]:
        return [dict(remark.event) for remark in await asyncio.to_thread(self.store.remarks, talk.session)]

    async def _session(self, talk: Conversation, runs: list[RunRecord]) -> dict[str, Any]:
        events = await self._remarked(talk)
        for shown in await asyncio.gather(*(self._events(run) for run in reversed(runs))):
            events += shown
        # Stable: events of one moment stay as their run told them.
        events.sort(key=lambda shown: float(shown["timestamp"]))
        state: dict[str, Any] = dict(talk.state)
        for each in events:
            state |= delta_of(each)
        updated = float(events[-1]["timestamp"]) if events else talk.updated_at.timestamp()
        return session_json(talk, state, events, updated)

    async def _events(self, run: RunRecord) -> list[Event]:
        """One run's events: from its archive where it is over, else from itself."""
        renderer = self._renderer(run.workflow_id)
        events: list[Event] = []
        cursor = 0
        while True:
            page = await self.client.told(run, cursor)
            for position, line in enumerate(page.entries, start=page.next - len(page.entries)):
                events += renderer.feed(await self._restored(run.workflow_id, entry_of(line)), position)
            if not page.entries or page.closed:
                return [*events, *renderer.flush()]
            cursor = page.next

    def _renderer(self, workflow_id: str) -> Renderer:
        app = SessionKey.of_workflow(workflow_id)[0].app
        return Renderer(workflow_id, self.app(app).root_name)

    async def _restored(self, workflow_id: str, entry: Any) -> Any:
        """A gate with what it showed, where the run has let go of that: the index keeps it."""
        if not isinstance(entry, Asked):
            return entry
        gate = entry.gate
        if shown_digest(gate.message, gate.payload, gate.response_schema) == gate.digest:
            return entry
        rows = await asyncio.to_thread(self.store.gates, run=workflow_id, gate=gate.name, limit=10_000)
        for row in rows:
            if row.interrupt_id == entry.occurrence.interrupt_id:
                told = {"message": row.message or None, "payload": row.payload, "response_schema": row.response_schema}
                return entry.model_copy(update={"gate": gate.model_copy(update=told)})
        return entry


def _belongs(run: RunRecord, talk: Conversation) -> bool:
    never_was = run.first_execution_run_id is None and run.standing in {"allocated", "failed"}
    return run.number > talk.after and not never_was
