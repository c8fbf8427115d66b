"""What cannot be shown, asked or kept fails where the gate is defined, and what was shown is pinned."""

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from gatewright.protocol.answer import EvidenceClass
from gatewright.protocol.errors import GateError
from gatewright.protocol.gate import (
    MAX_DEADLINE,
    MAX_SHOWN_BYTES,
    Default,
    Gate,
    GateKind,
    PinnedGate,
    Policy,
    shown_digest,
)
from tests.protocol.builders import NOON, later

HOUR = timedelta(hours=1)


class Mask(StrEnum):
    HASH = "hash"
    DROP = "drop"


class Review(BaseModel):
    columns: list[str]
    mask: Mask = Mask.HASH


class TestWhatCannotBeRendered:
    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"answer": Callable[[], int]}, "use a pydantic model"),
            ({"answer": threading.Lock}, "use a pydantic model"),
            ({"answer": {"type": "strnig"}}, "strnig"),
            ({"answer": {"$ref": "https://example.com/schema"}}, "ref"),
            ({"answer": {"type": "string", "pattern": "("}}, "pattern"),
            ({"payload": object()}, "cannot be shown"),
            ({"payload": {"when": [threading.Lock()]}}, r"\$\.when\[0\]"),
            ({"message": "half \ud83d"}, "surrogate"),
            ({"message": 5}, "a message is text"),
            ({"payload": "x" * MAX_SHOWN_BYTES}, "put the rest into a file"),
            ({"message": "x" * MAX_SHOWN_BYTES}, "put the rest into a file"),
            ({"name": "half \ud83d"}, "surrogate"),
            ({"name": ""}, "1 to 200 characters"),
            ({"name": "x" * 201}, "1 to 200 characters"),
            ({"deadline": timedelta(0)}, "from now on"),
            ({"deadline": -HOUR}, "from now on"),
            ({"deadline": timedelta.max}, "at most 36,500 days"),
            ({"on_deadline": Default(True)}, "default without a deadline"),
            ({"deadline": HOUR, "answer": bool, "on_deadline": Default("perhaps")}, "does not fit its own schema"),
            ({"deadline": HOUR, "answer": Review, "on_deadline": Default({"columns": [1]})}, r"\$\.columns\[0\]"),
            ({"deadline": HOUR, "on_deadline": Default(object())}, "default cannot be written as JSON"),
            ({"deadline": HOUR, "on_deadline": Default("x" * MAX_SHOWN_BYTES)}, "default is larger"),
            ({"policy": Policy(quorum=2)}, "quorum above 1 is reserved"),
            ({"policy": Policy(evidence=EvidenceClass.SIGNED)}, "evidence 'signed' is reserved"),
            ({"policy": Policy(supersession="until_consumed")}, "supersession is reserved"),
        ],
    )
    def test_it_is_an_error_where_the_gate_is_defined(self, fields: dict[str, Any], reason: str) -> None:
        """With the gate's name, and never in front of a person (A13; for the empty name B17)."""
        with pytest.raises(GateError, match=reason) as wrong:
            Gate(**{"name": "review"} | fields)

        assert f"gate {fields.get('name', 'review')!r}: " in str(wrong.value)

    @pytest.mark.parametrize("deadline", [timedelta(microseconds=1), MAX_DEADLINE])
    def test_the_shortest_and_the_longest_wait_are_taken(self, deadline: timedelta) -> None:
        """The longest can still be written as a time."""
        assert NOON + deadline == Gate("review", deadline=deadline).pin(opened_at=NOON).deadline


