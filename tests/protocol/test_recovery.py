"""What a person is asked where the engine must not decide, and what counts as an answer to it."""

from typing import Any

import pytest
from pydantic import BaseModel

from gatewright.protocol import Blocked, BranchPath, Call, FrameIdentity, ReplayCalls
from gatewright.protocol.canonical import canonical
from gatewright.protocol.finding import Finding
from gatewright.protocol.identity import MAX_NAME
from gatewright.protocol.receipt import EffectState
from gatewright.protocol.recovery import (
    BLOCKED,
    MAX_ARGUMENTS,
    CallFailure,
    gate_after_failure,
    gate_when_blocked,
    resolution_of,
    shown_arguments,
    system_name,
)

IDENTITY = FrameIdentity(namespace="default", workflow_id="shop/ada/s1/1", first_execution_run_id="r1")
CALL = Call.at(IDENTITY, BranchPath.parse("Order@1"), "pay", 2, effect=True, authorised_by="confirm", ledger_id="l1")
UNKNOWN = Finding(state=EffectState.UNKNOWN, because="its worker died", attempts=1)


class Paid(BaseModel):
    """What `pay` returns."""

    id: int


def blocked_gate(returns: Any = Paid, arguments: dict[str, Any] | None = None) -> Any:
    """The handoff of `pay`."""
    blocked = Blocked(call=CALL, because=UNKNOWN.about(CALL))
    return gate_when_blocked(blocked, kind="opaque", arguments=arguments or {"amount": 3}, returns=returns)


def failure(**changes: Any) -> CallFailure:
    """Why `pay` is not done."""
    fields: dict[str, Any] = {
        "call": "pay#2",
        "name": "pay",
        "key": CALL.key,
        "error": "no",
        "error_type": "ValueError",
    }
    return CallFailure(**fields | changes)


def test_the_handoff_shows_everything_that_is_known() -> None:
    gate = blocked_gate()

    assert gate.name == "blocked:pay"
    assert gate.message == (
        "It is not known whether pay#2 happened: its worker died. Find out, and say so: nothing is repeated on hope."
    )
    assert gate.shown_payload == {
        "call": "pay#2",
        "effect": "pay",
        "kind": "opaque",
        "key": CALL.key,
        "branch": "Order@1/pay@2",
        "generation": 0,
        "authorised_by": "confirm",
        "arguments": {"amount": 3},
        "known": "its worker died",
        "said_by": "ledger",
        "attempts": 1,
        "ledger": "l1",
    }
    assert gate.policy.dangerous


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"decision": "happened", "receipt": "t-1", "result": {"id": 1}}, None),
        ({"decision": "did_not_happen", "comment": "asked the bank"}, None),
        ({"decision": "abort"}, None),
        ({"decision": "happened", "result": {"id": 1}}, "needs a receipt"),
        ({"decision": "happened", "receipt": "", "result": {"id": 1}}, "needs a receipt"),
        ({"decision": "happened", "receipt": "t-1"}, "needs the result"),
        ({"decision": "happened", "receipt": "t-1", "result": {"id": "one"}}, "valid integer"),
        ({"decision": "retry"}, "happened"),
        ({"decision": "abort", "why": "so"}, "Extra inputs"),
        ({}, "required"),
    ],
)
def test_a_word_counts_with_what_it_needs(answer: dict[str, Any], problem: str | None) -> None:
    problems = blocked_gate().problems(answer)

    if problem is None:
        assert problems == []
    else:
        assert any(problem in said for _, said in problems), problems


@pytest.mark.parametrize("returns", [None, type(None), Any, Paid | None, object])
def test_a_result_that_may_be_none_need_not_be_given(returns: Any) -> None:
    assert blocked_gate(returns).problems({"decision": "happened", "receipt": "t-1"}) == []


def test_a_result_of_the_effects_type_reads_back_in_it() -> None:
    said: Any = resolution_of(Paid).model_validate({"decision": "happened", "receipt": 1, "result": {"id": 4}})
    assert said.result == Paid(id=4)


def test_long_arguments_are_shown_by_their_beginning() -> None:
    shown = shown_arguments({"text": "x" * 50_000, "number": 1, "odd": object()})

    assert isinstance(shown, dict)
    assert len(canonical(shown)) < MAX_ARGUMENTS
    assert str(shown["text"]).endswith("...")
    assert shown["number"] == 1
    assert "not JSON" in str(shown["odd"])


@pytest.mark.parametrize(
    ("known", "says"), [(None, ""), (True, "known not to have happened"), (False, "attempting it again is safe")]
)
def test_a_failure_says_whether_anything_happened(known: bool | None, says: str) -> None:
    gate = gate_after_failure(failure(attempts=5, known_not_to_have_happened=known), may_skip=False)

    assert str(gate.message).startswith("pay#2 failed after 5 attempts: no")
    assert says in str(gate.message)
    assert gate.problems({"decision": "retry"}) == []


def test_skipping_is_offered_only_where_the_pipeline_can_do_without() -> None:
    assert gate_after_failure(failure(), may_skip=False).problems({"decision": "skip"})
    assert gate_after_failure(failure(), may_skip=True).problems({"decision": "skip"}) == []


def test_only_operators_are_invited_where_there_are_any() -> None:
    gate = gate_after_failure(failure(), may_skip=False, operators=("ops",))
    assert gate.policy.invited == ("ops",)


def test_a_long_name_is_cut_and_told_apart() -> None:
    first, second = (system_name(BLOCKED, letter * 150 + "x" * 50) for letter in "ab")
    other = system_name(BLOCKED, "a" * 150 + "y" * 50)

    assert max(map(len, (first, second, other))) <= MAX_NAME
    assert len({first, second, other}) == 3


def test_the_call_that_is_replayed_is_the_one_that_is_named() -> None:
    """Everything but the generation, and so the key, stays."""
    known = Finding(state=EffectState.FAILED, because="it says so itself").about(CALL)
    replayed = ReplayCalls(call=CALL, because=known).replayed

    assert replayed.id == "pay#2.1"
    assert replayed.key != CALL.key
    assert replayed.model_dump(exclude={"key", "generation"}) == CALL.model_dump(exclude={"key", "generation"})
