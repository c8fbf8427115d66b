"""
Conversations as scripts, each played against ADK's `Runner` and against a gateway.

A script names its messages, so that a difference has a place: `turns.<name of
the message>`. An `Answer` copies the id from the gate's functionCall as a client
does, so one script serves both sides although their ids may differ.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from google.genai import types


@dataclass(frozen=True)
class Answer:
    """
    A functionResponse to the gate that was asked last under this name, or to its `visit`-th asking.

    `value` is sent as `response` if it is an object, else under `result`; None
    sends no `response` at all.
    """

    gate: str
    value: Any
    visit: int | None = None
    name: str | None = "adk_request_input"

    def part(self, interrupt_id: str | None) -> types.Part:
        """The part, for the id under which the gate was asked."""
        given = self.value if isinstance(self.value, dict) or self.value is None else {"result": self.value}
        response = types.FunctionResponse(id=interrupt_id, name=self.name, response=given)
        return types.Part(function_response=response)


@dataclass(frozen=True)
class Say:
    """
    One message, as `Runner.run_async` takes it; without parts there is no message.

    `invocation` is an invocation id, or the number of one that the script has
    seen, counted from 1.
    """

    parts: tuple[types.Part | Answer, ...] = ()
    invocation: str | int | None = None
    state: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    role: str = "user"


@dataclass(frozen=True)
class Job:
    """The background job does its work and answers its gate."""


Steps = dict[str, Say | Job]


@dataclass(frozen=True)
class Script:
    """A conversation with one app: what is said, by name, in the order it is said."""

    app: str
    steps: Steps
    state: dict[str, Any] = field(default_factory=dict)

    def without(self, names: Collection[str]) -> "Script":
        """The same conversation without these messages."""
        return replace(self, steps={name: step for name, step in self.steps.items() if name not in names})


def say(*parts: types.Part | Answer, **options: Any) -> Say:
    """A message."""
    return Say(parts, **options)


def text(words: str) -> types.Part:
    """A text part."""
    return types.Part(text=words)


def raw(interrupt_id: str | None, value: Any) -> types.Part:
    """A functionResponse under an id that nobody was told, or under none."""
    return Answer("", value).part(interrupt_id)


_CALL = types.Part(function_call=types.FunctionCall(id="plan-gate-1", name="adk_request_input", args={}))
_PICTURE = types.Part(inline_data=types.Blob(mime_type="text/plain", data=b"hi"))
FULL = {"approved": True, "comment": "fine", "limit": 5, "level": "high"}
PLAN, NAME = Answer("plan-gate-1", FULL), Answer("name-gate-1", "q3")
A, B = Answer("gate-a", "A!"), Answer("gate-b", 7)
OPEN: Steps = {"opens": say(text("hello"))}
PLANNED: Steps = {"approves": say(PLAN)}
NAMED: Steps = {"names": say(NAME)}
"""The turns of the conversation that goes well."""
GOES_ON = PLANNED | NAMED


def _gated(**steps: Say | Job) -> Script:
    """Said at the plan's gate, after which the conversation goes on and ends well."""
    return Script("gated", OPEN | steps | GOES_ON)


def _par(**steps: Say | Job) -> Script:
    return Script("par", OPEN | steps)


