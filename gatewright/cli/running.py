"""How every command is run: its end becomes an exit code, and no traceback reaches a user."""

import asyncio
import inspect
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio.service import RPCError, RPCStatusCode

from gatewright.protocol.errors import GatewrightError
from gatewright.store import OpeningConflict, StoreError, StoreUnavailable
from gatewright.temporal import NoWorkerError, ServerUnavailableError, SessionBusyError, SetupError, UnknownRunError

from .embedded import EmbeddedError
from .exits import AWAY, FAILED, INTERRUPTED, OK, REFUSED, USAGE, Stop
from .out import Out, Output

Work = Callable[[Out], Coroutine[Any, Any, int] | int]

# The first that an error is an instance of says how it ends.
_ENDS: tuple[tuple[type[Exception], int, str], ...] = (
    (SessionBusyError, REFUSED, "session_busy"),
    (OpeningConflict, REFUSED, "opening_conflict"),
    (UnknownRunError, AWAY, "unknown_run"),
    (NoWorkerError, AWAY, "no_worker"),
    (ServerUnavailableError, AWAY, "unreachable"),
    (StoreUnavailable, AWAY, "store_unavailable"),
    (EmbeddedError, AWAY, "no_server"),
    (SetupError, FAILED, "setup"),
    (StoreError, FAILED, "store"),
    (GatewrightError, FAILED, "error"),
)

_UNREACHED = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.NOT_FOUND,
}


def main(arguments: list[str]) -> int:
    """Run a whole command line; the exit code."""
    from .app import app

    try:
        "\0".join(arguments).encode()
        app(arguments, prog_name="gatewright")
        code = OK
    except UnicodeEncodeError:
        sys.stderr.write("an argument on this command line is not UTF-8\n")
        code = USAGE
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else OK if ended.code is None else FAILED
    return code


def run(output: Output, work: Work) -> int:
    """Run one command and say how it ended; the exit code."""
    out = Out(output)
    try:
        begun = work(out)
        return asyncio.run(begun) if inspect.iscoroutine(begun) else begun  # type: ignore[return-value]
    except KeyboardInterrupt:
        out.note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last resort
        return _end(out, _stop(error))


def _end(out: Out, stop: Stop) -> int:
    out.note(stop.message, "red" if stop.code in {FAILED, REFUSED, AWAY} else "")
    out.line({"error": stop.kind, "message": stop.message, **stop.details})
    return stop.code


def _stop(error: Exception) -> Stop:
    if isinstance(error, Stop):
        return error
    for kind, code, name in _ENDS:
        if isinstance(error, kind):
            details: dict[str, Any] = {}
            if isinstance(error, SessionBusyError):
                details = {"workflow_id": error.workflow_id, "open": list(error.open)}
            return Stop(code, _advised(error), kind=name, **details)
    if isinstance(error, RPCError):
        code = AWAY if error.status in _UNREACHED else FAILED
        return Stop(code, f"Temporal did not do this: {error.message} ({error.status.name})", kind="temporal")
    return _fault(error)


def _advised(error: Exception) -> str:
    """The library's words, with its parameters named as this command names them."""
    if not isinstance(error, SessionBusyError):
        return str(error)
    gates = f"it waits at {', '.join(error.open)}" if error.open else "no gate of it is open yet"
    return (
        f"{error.workflow_id} is open ({gates}). Answer it (gatewright answer {error.workflow_id}), "
        "cancel it, or open another run beside it with --on-text open."
    )


def _fault(error: Exception) -> Stop:
    with tempfile.NamedTemporaryFile(
        "w", prefix="gatewright-fault-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as log:
        traceback.print_exception(error, file=log)
    return Stop(
        FAILED,
        f"this is a fault of Gatewright: {type(error).__name__}: {error}\n"
        f"Please report it, with what you did and the file {log.name}",
        kind="fault",
    )
