"""
What a person is asked where the engine must not decide: after a failure, and where nobody knows whether an effect happened.

    failed:<step>      retry, skip (where the pipeline allows it), abort
    blocked:<effect>   happened (with a receipt), did_not_happen, abort

Both are gates like any other, so every channel can answer them, and the answers
are admitted, recorded and receipted like any other.
"""

from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from .canonical import NotJson, canonical, digest, plain
from .decision import Blocked
from .gate import Gate, Policy
from .identity import MAX_NAME
from .schema import UnrenderableSchema, render_schema
from .word import Told

FAILED = "failed:"
"""How a gate is named that asks what follows a failure (or asks again for an answer that today's type does not take)."""

BLOCKED = "blocked:"
"""How a gate is named that asks whether an effect happened."""

MAX_ARGUMENTS = 8 * 1024
"""Up to which size, as JSON in bytes, a gate shows a call's arguments."""


class CallFailure(Told):
    """
    Why a step or effect is not done: which call, after how many attempts, the last error, and whether nothing happened.

    `attempts` is None where Temporal does not say; `known_not_to_have_happened`
    is None of a step, which has no outward consequence.
    """

    call: str
    name: str
    key: str
    attempts: int | None = None
    error: str
    error_type: str
    known_not_to_have_happened: bool | None = None
    kind: str | None = Field(default=None, description="of an effect: keyed, reconcilable or opaque")


class Recovery(BaseModel):
    """What follows a failure."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["retry", "abort"] = Field(description="retry: attempt it again; abort: end it as failed")
    comment: str | None = Field(default=None, description="why, for the record")


class RecoveryOrSkip(BaseModel):
    """What follows a failure of something that the pipeline can do without."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["retry", "skip", "abort"] = Field(
        description="retry: attempt it again; skip: go on without it; abort: end it as failed"
    )
    comment: str | None = Field(default=None, description="why, for the record")


class Resolution(BaseModel):
    """Whether an effect happened, as a person found out."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["happened", "did_not_happen", "abort"] = Field(
        description="happened: go on with its result; did_not_happen: make this very call again; abort: end it as failed"
    )
    receipt: JsonValue = Field(
        default=None, description="with happened: what proves it (a transaction number, the outside's own record)"
    )
    result: JsonValue = Field(default=None, description="with happened: what the effect would have returned")
    comment: str | None = Field(default=None, description="how it was found out, for the record")

    @model_validator(mode="after")
    def _proved(self) -> Self:
        if self.decision == "happened" and self.receipt in (None, "", {}, []):
            msg = "happened needs a receipt: what proves that the effect was performed"
            raise ValueError(msg)
        return self


def gate_after_failure(failure: CallFailure, *, may_skip: bool, operators: tuple[str, ...] = ()) -> Gate[Any]:
    """The gate that asks what follows a failure."""
    tried = f" after {failure.attempts} attempt{'s' if failure.attempts != 1 else ''}" if failure.attempts else ""
    known = {
        None: "",
        True: " It is known not to have happened.",
        False: " It is not known whether it happened; the outside honours its key, so attempting it again is safe.",
    }[failure.known_not_to_have_happened]
    return Gate(
        system_name(FAILED, failure.name),
        answer=RecoveryOrSkip if may_skip else Recovery,
        message=f"{failure.call} failed{tried}: {failure.error.rstrip('.')}.{known}",
        payload=failure.model_dump(mode="json"),
        policy=Policy(invited=operators),
    )


def gate_when_blocked(
    blocked: Blocked, *, kind: str, arguments: dict[str, Any], returns: Any, operators: tuple[str, ...] = ()
) -> Gate[Any]:
    """
    The handoff of an effect of which nobody knows: the call, its arguments, what is known.

    `returns` is the effect's own return type: the result that comes with
    `happened` must be one, because the pipeline goes on with it.
    """
    call, known = blocked.call, blocked.because
    return Gate(
        system_name(BLOCKED, call.name),
        answer=resolution_of(returns),
        message=f"It is not known whether {call.id} happened: {known.because or 'its attempt ended without a word'}. "
        "Find out, and say so: nothing is repeated on hope.",
        payload={
            "call": call.id,
            "effect": call.name,
            "kind": kind,
            "key": call.key,
            "branch": str(call.branch),
            "generation": call.generation,
            "authorised_by": call.authorised_by,
            "arguments": shown_arguments(arguments),
            "known": known.because,
            "said_by": known.source,
            "attempts": known.attempts,
            "ledger": call.ledger_id,
        },
        policy=Policy(invited=operators, dangerous=True),
    )


def resolution_of(returns: Any) -> type[Resolution]:
    """
    `Resolution` whose result is of the effect's own type.

    A result is needed with `happened` unless the type takes None. A type that
    no JSON Schema can show is not checked.
    """
    if returns in (Any, None, type(None)):
        return Resolution
    try:
        render_schema(returns)
    except UnrenderableSchema:
        return Resolution

    class Checked(Resolution):
        @model_validator(mode="after")
        def _with_result(self) -> Self:
            if self.decision == "happened" and self.result is None and not takes_none:
                msg = "happened needs the result that the effect would have returned"
                raise ValueError(msg)
            return self

    takes_none = _takes_none(returns)
    shown = Field(default=None, description="with happened: what the effect would have returned")
    return create_model("Resolution", __base__=Checked, result=(returns | None, shown))


def _takes_none(returns: Any) -> bool:
    try:
        TypeAdapter(returns).validate_python(None)
    except ValidationError:
        return False
    return True


def shown_arguments(arguments: dict[str, Any]) -> JsonValue:
    """A call's arguments by name as a person is shown them; of what is too long, the beginning."""
    shown: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        try:
            argument = plain(value)
            data = canonical(argument)
        except NotJson as wrong:
            shown[name] = f"(not JSON: {wrong.reason})"
            continue
        room = MAX_ARGUMENTS // max(len(arguments), 1)
        shown[name] = argument if len(data) <= room else data[:room].decode(errors="ignore") + "..."
    return shown


def system_name(prefix: str, name: str) -> str:
    """The name of a gate of ours about something of the pipeline's; of a name that is too long, its beginning and digest."""
    if len(prefix) + len(name) <= MAX_NAME:
        return prefix + name
    return f"{prefix}{name[:100]}-{digest(name)[-16:]}"


__all__ = [
    "BLOCKED",
    "FAILED",
    "CallFailure",
    "Recovery",
    "RecoveryOrSkip",
    "Resolution",
    "gate_after_failure",
    "gate_when_blocked",
    "resolution_of",
    "shown_arguments",
    "system_name",
]
