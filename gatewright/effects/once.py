"""Which runs share the result of an expensive step: the key of a step that is declared `once`."""

from collections.abc import Sequence
from typing import Any

from temporalio.exceptions import ApplicationError

from gatewright.protocol.call import Call
from gatewright.protocol.canonical import NotJson, digest, plain
from gatewright.store import SessionKey

from .anyhow import called_anyhow
from .declare import Declaration


async def shared(call: Call, declaration: Declaration, args: Sequence[Any]) -> Call:
    """
    The call under the key that it shares with others of its kind.

    `ApplicationError` of type `NotJson` where the arguments have no digest, and
    of type `NoBusinessKey` where `once=` returns none.
    """
    namespace = call.identity.namespace
    if declaration.once == "session":
        session, _ = SessionKey.of_workflow(call.identity.workflow_id)
        try:
            parts = [namespace, session.path, call.name, digest(plain(list(args)))]
        except NotJson as wrong:
            msg = f"{call.id} runs once for the session's runs with the same arguments, which must be JSON: {wrong}"
            raise ApplicationError(msg, type="NotJson", non_retryable=True) from wrong
    else:
        assert callable(declaration.once)  # noqa: S101 - @step refused
        key = await called_anyhow(declaration.once, *args)
        if not isinstance(key, str) or not key:
            msg = f"{call.id}: once= returns a business key, which is a text and not empty, and not {key!r}"
            raise ApplicationError(msg, type="NoBusinessKey", non_retryable=True)
        parts = [namespace, call.name, key]
    return call.model_copy(
        update={"key": "gw1-once-" + digest(parts).removeprefix("sha256:"), "ledger_id": None, "generation": 0}
    )
