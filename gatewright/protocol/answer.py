"""
What is said: an answer to one occurrence, and the message that brings one or several.

A message is admitted whole or not at all. What is read here is a claim; whether
it counts is admission's business, so an answer without an id can be read, and
is then refused by name instead of failing to parse.
"""

from enum import StrEnum
from typing import Any, Self

from pydantic import Field, JsonValue, model_validator

from .canonical import digest
from .word import Word

MAX_MESSAGE_BYTES = 256 * 1024
"""
The largest message, in bytes of JSON as received.

Far below Temporal's limits on purpose: an update of 2 MiB would wedge the run
for 20 seconds, a signal of 2 MiB is refused without a reason.
"""


class EvidenceClass(StrEnum):
    """How it is known who answered, weakest first."""

    ASSERTED = "asserted"
    """The sender says so: a raw signal, a command line."""
    AUTHENTICATED = "authenticated"
    """The channel checked a credential before it passed the answer on."""
    SIGNED = "signed"
    """The answer carries a signature that the receiver can check."""


class Failure(Word):
    """How a background job says through its system gate that it failed."""

    type: str = Field(min_length=1, max_length=200)
    message: str = Field(max_length=10_000)
    retryable: bool = False


class Answer(Word):
    """
    What someone said to one occurrence.

    `response` is JSON as the sender gave it; a system gate may be given a
    `failure` instead. Without an `answer_id` the answer is named by its
    content, so that the same words sent twice are recognised as a repeat.
    """

    answer_id: str = Field(default="", max_length=200)
    interrupt_id: str = Field(default="", max_length=400)
    gate: str = Field(default="", max_length=200, description="instead of an interrupt id, where that is unambiguous")
    response: Any = None
    failure: Failure | None = None
    principal: str = Field(default="", max_length=400, description="who answers, as far as the channel knows")
    channel: str = Field(default="", max_length=100, description="cli, inbox, adk, temporal, ...")
    evidence: EvidenceClass = EvidenceClass.ASSERTED
    digest: str | None = Field(
        default=None, max_length=200, description="what the person was shown (`Asked.gate.digest`)"
    )
    supersedes: str | None = Field(default=None, max_length=200, description="the answer id that this one replaces")

    @property
    def content_digest(self) -> str:
        """
        The digest by which a repeat is told from a conflict.

        The channel is left out: a client that falls back from update to signal
        sends the same content by another way. `NotJson` where the response
        cannot be written as portable JSON; admission refuses that first.
        """
        return digest(self._content())

    def _content(self) -> list[Any]:
        failure = None if self.failure is None else self.failure.model_dump(mode="json")
        # A gate's bare name and what was seen there are together the address; an interrupt id is one by itself.
        seen = None if self.interrupt_id else self.digest
        # The response by its digest, because it may be nested as deep as JSON is read, and this list is one level more.
        return [self.interrupt_id, self.gate, seen, digest(self.response), failure, self.principal, self.supersedes]

    @property
    def name(self) -> str:
        """The answer id, or one derived from the content where the sender gave none."""
        return self.answer_id or "by-content-" + self.content_digest.removeprefix("sha256:")[:32]


class Message(Word):
    """
    One delivery: the answers that it brings, who wrote it, and any text beside them.

    Read from `{"answers": [...]}` or from one bare answer, in camelCase or
    snake_case.
    """

    answers: tuple[Answer, ...] = Field(default=(), max_length=100)
    author: str = Field(default="user", max_length=400, description="`user` or `system`; an agent's word is no answer")
    attempt: str = Field(default="", max_length=100, description="names this delivery, for asking what was ruled on it")
    text: str | None = Field(default=None, description="text beside the answers: the message is then refused (B02)")
    note: dict[str, JsonValue] | None = Field(
        default=None, description="what the channel wants kept beside the answers; no rule looks at it"
    )

    @model_validator(mode="before")
    @classmethod
    def _lone_answer(cls, value: Any) -> Any:
        """A bare answer is a message of one; its `author`, `attempt`, `text` and `note` belong to the message."""
        if not isinstance(value, dict) or "answers" in value:
            return value
        outer = {key: value[key] for key in ("author", "attempt", "text", "note") if key in value}
        inner = {key: item for key, item in value.items() if key not in outer}
        return {**outer, "answers": [inner] if inner else []}

    @classmethod
    def of(cls, *answers: Answer) -> Self:
        """A message of these answers, written by a user."""
        return cls(answers=answers)


class Evidence(Word):
    """
    What the receiver itself knows about one delivery, as against what the message claims.

    `size` is the message's size in bytes as received; `door` is the way by
    which it came in (`update`, `signal`, `query`, `client`).
    """

    size: int = Field(ge=0)
    door: str = ""
    established: EvidenceClass = EvidenceClass.ASSERTED


__all__ = ["MAX_MESSAGE_BYTES", "Answer", "Evidence", "EvidenceClass", "Failure", "JsonValue", "Message"]