class TestWhatIsShown:
    def test_a_literal_is_rendered(self) -> None:
        """A13: ADK fails the node of such a gate at the moment it pauses."""
        schema = Gate("review", answer=Literal["release", "reject"]).response_schema

        assert {"enum": ["release", "reject"], "type": "string"} == schema

    @pytest.mark.parametrize(
        ("payload", "shown"),
        [
            ({"mean": math.nan, "max": math.inf}, {"mean": "NaN", "max": "Infinity"}),
            ({"id": 2**53}, {"id": "9007199254740992"}),
            (Review(columns=["a"]), {"columns": ["a"], "mask": "hash"}),
            (None, None),
        ],
    )
    def test_a_payload_is_shown_as_portable_json(self, payload: object, shown: Any) -> None:
        """NaN is text, so that every client shows the same."""
        assert shown == Gate("review", payload=payload).shown_payload

    @pytest.mark.parametrize(
        "changes",
        [
            {"message": "Is it right now?"},
            {"message": None},
            {"payload": {"rows": 4}},
            {"payload": {"rows": "3"}},
            {"payload": None},
            {"answer": int},
            {"answer": None},
            {"narrowed": {"enum": [True]}},
        ],
    )
    def test_the_digest_changes_with_what_is_shown(self, changes: dict[str, Any]) -> None:
        """Message, payload and schema: an answer to anything else is an answer to something else."""
        gate = Gate("review", answer=bool, message="Is it right?", payload={"rows": 3})

        assert gate.digest != replace(gate, **changes).digest

    @pytest.mark.parametrize(
        "changes",
        [
            {"name": "confirm"},
            {"deadline": HOUR},
            {"deadline": HOUR, "on_deadline": Default(True)},
            {"kind": GateKind.SYSTEM},
            {"policy": Policy(invited=("ada",), separate_from=("draft",), strict=True, dangerous=True)},
            {"payload": {"rows": 3.0}},
            {"answer": {"type": "boolean"}},
        ],
    )
    def test_the_digest_changes_with_nothing_else(self, changes: dict[str, Any]) -> None:
        """Nor with another way of writing the same."""
        gate = Gate("review", answer=bool, message="Is it right?", payload={"rows": 3})

        assert gate.digest == replace(gate, **changes).digest

    def test_the_digest_is_the_same_for_ever(self) -> None:
        """Digests are kept by clients and in receipts; a change here breaks both."""
        golden = "sha256:f22604f90dd3cf1e8dd1d373a63b788c1fa18107a0f61e92759db7d2b14eeff9"
        gate = Gate("review", answer=bool, message="Is it right?", payload={"rows": 3})

        assert golden == gate.digest
        assert golden == shown_digest("Is it right?", {"rows": 3}, {"type": "boolean"})


class TestPin:
    def test_a_gate_is_pinned_as_it_was_shown(self) -> None:
        """Everything that a verdict needs is in the record, and nothing of today's types."""
        policy = Policy(invited=("ada",))
        gate = Gate(
            "review",
            answer=Review,
            message="Which columns?",
            payload=Review(columns=["a"]),
            deadline=HOUR,
            on_deadline=Default(Review(columns=[])),
            kind=GateKind.SYSTEM,
            policy=policy,
        )

        assert PinnedGate(
            name="review",
            kind=GateKind.SYSTEM,
            message="Which columns?",
            payload={"columns": ["a"], "mask": "hash"},
            response_schema=gate.response_schema,
            digest=gate.digest,
            deadline=later(60),
            on_deadline="default",
            default={"columns": [], "mask": "hash"},
            policy=policy,
        ) == gate.pin(opened_at=NOON)

    def test_a_gate_without_a_deadline_waits_for_ever(self) -> None:
        """The deadline of the record is then empty, and there is no default."""
        pinned = Gate("review").pin(opened_at=NOON)

        assert (None, "fail", None) == (pinned.deadline, pinned.on_deadline, pinned.default)

    @pytest.mark.parametrize(
        ("answer", "given", "kept"),
        [
            (Review, {"columns": []}, {"columns": [], "mask": "hash"}),
            (str, {"result": "yes"}, "yes"),
            (str, "42", "42"),
            (None, "42", "42"),
            (None, None, None),
        ],
    )
    def test_a_default_is_kept_as_the_answer_that_it_stands_for(self, answer: Any, given: object, kept: object) -> None:
        """Decoded as an answer would be, so that the run cannot tell which of the two it went on with."""
        gate = Gate("review", answer=answer, deadline=HOUR, on_deadline=Default(given))

        assert kept == gate.pin(opened_at=NOON).default

    def test_a_pinned_gate_survives_json(self) -> None:
        """It lives in histories and books."""
        pinned = Gate("review", answer=Review, payload=[1.5, "é"], deadline=HOUR).pin(opened_at=NOON)

        assert pinned == PinnedGate.model_validate_json(pinned.model_dump_json())
