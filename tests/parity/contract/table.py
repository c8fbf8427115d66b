"""
`docs/contract.md`, made from the tests beside this file: `python -m tests.parity.contract.table`.

Each row of ADK's contract is a test, and the test's docstring is the row: its
id and standing, what ADK does, and what Gatewright does where that differs. The
page is written only when the tests pass.
"""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "contract.md"

ROWS = [
    *(f"A{n:02}" for n in range(1, 15)),
    *(f"B{n:02}" for n in range(1, 19)),
    *(f"C{n:02}" for n in range(1, 5)),
    *(f"D{n:02}" for n in range(1, 13)),
    *(f"L{n:02}" for n in (1, 2, 4, 5, 6, 7, 8)),
]
"""Every row there is; L03 was never given."""

LEFT = {
    "A07": (
        "At a fan-out each branch is `<node>@<n>`, nested with dots, and a join goes on with what they share.",
        "Branches are those of a graph's edges; a pipeline that is code has none, as ADK's linear chain has none.",
    ),
    "A08": (
        "`RequestInput()` without an id draws a uuid, which only the event tells.",
        "It is a node's `RequestInput`; a gate of Gatewright always has a name.",
    ),
    "A10": (
        "Code after `yield RequestInput(...)` runs when the node pauses.",
        "It needs a node that is a generator.",
    ),
    "A11": (
        "State that a gate's node writes before it yields is on the gate's event.",
        "It needs a node's `ctx.state`; what a step changes is on the step's event and visible while the run waits.",
    ),
    "C04": ("The root may be a bare node without a `Workflow`.", "It needs a node."),
    "D12": (
        "A node with `rerun_on_resume` that checks the answer itself asks again under the same id.",
        "It needs a node that runs again; a pipeline asks again under the next id.",
    ),
}
"""Rows that need ADK's graph, nodes or state: what ADK does, and why it is not held here."""

HEAD = """\
# ADK's contract, row by row

<!-- Made by `python -m tests.parity.contract.table` from the tests under tests/parity/contract; a test fails where it is stale. -->

What google-adk 2.13.0 does when a workflow pauses and resumes, observed by running it, and what Gatewright does. Each row is a
test that calls a `TemporalRunner` as code for ADK calls its `Runner`, on a real Temporal server. *Mirrored*: the same, as far
as a caller can see. *Differs*: what ADK does is a fault, and Gatewright does what stands beside it. *Left* to the graph: the row
needs ADK's graph, nodes or state, which a pipeline that is code does not have.

{counts}

| row | ADK 2.13 | Gatewright | test |
| --- | --- | --- | --- |
"""

_STATEMENT = re.compile(
    r"(?P<row>[A-Z]\d\d), (?P<standing>mirrored|differs)\.\n\nADK: (?P<adk>.+?)(\n\nGatewright: (?P<ours>.+))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Statement:
    """One row: what ADK does, what Gatewright does, and the test that holds it."""

    row: str
    standing: Literal["mirrored", "differs", "left"]
    adk: str
    ours: str = ""
    test: str = ""


def statements() -> list[Statement]:
    """Every row, in order; `ValueError` where one is missing, told twice, or told by halves."""
    told = [*_tested(), *(Statement(row, "left", adk, why) for row, (adk, why) in LEFT.items())]
    if sorted(each.row for each in told) != ROWS:
        wrong = {row for row in ROWS if [each.row for each in told].count(row) != 1}
        msg = f"told never, or more than once: {', '.join(sorted(wrong)) or 'a row that there is not'}"
        raise ValueError(msg)
    return sorted(told, key=lambda each: each.row)


def _tested() -> Iterator[Statement]:
    for path in sorted(HERE.glob("test_?_*.py")):
        module = import_module(f"tests.parity.contract.{path.stem}")
        for name, test in inspect.getmembers(module, inspect.isfunction):
            found = _STATEMENT.fullmatch(inspect.getdoc(test) or "") if name.startswith("test_") else None
            if found is None:
                continue
            row, standing, adk, ours = found["row"], found["standing"], found["adk"], found["ours"] or ""
            if not name.startswith(f"test_{row.lower()}_") or (standing == "differs") != bool(ours):
                msg = f"{name}: its name has the row's id, and its docstring says `Gatewright:` where it differs"
                raise ValueError(msg)
            yield Statement(row, "differs" if ours else "mirrored", adk, ours, f"{path.stem}::{name}")


def page() -> str:
    """The whole page."""
    rows = statements()
    standings = [each.standing for each in rows]
    counts = ", ".join(f"{standings.count(standing)} {standing}" for standing in ("mirrored", "differs", "left"))
    head = HEAD.format(counts=f"{len(rows)} rows: {counts}.")
    return head + "".join(_line(each) for each in rows)


def _line(told: Statement) -> str:
    ours = f"**{told.standing}** {_cell(told.ours)}".rstrip()
    return f"| {told.row} | {_cell(told.adk)} | {ours} | {f'`{told.test}`' if told.test else ''} |\n"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def main() -> int:
    """Run the tests, and write the page if they pass."""
    beside = [str(path) for path in sorted(HERE.glob("test_?_*.py"))]
    outcome = subprocess.run([sys.executable, "-m", "pytest", "-q", *beside], check=False)
    if outcome.returncode:
        print("The page is not written: it would tell what does not hold.", file=sys.stderr)
        return outcome.returncode
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
