"""
`gatewright receipts`: a run's chain of receipts, whether it holds, and whether Temporal's history bears it out.

With `--history` nothing is asked of Temporal where the run's archive is in the
store, and nothing of the store either where the receipts are in a file.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gatewright.protocol.book import Book
from gatewright.protocol.identity import FrameIdentity
from gatewright.protocol.receipt import Anchor, Broken, Receipt, verify
from gatewright.temporal.history import (
    History,
    HistoryError,
    HistoryFinding,
    HistoryReport,
    Outcome,
    check_history,
    read_histories,
)

from .connect import gate_client, open_store
from .exits import FAILED, OK, Stop, usage
from .out import Out
from .runs import read_chain
from .verdict import receipt_lines

MAX_SAVED_BYTES = 64 * 1024 * 1024
"""The largest file of saved receipts that is read, in bytes."""

_SAVED = TypeAdapter(tuple[Receipt, ...])
_STYLES: dict[Outcome, str] = {"confirmed": "green", "contradicted": "red", "not_covered": "yellow"}


@dataclass(frozen=True)
class Kept:
    """A run's receipts, wherever they were found; `run` is its workflow id, where that is known."""

    anchor: Anchor
    chain: list[Receipt]
    run: str | None
    identity: FrameIdentity | None = None


async def receipts(out: Out, run: str, *, check: bool, files: Sequence[Path] = ()) -> int:
    """The chain of receipts, whether it holds, and what exported histories say of it."""
    history = await _history(files)
    kept = await _kept(run, offline=history is not None)
    if history is not None and kept.run not in {None, history.workflow_id}:
        given = ", ".join(dict.fromkeys(execution.source for execution in history.executions))
        raise usage(
            f"--history: {given} is of {history.workflow_id}, and the receipts are of {kept.run}; export its own: "
            f"temporal workflow show --workflow-id {quote(kept.run or '')} --output json"
        )
    verdict = verify(kept.chain, kept.anchor) if check or history is not None else None
    document: dict[str, Any] = {
        "anchor": kept.anchor.model_dump(mode="json"),
        "receipts": [receipt.model_dump(mode="json") for receipt in kept.chain],
    }
    if isinstance(verdict, Broken):
        document["verified"] = {"holds": False, "number": verdict.number, "reason": verdict.reason}
    elif verdict is not None:
        document["verified"] = {"holds": True, "count": verdict.count, "head": verdict.head}
    if history is None:
        _show_chain(out, kept)
        failed = isinstance(verdict, Broken)
        if isinstance(verdict, Broken):
            out.say(f"BROKEN at receipt {verdict.number}: {verdict.reason}", "red")
        elif verdict is not None:
            out.say(f"verified: {verdict.count} receipts hold, the last is {verdict.head}", "green")
    else:
        report = await asyncio.to_thread(check_history, kept.chain, kept.anchor, kept.identity, history)
        document["history"] = _document(report)
        _show_report(out, report)
        failed = not report.ok
    out.data(document)
    return FAILED if failed else OK


# Where the receipts are


async def _history(files: Sequence[Path]) -> History | None:
    if not files:
        return None
    try:
        return await asyncio.to_thread(read_histories, files)
    except HistoryError as wrong:
        raise usage(f"--history: {wrong}") from wrong


async def _kept(run: str, *, offline: bool) -> Kept:
    """The receipts in a file of this name, or of the run of this name: from its archive, if Temporal need not be asked."""
    file = Path(run)
    if await asyncio.to_thread(_is_file, file):
        return await asyncio.to_thread(_saved, file)
    if offline and (archived := await asyncio.to_thread(_archived, run)) is not None:
        return archived
    async with gate_client() as client:
        anchor, chain = await read_chain(client, run)
    return Kept(anchor, chain, run)


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        # A run's id may be no name that a file can have.
        return False


def _archived(run: str) -> Kept | None:
    with open_store() as store:
        archive = store.archive(run)
    if archive is None:
        return None
    book = Book.from_json(archive)
    return Kept(book.anchor, list(book.receipts), run, book.identity)


def _saved(file: Path) -> Kept:
    """Receipts that `gatewright receipts -o json` printed."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_SAVED_BYTES + 1)
        if len(data) > MAX_SAVED_BYTES:
            raise _unusable(file, f"it has more than {MAX_SAVED_BYTES // 1024 // 1024} MiB")
        document = json.loads(data)
        anchor = Anchor.model_validate(document["anchor"])
        chain = list(_SAVED.validate_python(document["receipts"]))
    except OSError as wrong:
        raise _unusable(file, wrong.strerror or "it cannot be read") from wrong
    except ValidationError as wrong:
        first = wrong.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _unusable(file, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from wrong
    except (ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise _unusable(file, "it holds no receipts as JSON") from wrong
    return Kept(anchor, chain, chain[0].frame.identity.workflow_id if chain else None)


def _unusable(file: Path, why: str) -> Stop:
    return usage(f"{file}: {why}; give a run, or a file that `gatewright receipts RUN --output json` printed")


# What is shown


def _show_chain(out: Out, kept: Kept) -> None:
    if kept.anchor.number:
        out.say(f"receipts 1 to {kept.anchor.number} are kept elsewhere; the chain goes on from {kept.anchor.digest}")
    for receipt in kept.chain:
        for line in receipt_lines(receipt):
            out.say(line)
    if not kept.chain:
        out.say("no receipts: no answer has been admitted yet")


def _show_report(out: Out, report: HistoryReport) -> None:
    executions = f"{len(report.executions)} execution{'s' if len(report.executions) != 1 else ''}"
    out.say(f"{report.workflow_id}, first execution {report.first_execution_run_id}: {executions} in the given history")
    width = max((len(finding.what) for finding in report.findings), default=0)
    for finding in report.findings:
        out.say(_line(finding, min(width, 40)), _STYLES[finding.outcome])
    counts = [f"{report.count(outcome)} {outcome.replace('_', ' ')}" for outcome in _STYLES]
    counted = ", ".join(counts)
    if not report.ok:
        out.say(f"CONTRADICTED: {counted}", "red")
    elif report.count("not_covered"):
        out.say(f"nothing is contradicted: {counted}", "yellow")
    else:
        out.say(f"confirmed by the history: {counted}", "green")


def _line(finding: HistoryFinding, width: int) -> str:
    number = "" if finding.number is None else str(finding.number)
    return f"{number:>4}  {finding.what:<{width}}  {finding.outcome.replace('_', ' '):<12}  {finding.words}"


def _document(report: HistoryReport) -> dict[str, Any]:
    counts: dict[str, int] = {outcome: report.count(outcome) for outcome in _STYLES}
    return {"ok": report.ok, **counts, **report.model_dump(mode="json")}


__all__ = ["MAX_SAVED_BYTES", "receipts"]
