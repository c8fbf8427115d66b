"""`gatewright serve`: ADK's HTTP API, and its UI where google-adk is installed, until it is told to stop."""

import asyncio
import errno
import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from temporalio.client import Client

from gatewright.store import Store
from gatewright.temporal import GateClient, GatewrightPlugin

from .apps import read_apps
from .connect import gate_client, task_queue
from .exits import AWAY, OK, Stop, usage
from .out import Out

if TYPE_CHECKING:
    from gatewright.adk import App
    from gatewright.server import Security

CHECK_SECONDS = 3.0
STOP_SECONDS = 15.0


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
        async with gate_client(make_store=True) as client:
            for warning in warnings:
                out.note(f"warning: {warning}")
            greet(out, wanted, apps, security, listening)
            await run(client, apps, wanted, security, listening, stop)
    out.note("stopped; runs go on without it")
    return OK


async def run(
    client: GateClient,
    apps: "Iterable[App]",
    wanted: Serving,
    security: "Security",
    listening: socket.socket,
    stop: asyncio.Event,
) -> None:
    """Serve these apps on this socket until `stop` is set."""
    from gatewright.adk import Gateway
    from gatewright.server import create_app, find_ui
    from gatewright.server import serve as serve_app

    gateway = Gateway(client, apps, on_text=wanted.on_text)
    app = create_app(gateway, security=security, ui=find_ui() if wanted.ui else None, check=health_check(client))
    await serve_app(app, listening, stop)


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
        self.url = address_of(self._listening)
        self.failed: BaseException | None = None

    def start(self, address: str = "", store: str = "") -> None:
        """Serve the runs of the Temporal at this address, listed by this store."""
        self._address, self._store = address, store
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
            await run(gates, self._apps, self._wanted, self._security, self._listening, self._stopping)

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
        import uvicorn
    except ImportError as missing:
        raise usage(f"serving needs fastapi and uvicorn: pip install 'gatewright[server]' ({missing})") from missing
    _ = fastapi, uvicorn


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


def address_of(listening: socket.socket) -> str:
    """The URL under which a browser on this machine finds the server."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - read
    return f"http://{shown}:{port}"


def greet(out: Out, wanted: Serving, apps: "list[App]", security: "Security", listening: socket.socket) -> None:
    """Say where the server listens, what it serves, and how it knows people."""
    from gatewright.server import find_ui

    url, ui = address_of(listening), wanted.ui and find_ui() is not None
    out.say(f"serving   {url}{'  (ADK developer UI)' if ui else ''}")
    for app in apps:
        queue = f" on task queue {app.task_queue}" if app.task_queue else ""
        out.say(f"app       {app.name}: {app.pipeline}{queue}")
    out.say(f"callers   {security.described}")
    if wanted.ui and not ui:
        out.note("ADK's UI is not there: pip install google-adk brings it; the API needs it not")
    out.data(
        {
            "url": url,
            "apps": {app.name: app.pipeline for app in apps},
            "ui": f"{url}/dev-ui/" if ui else None,
            "authenticates": security.authenticates,
        }
    )
