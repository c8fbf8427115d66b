"""What the gateway rejects, as the exceptions that callers of ADK catch."""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError

# google-adk 2.13 raises it and exports it nowhere; a caller knows it as a ValueError of this name.
from google.adk.workflow._errors import WorkflowDataError

from gatewright.adk import Rejection, RunFailed

_OF_CODE: dict[str, type[Exception]] = {
    "session_exists": AlreadyExistsError,
    "unknown_session": SessionNotFoundError,
    "invalid": WorkflowDataError,
}
_BUILTIN: dict[str, type[Exception]] = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
}


def raised(rejection: Rejection) -> Exception:
    """
    The exception that ADK would raise, in ADK's words where it has them.

    `ValueError` for a message that does not count; what a failed run failed
    with, under its own name. `rejection` on it has the code, the gates and
    what to do, which is its note as well.
    """
    if isinstance(rejection, RunFailed):
        error = _like(rejection.error_type, rejection.message)
    else:
        error = _OF_CODE.get(rejection.code, ValueError)(rejection.message)
    vars(error)["rejection"] = rejection
    if rejection.todo:
        error.add_note(rejection.todo)
    return error


def _like(kind: str, words: str) -> Exception:
    """A builtin exception of this name; one that looks like it where its class is not at hand, or takes more than words."""
    with suppress(KeyError, TypeError):
        made = _BUILTIN[kind](words)
        if str(made) == words:
            return made
    alike: type[Exception] = type(kind, (RuntimeError,), {})
    return alike(words)


@contextmanager
def told() -> Iterator[None]:
    """Raise what the gateway rejects as ADK would."""
    try:
        yield
    except Rejection as rejection:
        raise raised(rejection) from rejection
