"""
What is thrown at a paused run, and what each of it must come to.

None of it may open a gate, close one, or move a run. The good answers, which
may, are the storm's own business.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from gatewright.protocol import Refusal
from tests.storm.pipeline import INVITED

RAW = ("raw update", "raw signal")
COMMAND = ("command update", "command signal")
CLIENT = ("client update", "client signal")
ALL = (*RAW, *COMMAND, *CLIENT)
UPDATES = ("raw update", "command update", "client update")

REPEATED = "repeated"
ADMITTED = "admitted"
BY_TEMPORAL = "refused by Temporal"
OVER = "no such run open"


def raw(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    """A payload as nobody's converter would write it."""
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


@dataclass(frozen=True)
class Said:
    """A good answer that was admitted, and the digest of the receipt that it earned."""

    body: dict[str, Any]
    receipt: str

    @property
    def interrupt_id(self) -> str:
        return str(self.body["interruptId"])


@dataclass
class Target:
    """One run, where it stands, and all that somebody needs who wants to confuse it."""

    workflow_id: str
    name: str
    open: str
    """The interrupt id of the gate at which it is paused; empty once the run is over."""
    digest: str = ""
    foreign: tuple[str, ...] = ()
    """Interrupt ids of the other run of its session."""
    said: list[Said] = field(default_factory=list)
    other_digest: str = "sha256:" + "0" * 64

    @property
    def suffix(self) -> str:
        """How interrupt ids of this run end, its visit left out: nothing in the first run of a session, @2 in its second."""
        number = self.workflow_id.rpartition("/")[2]
        return "" if number == "1" else f"@{number}"

    @property
    def gate(self) -> str:
        return self.open.partition("~")[0].partition("@")[0]

    @property
    def early(self) -> list[str]:
        """Ids of occurrences to come: of the next visit, and of gates that were not reached."""
        gates = ("first", "second", "looped")
        later = [f"{gate}{self.suffix}" for gate in gates[gates.index(self.gate) + 1 :]]
        visit = int(self.open.partition("~")[2] or 1)
        return [f"{self.gate}{self.suffix}~{visit + 1}", f"{self.gate}{self.suffix}~{visit + 40}", *later]

    def good(self, **fields: Any) -> dict[str, Any]:
        """A message that would be admitted, unless `fields` spoil it."""
        return {
            "interruptId": self.open,
            "response": {"approved": True, "level": 2},
            "principal": INVITED,
            **fields,
        }


@dataclass(frozen=True)
class Shot:
    """One message: its arguments, the ways by which it can be sent, and the name of what it must come to."""

    kind: str
    args: list[Any]
    expect: str
    channels: tuple[str, ...] = ALL
    signal: str = "answer"
    nameless: bool = False
    """Objected to as a message, so that no answer id brings the verdict of a signal back; the book's count does."""
    receipt: str | None = None

    @property
    def payloads(self) -> list[RawValue]:
        """Its arguments as they travel."""
        return [arg if isinstance(arg, RawValue) else raw(json.dumps(arg).encode()) for arg in self.args]


def arms(target: Target, number: int) -> list[Shot]:
    """One of every kind, with answer ids of this number's own."""
    if not target.open:
        return list(_at_a_run_that_is_over(target, number))
    return [*_unreadable(target), *_refused(target, number), *_invalid(target, number), *_old(target, number)]