_SAMPLES: dict[str, Script] = {
    # The good ones
    "gated": Script("gated", OPEN | PLANNED | NAMED, state={"a": 1}),
    "gated, defaults left out": Script("gated", OPEN | {"approves": say(Answer("plan-gate-1", {"approved": True}))}),
    "gated, form as JSON text": Script(
        "gated",
        OPEN
        | {
            "approves": say(
                Answer("plan-gate-1", '{"approved": false, "comment": "no", "limit": 2, "level": "low"}')
            )
        },
    ),
    "gated, form under result": Script("gated", OPEN | {"approves": say(Answer("plan-gate-1", {"result": FULL}))}),
    "gated, coerced": Script(
        "gated",
        OPEN | {"approves": say(Answer("plan-gate-1", {"approved": "yes", "comment": "", "limit": "7", "level": "low"}))},
    ),
    "gated, any name": Script("gated", OPEN | {"approves": say(Answer("plan-gate-1", FULL, name="anything"))}),
    "gated, role function": Script("gated", OPEN | {"approves": say(PLAN, role="function")}),
    "gated, number as a name": Script("gated", OPEN | PLANNED | {"names": say(Answer("name-gate-1", "42"))}),
    "gated, state and metadata": Script(
        "gated", OPEN | {"approves": say(PLAN, state={"who": "me"}, metadata={"desk": "four"})} | NAMED
    ),
    "gated, state with the text": Script("gated", {"opens": say(text("hello"), state={"b": [1, None]})}),
    "gated, opened in two parts": Script("gated", {"opens": say(text("hel"), text("lo"))}),
    "gated, empty text beside": Script("gated", OPEN | {"approves": say(text(""), PLAN)} | NAMED),
    "gated, a picture beside": Script("gated", OPEN | {"approves": say(PLAN, _PICTURE)} | NAMED),
    "gated, invocation of its own": Script("gated", OPEN | {"approves": say(PLAN, invocation=1)}),
    "gated, wrong invocation": Script("gated", OPEN | {"approves": say(PLAN, invocation="e-wrong")}),
    "gated, only the invocation": _gated(pokes=say(invocation=1)),
    "gated, again": Script("gated", OPEN | PLANNED | NAMED | {"opens again": say(text("more")), "approves again": say(PLAN)}),
    "par, a then b": _par(a=say(A), b=say(B)),
    "par, b then a": _par(b=say(B), a=say(A)),
    "par, both": _par(both=say(A, B)),
    "par, both the other way round": _par(both=say(B, A)),
    "loop, at once": Script("loop", OPEN | {"accepts": say(Answer("review", "yes"))}),
    "loop, revised twice": Script(
        "loop",
        OPEN
        | {
            "revises": say(Answer("review", "no")),
            "revises again": say(Answer("review", {"ok": False, "why": "short"})),
            "accepts": say(Answer("review", {"ok": True})),
        },
    ),
    "strict": Script("strict", OPEN | {"fills in": say(Answer("g", {"name": "n", "tags": ["a"], "note": "x"}))}),
    "boom": Script("boom", OPEN | {"goes": say(Answer("g", "a"))}),
    # What is no message
    "mixed, text first": _gated(mixes=say(text("yes"), PLAN)),
    "mixed, response first": _gated(mixes=say(PLAN, text("yes"))),
    "unknown id": _gated(answers=say(raw("nope", FULL))),
    "known and unknown id": _gated(answers=say(PLAN, raw("nope", FULL))),
    "too early": _gated(answers=say(raw("name-gate-1", "early"))),
    "function call": _gated(calls=say(_CALL)),
    "missing id": _gated(answers=say(raw(None, FULL))),
    "empty id": _gated(answers=say(raw("", FULL))),
    "twice in one message": _gated(answers=say(PLAN, Answer("plan-gate-1", {**FULL, "comment": "second"}))),
    "empty text": Script("gated", {"says nothing": say(text(""))}),
    "no message": Script("gated", {"says nothing": say()}),
    "no message at a gate": _gated(**{"says nothing": say()}),
    "unknown invocation": Script("gated", {"pokes": say(invocation="e-unknown")}),
    "text at a gate": _gated(says=say(text("yes, approve"))),
    "text with an invocation": _gated(says=say(text("yes, approve"), invocation=1)),
    # Answers that do not fit
    "invalid then valid": _gated(errs=say(Answer("plan-gate-1", {**FULL, "approved": "maybe"}))),
    "out of range": _gated(errs=say(Answer("plan-gate-1", {**FULL, "limit": 1000}))),
    "out of enum": _gated(errs=say(Answer("plan-gate-1", {**FULL, "level": "banana"}))),
    "no response": _gated(errs=say(Answer("plan-gate-1", None))),
    "extra keys": Script("strict", OPEN | {"fills in": say(Answer("g", {"name": "n", "tags": [], "note": "", "bogus": 1}))}),
    "wrong items": Script("strict", OPEN | {"errs": say(Answer("g", {"name": "n", "tags": [1, 2], "note": ""}))}),
    "null for a name": Script("strict", OPEN | {"errs": say(Answer("g", {"name": None, "tags": [], "note": ""}))}),
    "one invalid of two": _par(errs=say(A, Answer("gate-b", "seven")), both=say(A, B)),
    # Twice and late
    "the same answer twice": Script("gated", OPEN | PLANNED | {"approves again": say(PLAN)} | NAMED),
    "another answer": Script(
        "gated", OPEN | PLANNED | {"rejects": say(Answer("plan-gate-1", {**FULL, "approved": False}))} | NAMED
    ),
    "the same answer late": Script("gated", OPEN | PLANNED | NAMED | {"names again": say(NAME)}),
    "another answer late": Script("gated", OPEN | PLANNED | NAMED | {"renames": say(Answer("name-gate-1", "q4"))}),
    "a twice, then b": _par(a=say(A), **{"a again": say(Answer("gate-a", "changed"))}, b=say(B)),
    "answered and open id": _par(a=say(A), both=say(A, B)),
    "the first round's answer again": Script(
        "loop",
        OPEN
        | {
            "revises": say(Answer("review", "no")),
            "repeats": say(Answer("review", "no", visit=1)),
            "accepts": say(Answer("review", "yes")),
        },
    ),
    "after a failure": Script(
        "boom", OPEN | {"goes": say(Answer("g", "a")), "goes again": say(Answer("g", "b")), "pokes": say(invocation=1)}
    ),
}  # fmt: skip

REVIEW = {"drop": ["notes"], "mask": ["email"], "comment": "Pseudonymous."}
_PROFILED: Steps = {"opens": say(text("{source}"))}


def _round(name: str, review: dict[str, Any], decision: str) -> Steps:
    """Reviewed, transformed, decided."""
    return {
        f"reviews{name}": say(Answer("review_profile", review)),
        f"transforms{name}": Job(),
        f"decides{name}": say(Answer("confirm_release", {"decision": decision, "comment": f"to {decision}"})),
    }


_RELEASES: dict[str, Script] = {
    "release": Script("dataset_release", _PROFILED | _round("", REVIEW, "release")),
    "release, revised twice": Script(
        "dataset_release",
        _PROFILED
        | _round("", REVIEW, "revise")
        | _round(" again", {**REVIEW, "drop": ["notes", "city"]}, "revise")
        | _round(" at last", {"drop": [], "mask": [], "comment": ""}, "release"),
    ),
    "release, rejected": Script("dataset_release", _PROFILED | _round("", REVIEW, "reject")),
    "release, malformed": Script(
        "dataset_release",
        _PROFILED
        | {
            "mixes": say(text("fine"), Answer("review_profile", REVIEW)),
            "mixes again": say(Answer("review_profile", REVIEW), text("fine")),
            "mistakes the id": say(raw("review", REVIEW)),
            "is too early": say(raw("confirm_release", {"decision": "release", "comment": ""})),
            "calls": say(_CALL),
        }
        | _round("", REVIEW, "release"),
    ),
}

SCRIPTS = _SAMPLES | _RELEASES
"""All of them. In the release's, `{source}` stands for the path of the data set."""
