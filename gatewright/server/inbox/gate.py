"""The page of one gate: what is asked, the form, who answered, and what else was said to it."""

import asyncio
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from gatewright.protocol.admission import Admitted, Pending, Repeated
from gatewright.protocol.answer import Answer, EvidenceClass
from gatewright.protocol.canonical import NotJson, digest
from gatewright.protocol.entries import Objection, Refusal, Refused
from gatewright.protocol.example import example
from gatewright.protocol.faults import Fault
from gatewright.protocol.question import ABSENT, Question, question
from gatewright.store import GateRow, RefusalRow, SessionKey
from gatewright.temporal import Delivered, Ruling
from gatewright.temporal.errors import NoWorkerError, ServerUnavailableError, UnknownRunError
from gatewright.temporal.keeping import row_of

from . import address, content, form, times
from .listing import IN_TROUBLE
from .picture import picture
from .signin import Visitor
from .site import Site, headers
from .visits import Sent, sent

SETTLED_PATIENCE = 2.0
"""How long an answer that counts waits until the index has heard of it, in seconds."""

MAX_ROWS = 60
"""How many gates of a run are looked at for what was answered before."""

_GONE = {Refusal.ALREADY_ANSWERED, Refusal.EXPIRED, Refusal.SUPERSEDED, Refusal.FRAME_CLOSED, Refusal.CONFLICT}
_STATUS = {Refusal.STALE_DIGEST: 409, Refusal.NOT_INVITED: 403, Refusal.UNKNOWN_GATE: 404, Refusal.TOO_LARGE: 413}


@dataclass(frozen=True)
class Facts:
    """What is known of a gate: its row, the run's other gates, the refusals, and the round before."""

    row: GateRow
    gates: tuple[GateRow, ...]
    refusals: tuple[RefusalRow, ...]
    previous: GateRow | None

    @property
    def earlier(self) -> tuple[GateRow, ...]:
        """What was answered before in this run, the latest first."""
        settled = (row for row in self.gates if row.state == "answered" and row.interrupt_id != self.row.interrupt_id)
        return tuple(sorted(settled, key=lambda row: row.closed_at or row.opened_at, reverse=True))


@dataclass(frozen=True)
class Notice:
    """What a page says before anything else; `tone` is `good`, `bad` or `wait`."""

    tone: str
    title: str
    words: str = ""
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Typed:
    """What was typed into the form, and what is wrong with it; `nonce` names the page that it was typed on."""

    draft: form.Draft
    raw: str = ""
    as_json: bool = False
    name: str = ""
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    faults: tuple[Fault, ...] = ()
    raw_fault: str = ""
    name_fault: str = ""