def _unreadable(target: Target) -> Iterator[Shot]:
    good = target.good()
    text = json.dumps(good).encode()
    wrong: dict[str, tuple[list[Any], tuple[str, ...]]] = {
        "no argument": ([], (*RAW, *COMMAND)),
        "two arguments": ([good, {"approved": True}], (*RAW, *COMMAND)),
        "a text": (["approve"], (*RAW, *COMMAND)),
        "a list": ([[good]], (*RAW, *COMMAND)),
        "null": ([None], (*RAW, *COMMAND)),
        "a number": ([7], (*RAW, *COMMAND)),
        "not JSON": ([raw(text[1:])], RAW),
        "bytes as JSON": ([raw(b"\x00\xff\x80")], RAW),
        "binary": ([raw(text, b"binary/plain")], (*RAW, *COMMAND)),
        "binary null": ([raw(b"", b"binary/null")], RAW),
        "protobuf": ([raw(b"\x08\x01", b"binary/protobuf")], RAW),
        "encrypted": ([raw(text, b"binary/encrypted")], (*RAW, *COMMAND)),
        "no encoding": ([RawValue(Payload(data=text))], RAW),
        "a field misspelt": ([target.good(respones=1)], (*RAW, *COMMAND)),
        "an id that is a number": ([target.good(interruptId=7)], (*RAW, *COMMAND)),
        "a key twice": ([raw(text[:-1] + b', "response": {"approved": false}}')], RAW),
        "nested to the bottom of the stack": ([raw(b"[" * 100_000)], RAW),
        "half a character in a name": ([target.good(principal="\ud800")], (*RAW, *COMMAND)),
        "101 answers": ([{"answers": [good] * 101}], (*RAW, *COMMAND)),
    }
    for kind, (args, channels) in wrong.items():
        yield Shot(kind, args, Refusal.UNREADABLE, channels)
    yield Shot("misnamed", [good], Refusal.UNREADABLE, (*RAW, *COMMAND), signal="aprove")


def _refused(target: Target, number: int) -> Iterator[Shot]:
    def named(kind: str) -> str:
        return f"{kind.replace(' ', '-')}-{number}"

    def shot(kind: str, body: dict[str, Any], expect: Refusal, **more: Any) -> Shot:
        if "interruptId" in body or "gate" in body or "response" in body:
            body = {"answerId": named(kind), **body}
        return Shot(kind, [body], expect, **more)

    good, response = target.good(), target.good()["response"]
    large = target.good(response={"approved": True, "note": "x" * 300_000})
    yield shot("text beside it", target.good(text="and go on"), Refusal.MIXED_MESSAGE, nameless=True)
    yield shot("by an agent", target.good(author="planner"), Refusal.NOT_AN_ANSWER, nameless=True)
    yield shot("by the engine", target.good(principal="engine:deadline"), Refusal.NOT_AN_ANSWER, nameless=True)
    yield shot("by a model", target.good(principal="model:draft"), Refusal.NOT_AN_ANSWER, nameless=True)
    yield shot("nothing", {}, Refusal.NO_ANSWER, nameless=True)
    yield shot("no answers", {"answers": []}, Refusal.NO_ANSWER, nameless=True)
    yield shot("no id", {"response": response, "principal": INVITED}, Refusal.MISSING_ID)
    yield shot("an empty id", target.good(interruptId=""), Refusal.MISSING_ID)
    yield shot("an unknown id", target.good(interruptId="payment"), Refusal.UNKNOWN_GATE)
    yield shot("an id that is none", target.good(interruptId=f"{target.open}~0~"), Refusal.UNKNOWN_GATE)
    yield shot("an unknown gate", {"gate": "payment", "response": response}, Refusal.UNKNOWN_GATE)
    yield shot("a run of the session that never was", target.good(interruptId="first@77"), Refusal.UNKNOWN_GATE)
    for foreign in target.foreign:
        yield shot("another run of the session", target.good(interruptId=foreign), Refusal.UNKNOWN_GATE)
    for early in target.early:
        yield shot(f"pre-armed {early}", target.good(interruptId=early), Refusal.NOT_OPEN_YET)
    yield shot("another gate's name", target.good(gate="payment"), Refusal.AMBIGUOUS_GATE)
    yield shot("another digest", target.good(digest=target.other_digest), Refusal.STALE_DIGEST)
    yield shot("a change of mind", target.good(supersedes="somebody-elses"), Refusal.MAY_NOT_SUPERSEDE)
    if target.gate == "second":
        yield shot("by somebody not invited", target.good(principal="user:mallory"), Refusal.NOT_INVITED)
        yield shot("by nobody", target.good(principal=""), Refusal.NOT_INVITED)
    unknown = {**target.good(interruptId="payment"), "answerId": named("half unknown")}
    again = {**good, "answerId": named("twice b"), "response": {"approved": False}}
    soon = {**target.good(interruptId=target.early[0]), "answerId": named("half early")}
    first = {**good, "answerId": named("twice a")}
    yield Shot("half of it good, half unknown", [{"answers": [unknown, first]}], Refusal.UNKNOWN_GATE)
    yield Shot("half of it good, half too early", [{"answers": [first, soon]}], Refusal.NOT_OPEN_YET, nameless=True)
    yield Shot("two for one gate", [{"answers": [first, again]}], Refusal.DUPLICATE_IN_MESSAGE)
    one_id = [first, {**unknown, "answerId": first["answerId"]}]
    yield Shot("two under one answer id", [{"answers": one_id}], Refusal.DUPLICATE_IN_MESSAGE)
    yield shot("300 KB", large, Refusal.TOO_LARGE, channels=(*RAW, *CLIENT), nameless=True)
    huge = target.good(response="x" * 2_200_000)
    yield Shot("2.2 MB", [huge], BY_TEMPORAL, ("raw signal",))


