"""
What follows: CONTINUE, PAUSE, REPLAY_CALLS or BLOCKED, each with its evidence.

A decision is a value that cannot be built without what justifies it, so that no
caller can decide to replay "something" or to continue "because".
"""

from typing import Annotated, Literal, assert_never

from pydantic import Field, model_validator

from .admission import Admission, Admitted, Pending, Repeated
from .book import Book
from .call import Call
from .entries import Refused
from .receipt import EffectFact, EffectState, Receipt
from .word import Word


class EffectKnowledge(Word):
    """What the ledger, the outside or a person could say about one call of one effect."""

    call: Call
    fact: EffectFact
    source: str = Field(min_length=1, description="who says so: `attempt`, `ledger`, `reconcile`, or a principal")
    because: str = ""
    attempts: int = Field(default=0, ge=0, description="how often it was begun, as far as the ledger knows")


class Continue(Word):
    """The run goes on, on these receipts (or on an effect that is known to have been performed)."""

    decision: Literal["CONTINUE"] = "CONTINUE"
    receipts: tuple[Receipt, ...] = ()
    performed: EffectKnowledge | None = None

    @model_validator(mode="after")
    def _needs_evidence(self) -> "Continue":
        if not self.receipts and self.performed is None:
            msg = "CONTINUE needs the receipts, or the performed effect, that it rests on"
            raise ValueError(msg)
        if self.performed and self.performed.fact.state is not EffectState.PERFORMED:
            msg = f"CONTINUE rests on a performed effect, and this one is {self.performed.fact.state.value}"
            raise ValueError(msg)
        return self


class Pause(Word):
    """The run waits at these gates; a refusal, or who must still agree, is why nothing moved."""

    decision: Literal["PAUSE"] = "PAUSE"
    open: tuple[str, ...] = ()
    refused: Refused | None = None
    pending: Pending | None = None

    @model_validator(mode="after")
    def _needs_evidence(self) -> "Pause":
        if not self.open and self.refused is None and self.pending is None:
            msg = "PAUSE needs the gates that it waits at, or the refusal that kept them closed"
            raise ValueError(msg)
        return self


class ReplayCalls(Word):
    """Exactly this call is made again, because it is known not to have happened."""

    decision: Literal["REPLAY_CALLS"] = "REPLAY_CALLS"
    call: Call
    because: EffectKnowledge

    @model_validator(mode="after")
    def _needs_evidence(self) -> "ReplayCalls":
        proof = (EffectState.FAILED, EffectState.NOT_ATTEMPTED)
        if self.because.fact.state not in proof or self.because.call != self.call:
            msg = f"REPLAY_CALLS needs proof that {self.call.id} itself did not happen"
            raise ValueError(msg)
        return self

    @property
    def replayed(self) -> Call:
        """The call to make: the one that is named, under the key of the next generation."""
        return self.call.again(generation=self.call.generation + 1)


class Blocked(Word):
    """It cannot be proved whether this call happened: a person is asked, nothing is replayed on hope."""

    decision: Literal["BLOCKED"] = "BLOCKED"
    call: Call
    because: EffectKnowledge

    @model_validator(mode="after")
    def _needs_evidence(self) -> "Blocked":
        if self.because.fact.state not in (EffectState.UNKNOWN, EffectState.INTENDED) or self.because.call != self.call:
            msg = f"BLOCKED needs an effect of unknown state, and {self.because.call.id} is {self.because.fact.state.value}"
            raise ValueError(msg)
        return self


Decision = Annotated[Continue | Pause | ReplayCalls | Blocked, Field(discriminator="decision")]


def decide(evidence: Admission | EffectKnowledge, book: Book) -> Continue | Pause | ReplayCalls | Blocked:
    """
    What follows from one ruling or one piece of knowledge about an effect.

    An admitted answer continues; a repeat continues nothing anew and points to
    the first receipts; a refusal leaves every open gate armed.
    """
    open_ids = tuple(record.occurrence.interrupt_id for record in book.open)
    match evidence:
        case Admitted(receipts=receipts) | Repeated(receipts=receipts):
            return Continue(receipts=receipts)
        case Pending():
            return Pause(open=open_ids, pending=evidence)
        case Refused():
            return Pause(open=open_ids, refused=evidence)
        case EffectKnowledge(call=call, fact=fact):
            match fact.state:
                case EffectState.PERFORMED:
                    return Continue(performed=evidence)
                case EffectState.FAILED | EffectState.NOT_ATTEMPTED:
                    return ReplayCalls(call=call, because=evidence)
                case EffectState.INTENDED | EffectState.UNKNOWN:
                    return Blocked(call=call, because=evidence)
                case _:
                    assert_never(fact.state)
        case _:
            assert_never(evidence)
