"""Names on ADK's wire, and the ids that are derived instead of drawn, so that every reading gives the same."""

import re
from secrets import token_hex
from uuid import NAMESPACE_URL, uuid5

REQUEST_INPUT = "adk_request_input"
"""How ADK names the function call of a gate."""

PROTOCOL_CALLS = "adk_request_"
"""How the names of ADK's own function calls begin."""

_IDS = uuid5(NAMESPACE_URL, "gatewright:adk")
_AGAIN = re.compile(r"#again-[0-9a-f]{8}\Z")


def invocation_id(workflow_id: str) -> str:
    """ADK's name for a run: one run is one invocation."""
    return f"e-{uuid5(_IDS, workflow_id)}"


def event_id(workflow_id: str, cursor: int, part: int = 0) -> str:
    """The id of the event that the entry at `cursor` of a run's transcript is shown as."""
    return str(uuid5(_IDS, f"{workflow_id}#{cursor}.{part}"))


def alias(interrupt_id: str) -> str:
    """
    Another name for an occurrence, under which its form is shown again.

    ADK's UI hides a form for ever once it has sent an answer to its id, also
    one that was refused.
    """
    return f"{interrupt_id}#again-{token_hex(4)}"


def is_alias(interrupt_id: str) -> bool:
    """Whether an id looks like one that `alias` made."""
    return _AGAIN.search(interrupt_id) is not None


def without_alias(interrupt_id: str) -> str:
    """The interrupt id that an alias stands for; any other id as it is."""
    return _AGAIN.sub("", interrupt_id)
