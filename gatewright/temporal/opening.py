"""
What the opener of a run said, on its way from the client to the book: in a header of the start.

A header is part of the run's history, so the words survive everything that the
run survives, and a workflow's own arguments stay its own.
"""

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from pydantic import JsonValue, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, Interceptor, OutboundInterceptor, StartWorkflowInput, WorkflowHandle

from gatewright.protocol.word import Told

OPENING_HEADER = "gatewright-opening"


class OpeningWord(Told):
    """The text that opened a run, and what its channel wants kept with it."""

    text: str | None = None
    note: dict[str, JsonValue] | None = None


_SAID: ContextVar[OpeningWord | None] = ContextVar("gatewright_opening", default=None)


@contextlib.contextmanager
def saying(word: OpeningWord | None) -> Iterator[None]:
    """The workflow that is started within the block is opened with these words."""
    token = _SAID.set(word)
    try:
        yield
    finally:
        _SAID.reset(token)


def said(headers: Mapping[str, Payload]) -> OpeningWord | None:
    """The words in a start's headers; None where there are none, or none that can be read."""
    payload = headers.get(OPENING_HEADER)
    if payload is None:
        return None
    try:
        return OpeningWord.model_validate_json(payload.data)
    except ValidationError:
        # Anybody may start a workflow with a header of this name: it is no reason to fail the run.
        return None


def speaking(client: Client) -> Client:
    """The client with the interceptor that puts the words into the header; everything else is shared."""
    config = client.config(active_config=True)
    config["interceptors"] = [*config["interceptors"], _Opener()]
    # They have had their say in the configuration that is taken over here.
    config["plugins"] = []
    return Client(**config)


class _Opener(Interceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Outbound(super().intercept_client(next))


class _Outbound(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        if word := _SAID.get():
            payload = Payload(metadata={"encoding": b"json/plain"}, data=word.model_dump_json().encode())
            input.headers = {**input.headers, OPENING_HEADER: payload}
        return await super().start_workflow(input)
