"""The page of one run: how it stands, its gates, transcript, effects and receipts, and how to end it."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from gatewright.protocol.receipt import Anchor, Broken, Receipt, Verified, verify
from gatewright.protocol.telling import entry_words
from gatewright.store import RUN_CLOSED, GateRow, LedgerEntry, RefusalRow, RunRecord
from gatewright.temporal import RunView
from gatewright.temporal.errors import NoWorkerError, ServerUnavailableError, UnknownRunError

from .address import run_url
from .gate import Notice
from .listing import IN_TROUBLE
from .picture import Picture, picture
from .signin import Visitor
from .site import Site, headers
from .visits import sent

MAX_SHOWN = 500
"""How many gates, entries, calls and receipts a page shows, of each."""

PATIENCE = 6.0
"""How long a page waits for a worker to tell about a run, in seconds."""


@dataclass(frozen=True)
class Entry:
    """One entry of the transcript in words."""

    at: str
    kind: str
    words: str


@dataclass(frozen=True)
class Chain:
    """A run's receipts, the latest first, and whether the chain of them holds."""

    receipts: tuple[Receipt, ...] = ()
    verdict: Verified | Broken | None = None


@dataclass(frozen=True)
class Whole:
    """What is known of a run; `missing` says what could not be asked, and why."""

    run: str
    record: RunRecord | None
    view: RunView | None
    gates: tuple[GateRow, ...]
    effects: tuple[LedgerEntry, ...]
    refusals: tuple[RefusalRow, ...]
    entries: tuple[Entry, ...] = ()
    earlier: int = 0
    """How many entries come before the ones that are shown."""
    chain: Chain = Chain()
    missing: str = ""

    @property
    def over(self) -> bool:
        """Whether it goes on no more."""
        if self.view is not None:
            return self.view.status not in {"running", "allocated", "unknown"}
        return self.record is not None and self.record.standing in RUN_CLOSED

    @property
    def status(self) -> str:
        """Its standing, as Temporal or, where that is away, the store says."""
        return self.view.status if self.view is not None else self.record.standing if self.record else "unknown"


