"""`gatewright answer`: say something to a gate, and learn what was ruled on it."""

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.answer import Answer
from gatewright.temporal import GateClient, GateView, Ruling

from .assign import assemble
from .connect import answerer, at_terminal, gate_client
from .exits import AWAY, REFUSED, Stop, usage
from .following import require_opened, trouble_words
from .jsonarg import read_json
from .out import Out
from .render import gate_lines, moment
from .terminal import ask_form, read_line
from .verdict import exit_code, show_ruling


@dataclass(frozen=True)
class Given:
    """What the command line said."""

    run: str
    interrupt_id: str | None
    json: str | None
    sets: list[str]
    principal: str | None
    answer_id: str | None
    digest: str | None
    signal: bool
    dry_run: bool
    timeout: float | None


async def answer(out: Out, given: Given) -> int:
    """Put the answer together, send it, and say what was ruled on it."""
    if given.json is not None and given.sets:
        raise usage("--json and --set cannot go together: one of them is the answer")
    by_hand = given.json is None and not given.sets
    if by_hand and not at_terminal():
        raise usage("there is no terminal to ask at: give the answer with --json or --set")
    # Read before anything is sought, so that a slip costs nothing.
    response = None if given.json is None else read_json(given.json, "--json")
    principal = given.principal or answerer()
    async with gate_client(patience=given.timeout) as client:
        await require_opened(client, given.run)
        named = given.interrupt_id not in {None, "-"}
        gate = None
        if not named or given.json is None:
            gate = await _gate(out, client, given.run, given.interrupt_id if named else None, by_hand=by_hand)
        if gate is not None and by_hand:
            response = _by_hand(out, gate)
        elif given.sets:
            # A gate that is not known is the run's to refuse, by name.
            response = assemble(gate.response_schema if gate is not None else None, given.sets)
        if gate is not None and gate.policy.dangerous and not named and not by_hand:
            raise usage(f"{gate.interrupt_id} is marked dangerous: name it, so that no other gate can be meant")
        said = _answer(
            answer_id=given.answer_id or "",
            interrupt_id=gate.interrupt_id if gate is not None else given.interrupt_id or "",
            response=response,
            principal=principal,
            channel="cli",
            # What was read to give this answer is evidence of what was seen.
            digest=given.digest or (gate.digest if gate is not None and given.json is None else None),
        )
        if given.dry_run:
            ruling: Ruling = await client.judge(given.run, said)
        else:
            ruling = await client.answer(given.run, said, signal=given.signal)
    show_ruling(out, ruling, given.run, dry=given.dry_run)
    out.data(verdict_document(ruling))
    return exit_code(ruling)


def verdict_document(ruling: Ruling) -> dict[str, Any]:
    """A verdict as JSON, tagged by `verdict`."""
    document = ruling.model_dump(mode="json")
    if isinstance(ruling, Admitted | Repeated):
        document["receipts"] = [receipt.model_dump(mode="json") for receipt in ruling.receipts]
    return document


def confirm_by_name(gate: GateView) -> None:
    """At a dangerous gate, have its name typed; `Stop` (usage) if another one is."""
    if gate.policy.dangerous and read_line(f"  type {gate.gate} to send this> ").strip() != gate.gate:
        raise usage("that is not its name; nothing was sent")


def _by_hand(out: Out, gate: GateView) -> Any:
    for line in gate_lines(gate, moment(), fields=False):
        out.note(line)
    response = ask_form(out, gate.response_schema, strict=gate.policy.strict)
    confirm_by_name(gate)
    return response


async def _gate(out: Out, client: GateClient, run: str, interrupt_id: str | None, *, by_hand: bool) -> GateView | None:
    """The gate that is meant: the one of this id (None if the run has none), or the only one that is open."""
    view = await client.get(run)
    if view.source == "index":
        why = trouble_words(view.trouble) if view.trouble else "no worker answers for this run"
        out.note(f"{why}\nwhat its gates show is read from the index")
    if interrupt_id is not None:
        for gate in view.gates:
            if gate.interrupt_id == interrupt_id:
                if gate.state == "open":
                    return gate
                if by_hand:
                    who = f" by {gate.answer.principal}" if gate.answer else ""
                    raise Stop(REFUSED, f"{interrupt_id} is {gate.state}{who}: gatewright show {run}", kind="not_open")
                # The same command once more is a repeat, so it must come to the same answer as the first time.
                row = await asyncio.to_thread(client.store.gate, run, interrupt_id)
                return gate.model_copy(update={"response_schema": row.response_schema if row else None})
        if by_hand:
            raise Stop(AWAY, f"{run} has no gate {interrupt_id}. {_open(view.gates)}", kind="unknown_gate")
        return None
    waiting = [gate for gate in view.gates if gate.state == "open" and gate.kind.value == "human"]
    if not waiting:
        raise Stop(AWAY, f"{run} waits for nobody now ({view.status}): no gate for a person is open", kind="none_open")
    if len(waiting) > 1:
        raise usage(f"several gates of {run} are open; name one of them: {_ids(waiting)}")
    out.note(f"taking {waiting[0].interrupt_id}, the only gate that is open for a person")
    return waiting[0]


def _open(gates: tuple[GateView, ...]) -> str:
    waiting = [gate for gate in gates if gate.state == "open"]
    return f"Open now: {_ids(waiting)}." if waiting else "No gate is open now."


def _ids(gates: list[GateView]) -> str:
    return ", ".join(gate.interrupt_id for gate in gates)


def _answer(**fields: Any) -> Answer:
    try:
        return Answer(**fields)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        raise usage(f"{' '.join(map(str, first['loc'])).replace('_', ' ')}: {first['msg']}") from wrong
