"""What travels between a run and its activities beside arguments and results: part of recorded histories, never renamed."""

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

from gatewright.protocol.finding import Finding

CALL_HEADER: Final = "gatewright-call"
"""The activity header in which a workflow names the call."""

ERRAND_HEADER: Final = "gatewright-errand"
"""The activity header that says what the activity side is sent to do; runs that were opened before it have none."""

FINDING_METADATA: Final = "gatewright-finding"
"""Where, beside an effect's result, the payload says what is known of it."""

PLAN_EFFECT: Final = "gatewright_plan_effect"
"""The activity that plans a call in the ledger, or only looks whether it was attempted."""

MARK: Final = "gatewright"
"""The key of the last heartbeat detail, which is ours: whether the outside may have been reached, and what is waited for."""


REPLACED: Final = "CallReplaced"
"""The ApplicationError type of a call in whose place another generation was decided on."""

_NEVER_REACHED: Final = {"NoLedger", "NotACall", "NotFoundError", "StoreError"}


def begun(details: Iterable[Any]) -> bool:
    """Whether an attempt with these heartbeat details may have reached the outside."""
    return any(_ours(each) and bool(each[MARK].get("begun")) for each in details)


def own(details: Iterable[Any]) -> list[Any]:
    """The heartbeat details without ours: what the activity itself reported."""
    return [each for each in details if not _ours(each)]


def _ours(detail: Any) -> bool:
    return isinstance(detail, dict) and set(detail) == {MARK} and isinstance(detail[MARK], dict)


def told(failure: BaseException | None) -> Finding | None:
    """What the activity side knew when it failed: the last of the failure's details, where it put any."""
    if not isinstance(failure, ApplicationError) or not failure.details:
        return None
    try:
        return Finding.model_validate(failure.details[-1]) if isinstance(failure.details[-1], dict) else None
    except ValidationError:
        return None


def never_reached(failure: ApplicationError) -> bool:
    """Whether the attempt that failed so had not come as far as the ledger; of those before it that says nothing."""
    return failure.type in _NEVER_REACHED or failure.message == "Failed decoding arguments"


def header(value: BaseModel) -> Payload:
    """A value as a header's payload: JSON, whatever converter the application has."""
    return Payload(metadata={"encoding": b"json/plain"}, data=value.model_dump_json().encode())
