"""`gatewright start`, `show`, `watch`, `cancel` and `abandon`: one run, from its opening to its end."""

import asyncio
import secrets
from typing import Any, Literal

from pydantic import ValidationError

from gatewright.protocol.receipt import Anchor, Receipt
from gatewright.store import RefusalRow, SessionKey
from gatewright.temporal import GateClient, NoWorkerError, RunView, UnknownRunError
from gatewright.temporal.views import RefusalsView

from .connect import at_terminal, gate_client
from .exits import FAILED, OK, Stop, usage
from .following import follow, lasting_trouble, require_opened, stuck, trouble_words, until_over
from .out import Out
from .render import call_line, entry_line, gate_lines, moment, payload_lines, when
from .terminal import confirm

POLL_SECONDS = 0.3


async def start(
    out: Out,
    pipeline: str,
    given: Any,
    *,
    app: str | None,
    user: str | None,
    session: str | None,
    opening_id: str | None,
    on_text: Literal["refuse", "open"],
    queue: str | None,
    wait: bool,
) -> int:
    """Open a run, and say which it is and what to do next."""
    key = session_key(
        pipeline if app is None else app,
        "user" if user is None else user,
        secrets.token_hex(6) if session is None else session,
    )
    async with gate_client(make_store=True) as client:
        started = await client.start(
            pipeline, given, session=key, opening_id=opening_id, on_text=on_text, task_queue=queue
        )
        run = started.workflow_id
        record = await asyncio.to_thread(client.store.run, run) or started.run
        if not await client.workers(record.task_queue):
            out.note(
                f"no worker polls task queue {record.task_queue}: the run waits until one does (gatewright dev, "
                "or python -m worker)"
            )
        out.say(f"{run}{'' if started.created else '  (opened before under this opening id)'}")
        document: dict[str, Any] = {"workflow_id": run, "created": started.created, "run": _dump(record)}
        code = OK
        if wait:
            with out.busy(f"waiting until {run} waits for a person, or ends"):
                view = await until_it_waits(client, run)
            document["view"] = _dump(view)
            for line in _standing_lines(view):
                out.say(line)
            code = FAILED if view.status not in {"running", "completed"} else OK
        else:
            out.say(f"  follow it:  gatewright watch {run}")
            out.say(f"  answer it:  gatewright answer {run}")
        out.data(document)
        return code


def session_key(app: str, user: str, session: str) -> SessionKey:
    """The session of these three; `Stop` (usage) where one of them cannot be part of it."""
    try:
        return SessionKey(app=app, user=user, session=session)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        name = f"--{first['loc'][0]}: " if first["loc"] else ""
        raise usage(f"{name}{first['msg'].removeprefix('Value error, ')}") from wrong


async def until_it_waits(client: GateClient, run: str) -> RunView:
    """The run once a gate for a person is open, or it is over; `Stop` if its worker cannot go on with it."""
    while True:
        view = await client.get(run)
        if trouble := await lasting_trouble(client, run, view):
            raise stuck(run, trouble)
        if view.status != "running" or any(gate.state == "open" and gate.kind.value == "human" for gate in view.gates):
            return view
        await asyncio.sleep(POLL_SECONDS)


async def show(out: Out, run: str) -> int:
    """Everything that is known of a run."""
    async with gate_client() as client:
        view = await client.get(run)
        unheard = view.source == "index" and view.status == "running"
        gates, transcript, refusals = view.gates, None, None
        if unheard:
            why = trouble_words(view.trouble) if view.trouble else "no worker answers for this run"
            out.note(f"{why}\nwhat follows is what the store last heard", "red" if view.trouble else "")
        else:
            try:
                gates = await client.gates(run)
                transcript = [entry async for entry in _entries(client, run)]
                refusals = await client.refusals(run)
            except (NoWorkerError, UnknownRunError) as silent:
                out.note(f"its gates and transcript cannot be read: {silent}")
        recorded = await asyncio.to_thread(client.store.refusals, run=run, limit=200)
    for line in _standing_lines(view.model_copy(update={"gates": ()})):
        out.say(line)
    if view.calls:
        out.say("\ncalls under way", "bold")
    for call in view.calls:
        out.say(f"  {call_line(call, moment())}")
    for title, states in (("open gates", {"open"}), ("gates that are over", None)):
        chosen = [gate for gate in gates if (gate.state == "open") == (states is not None)]
        if chosen:
            out.say(f"\n{title}", "bold")
        for gate in chosen:
            for line in gate_lines(gate, moment()):
                out.say(f"  {line}")
    if transcript:
        out.say("\ntranscript", "bold")
        for entry in transcript:
            out.say(f"  {entry_line(entry)}")
    of_store = [row for row in recorded if row.recorded_by == "client"]
    _say_refusals(out, refusals, of_store)
    out.data(
        _dump(view)
        | {
            "gates": [_dump(gate) for gate in gates],
            "transcript": transcript,
            "refusals": _dump(refusals) if refusals else None,
            "store_refusals": [_dump(row) for row in of_store],
        }
    )
    return OK


