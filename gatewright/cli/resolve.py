"""
`gatewright effects resolve`: a person's word on whether an effect happened.

While the run goes on, the word is an answer to its gate `blocked:<effect>` and
the run judges it. Where the run is over there is nobody to judge: the word goes
into the ledger, where a run that is reset finds it. That it is over Temporal
says, the store, or whoever gives the word: a run that Temporal does not know may
go on in another one.
"""

import asyncio
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from gatewright.protocol.answer import Answer
from gatewright.protocol.recovery import BLOCKED
from gatewright.store import RUN_CLOSED, RUN_OPEN, EffectUnderWay, LedgerEntry, Store
from gatewright.temporal import GateClient, RunView, UnknownRunError

from .answer import verdict_document
from .connect import answerer, gate_client
from .effects import Found, asking, asks_whether_it_happened, call_of, find, key_asked, short_key
from .exits import AWAY, OK, REFUSED, Stop, usage
from .following import trouble_words
from .jsonarg import read_json
from .out import Out
from .render import call_line, moment
from .verdict import exit_code, show_ruling

_GOES_ON = {"running", "continued_as_new", "unknown"}


@dataclass(frozen=True)
class Given:
    """What the command line said."""

    key: str
    happened: bool
    did_not_happen: bool
    abort: bool
    receipt: str | None
    result: str | None
    comment: str | None
    principal: str | None
    run_is_over: bool


@dataclass(frozen=True)
class Said:
    """The word, as the gate takes it, and who gives it."""

    decision: str
    by: str
    comment: str | None
    receipt: JsonValue
    result: JsonValue
    has_result: bool
    """Whether a result was given: null is one."""

    @property
    def response(self) -> dict[str, JsonValue]:
        """The gate's answer."""
        optional = {"receipt": self.receipt, "result": self.result, "comment": self.comment}
        return {"decision": self.decision, **{name: value for name, value in optional.items() if value is not None}}


async def resolve(out: Out, given: Given) -> int:
    """Say whether an effect happened, to its run or, where that is over, to the ledger."""
    said = _said(given)
    async with gate_client() as client:
        found = await asyncio.to_thread(find, client.store, given.key)
        view = await _view(client, found.run)
        if view is None or view.source == "archive":
            if not given.run_is_over:
                _surely_over(client, found.run, view)
            return await _written_down(out, client.store, found, said, view)
        if view.status not in _GOES_ON:
            return await _written_down(out, client.store, found, said, view)
        if given.run_is_over:
            raise usage(f"--run-is-over: Temporal says that {found.run} goes on; say it to the run, without the option")
        if view.source == "index":
            why = trouble_words(view.trouble) if view.trouble else "no worker answers for this run"
            out.note(f"{why}\nwhat its gates show is read from the index")
        interrupt_id, digest = await _gate(client, found, view)
        out.note(f"{found.run} asks about {found.call} at {interrupt_id}")
        ruling = await client.answer(found.run, _answer(interrupt_id, digest, said))
    show_ruling(out, ruling, found.run)
    out.data(verdict_document(ruling))
    return exit_code(ruling)


def _said(given: Given) -> Said:
    words = {"happened": given.happened, "did_not_happen": given.did_not_happen, "abort": given.abort}
    chosen = [word for word, said in words.items() if said]
    if len(chosen) != 1:
        raise usage("say one of --happened, --did-not-happen and --abort")
    if not given.happened and (given.receipt is not None or given.result is not None):
        raise usage("--receipt and --result go with --happened")
    # Read before anything is sought, so that a slip costs nothing.
    receipt = None if given.receipt is None else read_json(given.receipt, "--receipt")
    result = None if given.result is None else read_json(given.result, "--result")
    if given.happened and receipt in (None, "", {}, []):
        raise usage("--happened needs --receipt JSON: what proves that the effect was performed")
    return Said(chosen[0], given.principal or answerer(), given.comment, receipt, result, given.result is not None)


async def _view(client: GateClient, run: str) -> RunView | None:
    try:
        return await client.get(run)
    except UnknownRunError:
        return None