class GatePages:
    """The page at `/inbox/gate`, and what its form sends."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """The gate; only its standing, where an open page asks for that."""
        facts = await self._facts(request)
        if facts is None:
            return self._unknown(request, visitor)
        if request.headers.get("x-gatewright-part") == "standing":
            return HTMLResponse(self._site.render("_standing.html", facts=facts), headers=headers())
        notice = None
        mine = request.query_params.get("answer")
        if mine and mine == facts.row.answer_id:
            notice = Notice("good", "Your answer counts.", f"Its receipt is {facts.row.receipt_digest}.")
        return self._page(request, visitor, facts, _blank(facts.row), notice=notice)

    async def take(self, request: Request, visitor: Visitor) -> Response:
        """Send the answer in the form, and show what was ruled on it."""
        row = await self._row(request)
        if row is None:
            return self._unknown(request, visitor)
        given = await sent(request)
        if given.wrong:
            return self._site.said(request, visitor, 400, "Nothing was sent", given.wrong)
        typed = _typed(row, given)
        if not self._site.door.sealed(visitor, given.get("seal")):
            words = "This form was not made for you by this server, or long ago. Look at it again and send it."
            return await self._back(request, visitor, row, typed, Notice("bad", "Nothing was sent.", words), status=403)
        if given.get("do"):
            return await self._back(request, visitor, row, typed)
        response, typed, notice, status = _ready(row, typed)
        if notice is not None:
            return await self._back(request, visitor, row, typed, notice, status=status)
        said = Answer(
            answer_id=_answer_id(typed.nonce, response),
            interrupt_id=row.interrupt_id,
            response=response,
            principal=visitor.principal,
            channel="inbox",
            evidence=EvidenceClass.AUTHENTICATED,
            digest=given.get("digest") or None,
        )
        try:
            ruling = await self._site.client.answer(row.workflow_id, said)
        except (ServerUnavailableError, NoWorkerError) as away:
            words = f"{away} What you typed is still here: send it again."
            return await self._back(request, visitor, row, typed, Notice("bad", "It was not sent.", words), status=503)
        return await self._ruled(request, visitor, row, typed, said, ruling)

    async def _ruled(
        self, request: Request, visitor: Visitor, row: GateRow, typed: Typed, said: Answer, ruling: Ruling
    ) -> Response:
        match ruling:
            case Admitted(receipts=receipts) | Repeated(receipts=receipts):
                row = await self._settled(row)
                if row.answer_id == said.answer_id:
                    counted = address.gate_url(row.workflow_id, row.interrupt_id, answer=said.answer_id)
                    return RedirectResponse(counted, 303, headers=headers())
                words = f"Its receipt is {receipts[0].digest}. The list has not heard of it yet, and will."
                return await self._back(request, visitor, row, typed, Notice("good", "Your answer counts.", words))
            case Pending(missing=missing):
                words = f"{missing} more must agree."
                return await self._back(request, visitor, row, typed, Notice("wait", "Your answer counts.", words))
            case Delivered(reason=reason):
                words = f"{reason}. Nobody knows yet whether it counts; this page will tell. To send the same again changes nothing."
                notice = Notice("wait", "Delivered, not judged yet.", words)
                return await self._back(request, visitor, row, typed, notice, status=202)
            case Refused(objections=objections):
                return await self._refused(request, visitor, row, typed, objections[0])

    async def _refused(
        self, request: Request, visitor: Visitor, row: GateRow, typed: Typed, first: Objection
    ) -> Response:
        status = _STATUS.get(first.refusal, 422)
        notice = Notice("bad", f"It did not count: {first.refusal.value.replace('_', ' ')}.", first.reason)
        if first.refusal in _GONE:
            row = await self._settled(row)
            status = 409
            notice = _gone(row) if row.state != "open" else Notice("bad", "It did not count.", first.reason)
        elif first.refusal is Refusal.STALE_DIGEST:
            words = (
                "What the gate shows has changed since you opened this page. What you typed is kept: look at it again."
            )
            notice = Notice("bad", "It did not count.", words)
        elif first.refusal is Refusal.INVALID:
            # Who wrote JSON looks for what is wrong with it there, and not at fields that were left alone.
            said = "; ".join(f"{fault.path}: {fault.message}" for fault in first.faults)
            typed = replace(typed, raw_fault=said) if typed.as_json else replace(typed, faults=first.faults)
            words = "The run did not take it, and still waits. Correct what is marked and send it again."
            notice = Notice("bad", "It did not count.", words, () if first.faults else (first.reason,))
        return await self._back(request, visitor, row, typed, notice, status=status)

    async def _back(
        self,
        request: Request,
        visitor: Visitor,
        row: GateRow,
        typed: Typed,
        notice: Notice | None = None,
        *,
        status: int = 200,
    ) -> Response:
        """The page again, as it now is, with what was typed."""
        facts = await self._facts(request) or Facts(row, (), (), None)
        return self._page(request, visitor, facts, typed, notice, status=status)

    async def _row(self, request: Request) -> GateRow | None:
        run, interrupt_id = request.query_params.get("run", ""), request.query_params.get("id", "")
        row = await asyncio.to_thread(self._site.store.gate, run, interrupt_id)
        facts = await self._facts(request) if row is None else None
        return facts.row if facts is not None else row

    async def _settled(self, row: GateRow) -> GateRow:
        """The gate's row once the index has heard that it is over, or as it is after a while."""
        ends = asyncio.get_running_loop().time() + SETTLED_PATIENCE
        while True:
            now = await asyncio.to_thread(self._site.store.gate, row.workflow_id, row.interrupt_id) or row
            if now.state != "open" or asyncio.get_running_loop().time() > ends:
                return now
            await asyncio.sleep(0.05)

    async def _facts(self, request: Request) -> Facts | None:
        run, interrupt_id = request.query_params.get("run", ""), request.query_params.get("id", "")
        facts = await asyncio.to_thread(self._listed, run, interrupt_id)
        if facts is not None or not (run and interrupt_id):
            return facts
        # The index was away when it opened: the run itself knows.
        with suppress(NoWorkerError, UnknownRunError, TimeoutError):
            async with asyncio.timeout(5):
                view = await self._site.client.get(run)
            for gate in view.gates:
                if gate.interrupt_id == interrupt_id:
                    return Facts(row_of(gate, run, view.pipeline), (), (), None)
        return None

    def _listed(self, run: str, interrupt_id: str) -> Facts | None:
        store = self._site.store
        row = store.gate(run, interrupt_id)
        if row is None:
            return None
        gates = tuple(store.gates(run=run, limit=MAX_ROWS))
        refusals = tuple(each for each in store.refusals(run=run, limit=200) if each.interrupt_id == interrupt_id)
        before = [
            each for each in gates if (each.gate, each.branch) == (row.gate, row.branch) and each.visit < row.visit
        ]
        before = before or [each for each in gates if each.gate == row.gate and each.visit < row.visit]
        previous = max(before, key=lambda each: each.visit, default=None)
        return Facts(row, gates, refusals, previous)

    def _unknown(self, request: Request, visitor: Visitor) -> Response:
        words = "The index does not list it, and no run says that it has it."
        todo = "The link may be cut short. Search for the run in the list."
        return self._site.said(request, visitor, 404, "There is no such gate", words, todo=todo)

    def _page(
        self,
        request: Request,
        visitor: Visitor,
        facts: Facts,
        typed: Typed,
        notice: Notice | None = None,
        *,
        status: int = 200,
    ) -> Response:
        row = facts.row
        fields = form.view(typed.draft, typed.faults)
        return self._site.page(
            request,
            visitor,
            "gate.html",
            status=status,
            facts=facts,
            row=row,
            notice=notice,
            typed=typed,
            form=fields,
            unsent=_unsent(typed) if row.state != "open" and request.method == "POST" else "",
            payload=_Payload.of(row.payload),
            changed=_changed(facts.previous, row),
            drawn=picture(self._site.drawn_as(row.workflow_id, row.pipeline), facts.gates),
            commands=self._commands(request, visitor, row, typed),
            temporal=self._site.temporal_url(row.workflow_id),
            in_trouble=row.gate.startswith(IN_TROUBLE),
            overdue=row.deadline is not None and row.deadline < times.now() - timedelta(seconds=1),
        )

    def _commands(self, request: Request, visitor: Visitor, row: GateRow, typed: Typed) -> list[tuple[str, str]]:
        response = row.response if row.state == "answered" else form.value_of(typed.draft)
        if row.state == "open" and response in (ABSENT, {}, "", None):
            schema = row.response_schema if isinstance(row.response_schema, dict) else None
            response = example(schema)
            response = "..." if response is ABSENT else response
        commands = [("gatewright", address.answer_command(row.workflow_id, row.interrupt_id, response))]
        if (app := self._site.app_of(row.workflow_id)) is not None:
            key, _ = SessionKey.of_workflow(row.workflow_id)
            session = {"appName": app.name, "userId": key.user, "sessionId": key.session}
            base, token = self._site.base_url(request), self._site.security.authenticates
            commands.append(("curl", address.curl_command(base, session, row.interrupt_id, response, token=token)))
        signal = address.signal_command(row.workflow_id, row.interrupt_id, response, visitor.principal)
        return [*commands, ("temporal", signal)]


