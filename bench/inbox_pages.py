"""What a browser does at the inbox: sign in, listen, fetch the list anew, and send the form of a gate."""

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from html import unescape
from ssl import SSLContext
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from gatewright.server.inbox.address import gate_url

Gate = tuple[str, str]
"""A run and an interrupt id."""

_SECONDS = 60.0

_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
_ROW = re.compile(r'data-gate="([^"]+)&#10;([^"]+)"')
_STATE = re.compile(r'data-version="(\d*)" data-open="(\d+)"')


@dataclass
class Timings:
    """Seconds by what was asked for, and what went wrong."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class News:
    """An event as it came to a page: when, by this machine's clock, and the gates that it names (None: all)."""

    at: float
    version: int
    gates: frozenset[Gate] | None


@dataclass(frozen=True)
class Sent:
    """An answer that was sent, when, and what became of it; `answer_id` where it was accepted."""

    gate: Gate
    value: dict[str, Any]
    at: float
    status: int
    answer_id: str | None


class Page:
    """One open list with a cookie of its own."""

    def __init__(self, url: str, context: SSLContext, timings: Timings) -> None:
        # A browser sends anew what goes out while the server closes an idle connection (after 5 s); httpx does not.
        limits = httpx.Limits(keepalive_expiry=2)
        self._client = httpx.AsyncClient(base_url=url, verify=context, trust_env=False, timeout=_SECONDS, limits=limits)
        self._origin = url
        self._timings = timings
        self._wanted = asyncio.Event()
        self.news: list[News] = []
        self.open: list[Gate] = []
        """The open gates that it shows."""
        self.count = -1
        """How many open gates it says there are."""
        self.shown = ""
        """Which version its list says that it is."""

    @property
    def version(self) -> int:
        """The last version that it was told; 0 before the first."""
        return self.news[-1].version if self.news else 0

    async def sign_in(self, token: str) -> None:
        """Exchange the token for a cookie, and look at the list as a whole."""
        form = {"token": token, "target": "/inbox"}
        entered = await self._client.post("/inbox/sign-in", data=form, headers={"origin": self._origin})
        shown = await self._client.get(entered.headers["location"])
        if entered.status_code != 303 or shown.status_code != 200:
            msg = f"nobody could sign in: {entered.status_code}, {shown.status_code}"
            raise RuntimeError(msg)
        self._show(shown.text)

    async def follow(self) -> None:
        """Listen until cancelled, and fetch the list whenever the version is another: one fetch at a time."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._refresh())
            both.create_task(self._listen())

    async def answer(self, gate: Gate, value: dict[str, Any]) -> Sent:
        """Open the gate's page, fill its form in, send it, and look at what comes back."""
        began = time.monotonic()
        shown = await self._client.get(gate_url(*gate))
        asked = time.monotonic()
        self._timings.taken["page"].append(asked - began)
        typed = {f"a:/{name}": _typed(part) for name, part in value.items()}
        form = _hidden(shown.text)
        if missing := [name for name in typed if f'name="{name}"' not in shown.text] or not form:
            self._timings.wrong.append(f"no form, or not with {missing}, on a page with status {shown.status_code}")
            return Sent(gate, value, time.time(), shown.status_code, None)
        at = time.time()
        asked = time.monotonic()
        ruled = await self._client.post(
            gate_url(*gate), data=form | typed | {"as": "form"}, headers={"origin": self._origin}
        )
        self._timings.taken["answer"].append(time.monotonic() - asked)
        answer_id = None
        if ruled.status_code == 303:
            target = ruled.headers["location"]
            answer_id = parse_qs(urlsplit(target).query)["answer"][0]
            receipt = await self._client.get(target)
            if "Your answer counts." not in receipt.text:
                self._timings.wrong.append(f"the page after an answer says nothing of it ({receipt.status_code})")
        return Sent(gate, value, at, ruled.status_code, answer_id)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def _listen(self) -> None:
        async with self._client.stream("GET", "/inbox/events", timeout=None) as stream:
            async for event in _events(stream):
                gates = event["gates"]
                named = None if gates is None else frozenset((run, interrupt_id) for run, interrupt_id in gates)
                known = self.version
                self.news.append(News(time.time(), event["version"], named))
                if event["version"] != known:
                    self._wanted.set()
        self._timings.wrong.append("a stream of events ended by itself")

    async def _refresh(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            began = time.monotonic()
            try:
                listed = await self._client.get("/inbox", headers={"x-gatewright-part": "list"})
            except httpx.HTTPError as failed:
                self._timings.wrong.append(f"a list was not fetched: {failed!r}")
                continue
            self._timings.taken["list"].append(time.monotonic() - began)
            if listed.status_code != 200:
                self._timings.wrong.append(f"a list came with status {listed.status_code}")
                continue
            self._show(listed.text)

    def _show(self, text: str) -> None:
        self.open = [(unescape(run), unescape(interrupt_id)) for run, interrupt_id in _ROW.findall(text)]
        if state := _STATE.search(text):
            self.shown, self.count = state[1], int(state[2])


async def _events(stream: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def _hidden(text: str) -> dict[str, str]:
    """The hidden fields of the form of an answer: the seal, the nonce, the digest."""
    _, _, form = text.partition('id="answer"')
    found = {name: unescape(value) for name, value in _HIDDEN.findall(form.partition("</form>")[0])}
    return found if {"seal", "nonce", "digest"} <= found.keys() else {}


def _typed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