def _say_refusals(out: Out, refusals: RefusalsView | None, of_store: list[RefusalRow]) -> None:
    counted = sum(sum(names.values()) for names in refusals.counts.values()) if refusals else 0
    if counted or of_store:
        out.say(f"\nrefused answers: {counted} by the run, {len(of_store)} that no run could record", "bold")
        for refused in refusals.refused if refusals else ():
            out.say(f"  {when(refused.at)}  {refused.refusal.value} {refused.principal}: {refused.reason}")
        for row in reversed(of_store):
            out.say(f"  {when(row.at)}  {row.refusal} {row.principal or ''} (recorded by the client): {row.reason}")
    if refusals and refusals.dead_letter_count:
        out.say(f"\ndead letters: {refusals.dead_letter_count} (delivered, and not readable as an answer)", "bold")
        for letter in refusals.dead_letters:
            out.say(f"  {when(letter.at)}  {letter.name} by {letter.door}, {letter.size} bytes: {letter.reason}")
            out.say(f"    {letter.preview[:200]}")


async def watch(out: Out, run: str, after: int) -> int:
    """The transcript as it grows, until the run is over."""
    cursor = after
    troubles: set[str] = set()

    def at_trouble(trouble: str) -> None:
        if trouble not in troubles:
            troubles.add(trouble)
            out.note(f"{trouble_words(trouble)}\nit goes on once a worker can take it; still watching", "red")

    async with gate_client() as client:
        await require_opened(client, run)
        try:
            page = await client.transcript(run, after)
            # A run that has compacted its transcript begins later than was asked for.
            cursor = page.next - len(page.entries)
        except NoWorkerError:
            view = await client.get(run)
            if view.status == "running" and not view.trouble:
                out.note("no worker answers for this run; waiting for one")
        try:
            async for entry in follow(client, run, cursor, at_trouble=at_trouble):
                cursor += 1
                out.say(entry_line(entry))
                out.line(entry | {"cursor": cursor})
        except asyncio.CancelledError:
            out.note(f"no longer watching; the run goes on. From here on: gatewright watch {run} --after {cursor}")
            raise
        view = await until_over(client, run)
        if view.status == "running":
            why = trouble_words(view.trouble) if view.trouble else "Temporal has not ended it yet"
            raise Stop(FAILED, f"{run} has written its last entry, and {why}", kind="watch_ended")
        for line in _standing_lines(view.model_copy(update={"gates": ()})):
            out.say(line)
    return OK


async def read_chain(client: GateClient, run: str) -> tuple[Anchor, list[Receipt]]:
    """All receipts that a run keeps, and the anchor before the first of them."""
    page = await client.receipts(run)
    anchor, chain = page.anchor, list(page.receipts)
    while page.next is not None:
        page = await client.receipts(run, page.next)
        chain += page.receipts
    return anchor, chain


async def cancel(out: Out, run: str, reason: str) -> int:
    """Ask a run to end in its own way."""
    async with gate_client() as client:
        await require_opened(client, run)
        await client.cancel(run, reason=reason)
        if not await client.workers(await _queue(client, run)):
            out.note("no worker is there: it ends when one is. `gatewright abandon` ends it at once.")
    out.say(f"{run} was asked to end. See it end: gatewright watch {run}")
    out.data({"workflow_id": run, "requested": "cancel", "reason": reason})
    return OK


async def abandon(out: Out, run: str, reason: str, *, sure: bool) -> int:
    """End a run at once."""
    if not sure and at_terminal():
        out.note(f"{run} ends at once: its cleanup does not run, and its gates can never be answered.")
        if not confirm("Abandon it?"):
            raise usage("it was not abandoned")
    async with gate_client() as client:
        await require_opened(client, run)
        await client.abandon(run, reason=reason)
    out.say(f"{run} was abandoned. What it did is kept: gatewright show {run}")
    out.data({"workflow_id": run, "standing": "abandoned", "reason": reason})
    return OK


async def _queue(client: GateClient, run: str) -> str | None:
    record = await asyncio.to_thread(client.store.run, run)
    return record.task_queue or None if record else None


async def _entries(client: GateClient, run: str) -> Any:
    after = 0
    while True:
        page = await client.transcript(run, after)
        for entry in page.entries:
            yield entry
        if not page.entries:
            return
        after = page.next


def _standing_lines(view: RunView) -> list[str]:
    closed = f", closed {when(view.closed_at)}" if view.closed_at else ""
    lines = [f"{view.workflow_id}  {view.pipeline}  {view.status}, opened {when(view.opened_at)}{closed}"]
    if view.status == "allocated":
        lines.append("  it is being opened by another command, or its opening failed; run `gatewright start` again")
    if view.failure:
        lines.append(f"  failure: {view.failure}")
    if view.result is not None:
        lines += ["  result:", *payload_lines(view.result, "    ")]
    for gate in view.gates:
        if gate.state == "open":
            lines += [f"  {line}" for line in gate_lines(gate, moment())]
    return lines


def _dump(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json")
    return dumped
