"""
What is asked: a gate as its author writes it, and as it was pinned when it was shown.

Everything that a person is shown is rendered when the gate is made, so that
what cannot be rendered fails there and not in front of somebody (A13). What was
shown is then pinned: verdicts use the recorded schema and never today's model.
"""

import json
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import UnionType
from typing import Any, Generic, Literal, _SpecialForm, cast

from pydantic import BaseModel, Field, JsonValue, ValidationError
from typing_extensions import TypeVar

from .answer import EvidenceClass
from .canonical import NotJson, canonical, digest, digest_of, plain
from .decoding import Decoded, Decoding, Undecodable, decode
from .errors import GateError
from .faults import shorten
from .identity import MAX_NAME, Name
from .schema import JsonSchema, UnrenderableSchema, adapter, render_schema
from .word import Word

MAX_SHOWN_BYTES = 256 * 1024
"""The most that a gate may show (message, payload and schema as canonical JSON), in bytes."""

MAX_PROBLEMS = 20
"""How many things that a type has against a value are told."""

MAX_DEADLINE = timedelta(days=36_500)
"""The longest wait: beyond it, times leave the calendar that records are written in."""

T = TypeVar("T", default=Any)

AnswerType = type[T] | _SpecialForm | UnionType | dict[str, Any] | None
"""What a gate may ask for; of `Literal[...]`, a union or a JSON Schema, a type checker knows no more than Any."""


class GateKind(StrEnum):
    """Who is expected to answer."""

    HUMAN = "human"
    SYSTEM = "system"
    """Another program, which may also answer with a typed failure."""


class Policy(Word):
    """
    Under which authority a gate may be answered.

    Fields marked *reserved* are part of every recorded gate, so that books
    written today can be read when they are enforced; until then a gate that
    asks for them is refused where it is defined, because a rule that is
    recorded and not kept would be worse than none.
    """

    invited: tuple[str, ...] = Field(default=(), description="principals who may answer; empty: anyone")
    separate_from: tuple[str, ...] = Field(default=(), description="gates whose answerer may not answer this one")
    strict: bool = Field(default=False, description="no lax coercion of scalars (D10)")
    dangerous: bool = Field(default=False, description="front ends ask for the gate's name before they send")
    quorum: int = Field(default=1, ge=1, description="reserved: how many principals must agree")
    evidence: EvidenceClass = Field(default=EvidenceClass.ASSERTED, description="reserved: the weakest evidence taken")
    supersession: Literal["never", "until_consumed"] = Field(default="never", description="reserved: change of mind")


@dataclass(frozen=True)
class Default:
    """The answer that counts when nobody gave one before the deadline."""

    value: object


class PinnedGate(Word):
    """A gate exactly as it was shown: what the record keeps and verdicts use."""

    name: Name
    kind: GateKind = GateKind.HUMAN
    message: str | None = None
    payload: JsonValue = None
    response_schema: JsonSchema | None = None
    digest: str
    deadline: datetime | None = None
    on_deadline: Literal["fail", "default"] = "fail"
    default: JsonValue = None
    policy: Policy = Policy()
    stands_for: str | None = Field(default=None, description="the gate that is asked again here")


