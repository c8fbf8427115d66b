"""The list of gates: its views, filters, order and pages, all of them in the address."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from gatewright.protocol.recovery import BLOCKED, FAILED
from gatewright.store import GateFilter, GateRow, SessionKey

from . import times
from .address import PAGE_ROWS, SORTS, VIEWS, Listed
from .signin import Visitor
from .site import Site, headers

IN_TROUBLE = (BLOCKED, FAILED)
"""How the gates of calls that failed or are blocked begin."""

_KEPT_SECONDS = 5
"""How long a rendered list is shown again while nothing changes: the ages on it grow."""


@dataclass(frozen=True)
class Line:
    """One gate of the list."""

    row: GateRow
    session: str
    late: bool


@dataclass(frozen=True)
class Found:
    """A page of the list, how many gates each view has, and the pipelines to choose from."""

    lines: tuple[Line, ...]
    counts: dict[str, int]
    pipelines: tuple[str, ...]
    pages: int


class ListPage:
    """The list at `/inbox`."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def page(self, request: Request, visitor: Visitor) -> Response:
        """The list as its address says; only the part of it that changes, where a page asks for that."""
        listed = Listed.of(request.query_params)
        part = request.headers.get("x-gatewright-part") == "list"
        await self._site.health.trouble()
        key = (listed, visitor.principal, int(times.now().timestamp()) // _KEPT_SECONDS, self._site.health.known)
        rendered = await self._site.shared(key, partial(self._rendered, listed, visitor.principal))
        if part:
            return HTMLResponse(rendered, headers=headers())
        return self._site.page(request, visitor, "list.html", rendered=rendered, listed=listed)

    async def _rendered(self, listed: Listed, principal: str) -> str:
        version = self._site.feed.version
        found = await asyncio.to_thread(self._found, listed, principal)
        return self._site.render(
            "_list.html",
            listed=listed,
            found=found,
            trouble=self._site.health.known,
            version="" if version is None else version,
            principal=principal,
            example=self._site.settings.example or "gatewright start PIPELINE --input '{...}'",
        )

    def _found(self, listed: Listed, principal: str) -> Found:
        store = self._site.store
        narrowed = GateFilter(
            search=listed.q or None,
            pipeline=listed.pipeline or None,
            gate=listed.gate or None,
            app=listed.app or None,
        )
        counts = {view: sum(store.count_gates(**_only(view, narrowed, principal)).values()) for view in VIEWS}
        pages = max(-(-counts[listed.view] // PAGE_ROWS), 1)
        rows = store.gates(
            **_only(listed.view, narrowed, principal),
            order=SORTS[listed.sort],  # type: ignore[arg-type]
            descending=listed.dir == "desc",
            limit=PAGE_ROWS,
            offset=(min(listed.page, pages) - 1) * PAGE_ROWS,
        )
        now = times.now()
        return Found(tuple(_line(row, now) for row in rows), counts, tuple(store.pipelines()), pages)


def _only(view: str, narrowed: GateFilter, principal: str) -> GateFilter:
    views: dict[str, dict[str, Any]] = {
        "open": {"states": ("open",)},
        "mine": {"states": ("open",), "invited": principal},
        "blocked": {"states": ("open",), "prefixes": IN_TROUBLE},
        "refused": {"refused": True},
        "answered": {"states": ("answered",)},
        "expired": {"states": ("expired",)},
        "all": {},
    }
    return GateFilter(**{**narrowed, **views[view]})  # type: ignore[typeddict-item]


def _line(row: GateRow, now: datetime) -> Line:
    session, number = SessionKey.of_workflow(row.workflow_id)
    words = f"{session.session} · {number}" if session.app else session.session
    late = row.state == "open" and row.deadline is not None and row.deadline < now
    return Line(row, words, late)
