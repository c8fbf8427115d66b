"""The two sides that a script is played against, and what is written down of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.workflow import Workflow
from google.genai import types

from gatewright.adk import Gateway, Rejection, Turn

from .scripts import Answer, Job, Say, Script

Json = Any


class Side(Protocol):
    """One of the two: whoever a script is played against."""

    async def begin(self, state: dict[str, Any]) -> Json:
        """Make the session."""
        ...

    def say(self, message: types.Content | None, invocation: str | None, said: Say) -> AsyncIterator[Json]:
        """Send a message; its events. What it raises is told by `rejected`."""
        ...

    async def job(self) -> None:
        """Wait until the background job has answered its gate."""
        ...

    async def read(self) -> Json:
        """Read the session."""
        ...


def rejected(wrong: Exception) -> str:
    """A rejection as `/run_sse` shows it."""
    if isinstance(wrong, Rejection):
        return f"{wrong.error_type}: {wrong.message}"
    return f"{type(wrong).__name__}: {wrong}"


@dataclass
class RunnerSide:
    """Real ADK: its `Runner` over an `InMemorySessionService`."""

    app: str
    root: Workflow
    session: str
    user: str = "user"
    service: InMemorySessionService = field(default_factory=InMemorySessionService)
    at_work: Any = None
    """`await at_work()` does the background job and returns the id and the response that it answers with."""

    def __post_init__(self) -> None:
        """Set the runner up."""
        self.runner = Runner(app=App(name=self.app, root_agent=self.root), session_service=self.service)

    async def begin(self, state: dict[str, Any]) -> Json:
        made = await self.service.create_session(
            app_name=self.app, user_id=self.user, session_id=self.session, state=state
        )
        return _json(made)

    async def say(self, message: types.Content | None, invocation: str | None, said: Say) -> AsyncIterator[Json]:
        config = RunConfig(custom_metadata=said.metadata) if said.metadata else None
        async for event in self.runner.run_async(
            user_id=self.user,
            session_id=self.session,
            new_message=message,
            invocation_id=invocation,
            state_delta=said.state,
            run_config=config,
        ):
            yield _json(event)

    async def job(self) -> None:
        interrupt_id, response = await self.at_work()
        message = types.Content(role="user", parts=[Answer("", response).part(interrupt_id)])
        async for _ in self.say(message, None, Say()):
            pass

    async def read(self) -> Json:
        return _json(await self.service.get_session(app_name=self.app, user_id=self.user, session_id=self.session))


@dataclass
class GatewaySide:
    """Gatewright: a gateway with workers behind it."""

    gateway: Gateway
    app: str
    session: str
    user: str = "user"
    at_work: Any = None

    async def begin(self, state: dict[str, Any]) -> Json:
        return await self.gateway.create_session(self.app, self.user, self.session, state=state)

    async def say(self, message: types.Content | None, invocation: str | None, said: Say) -> AsyncIterator[Json]:
        turn = Turn(
            self.app,
            self.user,
            self.session,
            message,
            invocation_id=invocation,
            state_delta=said.state,
            metadata=said.metadata,
        )
        async for event in self.gateway.follow(await self.gateway.submit(turn)):
            yield event

    async def job(self) -> None:
        await self.at_work()

    async def read(self) -> Json:
        return await self.gateway.session(self.app, self.user, self.session)


async def play(side: Side, script: Script, **words: str) -> Json:
    """
    Play the script; everything that came of it.

        {"created": session, "turns": {name: {"events": [...], "rejected": text or null}}, "session": session}

    `words` are put into its texts.
    """
    created = await side.begin(script.state)
    turns: dict[str, Json] = {}
    asked: dict[str, list[str]] = {}
    invocations: list[str] = []
    for name, step in script.steps.items():
        events: list[Json] = []
        wrong = None
        if isinstance(step, Job):
            await side.job()
            continue
        parts = [_part(part, asked, words) for part in step.parts]
        message = types.Content(role=step.role, parts=parts) if parts else None
        invocation = step.invocation if not isinstance(step.invocation, int) else invocations[step.invocation - 1]
        try:
            async for event in side.say(message, invocation, step):
                events.append(event)
        except Exception as raised:
            wrong = rejected(raised)
        turns[name] = {"events": events, "rejected": wrong}
        for event in events:
            if event["invocationId"] not in invocations:
                invocations.append(event["invocationId"])
            for interrupt_id in event.get("longRunningToolIds", ()):
                gate = interrupt_id.split("~")[0].split("@")[0]
                asked.setdefault(gate, []).append(interrupt_id)
    return {"created": created, "turns": turns, "session": await side.read()}


def _part(part: types.Part | Answer, asked: dict[str, list[str]], words: dict[str, str]) -> types.Part:
    if isinstance(part, Answer):
        # A side that never came to this gate is sent its name.
        ids = asked.get(part.gate, [part.gate])
        return part.part(ids[-1 if part.visit is None else part.visit - 1])
    if part.text and words:
        return types.Part(text=part.text.format(**words))
    return part


def _json(shown: Any) -> Json:
    """As ADK's server writes it."""
    return shown.model_dump(mode="json", by_alias=True, exclude_none=True)