@dataclass(frozen=True)
class Gate(Generic[T]):
    """
    A named stopping place that asks for input (ADK's `RequestInput`).

    `answer` is a pydantic type, anything that a `TypeAdapter` takes, a JSON
    Schema, or None for any JSON. `payload` is anything that pydantic can write
    as JSON; NaN, infinities and integers beyond 2^53 are shown as text, so that
    every client shows the same. `narrowed` is a JSON Schema that is shown and kept
    in the place of the type's own, for what only the run knows (the columns there
    are to choose from); the value still arrives in the type. `stands_for` names the gate that is asked
    again under this name. `deadline` counts from the opening; at the
    deadline the gate fails, or takes `Default(value)`.

    Raises `GateError`, naming the gate, for what cannot be rendered or kept.
    """

    name: str
    _: KW_ONLY
    answer: AnswerType[T] = None
    message: str | None = None
    payload: object = None
    deadline: timedelta | None = None
    on_deadline: Literal["fail"] | Default = "fail"
    kind: GateKind = GateKind.HUMAN
    policy: Policy = field(default_factory=Policy)
    narrowed: JsonSchema | None = None
    stands_for: str | None = None

    response_schema: JsonSchema | None = field(init=False)
    shown_payload: JsonValue = field(init=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        try:
            canonical(self.name)
            schema = render_schema(self.answer if self.narrowed is None else self.narrowed)
            payload = plain(self.payload)
            shown = {"message": plain(self.message), "payload": payload, "schema": schema}
            data = canonical(shown)
        except (UnrenderableSchema, NotJson) as wrong:
            msg = f"gate {self.name!r}: {wrong}"
            raise GateError(msg) from wrong
        for name, value in (
            ("response_schema", schema),
            ("shown_payload", payload),
            ("digest", digest_of(data)),
        ):
            object.__setattr__(self, name, value)
        for objection in self._objections(len(data)):
            msg = f"gate {self.name!r}: {objection}"
            raise GateError(msg)

    def _objections(self, size: int) -> list[str]:
        """What is wrong with this gate besides its schema and payload."""
        wrong = []
        if not self.name or len(self.name) > MAX_NAME:
            wrong.append(f"a name has 1 to {MAX_NAME} characters (an empty interrupt id cannot be answered: B17)")
        if size > MAX_SHOWN_BYTES:
            wrong.append(
                f"it would show {size:,} bytes, at most {MAX_SHOWN_BYTES:,} are shown; "
                "put the rest into a file and show its path"
            )
        if not isinstance(plain(self.message), str | None):
            wrong.append(f"a message is text, not {type(self.message).__name__}; show data as the payload")
        if self.deadline is not None and not timedelta(0) < self.deadline <= MAX_DEADLINE:
            wrong.append(f"the deadline is a time from now on, at most {MAX_DEADLINE.days:,} days, not {self.deadline}")
        if isinstance(self.on_deadline, Default):
            if self.deadline is None:
                wrong.append("a default without a deadline would never be used")
            try:
                verdict = self._default(self.on_deadline)
            except NotJson as not_json:
                wrong.append(f"the default cannot be written as JSON: {not_json}")
            else:
                if isinstance(verdict, Undecodable):
                    fault = verdict.faults[0]
                    wrong.append(f"the default does not fit its own schema: {fault.path}: {fault.message}")
                elif len(canonical(verdict.value)) > MAX_SHOWN_BYTES:
                    wrong.append(f"the default is larger than the {MAX_SHOWN_BYTES:,} bytes that an answer may have")
                elif problems := self.problems(verdict.value):
                    wrong.append(f"the default does not fit its own type: {problems[0][0]}: {problems[0][1]}")
        policy = self.policy
        reserved = {
            "quorum above 1": policy.quorum > 1,
            f"evidence {policy.evidence.value!r}": policy.evidence is not EvidenceClass.ASSERTED,
            "supersession": policy.supersession != "never",
        }
        wrong += [
            f"{what} is reserved and not enforced by this release, so a gate cannot ask for it"
            for what, asked in reserved.items()
            if asked
        ]
        return wrong

    def _default(self, default: Default) -> Decoding:
        """The default as the answer that it stands for would be decoded."""
        return decode(plain(default.value), self.response_schema, strict=True)

    def typed(self, value: JsonValue) -> T:
        """The value of an admitted answer in the gate's own type, as today's code has it; what its validators raise."""
        known = None if isinstance(self.answer, dict) else adapter(self.answer)
        # As JSON and not as Python: a strict model takes a time or an enum from JSON text, and from no Python string.
        return cast("T", value if known is None else known.validate_json(json.dumps(value)))

    def problems(self, value: JsonValue) -> list[tuple[str, str]]:
        """What today's type has against a value, as (path, message); empty where it fits."""
        try:
            self.typed(value)
        except ValidationError as wrong:
            listed = wrong.errors(include_url=False, include_context=False, include_input=False)[:MAX_PROBLEMS]
            return [
                ("$" + "".join(f".{part}" for part in error["loc"]), shorten(error["msg"], 300)) for error in listed
            ]
        except Exception as wrong:  # noqa: BLE001 - an author's validator may raise anything, and a run must not stop for it
            return [("$", shorten(f"{type(wrong).__name__}: {wrong}", 300))]
        return []

    def loosely(self, value: JsonValue) -> T:
        """
        The value in today's type although that no longer takes it.

        For replays: the run went on with this value when the type still took
        it, and it must go on with it again. A model is made without validation.
        """
        try:
            return self.typed(value)
        except Exception:  # noqa: BLE001 - as above
            if isinstance(self.answer, type) and issubclass(self.answer, BaseModel) and isinstance(value, dict):
                return cast("T", self.answer.model_construct(**cast("dict[str, Any]", value)))
            return cast("T", value)

    def pin(self, *, opened_at: datetime) -> PinnedGate:
        """The gate as it is shown and recorded when it opens at `opened_at`."""
        default = self._default(self.on_deadline) if isinstance(self.on_deadline, Default) else None
        return PinnedGate(
            name=self.name,
            kind=self.kind,
            message=self.message,
            payload=self.shown_payload,
            response_schema=self.response_schema,
            digest=self.digest,
            deadline=None if self.deadline is None else opened_at + self.deadline,
            on_deadline="default" if isinstance(self.on_deadline, Default) else "fail",
            default=default.value if isinstance(default, Decoded) else None,
            policy=self.policy,
            stands_for=self.stands_for,
        )


def shown_digest(message: str | None, payload: JsonValue, schema: JsonSchema | None) -> str:
    """The digest of exactly what a person was shown: `Gate.digest` for the same three."""
    return digest({"message": plain(message), "payload": payload, "schema": schema})


__all__ = ["MAX_SHOWN_BYTES", "Default", "Gate", "GateKind", "PinnedGate", "Policy", "shown_digest"]
