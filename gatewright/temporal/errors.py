"""
What can go wrong that is somebody's mistake, or the world's.

    GatewrightError
    └── TemporalShellError
        ├── SetupError               worker or server lack something           (start-up)
        ├── ServerUnavailableError   Temporal cannot be reached                 (client)
        ├── UnknownRunError          no such run                                (client)
        ├── NoWorkerError            the run is there, no worker answers for it (client)
        └── SessionBusyError         a run of the session is open               (client)

    ApplicationError (Temporal's: fails the run unless the pipeline catches it)
        ├── GateExpiredError         a gate's deadline passed, and it has no default
        ├── GateFailedError          a background job said through its gate that it failed
        └── CallAbortedError         a person ended a call that had failed, or of which nobody knew whether it happened

A refused answer is not an error: `GateClient.answer` returns the verdict.
"""

from temporalio.exceptions import ApplicationError

from gatewright.protocol.answer import Failure
from gatewright.protocol.errors import GatewrightError
from gatewright.protocol.recovery import CallFailure


def innermost(failed: BaseException) -> str:
    """What really went wrong, in words: Temporal wraps it in errors that only say that an activity failed."""
    cause, kind = _innermost(failed)
    words = getattr(cause, "message", None) or str(cause)
    return words if words.startswith(f"{kind}:") else f"{kind}: {words}"


def innermost_type(failed: BaseException) -> str:
    """The name of the exception that `innermost` tells about."""
    return _innermost(failed)[1]


def _innermost(failed: BaseException) -> tuple[BaseException, str]:
    cause = failed
    while cause.__cause__ is not None and not isinstance(cause, ApplicationError):
        cause = cause.__cause__
    return cause, getattr(cause, "type", None) or type(cause).__name__


class TemporalShellError(GatewrightError):
    """The root of what the Temporal shell raises outside workflows."""


class SetupError(TemporalShellError):
    """Something that a worker needs is missing; the message names each thing and the command that brings it."""


class ServerUnavailableError(TemporalShellError):
    """Temporal could not be reached at all."""


class UnknownRunError(TemporalShellError):
    """There is no run of this id, neither in Temporal nor in the archive."""


class NoWorkerError(TemporalShellError):
    """The run exists, and no worker answered for it in time."""


class SessionBusyError(TemporalShellError):
    """
    A run of the session is open, so that text may not open another (L01).

    `workflow_id` is that run; `open` are the interrupt ids that it waits at.
    """

    def __init__(self, workflow_id: str, open: tuple[str, ...], *, opening: bool = False) -> None:
        self.workflow_id = workflow_id
        self.open = open
        if opening:
            super().__init__(
                f"{workflow_id} is being opened by somebody else, or its opening failed a moment ago. Try again in a minute."
            )
            return
        gates = f"it waits at {', '.join(open)}" if open else "no gate of it is open yet"
        super().__init__(
            f"{workflow_id} is open ({gates}). Answer it, cancel it, or ask for another run with on_text='open'."
        )


class GateExpiredError(ApplicationError):
    """A gate's deadline passed without an answer; `interrupt_id` says which."""

    def __init__(self, interrupt_id: str) -> None:
        self.interrupt_id = interrupt_id
        super().__init__(
            f"nobody answered {interrupt_id} before its deadline", interrupt_id, type="GateExpired", non_retryable=True
        )


class GateFailedError(ApplicationError):
    """A system gate was answered with a failure (`reported`): the job behind it says that it failed."""

    def __init__(self, interrupt_id: str, failure: Failure) -> None:
        self.interrupt_id = interrupt_id
        self.reported = failure
        super().__init__(
            f"{interrupt_id} failed: {failure.type}: {failure.message}",
            failure.model_dump(mode="json"),
            type="GateFailed",
            non_retryable=True,
        )


class CallAbortedError(ApplicationError):
    """A person said abort at the gate of a call that had failed or was blocked: `failed` says which and why, `by` who."""

    def __init__(self, failed: CallFailure, by: str, comment: str | None = None) -> None:
        self.failed = failed
        self.by = by
        why = f": {comment}" if comment else ""
        super().__init__(
            f"{failed.call} was aborted by {by}{why} (it had failed: {failed.error})",
            failed.model_dump(mode="json"),
            type="CallAborted",
            non_retryable=True,
        )
