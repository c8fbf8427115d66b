"""
Declaring a step or an effect, where it is written.

The decorators register a Temporal activity of the function's own name and leave
the function callable as it is, so that a test can call it without Temporal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from temporalio import activity

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "__gatewright_declaration__"


class EffectKind(StrEnum):
    """What may be done when an effect was begun and nobody knows whether it happened."""

    KEYED = "keyed"
    """The outside honours our key: doing it again with the same key is safe."""
    RECONCILABLE = "reconcilable"
    """The outside can be asked by key whether it happened."""
    OPAQUE = "opaque"
    """Neither: a person must decide."""


@dataclass(frozen=True)
class Happened:
    """The outside says that the effect was performed, and this is what it returned."""

    result: Any


@dataclass(frozen=True)
class DidNotHappen:
    """The outside says that the effect was not performed, so that it may be performed now."""


@dataclass(frozen=True)
class CannotTell:
    """The outside could not say; `reason` is shown to whoever has to decide."""

    reason: str


Reconciliation = Happened | DidNotHappen | CannotTell


@dataclass(frozen=True)
class Declaration:
    """
    What is known of a step or effect before it is called.

    `timeout` bounds one attempt; `heartbeat` is how long a dead worker goes
    unnoticed (beats are sent by themselves while the function runs);
    `attempts` bounds retries, crashes included (0: no bound).
    """

    name: str
    kind: EffectKind | None
    timeout: timedelta
    heartbeat: timedelta
    attempts: int
    reconcile: Callable[..., Any] | None = None

    @property
    def effect(self) -> bool:
        """Whether something is done to the world."""
        return self.kind is not None


def step(
    *,
    name: str | None = None,
    timeout: timedelta = timedelta(minutes=10),
    heartbeat: timedelta = timedelta(seconds=10),
    attempts: int = 5,
) -> Callable[[F], F]:
    """Declare work without outward consequence: it runs once while its worker lives, once more per crash."""

    def declare(function: F) -> F:
        return _declared(function, Declaration(name or function.__name__, None, timeout, heartbeat, attempts))

    return declare


def effect(
    *,
    kind: EffectKind | str,
    reconcile: Callable[..., Any] | None = None,
    name: str | None = None,
    timeout: timedelta = timedelta(minutes=10),
    heartbeat: timedelta = timedelta(seconds=10),
    attempts: int = 5,
) -> Callable[[F], F]:
    """
    Declare something that is done to the world, once per key.

    `reconcile(call, *args)` belongs to `kind="reconcilable"` and returns
    `Happened`, `DidNotHappen` or `CannotTell`. Raises `TypeError` where kind
    and reconcile do not go together.
    """
    try:
        known = EffectKind(kind)
    except ValueError:
        msg = f"an effect is keyed, reconcilable or opaque, not {kind!r}"
        raise TypeError(msg) from None
    if (known is EffectKind.RECONCILABLE) != (reconcile is not None):
        msg = f"a reconcilable effect, and no other, names its reconcile= function (this one is {known.value})"
        raise TypeError(msg)

    def declare(function: F) -> F:
        declaration = Declaration(name or function.__name__, known, timeout, heartbeat, attempts, reconcile)
        return _declared(function, declaration)

    return declare


def declaration_of(function: Callable[..., Any]) -> Declaration:
    """The declaration of a decorated function; `TypeError`, saying what to do, for one without."""
    declaration = getattr(function, _ATTRIBUTE, None)
    if not isinstance(declaration, Declaration):
        name = getattr(function, "__name__", repr(function))
        msg = f"{name} is neither a step nor an effect: decorate it with @step() or @effect(kind=...)"
        raise TypeError(msg)
    return declaration


def _declared(function: F, declaration: Declaration) -> F:
    activity.defn(name=declaration.name)(function)
    setattr(function, _ATTRIBUTE, declaration)
    return function
