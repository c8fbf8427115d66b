"""`gatewright dev`: an embedded Temporal server with its UI, the worker, the inbox, and ADK's HTTP API, until Ctrl-C."""

import os
import shlex
import time
from pathlib import Path

from gatewright.store import Store, default_url

from .apps import has_apps
from .children import children
from .connect import DEFAULT_ADDRESS, store_name
from .embedded import HOST, EmbeddedServer, free_port
from .exits import FAILED, INTERRUPTED, Stop
from .out import Out
from .script import start_example
from .serve import Serving, ServingThread, require_extra
from .worker_process import WorkerProcess, child_environment, has_worker

START = "gatewright start PIPELINE --input '{...}'"


def dev(out: Out, *, port: int, ui_port: int, serve_port: int | None, data_dir: Path, worker: bool) -> int:
    """Serve until Ctrl-C; then stop the HTTP API, the worker, and after them the server."""
    # Before anything is started: what is wrong with the apps is said at once.
    http = _prepared(out, serve_port)
    folder = data_dir.absolute()
    got = free_port(port)
    server = EmbeddedServer(folder / "temporal.db", port=got, ui_port=free_port(ui_port, avoid=frozenset({got})))
    store = os.environ.get("GATEWRIGHT_STORE") or str(folder / "gatewright.db")
    child: WorkerProcess | None = None
    with children() as ends:
        try:
            ends.callback(server.stop)
            if worker and not has_worker():
                out.note(f"there is no worker/__main__.py in {Path.cwd()}: only the server is started")
                worker = False
            with out.busy("starting Temporal" + (" and the worker" if worker else "")):
                server.start()
                # Made here, so that the other commands find it even before a worker has come up.
                Store.open(store).close()
                if worker:
                    child = WorkerProcess(lambda: child_environment(server.address, store, folder), folder, out.note)
                    ends.callback(child.stop)
                    child.start()
                if http is not None:
                    ends.callback(http.stop)
                    http.start(server.address, store, f"http://{HOST}:{server.ui_port}")
            _greet(out, server, store, moved=got != port, worker=worker, http=http)
            while True:
                if not server.alive():
                    raise Stop(FAILED, f"the Temporal server ended (see {server.log})", kind="server_ended")
                if child is not None:
                    child.tend()
                if http is not None and not http.is_alive():
                    raise Stop(FAILED, f"the HTTP API ended: {http.failed}", kind="http_ended")
                time.sleep(0.3)
        except KeyboardInterrupt:
            out.note(f"\nstopping; what was begun is kept in {data_dir}")
    return INTERRUPTED


def _prepared(out: Out, port: int | None) -> ServingThread | None:
    """The HTTP API on this port, or the next one that is free; None where there is nothing to serve, or nothing to do it with."""
    if port is None:
        return None
    try:
        require_extra()
    except Stop as missing:
        out.note(f"the inbox and ADK's HTTP API are left out: {missing.message}")
        return None
    return ServingThread(Serving(port=free_port(port)))


def _greet(
    out: Out, server: EmbeddedServer, store: str, *, moved: bool, worker: bool, http: ServingThread | None
) -> None:
    exports = []
    if server.address.replace(HOST, "localhost") != os.environ.get("TEMPORAL_ADDRESS", DEFAULT_ADDRESS):
        exports.append(f"export TEMPORAL_ADDRESS={server.address}")
    if store_name(store) != store_name(str(Path("data/gatewright.db").absolute())) and store != default_url():
        exports.append(f"export GATEWRIGHT_STORE={shlex.quote(store)}")
    ui = f"http://{HOST}:{server.ui_port}"
    out.say(f"Temporal  {server.address}{'  (the port that was asked for is taken)' if moved else ''}")
    out.say(f"its UI    {ui}")
    out.say(f"store     {store_name(store)}")
    out.say(f"worker    {'ready' if worker else 'none: start yours with TEMPORAL_ADDRESS and GATEWRIGHT_STORE set'}")
    if http:
        adk = f"{http.url}/dev-ui/" if http.adk_ui else http.url
        out.say(f"ADK       {adk if has_apps() else 'no apps: there is no worker/apps.py'}")
        out.say(f"inbox     {http.inbox}", "bold")
    if exports:
        out.say("\nin another terminal, first:", "bold")
        for line in exports:
            out.say(f"  {line}")
    out.say("\nthen, for example:" if exports else "\nin another terminal, for example:", "bold")
    out.say(f"  {start_example() or START}")
    out.say("  gatewright answer RUN" + (", or in the inbox" if http else ""))
    out.say("\nCtrl-C stops it; runs are kept.")
    out.data(
        {
            "address": server.address,
            "namespace": "default",
            "ui": ui,
            "store": store,
            "worker": worker,
            "http": http.url if http else None,
            "inbox": http.inbox if http else None,
            "env": exports,
        }
    )