def _invalid(target: Target, number: int) -> Iterator[Shot]:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    fine = {"approved": True}
    wrong: dict[str, Any] = {
        "no response": None,
        "a text for an object": "yes please",
        "a list for an object": [fine],
        "a required field left out": {"level": 2},
        "a wrong type": {"approved": "perhaps"},
        "below the bound": {**fine, "level": 0},
        "above the bound": {**fine, "level": 6},
        "a fraction for a whole number": {**fine, "level": 2.5},
        "not one of the choices": {**fine, "colour": "blue"},
        "too long": {**fine, "note": "x" * 21},
        "a wrong type inside": {**fine, "budget": {"amount": "much"}},
        "a bound inside": {**fine, "budget": {"amount": 1001}},
        "too many inside": {**fine, "budget": {"amount": 1, "codes": [1, 2, 3, 4]}},
        "a wrong item inside": {**fine, "budget": {"amount": 1, "codes": ["one"]}},
        "a nesting of 200": deep,
    }
    for kind, response in wrong.items():
        body = target.good(response=response, answerId=f"{kind.replace(' ', '-')}-{number}")
        yield Shot(kind, [body], Refusal.INVALID)
    unportable: dict[str, Any] = {"NaN": float("nan"), "infinity": {**fine, "level": float("inf")}}
    for kind, number_less in unportable.items():
        # The command reads what it sends, and knows that this is no JSON.
        body = target.good(response=number_less, answerId=f"{kind}-{number}")
        yield Shot(kind, [body], Refusal.INVALID, (*RAW, *CLIENT))
    half = target.good(response={**fine, "note": "\ud800"}, answerId=f"half-{number}")
    yield Shot("half a character", [half], Refusal.INVALID, (*RAW, *COMMAND))
    failed = target.good(response=None, failure={"type": "x", "message": "y"}, answerId=f"failure-{number}")
    yield Shot("a failure from a person", [failed], Refusal.INVALID)


def _old(target: Target, number: int) -> Iterator[Shot]:
    """What was right once: answers to gates that are answered, in the same words and in others."""
    for said in target.said:
        visit = said.interrupt_id
        late = {**said.body, "answerId": f"late-{visit}-{number}"}
        yield Shot("late", [late], Refusal.ALREADY_ANSWERED)
        yield Shot("late and half good", [{"answers": [target.good(answerId="z"), late]}], Refusal.ALREADY_ANSWERED)
        yield Shot("repeated", [said.body], REPEATED, receipt=said.receipt)
        other = {**said.body, "response": {"approved": False, "level": 5}}
        yield Shot("an answer id again, with other content", [other], Refusal.CONFLICT)
        elsewhere = target.good(answerId=said.body["answerId"])
        yield Shot("an answer id again, for another gate", [elsewhere], Refusal.CONFLICT)


def _at_a_run_that_is_over(target: Target, number: int) -> Iterator[Shot]:
    ways = (*RAW, *COMMAND)
    for said in target.said:
        late = {**said.body, "answerId": f"over-{said.interrupt_id}-{number}"}
        yield Shot("to a finished run", [late], Refusal.FRAME_CLOSED, CLIENT)
        yield Shot("to a finished run, past the client", [late], OVER, ways)
        yield Shot("repeated, to a finished run", [said.body], REPEATED, CLIENT, receipt=said.receipt)
        other = {**said.body, "response": {"approved": False, "level": 4}}
        yield Shot("an answer id again, to a finished run", [other], Refusal.CONFLICT, CLIENT)
