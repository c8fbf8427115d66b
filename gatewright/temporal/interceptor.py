"""
Around every workflow of the worker: the frame is told when its run begins and ends.

A hosted object cannot wait for its own handlers after `run` has returned; an
interceptor can, so that an answer that was admitted while the run finished is
in the record and its sender gets the verdict and not an error.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from gatewright.effects.wire import CALL_HEADER, ERRAND_HEADER, header
from gatewright.protocol.identity import Standing

from . import names
from .errors import innermost
from .frame import Frame, hosted
from .opening import said
from .outbound import called


class FrameInterceptor(Interceptor):
    """
    The worker interceptor for workflows; one that hosts no frame is left alone.

    `tell` is what a frame tells the index with, beside the run.
    """

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """See base class."""
        input.unsafe_extern_functions[names.EXTERN_TELL] = self._tell
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        frame = hosted()
        if frame is None:
            return await self.next.execute_workflow(input)
        frame.opened(input.args, said(input.headers))
        try:
            frame.refuse_cron()
            result = await self._executed(frame, input)
        except workflow.ContinueAsNewError:
            # The same run goes on in a fresh execution: nothing is closed.
            raise
        except (asyncio.CancelledError, Exception) as ended:
            if not _fails_the_run(ended):
                # A fault of the code: Temporal retries the task until the code is mended, and the run stays open.
                raise
            cancelled = is_cancelled_exception(ended)
            reason = workflow.cancellation_reason() if cancelled else innermost(ended)
            await frame.finish(Standing.CANCELLED if cancelled else Standing.FAILED, reason=reason or None)
            raise
        await frame.finish(Standing.COMPLETED, output=result)
        return result

    async def _executed(self, frame: Frame, input: ExecuteWorkflowInput) -> Any:
        try:
            return await self.next.execute_workflow(input)
        except workflow.ContinueAsNewError:
            await frame.handed_over()
            raise


def _fails_the_run(ended: BaseException) -> bool:
    if is_cancelled_exception(ended):
        # A CancelledError that nobody asked for is a fault of the code like any other.
        return workflow.cancellation_reason() is not None
    return workflow.is_failure_exception(ended)


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        if calling := called():
            call, errand = calling
            ours = {CALL_HEADER: header(call)} | ({} if errand is None else {ERRAND_HEADER: header(errand)})
            input.headers = {**input.headers, **ours}
        return super().start_activity(input)
