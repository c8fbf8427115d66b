"""`docs/parity.md`, made from the intended differences: `python -m tests.parity.document`."""

from collections.abc import Iterator
from pathlib import Path

from .differences import DIFFERENCES, Difference, Says
from .replaying import RECORDINGS, recorded
from .scripts import SCRIPTS

PAGE = Path(__file__).parents[2] / "docs" / "parity.md"

HEAD = """\
# Parity with ADK

<!-- Made by `python -m tests.parity.document` from tests/parity/differences.py; a test fails where the two differ. -->

What Gatewright says to an ADK client is compared with what google-adk 2.13 says, whole: every event, every rejection's
words, and the session afterwards. Only drawn ids and times are not compared by value; that each id stands at the same places
is. The order of the keys of an object inside a node's output is not compared either: with ADK a join's changes from process
to process (P05).

* {scripts} conversations are played against ADK's real `Runner` and against a gateway over real runs (`tests/parity/scripts.py`),
  the dataset release among them: its twin on ADK calls the same functions and makes the same file, byte for byte.
* {recordings} recordings of what ADK's own clients and servers said to each other are sent again to Gatewright's server
  (`tests/parity/fixtures`).

Everything below differs on purpose. A difference that is not listed fails the tests, and so does a listed one that is not
there. Where the table says *alone*, the message changes nothing with Gatewright, and all that comes after it is compared with
ADK's conversation without that message. In a recording, what ADK replies after it has poisoned a session or started over is
of no use to compare with; where *like* names another step, Gatewright replies what ADK replied there, and the scripts have
the same conversation as ADK has it without the message.

Not compared: a client that goes away in the middle of a turn (W03; `tests/server` does that), traces and the OpenAPI document,
and a transform that fails, because ADK cannot answer a gate with a failure.

The rows (`B05`, `D02`, ...) are those of the contract, the observed behaviour of ADK that `tests/parity/contract` pins.
In what the two say, `*` stands for anything.
"""


def page() -> str:
    """The whole page."""
    head = HEAD.format(scripts=len(SCRIPTS), recordings=len(list(RECORDINGS.glob("*.json"))))
    return "\n".join([head, *(line for difference in DIFFERENCES for line in _told(difference))])


def _told(difference: Difference) -> Iterator[str]:
    rows = f" ({', '.join(difference.rows)})" if difference.rows else ""
    yield f"## {difference.title}{rows}\n"
    yield f"{difference.why}\n"
    yield "| where | ADK | Gatewright |"
    yield "| --- | --- | --- |"
    for says in difference.says:
        yield f"| {_where(says)} | {_code(says.adk)} | {_code(says.gatewright)} |"
    yield ""


def _where(says: Says) -> str:
    where = []
    for scripts, places in says.at.items():
        named = scripts.split(" | ")
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        where.append(f"{', '.join(f'*{each}*' for each in named)}: {_code(_spelled(named[0], places[0]))}{more}")
    how = " (alone)" if says.alone else f" (like `{says.like}`)" if says.like else ""
    return "; ".join(where) + how


def _spelled(script: str, place: str) -> str:
    """A place with its step's whole name, where it has only the number of one."""
    number, star, rest = place.partition("_*")
    if script in SCRIPTS or not star:
        return place
    steps: list[str] = [step["step"] for step in recorded(script)]
    return next(step for step in steps if step.startswith(f"{number}_")) + rest


def _code(text: str) -> str:
    escaped = text.replace("|", r"\|")
    return f"`{escaped}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
