"""Sound values of every kind, for tests to spoil."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from activities.models import Callback, ColumnProfile, JobOrder, Profile, TransformPlan

T = TypeVar("T")

ORDERS = "id,email,city,amount\n1,zoe@example.org,Zürich,12.50\n2,,Łódź,3\n3,zoe@example.org,,7.25\n"

CALLBACK = Callback(
    # Nothing listens on port 1: whoever calls back goes on trying.
    address="127.0.0.1:1",
    namespace="default",
    workflow_id="app/user/session/1",
    interrupt_id="transform_done",
    answer_id="transform_done-answer",
)


def plan_of(source: Path, **changes: object) -> TransformPlan:
    """A plan for a file as it is now, to drop `city` and mask `email`."""
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    plan = {"source": str(source), "sha256": sha256, "drop": ["city"], "mask": ["email"], "round": 1}
    return TransformPlan.model_validate(plan | changes)


def small_order(source: Path, key: str = "gw1-0123456789abcdef") -> JobOrder:
    """Write the small file of orders and order its transform."""
    source.write_text(ORDERS, encoding="utf-8")
    return JobOrder(key=key, plan=plan_of(source), callback=CALLBACK)


def column(name: str, **changes: object) -> ColumnProfile:
    """A text column whose values give themselves away."""
    values = {
        "name": name,
        "type": "VARCHAR",
        "nulls": 0,
        "distinct": 2,
        "minimum": f"{name}-least",
        "maximum": f"{name}-most",
        "examples": [f"{name}-example"],
    }
    return ColumnProfile.model_validate(values | changes)


def profile_of(*columns: ColumnProfile, source: str = "/srv/private/orders.csv") -> Profile:
    """A profile with these columns."""
    return Profile(
        source=source,
        rows=2_000,
        bytes=10_000,
        encoding="utf-8",
        delimiter=",",
        columns=list(columns),
        column_count=len(columns),
        truncated=False,
        full_profile=None,
        sha256="ab" * 32,
    )


def until(condition: Callable[[], T | None], *, seconds: float = 30.0) -> T:
    """What a condition on another process comes to, once it holds."""
    deadline = time.monotonic() + seconds
    while True:
        if held := condition():
            return held
        if time.monotonic() > deadline:
            raise TimeoutError("the condition did not come to hold")
        time.sleep(0.01)
