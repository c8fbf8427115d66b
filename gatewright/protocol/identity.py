"""
Who may continue, and where: frame identity, occurrences and branch paths.

Three things hold throughout:

1. An interrupt id is unique in its session, for ever. The first arrival of the
   session's first run keeps the author's own id; later arrivals get `~visit`,
   later runs `@run` (`review`, `review~2`, `review@2`, `review@2~2`).
2. An author's id that ends like one of our suffixes is quoted with `~0`, so
   that the gate `review~2` (on the wire `review~2~0`) can never be taken for
   the second visit of the gate `review`.
3. Branches are compared component by component, never as text: `a@1/b@1` owns
   `a@1/b@1/c@1` and not `a@1/b@10`.
"""

import re
from enum import StrEnum
from typing import Annotated, Self
from urllib.parse import quote, unquote

from pydantic import Field, PlainSerializer, PlainValidator, StringConstraints, WithJsonSchema

from .errors import IdentityError
from .word import Told, Word

MAX_NAME = 200
"""The longest name of a gate, step or effect, in characters: with its suffixes it stays an index-friendly id."""

MAX_NUMBER = 10**15 - 1
"""The highest number of a run or visit: a JSON reader keeps it exactly, so that a receipt can state it."""

# 1 is never written, so `rm@1` (as ADK's `wf_tool_confirmation:p@1/rm@1`) needs no quoting; 0 is the quotation mark.
_ABOVE_ONE = r"([2-9]|[1-9][0-9]{1,14})\Z"
_SUFFIX = re.compile(rf"[@~]{_ABOVE_ONE}|~0\Z")
_VISIT = re.compile(f"~{_ABOVE_ONE}")
_RUN = re.compile(f"@{_ABOVE_ONE}")
_COMPONENT = re.compile(r"(.+)@([1-9][0-9]{0,14})", re.DOTALL)
_QUOTE = "~0"

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]


class Standing(StrEnum):
    """Whether a frame may still be continued, and if not, how it ended."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"


class FrameIdentity(Told):
    """
    Which run this is: the chain of executions that `first_execution_run_id` heads.

    That id survives continue-as-new, workflow retry and reset, which the run id
    does not, so keys and receipts are derived from it.
    """

    namespace: str
    workflow_id: str
    first_execution_run_id: str


class FrameState(Told):
    """One run's authority to continue, as it stood when something was recorded."""

    identity: FrameIdentity
    standing: Standing = Standing.OPEN
    epoch: int = Field(default=0, ge=0, description="authority epoch; raised by supersession only")


class Occurrence(Word):
    """
    One arrival of one run at one gate.

    A gate inside a revision loop is reached many times. Answers name the
    occurrence, never the gate, so an answer to the first draft can never
    approve the second.
    """

    gate: Name
    run: int = Field(default=1, ge=1, le=MAX_NUMBER, description="which run of its session")
    visit: int = Field(default=1, ge=1, le=MAX_NUMBER, description="which arrival of that run at this gate")

    @property
    def interrupt_id(self) -> str:
        """The wire form, unique in the session; `Occurrence.parse` reads it back."""
        quoted = self.gate + _QUOTE if _SUFFIX.search(self.gate) else self.gate
        run = f"@{self.run}" if self.run > 1 else ""
        visit = f"~{self.visit}" if self.visit > 1 else ""
        return quoted + run + visit

    @classmethod
    def parse(cls, interrupt_id: str) -> Self:
        """Read a wire id back; `IdentityError` for one that no occurrence has."""
        rest, visit, run = interrupt_id, 1, 1
        if found := _VISIT.search(rest):
            rest, visit = rest[: found.start()], int(found[1])
        if found := _RUN.search(rest):
            rest, run = rest[: found.start()], int(found[1])
        gate = rest.removesuffix(_QUOTE)
        if not gate or len(gate) > MAX_NAME or (rest != gate) != bool(_SUFFIX.search(gate)):
            msg = f"{interrupt_id[:80]!r} is not an interrupt id; take it from the gate as it was listed"
            raise IdentityError(msg)
        return cls(gate=gate, run=run, visit=visit)


class Activation(Word):
    """One component of a branch path: the n-th time that a node, gate, step or effect was reached."""

    name: Name
    visit: int = Field(ge=1, le=MAX_NUMBER)

    def __str__(self) -> str:
        """`name@visit`, with `/`, `@` and `%` of the name percent-escaped."""
        return f"{quote(self.name, safe=' !$&()*+,:;=~')}@{self.visit}"


def _parse_branch(value: object) -> "BranchPath":
    if isinstance(value, BranchPath):
        return value
    if isinstance(value, str):
        return BranchPath.parse(value)
    msg = f"a branch path is text such as 'release@1/review@2', not {type(value).__name__}"
    raise ValueError(msg)


class BranchPath(tuple[Activation, ...]):
    """
    The path of activations that owns an occurrence, outermost first: `release@1/review@2`.

    Compared component by component; a text prefix means nothing.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `str(path)` back; `IdentityError` where a component has no `@visit`."""
        components = []
        for part in text.split("/") if text else ():
            found = _COMPONENT.fullmatch(part)
            if found is None or len(unquote(found[1])) > MAX_NAME:
                msg = f"{text[:80]!r} is not a branch path: {part[:40]!r} should read name@visit"
                raise IdentityError(msg)
            components.append(Activation(name=unquote(found[1]), visit=int(found[2])))
        return cls(components)

    def __str__(self) -> str:
        """The wire form."""
        return "/".join(map(str, self))

    def __repr__(self) -> str:
        """As the wire form, recognisable in a failing test."""
        return f"BranchPath({str(self)!r})"

    def child(self, name: str, visit: int) -> Self:
        """The path of something reached from here."""
        return type(self)((*self, Activation(name=name, visit=visit)))

    def owns(self, other: "BranchPath") -> bool:
        """Whether `other` is this path or lies below it."""
        return tuple(other[: len(self)]) == tuple(self)


Branch = Annotated[
    BranchPath,
    PlainValidator(_parse_branch),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string"}),
]
"""A `BranchPath` as a model's field: text on the wire."""


def session_run(workflow_id: str) -> int:
    """
    Which run of its session a workflow id of the form `app/user/session/n` names; 1 for any other id.

    A workflow that somebody started under an id of their own is its own
    session's only run.
    """
    *session, number = workflow_id.split("/")
    if len(session) == 3 and all(map(_is_part, session)) and re.fullmatch(r"[1-9][0-9]{0,14}", number):
        return int(number)
    return 1


def _is_part(escaped: str) -> bool:
    """Whether this is how a part of a session is written: another spelling is another workflow to Temporal."""
    part = unquote(escaped)
    return 0 < len(part) <= MAX_NAME and "\0" not in part and quote(part, safe="") == escaped
