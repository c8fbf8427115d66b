"""Verdicts and receipts in words, and the exit code that a verdict means."""

from collections.abc import Iterable

from gatewright.protocol.admission import Admitted, Pending, Repeated
from gatewright.protocol.entries import Objection, Refusal, Refused
from gatewright.protocol.receipt import Receipt
from gatewright.temporal import Delivered, Ruling

from .exits import AWAY, OK, REFUSED
from .out import Out
from .render import when

_HELP = {
    Refusal.UNKNOWN_GATE: "See which gates the run has: gatewright show {run}",
    Refusal.NOT_OPEN_YET: "Wait until the run gets there: gatewright watch {run}",
    Refusal.ALREADY_ANSWERED: "It stands as it was answered: gatewright show {run}",
    Refusal.CONFLICT: "An answer id names one answer for ever: leave --answer-id out, or give another one.",
    Refusal.STALE_DIGEST: "Read what the gate shows now, and answer that: gatewright show {run}",
    Refusal.INVALID: "Correct the answer and send it again.",
    Refusal.NOT_INVITED: "Somebody who is invited has to answer.",
    Refusal.FRAME_CLOSED: "The run is over: gatewright show {run}",
    Refusal.SUPERSEDED: "See where the run went: gatewright show {run}",
    Refusal.EXPIRED: "See how the run went on: gatewright show {run}",
}


def exit_code(ruling: Ruling) -> int:
    """The exit code of an answer on which this was ruled."""
    match ruling:
        case Refused():
            return REFUSED
        case Delivered():
            return AWAY
        case Admitted() | Repeated() | Pending():
            return OK


def show_ruling(out: Out, ruling: Ruling, run: str, *, dry: bool = False) -> None:
    """Say what was ruled on an answer, and what can be done about it."""
    would = "would be " if dry else ""
    match ruling:
        case Admitted(receipts=receipts):
            out.say(f"{would}admitted{'' if dry else _receipts(receipts)}", "green")
        case Repeated(receipts=receipts):
            out.say(f"{would}repeated: this was said before, and counts once{_receipts(receipts)}", "green")
        case Pending(missing=missing):
            out.say(f"{would}counted: {missing} more must agree", "yellow")
        case Delivered(reason=reason):
            out.say("delivered, not judged yet", "yellow")
            out.say(f"  {reason}")
            out.say(f"  Nobody knows yet whether it counts: gatewright show {run}")
        case Refused(objections=objections):
            for objection in objections:
                _show_objection(out, objection, run, would)


def _show_objection(out: Out, objection: Objection, run: str, would: str) -> None:
    out.say(f"{would}refused: {objection.refusal.value}", "red")
    out.say(f"  {objection.reason}")
    for fault in objection.faults:
        # The reason repeats the first of them.
        if f"{fault.path}: {fault.message}" not in objection.reason:
            out.say(f"  {fault.path}: {fault.message}")
    if objection.armed:
        out.say(f"  {objection.interrupt_id} is still open and takes another answer.")
    elif objection.open and "Open now" not in objection.reason:
        out.say(f"  Open now: {', '.join(objection.open)}")
    if way_out := _HELP.get(objection.refusal):
        out.say(f"  {way_out.format(run=run)}")


def _receipts(receipts: Iterable[Receipt]) -> str:
    return "".join(f"\n  receipt {receipt.number}  {receipt.digest}" for receipt in receipts)


def receipt_lines(receipt: Receipt) -> list[str]:
    """A receipt by its five facts."""
    frame, at, who, effect = receipt.frame, receipt.occurrence, receipt.responder, receipt.effect
    responder = "nobody: no answer authorised it"
    if who is not None:
        responder = (
            f"{who.principal or 'nobody named'} ({who.evidence.value}) through {who.channel} by {who.door}, "
            f"answer {who.answer_id}"
        )
    occurrence = "none" if at is None else f"{at.interrupt_id} (gate {at.gate}, run {at.run}, visit {at.visit})"
    effect_words = " ".join(part for part in (effect.name, effect.state.value, effect.key) if part)
    return [
        f"receipt {receipt.number}  {receipt.kind}  {when(receipt.at)}",
        f"  frame       {frame.identity.workflow_id}  {frame.standing.value}, epoch {frame.epoch}",
        f"              {frame.identity.namespace}, first execution {frame.identity.first_execution_run_id}",
        f"  occurrence  {occurrence}",
        *([f"              shown {at.digest}"] if at is not None else []),
        f"  branch      {receipt.branch}",
        f"  responder   {responder}",
        f"  effect      {effect_words}",
        f"  digest      {receipt.digest}",
        f"  previous    {receipt.previous or 'none: it is the first'}",
    ]
