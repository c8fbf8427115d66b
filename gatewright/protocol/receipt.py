"""
The five facts of one continuation, chained.

Workflow frame, call occurrence, owning branch, responder with the evidence for
its authority, and the known state of the effect. Each receipt carries the
digest of the one before it, so that a receipt that was altered, dropped, added
or moved is found without asking anybody (`verify`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import Field, JsonValue

from .answer import EvidenceClass
from .canonical import digest
from .identity import Branch, FrameState
from .word import Told


class EffectState(StrEnum):
    """What is known of an effect."""

    NOT_ATTEMPTED = "not_attempted"
    INTENDED = "intended"
    PERFORMED = "performed"
    FAILED = "failed"
    """Proved not to have happened."""
    UNKNOWN = "unknown"


class OccurrenceFact(Told):
    """Which arrival at which gate, and the digest of what was shown there."""

    interrupt_id: str
    gate: str
    run: int
    visit: int
    digest: str


class ResponderFact(Told):
    """Who answered, by which way, and what vouches for it."""

    principal: str
    channel: str
    door: str
    evidence: EvidenceClass
    answer_id: str
    content_digest: str


class EffectFact(Told):
    """What is known of the effect when the receipt was written; `key` and `receipt` once it has been attempted."""

    state: EffectState = EffectState.NOT_ATTEMPTED
    name: str | None = None
    key: str | None = None
    receipt: JsonValue = None


class Receipt(Told):
    """One link: made by `Receipt.seal`, never by hand."""

    kind: Literal["continuation", "authorisation", "effect"] = "continuation"
    number: int = Field(ge=1)
    previous: str | None
    at: datetime
    frame: FrameState
    occurrence: OccurrenceFact | None = Field(description="None on an effect that no answer authorised")
    branch: Branch
    responder: ResponderFact | None
    effect: EffectFact
    digest: str

    @classmethod
    def seal(cls, previous: "Receipt | Anchor | None", **facts: Any) -> Self:
        """The receipt of these facts, next after `previous` in the chain."""
        number, link = (previous.number + 1, previous.digest) if previous else (1, None)
        unsealed = cls(number=number, previous=link, digest="", **facts)
        return unsealed.model_copy(update={"digest": unsealed.facts_digest()})

    def facts_digest(self) -> str:
        """The digest of everything but the digest itself."""
        return digest(self.model_dump(mode="json", exclude={"digest"}))


class Anchor(Told):
    """Where a chain goes on whose earlier receipts are kept elsewhere: the last number and digest before it."""

    number: int = Field(ge=0)
    digest: str | None


@dataclass(frozen=True)
class Verified:
    """The chain holds: how many receipts, and the digest of the last one."""

    count: int
    head: str | None


@dataclass(frozen=True)
class Broken:
    """The chain does not hold: the first receipt at fault (counted from 1) and why."""

    number: int
    reason: str


def verify(receipts: Sequence[Receipt], anchor: Anchor | None = None) -> Verified | Broken:
    """
    Check a chain of receipts, naming the first broken link.

    `anchor` is where it goes on from if its beginning is kept elsewhere.
    """
    number, link = (anchor.number, anchor.digest) if anchor else (0, None)
    for receipt in receipts:
        number += 1
        if receipt.number != number:
            return Broken(number, f"number {number} is missing: number {receipt.number} stands in its place")
        if receipt.previous != link:
            return Broken(number, f"it follows {receipt.previous}, but the receipt before it is {link}")
        if receipt.digest != receipt.facts_digest():
            return Broken(number, "its facts do not have the digest that it states: it was altered")
        link = receipt.digest
    return Verified(len(receipts), link)
