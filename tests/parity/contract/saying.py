"""A session with the pipeline, through an ADK `Runner`."""

from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

from gatewright.adk.native import TemporalRunner
from tests.adk.conversing import response, text
from tests.parity.contract.pipelines import RAN

__all__ = ["Saying", "gate_of", "outputs", "response", "text"]


class Saying:
    """One session: what is said in it, and what ran."""

    def __init__(self, runner: TemporalRunner, session: str) -> None:
        self.runner, self.session = runner, session
        self._took = 0

    async def begin(self) -> None:
        """Create the session."""
        await self.runner.session_service.create_session(app_name="contract", user_id="u", session_id=self.session)

    async def open(self, shape: str, words: str = "go") -> list[Event]:
        """Open a run of this shape."""
        return await self.say(text(f"{shape} {self.session} {words}"))

    async def say(self, *parts: types.Part, role: str = "user", **options: Any) -> list[Event]:
        """Send a message; the events of the turn."""
        message = types.Content(role=role, parts=list(parts)) if parts else None
        metadata = options.pop("metadata", None)
        told = self.runner.run_async(
            user_id="u",
            session_id=self.session,
            new_message=message,
            run_config=RunConfig(custom_metadata=metadata) if metadata else None,
            **options,
        )
        return [event async for event in told]

    async def refused(self, *parts: types.Part, **options: Any) -> Exception:
        """The error that a message earns; the session is as it was, and nothing ran."""
        before, ran = await self.read(), len(RAN[self.session])
        with pytest.raises(Exception, match=r"\w") as raised:
            await self.say(*parts, **options)
        assert vars(raised.value)["rejection"].todo
        assert await self.read() == before
        assert len(RAN[self.session]) == ran
        return raised.value

    async def read(self) -> Session:
        """The session."""
        found = await self.runner.session_service.get_session(app_name="contract", user_id="u", session_id=self.session)
        assert found is not None
        return found

    def took(self) -> list[tuple[str, Any]]:
        """The steps that ran since this was asked last."""
        ran = RAN[self.session][self._took :]
        self._took += len(ran)
        return ran


def gate_of(events: list[Event]) -> types.FunctionCall:
    """The one gate that the events ask."""
    [call] = [call for event in events for call in event.get_function_calls()]
    return call


def outputs(events: list[Event]) -> list[tuple[str, Any]]:
    """Which nodes gave what."""
    return [(event.node_info.path, event.output) for event in events if event.output is not None]