@dataclass(frozen=True)
class _Payload:
    """A payload in three forms; `none` where the gate shows none."""

    none: bool
    laid_out: content.Shown
    text: str
    raw: str

    @classmethod
    def of(cls, value: Any) -> "_Payload":
        return cls(value is None, content.laid_out(value), content.as_text(value), content.pretty(value))


def _question(row: GateRow) -> Question:
    schema = row.response_schema if isinstance(row.response_schema, dict) else {}
    return question(schema, schema)


def _blank(row: GateRow) -> Typed:
    return Typed(form.blank(_question(row)))


def _typed(row: GateRow, given: Sent) -> Typed:
    return Typed(
        form.parse(_question(row), given.pairs),
        raw=given.get("raw").replace("\r\n", "\n"),
        as_json=given.get("as") == "json",
        name=given.get("name"),
        nonce=given.get("nonce")[:40] or secrets.token_hex(8),
    )


def _ready(row: GateRow, typed: Typed) -> tuple[Any, Typed, Notice | None, int]:
    """The answer that is to be sent; or what is to be said instead, and the status of the page that says it."""
    if row.state != "open":
        return ABSENT, typed, _gone(row), 409
    if row.dangerous and typed.name.strip() != row.gate:
        typed = replace(typed, name_fault=f"Type {row.gate} here.")
        words = "This gate is marked dangerous: its name has to be typed."
        return ABSENT, typed, Notice("bad", "Nothing was sent.", words), 422
    response, typed = _response(typed)
    return response, typed, Notice("bad", "Nothing was sent.") if response is ABSENT else None, 422


