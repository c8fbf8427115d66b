"""`gatewright serve`: the inbox, ADK's HTTP API, and its UI where google-adk is installed, until it is told to stop."""

import asyncio
import errno
import hashlib
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from temporalio.client import Client

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin

from .apps import read_apps
from .connect import answerer, gate_client, task_queue
from .exits import AWAY, OK, Stop, usage
from .out import Out
from .script import start_example
from .webhooks import Telling, read_webhooks

if TYPE_CHECKING:
    from gatewright.adk import App
    from gatewright.server import Security, Webhooks

CHECK_SECONDS = 3.0
STOP_SECONDS = 15.0
MIN_TOKEN = 16


@dataclass(frozen=True)
class Serving:
    """What the command line says about serving."""

    apps: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    on_text: Literal["refuse", "open"] = "refuse"
    token_file: Path | None = None
    principal_header: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    insecure: bool = False
    ui: bool = True
    temporal_ui: str = ""
    public_url: str | None = None
    """Where people find the server; where it listens, without."""
    telling: Telling = field(default_factory=Telling)


async def serve(out: Out, wanted: Serving) -> int:
    """Serve until SIGINT or SIGTERM."""
    require_extra()
    apps = read_apps(wanted.apps, wanted.attributes)
    security, warnings = read_security(wanted)
    listening = listen(wanted.host, wanted.port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with listening:
        webhooks, endpoints, more = read_webhooks(wanted.telling, public_url_of(wanted, listening))
        async with gate_client(make_store=True) as client:
            for warning in warnings + more:
                out.note(f"warning: {warning}")
            entry = Entry.of(security)
            greet(out, wanted, apps, security, listening, entry)
            for endpoint in endpoints:
                out.say(f"webhook   {endpoint}")
            await run(client, apps, wanted, security, listening, stop, entry=entry, webhooks=webhooks)
    out.note("stopped; runs go on without it")
    return OK


async def run(
    client: GateClient,
    apps: "Iterable[App]",
    wanted: Serving,
    security: "Security",
    listening: socket.socket,
    stop: asyncio.Event,
    *,
    entry: "Entry",
    webhooks: "Callable[[Store], Webhooks] | None" = None,
) -> None:
    """Serve these apps on this socket until `stop` is set."""
    from gatewright.adk import Gateway
    from gatewright.server import Settings, create_app, find_ui
    from gatewright.server import serve as serve_app

    gateway = Gateway(client, apps, on_text=wanted.on_text)
    public_url = public_url_of(wanted, listening) if wanted.public_url else ""
    app = create_app(
        gateway,
        security=security,
        ui=find_ui() if wanted.ui else None,
        check=health_check(client),
        inbox=Settings(entry.tokens, wanted.temporal_ui, public_url, entry.secret, start_example()),
    )
    async with webhooks(client.store).beside(stop) if webhooks else nullcontext():
        await serve_app(app, listening, stop)


@dataclass(frozen=True)
class Entry:
    """How people come into the inbox: on one machine by a token of this start, which the command prints."""

    token: str = field(default="", repr=False)
    principal: str = ""
    secret: str = field(default="", repr=False)

    @classmethod
    def of(cls, security: "Security") -> "Entry":
        """
        A new token, or GATEWRIGHT_INBOX_TOKEN's; where people are known by a token file or a proxy, a secret only.

        `Stop` (usage) for one that could be guessed.
        """
        given = os.environ.get("GATEWRIGHT_INBOX_TOKEN", "").strip()
        if given and len(given) < MIN_TOKEN:
            raise usage(f"GATEWRIGHT_INBOX_TOKEN has {len(given)} characters: at least {MIN_TOKEN} cannot be guessed")
        if security.authenticates:
            return cls(secret=given)
        return cls(given or secrets.token_urlsafe(24), answerer(), given)

    @property
    def tokens(self) -> dict[bytes, str]:
        """The principal by the token's digest, for `gatewright.server.Settings`."""
        return {hashlib.sha256(self.token.encode()).digest(): self.principal} if self.token else {}

    def link(self, url: str) -> str:
        """The inbox's address below this one, with the token in it."""
        return f"{url}/inbox?{urlencode({'token': self.token})}" if self.token else f"{url}/inbox"


def health_check(client: GateClient) -> Callable[[], Awaitable[dict[str, bool]]]:
    """Asks Temporal and the store whether they answer; whatever they say instead, they do not."""

    async def check() -> dict[str, bool]:
        temporal = client.client.service_client.check_health(timeout=timedelta(seconds=CHECK_SECONDS))
        store = asyncio.to_thread(_answers, client.store)
        results = await asyncio.gather(temporal, asyncio.wait_for(store, CHECK_SECONDS), return_exceptions=True)
        return dict(zip(("temporal", "store"), (result is True for result in results), strict=True))

    return check


class ServingThread(threading.Thread):
    """The HTTP API beside something else, over a Temporal of its own address; `failed` says why it ended by itself."""

    def __init__(self, wanted: Serving) -> None:
        super().__init__(name="http", daemon=True)
        self._wanted = wanted
        self._apps = read_apps(wanted.apps, wanted.attributes)
        self._security, _ = read_security(wanted)
        self._listening = listen(wanted.host, wanted.port)
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._address = self._store = ""
        self._entry = Entry.of(self._security)
        self.url = address_of(self._listening)
        self.inbox = self._entry.link(self.url)
        """The inbox's address, with the token that signs in."""
        self.adk_ui = has_ui()
        """Whether ADK's UI is served."""
        self.failed: BaseException | None = None

    def start(self, address: str = "", store: str = "", temporal_ui: str = "") -> None:
        """Serve the runs of the Temporal at this address, listed by this store; `temporal_ui` is linked to."""
        self._address, self._store = address, store
        self._wanted = replace(self._wanted, temporal_ui=temporal_ui)
        super().start()

    def run(self) -> None:
        """Serve until `stop`."""
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as failed:  # noqa: BLE001 - whoever waits for it is told
            self.failed = failed
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        with self._listening, Store.open(self._store) as store:
            client = await Client.connect(self._address, plugins=[GatewrightPlugin(store)])
            gates = GateClient(client, store, task_queue=task_queue())
            await run(
                gates, self._apps, self._wanted, self._security, self._listening, self._stopping, entry=self._entry
            )

    def stop(self) -> None:
        """Stop serving; streams that are open end."""
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self.join(STOP_SECONDS)


def _answers(store: Store) -> bool:
    store.gates(limit=1)
    return True


def require_extra() -> None:
    """`Stop` without the packages that the server needs."""
    try:
        import fastapi
        import itsdangerous
        import jinja2
        import markdown_it
        import uvicorn
    except ImportError as missing:
        raise usage(
            f"serving needs fastapi, uvicorn and others: pip install 'gatewright[server]' ({missing})"
        ) from missing
    _ = fastapi, itsdangerous, jinja2, markdown_it, uvicorn


def read_security(wanted: Serving) -> "tuple[Security, list[str]]":
    """Who may talk to the server, and what to warn of; `Stop` for what would be a hole."""
    from gatewright.server import Security, SecurityError, read_tokens

    warnings = []
    try:
        tokens = None
        if wanted.token_file is not None:
            tokens, warning = read_tokens(wanted.token_file)
            warnings += [warning] if warning else []
        security = Security(
            host=wanted.host,
            tokens=tokens,
            principal_header=wanted.principal_header,
            trusted_proxies=wanted.trusted_proxies,
            allow_hosts=wanted.allow_hosts,
            allow_origins=wanted.allow_origins,
            insecure=wanted.insecure,
        )
    except SecurityError as wrong:
        raise usage(str(wrong)) from wrong
    if security.open:
        warnings.append(f"whoever reaches {wanted.host} can answer every gate under any name")
    return security, warnings


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; `Stop` if it cannot be had."""
    from gatewright.server import bind

    try:
        return bind(host, port)
    except OSError as refused:
        if refused.errno == errno.EADDRINUSE:
            raise Stop(
                AWAY,
                f"port {port} of {host} is taken: stop what listens there, or name another one with --port",
                kind="port_taken",
            ) from refused
        raise Stop(AWAY, f"cannot listen on {host}, port {port}: {refused.strerror}", kind="no_port") from refused


def has_ui() -> bool:
    """Whether ADK's UI is there to be served."""
    from gatewright.server import find_ui

    return find_ui() is not None


def address_of(listening: socket.socket) -> str:
    """The URL under which a browser on this machine finds the server."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - read
    return f"http://{shown}:{port}"


def public_url_of(wanted: Serving, listening: socket.socket) -> str:
    """What links to the server begin with; `Stop` for a `--public-url` that cannot be one."""
    from gatewright.server import SecurityError, read_public_url

    try:
        return read_public_url(wanted.public_url) if wanted.public_url else address_of(listening)
    except SecurityError as wrong:
        raise usage(str(wrong)) from wrong


def greet(
    out: Out, wanted: Serving, apps: "list[App]", security: "Security", listening: socket.socket, entry: Entry
) -> None:
    """Say where the server listens, what it serves, and how it knows people."""
    from gatewright.server import find_ui

    url, ui = address_of(listening), wanted.ui and find_ui() is not None
    out.say(f"inbox     {entry.link(public_url_of(wanted, listening))}", "bold")
    out.say(f"serving   {url}{'  (ADK developer UI at /dev-ui/)' if ui else ''}")
    for app in apps:
        queue = f" on task queue {app.task_queue}" if app.task_queue else ""
        out.say(f"app       {app.name}: {app.pipeline}{queue}")
    if not apps:
        out.note(
            "no apps, so ADK's clients find nothing here: name them with --app NAME=PIPELINE[@TASK_QUEUE], or --apps "
            f"MODULE:ATTRIBUTE for a list of gatewright.adk.App in your code (there is no worker/apps.py in {Path.cwd()})"
        )
    out.say(f"callers   {security.described}")
    if wanted.ui and not ui:
        out.note("ADK's UI is not there: pip install google-adk brings it; the API needs it not")
    out.data(
        {
            "url": url,
            "inbox": entry.link(url),
            "apps": {app.name: app.pipeline for app in apps},
            "ui": f"{url}/dev-ui/" if ui else None,
            "authenticates": security.authenticates,
        }
    )
