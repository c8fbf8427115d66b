"""
An ADK `Runner` whose invocations are runs on Temporal.

It submits and looks on: closing the generator, or the abort signal, ends the
looking on and never the run (N01, N03).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from google.adk.agents.context import Context
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.workflow import Workflow
from google.genai import types

from gatewright.adk import Accepted, App, Gateway, Rejection, Turn
from gatewright.adk.names import event_id
from gatewright.adk.shapes import reported, session_key

from .errors import raised, told
from .sessions import TemporalSessionService


class Elsewhere(Workflow):
    """
    Stands where ADK wants a root agent: a name and a description, for agent cards and listings.

    ADK itself cannot run it, and says so instead of doing nothing.
    """

    @classmethod
    def of(cls, app: App) -> "Elsewhere":
        """The stand-in for an app; ADK takes only identifiers as names."""
        name = app.root_name if app.root_name.isidentifier() else "pipeline"
        return cls(name=name, description=app.description)

    def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        msg = f"{self.name} runs on Temporal: call run_async of a TemporalRunner."
        raise NotImplementedError(msg)


class TemporalRunner(Runner):
    """
    One app of a gateway, for code that calls a `Runner`.

    What the gateway rejects is raised as ADK would raise it, with the
    `rejection` on the exception. With `a2a`, for ADK's A2A executors: a turn's
    last event has every gate that the run now waits at, and a message that is
    rejected while gates wait earns copies of them that say why, each under
    another id that is taken too. An A2A task would else end for ever at the
    first exception, and count as completed at the first turn without a gate.
    """

    def __init__(
        self, gateway: Gateway, app_name: str, *, a2a: bool = False, auto_create_session: bool = False
    ) -> None:
        with told():
            root_agent = Elsewhere.of(gateway.app(app_name))
        super().__init__(
            app_name=app_name,
            node=root_agent,
            session_service=TemporalSessionService(gateway),
            auto_create_session=auto_create_session,
        )
        self.root_agent = root_agent
        self.gateway = gateway
        self.a2a = a2a
        self._saying: set[asyncio.Task[Accepted]] = set()

    async def run_async(
        self,
        *,
        user_id: str,
        session_id: str,
        invocation_id: str | None = None,
        new_message: types.Content | None = None,
        state_delta: dict[str, Any] | None = None,
        run_config: RunConfig | None = None,
        yield_user_message: bool = False,
        abort_signal: asyncio.Event | None = None,
    ) -> AsyncGenerator[Event, None]:
        """
        Open a run with text, answer its gates with functionResponses; the events until it waits or is over.

        `run_config.custom_metadata` is on every event of the turn; nothing else
        of `run_config` has a meaning here.
        """
        if abort_signal is not None and abort_signal.is_set():
            return
        if self.auto_create_session:
            probe = GetSessionConfig(num_recent_events=0)
            await self._get_or_create_session(user_id=user_id, session_id=session_id, get_session_config=probe)
        turn = Turn(
            app=self.app_name,
            user=user_id,
            session=session_id,
            message=new_message,
            invocation_id=invocation_id,
            state_delta=state_delta,
            metadata=run_config.custom_metadata if run_config else None,
        )
        gates: list[dict[str, Any]] = []
        try:
            accepted = await self._submitted(turn)
            if yield_user_message:
                for event in await self._said(turn, accepted):
                    yield Event.model_validate(event)
            following = self.gateway.follow(accepted)
            async with aclosing(following), aclosing(_until(abort_signal, following)) as events:
                async for event in events:
                    if not (self.a2a and event.get("longRunningToolIds")):
                        yield Event.model_validate(event)
            if self.a2a:
                gates = await self._waiting(turn, accepted)
        except Rejection as rejection:
            with told():
                gates = await self._asked_again(turn, rejection)
            if not gates:
                raise raised(rejection) from rejection
        if gates:
            yield Event.model_validate(_in_one(gates))

    async def _submitted(self, turn: Turn) -> Accepted:
        # What is being said is said to the end, whatever becomes of whoever says it.
        task = asyncio.create_task(self.gateway.submit(turn))
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)
        return await asyncio.shield(task)

    async def _said(self, turn: Turn, accepted: Accepted) -> list[dict[str, Any]]:
        """The user's own event, as the session has it; nothing where nothing was said, or the run no longer tells."""
        if turn.message is None or accepted.silent:
            return []
        session = await self.gateway.session(turn.app, turn.user, turn.session)
        mine = event_id(accepted.workflow_id, accepted.start)
        return [event for event in session["events"] if event["id"] == mine]

    async def _waiting(self, turn: Turn, accepted: Accepted) -> list[dict[str, Any]]:
        """The events of the gates that the run waits at."""
        async with reported():
            rows = await asyncio.to_thread(self.gateway.store.gates, run=accepted.workflow_id, states={"open"})
            ids = await self._open(accepted.workflow_id) if rows else set()
        session = await self.gateway.session(turn.app, turn.user, turn.session) if ids else {"events": []}
        return [event for event in session["events"] if ids.intersection(event.get("longRunningToolIds", ()))]

    async def _asked_again(self, turn: Turn, rejection: Rejection) -> list[dict[str, Any]]:
        """Copies of the gates that wait in the run that was meant, or else in the session's newest that waits at any."""
        if not self.a2a or rejection.status >= 500:
            return []
        key = session_key(turn.app, turn.user, turn.session)
        async with reported():
            rows = await asyncio.to_thread(self.gateway.store.gates, session=key, states={"open"})
            runs = [row.workflow_id for row in rows]
            if runs and rejection.workflow_id not in runs:
                rejection.workflow_id = runs[0]
            rejection.armed = tuple(await self._open(rejection.workflow_id)) if rejection.workflow_id in runs else ()
        return await self.gateway.rearm(rejection)

    async def _open(self, workflow_id: str) -> set[str]:
        """Where the run itself says that it waits; the index may be a moment behind."""
        gates = await self.gateway.client.gates(workflow_id)
        return {gate.interrupt_id for gate in gates if gate.state == "open"}


def _in_one(gates: list[dict[str, Any]]) -> dict[str, Any]:
    """Gate events as one: of several, ADK's A2A executor shows the last."""
    parts = [part for gate in gates for part in gate["content"]["parts"]]
    ids = [each for gate in gates for each in gate["longRunningToolIds"]]
    return gates[-1] | {"content": {"parts": parts, "role": "model"}, "longRunningToolIds": ids}


async def _until(
    signal: asyncio.Event | None, events: AsyncIterator[dict[str, Any]]
) -> AsyncGenerator[dict[str, Any], None]:
    """Events until the signal is set, if there is one."""
    if signal is None:
        async for event in events:
            yield event
        return
    waiting = asyncio.ensure_future(signal.wait())
    step: asyncio.Future[Any] = waiting
    try:
        while not signal.is_set():
            step = asyncio.ensure_future(anext(aiter(events), None))
            await asyncio.wait({step, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done() or (event := step.result()) is None:
                return
            yield event
    finally:
        step.cancel()
        waiting.cancel()
        await asyncio.gather(step, waiting, return_exceptions=True)
