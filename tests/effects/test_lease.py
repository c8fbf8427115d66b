"""The fence looks at a clock, and so does not let an attempt go on that was stopped too long."""

from typing import Any

import pytest

from gatewright.effects import LeaseLost, current_call, fence, idempotency_headers, receipt, running
from gatewright.effects.lease import LEASE, Lease, elapsed
from gatewright.protocol import BranchPath, Call, FrameIdentity
from gatewright.protocol.canonical import NotJson

CALL = Call.at(
    FrameIdentity(namespace="default", workflow_id="w", first_execution_run_id="r"), BranchPath(), "pay", 1, effect=True
)


@pytest.fixture
def lease() -> object:
    """An attempt's lease, that has just been taken."""
    lease = Lease(CALL.key, "attempt", seconds=60)
    lease.extend(elapsed())
    token = LEASE.set(lease)
    yield lease
    LEASE.reset(token)


def test_a_lease_that_runs_lets_pass(lease: Lease) -> None:
    fence()


def test_a_lease_that_has_run_out_does_not(lease: Lease) -> None:
    lease.extend(elapsed() - 61)
    with pytest.raises(LeaseLost, match="stopped too long"):
        fence()


def test_a_lease_that_somebody_else_took_does_not(lease: Lease) -> None:
    lease.lose()
    with pytest.raises(LeaseLost):
        fence()


def test_the_header_carries_the_key_and_is_a_fence(lease: Lease) -> None:
    with running(CALL):
        assert idempotency_headers() == {"Idempotency-Key": CALL.key}
        lease.lose()
        with pytest.raises(LeaseLost):
            idempotency_headers()
        assert current_call() == CALL


def test_the_last_proof_counts(lease: Lease) -> None:
    receipt("first")
    receipt({"second": 2})
    assert lease.receipts[-1] == {"second": 2}


@pytest.mark.parametrize("proof", [object(), {"at": object()}, b"\xff"])
def test_a_proof_that_cannot_be_written_down_is_refused_at_once(lease: Lease, proof: Any) -> None:
    """Not when the outcome is to be recorded, which would be lost with it."""
    with pytest.raises(NotJson):
        receipt(proof)
    assert lease.receipts == []


def test_outside_an_effect_there_is_nothing_to_fence() -> None:
    fence()
    receipt("nobody keeps it")
    with pytest.raises(LookupError, match=r"Frame\.perform"):
        idempotency_headers()
