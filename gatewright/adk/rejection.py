"""
What a client is told when its message does not count: in ADK's own words where ADK has them.

ADK says these things as exceptions whose text is all that a client gets. Here
every rejection has a code besides, says which gate is meant and whether it is
still armed, and what to do (W01, W02).
"""

from typing import Any

from gatewright.protocol.entries import Objection, Refusal, Refused

MIXED = (
    "Message cannot contain both function responses and text. Function responses resume an existing invocation while "
    "text starts a new one."
)
"""B02, word for word."""
FUNCTION_CALL = "User message cannot contain function calls."
"""B12, word for word."""
NO_PARTS = "No parts in the new_message."
MISSING_ID = "Function response id is required to resume an invocation."


def unknown_ids(ids: set[str]) -> str:
    """B04, word for word."""
    return (
        f"Function call not found for function response ids: {_set(ids)}. Ensure each function response ID matches an "
        "existing function call in the session history."
    )


def several_invocations(ids: set[str]) -> str:
    """B06, word for word."""
    return (
        f"Function responses resolve to multiple invocations: {_set(ids)}. All function responses in a single message "
        "must belong to the same invocation."
    )


def _set(ids: set[str]) -> str:
    """As Python writes a set, in an order that does not change from process to process."""
    return "{" + ", ".join(repr(each) for each in sorted(ids)) + "}"


STATUS = {
    "unknown_app": 404,
    "unknown_session": 404,
    "not_initial": 400,
    "mixed_message": 422,
    "missing_id": 422,
    "duplicate_in_message": 422,
    "not_an_answer": 422,
    "no_answer": 422,
    "unreadable": 422,
    "too_large": 422,
    "invalid": 422,
    "function_call": 422,
    "no_message": 422,
    "bad_opening": 422,
    "bad_name": 422,
    "bad_state": 422,
    "run_failed": 500,
    "delivered": 503,
    "no_worker": 503,
    "unreachable": 503,
    "store_away": 503,
    "not_set_up": 503,
}
"""The HTTP status of a code; whatever is not listed is a conflict with how things stand, 409."""

TODO = {
    "mixed_message": "Send the functionResponse alone; say what else there is to say in a field of the answer.",
    "missing_id": "Copy the id of the functionCall into the functionResponse.",
    "duplicate_in_message": "Send one functionResponse for each functionCall.",
    "invalid": "Mend the answer and send it again: the gate still waits.",
    "unknown_gate": "Answer one of the open gates, by the id of its functionCall.",
    "not_open_yet": "Answer the gate once it is asked; an answer is never held for later.",
    "already_answered": "The first answer is final. Read the session to see it.",
    "frame_closed": "Send text to open another run.",
    "conflict": "Use another Idempotency-Key for another message.",
    "several_runs": "Send the answers to each invocation in a message of its own.",
    "function_call": "Send text to open a run, or functionResponses to answer its gates.",
    "no_message": "Send text to open a run, or functionResponses to answer its gates.",
    "session_busy": "Answer the open gates with functionResponses, or open another session.",
    "text_with_invocation": "Leave invocationId out to open a run; send functionResponses to answer a gate.",
    "unknown_invocation": "Leave invocationId out, or take it from an event of this session.",
    "delivered": "Nothing is lost: it is judged once, when a worker is there. Read the session later.",
    "no_worker": "Start a worker on the app's task queue. Nothing is lost.",
    "unreachable": "Try again when Temporal is reachable.",
    "store_away": "Try again when the store is reachable.",
}


class Rejection(Exception):  # noqa: N818 - ADK's clients get it as a reply, not as an error of ours
    """A message, or a call, that does not count. Nothing has changed but the record of refusals."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        error_type: str = "ValueError",
        todo: str | None = None,
        gate: dict[str, Any] | None = None,
        open: tuple[dict[str, Any], ...] = (),
        faults: tuple[dict[str, Any], ...] = (),
        armed: tuple[str, ...] = (),
        workflow_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.error_type = error_type
        self.todo = TODO.get(code, "") if todo is None else todo
        self.gate = gate
        self.open = list(open)
        self.faults = list(faults)
        self.armed = armed
        """Interrupt ids of the gates that the message was for and that still take an answer."""
        self.workflow_id = workflow_id
        self.recorded = False
        """Whether the run itself, or its client, keeps it."""

    @property
    def status(self) -> int:
        """The HTTP status that says it."""
        return STATUS.get(self.code, 409)

    def _told(self) -> dict[str, Any]:
        return {"code": self.code, "todo": self.todo, "gate": self.gate, "open": self.open, "faults": self.faults}

    def body(self) -> dict[str, Any]:
        """As the JSON body of an HTTP reply: ADK's `detail`, and the rest beside it."""
        return {"detail": self.message, **self._told()}

    def frame(self, at: float) -> dict[str, Any]:
        """As a frame of `/run_sse` at the Unix time `at`: ADK's `error` and `error_details`, and the rest beside them."""
        details = {"error_type": self.error_type, "error_message": self.message, "timestamp": at}
        return {"error": f"{self.error_type}: {self.message}", "error_details": details, **self._told()}


class RunFailed(Rejection):
    """The run itself failed: it is over, and the event before says where."""

    def __init__(self, reason: str, *, workflow_id: str) -> None:
        kind, colon, words = reason.partition(": ")
        named = bool(colon) and kind.isidentifier()
        super().__init__(
            "run_failed",
            words if named else reason,
            error_type=kind if named else "RuntimeError",
            todo="Send text to open another run.",
            workflow_id=workflow_id,
        )


def refused(ruling: Refused, *, workflow_id: str, open: tuple[dict[str, Any], ...] = ()) -> Rejection:
    """A run's refusal, in ADK's words where it has them (B02, B04, B05, B14, D01)."""
    first = ruling.objections[0]
    code = first.refusal.value
    message, error_type, todo = first.reason, "ValueError", TODO.get(code, "")
    match first.refusal:
        case Refusal.MIXED_MESSAGE:
            message = MIXED
        case Refusal.MISSING_ID:
            message = MISSING_ID
        case Refusal.UNKNOWN_GATE | Refusal.NOT_OPEN_YET:
            unknown = {Refusal.UNKNOWN_GATE, Refusal.NOT_OPEN_YET}
            ids = {each.interrupt_id or "" for each in ruling.objections if each.refusal in unknown}
            message, todo = unknown_ids(ids), f"{first.reason} {todo}"
        case Refusal.INVALID:
            message, error_type = (
                f"Validation failed for interrupt {first.interrupt_id}: {_faults(first)}",
                "WorkflowDataError",
            )
        case _:
            pass
    gate = None
    if first.interrupt_id:
        gate = {"interruptId": first.interrupt_id, "armed": first.armed}
    faults = tuple(
        {"interruptId": each.interrupt_id, "path": fault.path, "message": fault.message}
        for each in ruling.objections
        for fault in each.faults
    )
    armed = tuple(each.interrupt_id for each in ruling.objections if each.armed and each.interrupt_id)
    rejection = Rejection(
        code,
        message,
        error_type=error_type,
        todo=todo,
        gate=gate,
        open=open,
        faults=faults,
        armed=armed,
        workflow_id=workflow_id,
    )
    rejection.recorded = True
    return rejection


def _faults(objection: Objection) -> str:
    if not objection.faults:
        return objection.reason
    return "; ".join(f"{fault.path}: {fault.message}" for fault in objection.faults[:5])
