"""What a demo says at its end: the result, and what happened."""

from collections import Counter
from typing import Any

from gatewright.protocol.receipt import Verified, verify
from gatewright.temporal import GateClient, RunView

from .exits import FAILED, OK
from .following import trouble_words, until_over
from .out import Out
from .render import payload_lines
from .runs import read_chain


async def tell_end(out: Out, gates: GateClient, run: str, kept: str) -> int:
    """Say how the run ended and where it is `kept`; the exit code is 0 only where it completed and its receipts hold."""
    view = await until_over(gates, run)
    anchor, chain = await read_chain(gates, run)
    verdict = verify(chain, anchor)
    refusals = await gates.refusals(run)
    refused = sum(sum(names.values()) for names in refusals.counts.values())
    entries = [entry async for entry in gates.watch(run)]
    holds = isinstance(verdict, Verified)
    out.say(f"\n{run} {view.status}", "green" if view.status == "completed" else "red")
    if view.failure:
        out.say(f"  {view.failure}")
    if view.trouble:
        out.say(f"  {trouble_words(view.trouble)}")
    if view.result is not None:
        for line in payload_lines(_flat(view.result), "  "):
            out.say(line)
    out.say("\nwhat happened", "bold")
    out.say(f"  calls     {_calls(entries)}")
    out.say(f"  gates     {_gates(view)}")
    out.say(f"  refused   {refused} answers, which changed nothing" if refused else "  refused   no answer")
    chained = f"{verdict.count} receipts, chained and verified" if isinstance(verdict, Verified) else "BROKEN"
    out.say(f"  receipts  {chained}", "" if holds else "red")
    out.say(f"  kept      {kept}")
    out.data(
        {
            "workflow_id": run,
            "status": view.status,
            "result": view.result,
            "failure": view.failure,
            "trouble": view.trouble,
            "receipts": {"holds": holds, "count": len(chain)},
            "refused": refused,
        }
    )
    return OK if view.status == "completed" and holds else FAILED


def _calls(entries: list[dict[str, Any]]) -> str:
    calls = [f"{entry['call_id']} {entry['outcome']}" for entry in entries if entry["kind"] == "performed"]
    return ", ".join(calls) or "none"


def _gates(view: RunView) -> str:
    said = [
        f"{gate.interrupt_id} by {gate.answer.principal}" if gate.answer else f"{gate.interrupt_id} {gate.state}"
        for gate in sorted(view.gates, key=lambda gate: gate.opened_at)
    ]
    counted = Counter(gate.state for gate in view.gates)
    return f"{counted['answered']} of {len(view.gates)} answered: {', '.join(said)}" if said else "none"


def _flat(result: Any) -> Any:
    """An object with the fields of the objects in it beside its own, so that each has a line."""
    if not isinstance(result, dict):
        return result
    flat: dict[str, Any] = {}
    for key, item in result.items():
        if item in (None, ""):
            continue
        if isinstance(item, dict):
            flat |= {f"{key}.{inner}": value for inner, value in item.items()}
        else:
            flat[key] = item
    return flat