def _surely_over(client: GateClient, run: str, view: RunView | None) -> None:
    """`Stop` where Temporal does not know the run, and the store does not say that it is over: it may go on elsewhere."""
    if view is not None and view.status in RUN_CLOSED:
        return
    listed = f"does not list {run}" if view is None else f"lists {run} as {view.status}"
    temporal = client.client
    raise Stop(
        AWAY,
        f"the store {listed}, and Temporal at {temporal.service_client.config.target_host} (namespace {temporal.namespace}) "
        "does not know it: it may go on in another one. Set TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE to the run's own; "
        "where it is surely over, add --run-is-over",
        kind="run_not_known",
        workflow_id=run,
    )


def _answer(interrupt_id: str, digest: str, said: Said) -> Answer:
    try:
        return Answer(
            interrupt_id=interrupt_id, response=said.response, principal=said.by, channel="cli", digest=digest
        )
    except ValidationError as wrong:
        first = wrong.errors()[0]
        raise usage(f"{' '.join(map(str, first['loc'])).replace('_', ' ')}: {first['msg']}") from wrong


async def _gate(client: GateClient, found: Found, view: RunView) -> tuple[str, str]:
    """The gate that asks about this call, and the digest of what it shows; `Stop` where none ever did."""
    for gate in view.gates:
        if gate.state == "open" and asks_whether_it_happened(gate.gate) and key_asked(gate.payload) == found.key:
            return gate.interrupt_id, gate.digest
    effect = found.entry.effect if found.entry else None
    rows = await asyncio.to_thread(asking, client.store, found.run, found.key, effect=effect, prefixes=(BLOCKED,))
    if not rows:
        raise Stop(
            AWAY,
            f"{found.run} goes on and does not ask about {found.call}: {_waits(view)}. Nothing is decided behind its back; "
            f"see what it does: gatewright show {found.run}",
            kind="not_asked",
            workflow_id=found.run,
            open=[gate.interrupt_id for gate in view.gates if gate.state == "open"],
        )
    # It asked before: the same word is a repeat, and the run says who was first where it is another.
    return rows[0].interrupt_id, rows[0].digest


def _waits(view: RunView) -> str:
    waiting = [gate.interrupt_id for gate in view.gates if gate.state == "open"]
    parts = [f"it waits at {', '.join(waiting)}"] if waiting else []
    parts += [call_line(call, moment()) for call in view.calls]
    return "; ".join(parts) or "it waits for nobody now"


async def _written_down(out: Out, store: Store, found: Found, said: Said, view: RunView | None) -> int:
    """The run is over: the word goes into the ledger."""
    if view is None or view.status in RUN_OPEN:
        standing = "Temporal does not know its run"
    else:
        standing = f"its run is over ({view.status})"
    if said.decision == "abort":
        raise Stop(
            REFUSED,
            f"{found.call} cannot be aborted: {standing}, so there is no call to end. Say --happened or --did-not-happen, "
            "for whoever resets it",
            kind="run_over",
            workflow_id=found.run,
        )
    happened = said.decision == "happened"
    if happened and not said.has_result:
        raise usage(
            f"{standing}, so nobody asks what {found.call} returned: --happened needs --result JSON too, what a run that is "
            "reset goes on with (null where it returns nothing)"
        )
    try:
        entry = await asyncio.to_thread(
            store.ledger.resolve,
            found.key,
            by=said.by,
            happened=happened,
            comment=said.comment,
            receipt=said.receipt,
            result=said.result,
        )
    except EffectUnderWay as living:
        raise Stop(AWAY, str(living), kind="effect_under_way") from living
    before = found.entry
    stood = before is not None and before.state in {"performed", "failed"}
    agrees = entry.state == ("performed" if happened else "failed")
    _say_what_stands(out, entry, standing, stood=stood, agrees=agrees)
    verdict = "unchanged" if stood else "recorded"
    out.data({"verdict": verdict, "agrees": agrees, "entry": entry.model_dump(mode="json")})
    return OK if agrees else REFUSED


def _say_what_stands(out: Out, entry: LedgerEntry, standing: str, *, stood: bool, agrees: bool) -> None:
    if stood:
        by = f", as {entry.resolved_by} said" if entry.resolved_by else ""
        out.say(f"{call_of(entry)} stands as {entry.state}{by}; nothing was changed", "green" if agrees else "red")
    else:
        out.say(f"written into the ledger: {call_of(entry)} {entry.state}", "green")
    out.say(f"  {standing}: nothing goes on because of this, and a run that is reset finds it")
    out.say(f"  gatewright effects show {short_key(entry.key)}")
