"""
Temporal's sandbox without what a plain data converter never needs.

For every payload of every task the SDK (1.35) enters the sandbox up to five
times, to ask in which context the payload is to be encrypted or stored
elsewhere. That is two fifths of the time of a replay, and a converter without
a codec and without external storage makes nothing of it.
"""

from dataclasses import replace
from typing import Any

from temporalio.converter import DataConverter
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

PASSED_THROUGH = (
    "gatewright",
    "jsonschema",
    "jsonschema_specifications",
    "referencing",
    "rpds",
    "rfc8785",
    "attrs",
    "attr",
)
"""Modules of ours and under ours that the sandbox need not import anew for every run: they are pure or not used in it."""


class PlainSandbox(SandboxedWorkflowRunner):
    """The sandbox for a worker whose payloads are neither encoded by a codec nor stored elsewhere."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """See base class; the instance does not look for contexts that nobody uses."""
        instance: Any = super().create_instance(det)
        instance.get_serialization_context = _nothing
        instance.get_external_store_context = _nothing
        return instance  # type: ignore[no-any-return]


def passing_through(existing: WorkflowRunner | None) -> WorkflowRunner:
    """The application's runner (the sandbox, where it has none) with our modules passed through."""
    runner = existing or SandboxedWorkflowRunner()
    if isinstance(runner, SandboxedWorkflowRunner):
        return replace(runner, restrictions=runner.restrictions.with_passthrough_modules(*PASSED_THROUGH))
    return runner


def lightened(runner: WorkflowRunner | None, converter: DataConverter | None) -> WorkflowRunner | None:
    """The sandbox as it is enough for this converter; any other runner, and a subclass of the sandbox, as it is."""
    plain = converter is None or (converter.payload_codec is None and converter.external_storage is None)
    if plain and type(runner) is SandboxedWorkflowRunner:
        return PlainSandbox(restrictions=runner.restrictions, runner_class=runner.runner_class)
    return runner


def _nothing(_command: object) -> None:
    """No context."""
