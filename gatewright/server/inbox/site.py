"""What all pages share: who may see them, how they are rendered, what is down, and what may be kept between changes."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.resources import files
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from gatewright.adk import App, Gateway
from gatewright.server.security import Security
from gatewright.store import SessionKey, Store
from gatewright.temporal import GateClient

from . import address, content, times
from .feed import Feed
from .health import Health
from .signin import Door, Visitor

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of every page: nothing inline, nothing from elsewhere."""

MAX_KEPT = 200
"""How many rendered texts are kept for others."""

STATIC = {
    "inbox.css": "text/css; charset=utf-8",
    "inbox.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Settings:
    """
    How the inbox is set up.

    `tokens` maps the SHA-256 of a token that signs somebody in to the
    principal, where `Security` knows nobody by itself. `temporal_ui` is the
    address of Temporal's UI, `public_url` the server's own as people reach it,
    where that is not the one that they ask for; `secret` is shared by all servers
    that answer there.
    """

    tokens: Mapping[bytes, str] = field(default_factory=dict, repr=False)
    temporal_ui: str = ""
    public_url: str = ""
    secret: str = field(default="", repr=False)
    example: str = ""
    """A command that opens a run, for who sees an empty list."""


@dataclass
class Site:
    """The pages' common ground: the gates, the door, the feed, and the templates."""

    gateway: Gateway
    security: Security
    settings: Settings
    adk_ui: bool = False

    def __post_init__(self) -> None:
        self.client: GateClient = self.gateway.client
        self.store: Store = self.client.store
        # Where people are known by a proxy or a token file, nobody else comes in by the token of this machine.
        tokens = self.security.tokens if self.security.authenticates else self.settings.tokens
        self.door = Door(tokens or {}, self.settings.secret)
        queues = {app.task_queue for app in self.gateway.apps.values() if app.task_queue}
        self.health = Health(self.client, queues)
        self.feed = Feed(self.store, self.health.trouble)
        self._kept: dict[Any, asyncio.Task[str]] = {}
        self._kept_of: int | None = None
        self._env = Environment(
            loader=PackageLoader("gatewright.server.inbox"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.globals |= {
            "gate_url": address.gate_url,
            "run_url": address.run_url,
            "views": address.VIEWS,
            "static": self._static_url,
            "adk_ui": self.adk_ui,
        }
        self._env.filters |= {
            "markdown": content.markdown,
            "headline": content.headline,
            "pretty": content.pretty,
            "stamp": times.stamp,
            "ago": times.ago,
        }

    @cached_property
    def static(self) -> dict[str, bytes]:
        """The files that pages refer to, by name."""
        folder = files("gatewright.server.inbox") / "static"
        return {name: (folder / name).read_bytes() for name in STATIC}

    def _static_url(self, name: str) -> str:
        return f"/inbox/static/{name}?{hashlib.sha256(self.static[name]).hexdigest()[:12]}"

    def render(self, template: str, **context: Any) -> str:
        """A template of the package, rendered."""
        return self._env.get_template(template).render(**context)

    def page(
        self, request: Request, visitor: Visitor | None, template: str, *, status: int = 200, **context: Any
    ) -> Response:
        """A page, with what its frame needs."""
        common = {
            "visitor": visitor,
            "seal": self.door.seal(visitor) if visitor else "",
            "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            "trouble": self.health.known,
        }
        return HTMLResponse(self.render(template, **common, **context), status, headers=headers())

    def said(
        self, request: Request, visitor: Visitor | None, status: int, title: str, words: str, *, todo: str = ""
    ) -> Response:
        """A page that says only what was wrong and what to do."""
        return self.page(request, visitor, "said.html", status=status, title=title, words=words, todo=todo)

    async def shared(self, key: Any, make: Callable[[], Coroutine[Any, Any, str]]) -> str:
        """
        What `make` renders, once for each state of the index: whoever comes meanwhile waits for it, later ones get it again.

        After a change all pages ask for the same at one moment.
        """
        if (version := self.feed.version) is None:
            return await make()
        if version != self._kept_of or len(self._kept) >= MAX_KEPT:
            self._kept_of, self._kept = version, {}
        if (making := self._kept.get(key)) is None:
            # In a task of its own, so that the first one's going away does not take it from the others.
            making = self._kept[key] = asyncio.create_task(make())
            making.add_done_callback(partial(self._made, key))
        return await asyncio.shield(making)

    def _made(self, key: Any, making: "asyncio.Task[str]") -> None:
        """Forget what failed, so that the next one tries anew."""
        if (making.cancelled() or making.exception() is not None) and self._kept.get(key) is making:
            del self._kept[key]

    def app_of(self, run: str) -> App | None:
        """The app that a run belongs to, if it is served here."""
        return self.gateway.apps.get(SessionKey.of_workflow(run)[0].app)

    def drawn_as(self, run: str, pipeline: str) -> App | None:
        """The app whose graph pictures a run: its own, or another one of the same pipeline."""
        return self.app_of(run) or next((app for app in self.gateway.apps.values() if app.pipeline == pipeline), None)

    def temporal_url(self, run: str) -> str:
        """The run in Temporal's UI; empty where nobody knows where that is."""
        base = self.settings.temporal_ui
        return address.temporal_url(base, self.client.client.namespace, run) if base else ""

    def base_url(self, request: Request) -> str:
        """The server's address as people reach it."""
        return self.settings.public_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"


def headers() -> dict[str, str]:
    """What goes with every page, beside the headers of every response."""
    return {
        "content-security-policy": POLICY,
        "cross-origin-opener-policy": "same-origin",
        # Not no-referrer: with that, a browser sends a page's own forms with the origin `null`.
        "referrer-policy": "same-origin",
    }


def as_json(value: Any) -> str:
    """JSON on one line, for a stream."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
