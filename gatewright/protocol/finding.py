"""
What the activity side is sent to do about one call of one effect, and what it found.

An errand travels with the call to the activity; a finding comes back beside the
result, or in the details of the failure, and becomes evidence for a decision.
"""

from typing import Literal

from pydantic import Field, JsonValue

from .call import Call
from .decision import EffectKnowledge
from .receipt import EffectFact, EffectState
from .word import Told


class Errand(Told):
    """
    Perform the effect, or only find out (`examine`) whether it happened: then nothing is done to the world.

    `begun` says that, as history tells, an attempt had come as far as the
    outside: a ledger that knows of none has lost it. `reset` says that the
    execution repeats what another has done before it, so that other histories
    have to be looked at as well.
    """

    mode: Literal["perform", "examine"] = "perform"
    begun: bool = False
    reset: bool = False


class Finding(Told):
    """What is known of a call, who says so, and how often it was begun."""

    state: EffectState
    source: str = "ledger"
    because: str = ""
    attempts: int = Field(default=0, ge=0)
    receipt: JsonValue = Field(default=None, description="what the outside gave as its proof")

    def about(self, call: Call) -> EffectKnowledge:
        """The finding as knowledge of the call that it is about."""
        fact = EffectFact(state=self.state, name=call.name, key=call.key, receipt=self.receipt)
        return EffectKnowledge(
            call=call, fact=fact, source=self.source or "ledger", because=self.because, attempts=self.attempts
        )