class RunPages:
    """The page at `/inbox/run`, and how to end a run there."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """The run; without its frame where an open page asks for that."""
        whole = await self._whole(request.query_params.get("run", ""))
        if whole is None:
            return self._unknown(request, visitor)
        return self._page(request, visitor, whole)

    async def end(self, request: Request, visitor: Visitor) -> Response:
        """Cancel or abandon the run."""
        run = request.query_params.get("run", "")
        whole = await self._whole(run)
        if whole is None:
            return self._unknown(request, visitor)
        form = await sent(request)
        how, reason = form.get("how"), " ".join(form.get("reason").split())[:1000]
        wrong = form.wrong
        if not self._site.door.sealed(visitor, form.get("seal")):
            wrong = wrong or "This form was not made for you by this server, or long ago. Look at it again and send it."
        elif how not in {"cancel", "abandon"}:
            wrong = wrong or "Say whether to cancel or to abandon it."
        elif not reason:
            wrong = wrong or "Say why: the reason is recorded."
        elif how == "abandon" and form.get("sure") != "abandon":
            wrong = wrong or "To abandon it, type abandon: nothing of the run goes on, and its cleanup does not run."
        if wrong:
            notice = Notice("bad", "Nothing was done.", wrong)
            return self._page(request, visitor, whole, notice, reason=reason, status=422)
        said = f"{reason} ({visitor.principal}, inbox)"
        try:
            await (self._site.client.cancel if how == "cancel" else self._site.client.abandon)(run, reason=said)
        except UnknownRunError as unknown:
            whole = await self._whole(run) or whole
            return self._page(request, visitor, whole, Notice("bad", "Nothing was done.", str(unknown)), status=409)
        return RedirectResponse(run_url(run, asked=how), 303, headers=headers())

    def _page(
        self,
        request: Request,
        visitor: Visitor,
        whole: Whole,
        notice: Notice | None = None,
        *,
        reason: str = "",
        status: int = 200,
    ) -> Response:
        asked = request.query_params.get("asked")
        if notice is None and asked == "cancel" and not whole.over:
            notice = Notice("wait", "It was asked to end.", "Its cleanup runs, and then it is over.")
        context: dict[str, Any] = {
            "whole": whole,
            "notice": notice,
            "reason": reason,
            "drawn": self._picture(whole),
            "temporal": self._site.temporal_url(whole.run),
            "stuck": tuple(row for row in whole.gates if row.state == "open" and row.gate.startswith(IN_TROUBLE)),
            "broken": isinstance(whole.chain.verdict, Broken),
        }
        if request.headers.get("x-gatewright-part") == "run":
            return HTMLResponse(self._site.render("_run.html", **context), headers=headers())
        return self._site.page(request, visitor, "run.html", status=status, **context)

    def _picture(self, whole: Whole) -> Picture | None:
        pipeline = whole.view.pipeline if whole.view else whole.record.pipeline if whole.record else ""
        return picture(self._site.drawn_as(whole.run, pipeline), whole.gates)

    def _unknown(self, request: Request, visitor: Visitor) -> Response:
        words = "Neither Temporal nor the archive knows it."
        todo = "The link may be cut short. Search for it in the list."
        return self._site.said(request, visitor, 404, "There is no such run", words, todo=todo)

    async def _whole(self, run: str) -> Whole | None:
        if not run:
            return None
        whole = await asyncio.to_thread(self._listed, run)
        missing = ""
        try:
            async with asyncio.timeout(PATIENCE):
                whole = replace(whole, view=await self._site.client.get(run))
        except UnknownRunError:
            if whole.record is None and not whole.gates:
                return None
        except (NoWorkerError, ServerUnavailableError, TimeoutError) as away:
            missing = str(away) or "No worker answered in time."
        if whole.view is not None and whole.view.source == "index":
            missing = (
                whole.view.trouble or "No worker answers for this run: what is shown is what the index last heard."
            )
            return replace(whole, missing=missing)
        if missing:
            return replace(whole, missing=missing)
        try:
            async with asyncio.timeout(PATIENCE):
                entries, earlier = await self._told(run, whole.record)
                whole = replace(whole, entries=entries, earlier=earlier, chain=await self._receipts(run))
        except (NoWorkerError, ServerUnavailableError, UnknownRunError, TimeoutError) as away:
            whole = replace(whole, missing=str(away) or "No worker answered in time.")
        return whole

    def _listed(self, run: str) -> Whole:
        store = self._site.store
        return Whole(
            run=run,
            record=store.run(run),
            view=None,
            gates=tuple(store.gates(run=run, limit=MAX_SHOWN)),
            effects=tuple(store.ledger.entries(run=run, limit=MAX_SHOWN)),
            refusals=tuple(store.refusals(run=run, limit=MAX_SHOWN)),
        )

    async def _told(self, run: str, record: RunRecord | None) -> tuple[tuple[Entry, ...], int]:
        entries: list[dict[str, Any]] = []
        after = 0
        while True:
            page = await (self._site.client.told(record, after) if record else self._site.client.transcript(run, after))
            entries += page.entries
            if not page.entries or page.closed:
                break
            after = page.next
        shown = entries[-MAX_SHOWN:]
        read = tuple(Entry(entry["at"], entry["kind"].replace("_", " "), entry_words(entry)) for entry in shown)
        return read[::-1], len(entries) - len(shown)

    async def _receipts(self, run: str) -> Chain:
        page = await self._site.client.receipts(run)
        anchor, chain = page.anchor, list(page.receipts)
        while page.next is not None:
            page = await self._site.client.receipts(run, page.next)
            chain += page.receipts
        return await asyncio.to_thread(_verified, chain, anchor)


def _verified(chain: list[Receipt], anchor: Anchor) -> Chain:
    return Chain(tuple(chain[::-1][:MAX_SHOWN]), verify(chain, anchor))
