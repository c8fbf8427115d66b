"""The run of a trial: one effect, or two of them with a continue-as-new in between."""

from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import EffectKind
    from gatewright.temporal import Frame
    from tests.effects_crash.effects import ATTEMPTS, EFFECTS, Order


class Given(BaseModel):
    """
    What a run is opened with.

    `before` is an effect that is performed first, behind which the run continues
    as new; `heartbeat` is in seconds.
    """

    kind: EffectKind
    order: Order
    heartbeat: float
    attempts: int = ATTEMPTS
    before: Order | None = None
    numbers: list[int] = []
    carried: Any = None


@workflow.defn
class Pays:
    """Returns the numbers that the outside gave."""

    @workflow.init
    def __init__(self, given: Given) -> None:
        self.frame = Frame(carried=given.carried)

    @workflow.run
    async def run(self, given: Given) -> list[int]:
        order = given.before or given.order
        retries = RetryPolicy(
            initial_interval=timedelta(milliseconds=100), backoff_coefficient=1.0, maximum_attempts=given.attempts
        )
        heartbeat = timedelta(seconds=given.heartbeat)
        number = await self.frame.perform(EFFECTS[given.kind], order, retry_policy=retries, heartbeat_timeout=heartbeat)
        numbers = [*given.numbers, number]
        if given.before is not None:
            await workflow.wait_condition(workflow.all_handlers_finished)
            carried = self.frame.carry()
            workflow.continue_as_new(given.model_copy(update={"before": None, "numbers": numbers, "carried": carried}))
        return numbers


class Apart(Interceptor):
    """Sends every activity of a run to a task queue of its own, the run's id, so that each trial has its own workers."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """See base class."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        input.task_queue = workflow.info().workflow_id
        return super().start_activity(input)
