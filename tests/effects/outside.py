"""What the tests of effects share: an outside that counts, effects of every kind, and one pipeline that performs what it is told."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import (
        Call,
        CannotTell,
        DidNotHappen,
        Happened,
        NotPerformed,
        Reconciliation,
        current_call,
        effect,
        fence,
        receipt,
        step,
    )
    from gatewright.temporal import Frame

CALLS: Counter[str] = Counter()
"""How often the outside was called, by name."""

KEYS: dict[str, list[str]] = {}
"""The keys with which it was called, by name."""

SOON = timedelta(milliseconds=100)
"""How long a call of these outsides takes at most."""

HEALED: set[str] = set()
"""The names that do not fail any more."""


class Payment(BaseModel):
    """What an effect returns here."""

    id: int
    name: str


class Lost(Exception):  # noqa: N818
    """The attempt ends after the outside call and before anything is recorded, as in a crash."""


def _call(name: str) -> Payment:
    fence()
    CALLS[name] += 1
    KEYS.setdefault(name, []).append(current_call().key)
    return Payment(id=CALLS[name], name=name)


@effect(kind="opaque", attempts=2, call_timeout=SOON)
async def transfer(name: str, amount: int = 1) -> Payment:
    """Neither asks nor honours keys; the word of the first call is lost."""
    payment = _call(name)
    receipt({"transaction": f"t-{payment.id}"})
    if payment.id == 1 and "quiet" not in name:
        raise Lost
    return payment


@effect(kind="opaque", attempts=2)
async def decline(name: str) -> Payment:
    """Says that it did not happen, until it is healed."""
    if name not in HEALED:
        CALLS[name] += 1
        msg = "the outside said no"
        raise NotPerformed(msg)
    return _call(name)


@effect(kind="keyed", attempts=2)
async def keyed(name: str) -> Payment:
    """Honours the key, and its word is lost until it is healed."""
    payment = _call(name)
    if name not in HEALED:
        raise Lost
    return payment


def ask(call: Call, name: str) -> Reconciliation:
    """What the outside says of a key."""
    if "mute" in name and name not in HEALED:
        return CannotTell("the outside is mute")
    if call.key in KEYS.get(name, []):
        return Happened(Payment(id=1, name=name), receipt={"asked": call.key})
    return DidNotHappen()


@effect(kind="reconcilable", reconcile=ask, attempts=1, call_timeout=SOON)
async def asked(name: str) -> Payment:
    """Can be asked; its only attempt loses its word."""
    if "before" in name and name not in HEALED:
        raise Lost
    payment = _call(name)
    if payment.id == 1:
        raise Lost
    return payment


@step(attempts=2)
async def stumble(name: str) -> str:
    """A step that fails until it is healed."""
    CALLS[name] += 1
    if name not in HEALED:
        msg = f"{name} is broken"
        raise ValueError(msg)
    return f"{name} done"


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "transfer": transfer,
    "decline": decline,
    "keyed": keyed,
    "asked": asked,
    "stumble": stumble,
}


@workflow.defn
class Doing:
    """Performs one thing once, as it is told; quick to try again."""

    @workflow.init
    def __init__(self, what: str, name: str, options: dict[str, Any]) -> None:
        self.frame = Frame(**{key: options.pop(key) for key in ("operators",) if key in options})
        self.again = options.pop("again", 1)

    @workflow.run
    async def run(self, what: str, name: str, options: dict[str, Any]) -> Any:
        retries = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2)
        done = None
        for _ in range(self.again):
            done = await self.frame.perform(FUNCTIONS[what], name, retry_policy=retries, **options)
        return done.model_dump() if isinstance(done, BaseModel) else done