def _response(typed: Typed) -> tuple[Any, Typed]:
    """The answer in the form; `ABSENT` where it cannot be read, and then the form says why."""
    if not typed.as_json:
        if faults := tuple(form.unreadable(typed.draft)):
            return ABSENT, replace(typed, faults=faults)
        return form.value_of(typed.draft), typed
    try:
        value = json.loads(typed.raw, parse_constant=_no_constant)
        digest(value)
    except RecursionError:
        return ABSENT, replace(typed, raw_fault="This is nested too deeply.")
    except (ValueError, NotJson) as wrong:
        return ABSENT, replace(typed, raw_fault=f"This is not JSON: {wrong}")
    return value, typed


def _no_constant(name: str) -> Any:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def _answer_id(nonce: str, response: Any) -> str:
    """The same words from the same page are the same answer, however often they are sent; other words are another one."""
    try:
        said = digest(response).removeprefix("sha256:")[:16]
    except NotJson:
        said = secrets.token_hex(8)  # the run refuses it and says why
    return f"inbox-{nonce}-{said}"


def _unsent(typed: Typed) -> str:
    """What was typed and did not count, as JSON, so that it is not lost."""
    if typed.as_json:
        return typed.raw
    value = form.value_of(typed.draft)
    return "" if value in (ABSENT, {}, "", None) else content.pretty(value)


def _gone(row: GateRow) -> Notice:
    """That somebody was first, or that the gate waits no longer."""
    at = f"{times.stamp(row.closed_at)} ({times.ago(row.closed_at)})" if row.closed_at else "before"
    if row.state == "answered":
        words = f"{row.principal or 'Somebody'} was first, {at}, through {row.channel or 'a channel without a name'}."
        return Notice("bad", "Your answer did not count.", f"{words} What was answered is below.")
    words = {
        "expired": f"Its deadline passed {at}.",
        "superseded": f"The run went another way {at}.",
        "closed": f"The run ended {at}.",
        "open": "",
    }.get(row.state, f"It is {row.state} since {at}.")
    return Notice("bad", "Your answer did not count: the gate waits no longer.", words)


def _changed(previous: GateRow | None, row: GateRow) -> content.Differences | None:
    if previous is None:
        return None
    before, after = ({"message": each.message, "payload": each.payload} for each in (previous, row))
    return content.differences(before, after)
