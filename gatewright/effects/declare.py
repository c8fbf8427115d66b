"""
Declaring a step or an effect, where it is written.

The decorators register a Temporal activity of the function's own name and leave
the function callable as it is, so that a test can call it without Temporal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal, TypeVar

from pydantic import JsonValue
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
    """The outside says that the effect was performed, this is what it returned, and its own proof where it gives one."""

    result: Any
    receipt: JsonValue = None


@dataclass(frozen=True)
class DidNotHappen:
    """The outside says that the effect was not performed, so that it may be performed now."""


@dataclass(frozen=True)
class CannotTell:
    """The outside could not say; `reason` is shown to whoever has to decide."""

    reason: str


Reconciliation = Happened | DidNotHappen | CannotTell


Once = Literal["session"] | Callable[..., Any]
"""
Who shares the result of an expensive step: the runs of a session that give it the same arguments, or, by a function
of the arguments that returns a business key (a text), all runs of the namespace."""

OnFailure = Literal["ask", "fail"]
"""What follows when a step or effect has failed for good: a person is asked, or the run fails."""


@dataclass(frozen=True)
class Declaration:
    """
    What is known of a step or effect before it is called.

    `timeout` bounds one attempt; `heartbeat` is how long a dead worker goes
    unnoticed (beats are sent by themselves while the function runs), and how
    long an effect's lease on its key runs; `attempts` bounds retries, crashes
    included (0: no bound). `call_timeout` is how long one call of the outside may
    take at most: another attempt, or a person's decision, waits that much
    longer. `once` says whose other runs share a step's result. `on_failure` is
    what follows when it has failed for good (None: what the frame says).
    """

    name: str
    kind: EffectKind | None
    timeout: timedelta
    heartbeat: timedelta
    attempts: int
    reconcile: Callable[..., Any] | None = None
    call_timeout: timedelta = timedelta(seconds=30)
    once: Once | None = None
    on_failure: OnFailure | None = None

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
    once: Once | None = None,
    on_failure: OnFailure | None = None,
) -> Callable[[F], F]:
    """
    Declare work without outward consequence: it runs once while its worker lives, once more per crash.

    With `once="session"` it is not dispatched again when another run of the
    same session gives it the same arguments: the ledger keeps its result. With
    `once=function` the function's text (of the same arguments; it runs on the
    worker, so it may hash a file) is the business key, and all runs of the
    namespace share the result. Raises `TypeError` for another `once`.
    """
    shared: Any = once
    if shared is not None and shared != "session" and not callable(shared):
        msg = f'once="session", or a function of the arguments that returns a business key, not {once!r}'
        raise TypeError(msg)

    def declare(function: F) -> F:
        declaration = Declaration(
            name or function.__name__, None, timeout, heartbeat, attempts, once=once, on_failure=_on_failure(on_failure)
        )
        return _declared(function, declaration)

    return declare


def effect(
    *,
    kind: EffectKind | str,
    reconcile: Callable[..., Any] | None = None,
    name: str | None = None,
    timeout: timedelta = timedelta(minutes=10),
    heartbeat: timedelta = timedelta(seconds=10),
    attempts: int = 5,
    call_timeout: timedelta = timedelta(seconds=30),
    on_failure: OnFailure | None = None,
) -> Callable[[F], F]:
    """
    Declare something that is done to the world, once per key.

    `reconcile(call, *args)` belongs to `kind="reconcilable"` and returns
    `Happened`, `DidNotHappen` or `CannotTell`. `call_timeout` is how long one
    call of the outside takes at most, from `fence()` to its end: give the HTTP
    client no more than that. Raises `TypeError` where kind and reconcile do not
    go together.
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
        declaration = Declaration(
            name or function.__name__,
            known,
            timeout,
            heartbeat,
            attempts,
            reconcile,
            call_timeout,
            on_failure=_on_failure(on_failure),
        )
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


def _on_failure(said: Any) -> OnFailure | None:
    if said not in {None, "ask", "fail"}:
        msg = f'on_failure is "ask" or "fail", not {said!r}'
        raise TypeError(msg)
    known: OnFailure | None = said
    return known


def _declared(function: F, declaration: Declaration) -> F:
    activity.defn(name=declaration.name)(function)
    setattr(function, _ATTRIBUTE, declaration)
    return function
