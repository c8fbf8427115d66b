"""
Run the worker until it is told to stop: `python -m worker`.

SIGTERM and SIGINT stop it gracefully: it takes no new work, lets running steps
end (up to 30 seconds), and goes. Exit codes: 0 stopped, 2 a setting is wrong,
4 Temporal, its namespace or the store cannot be reached, 1 something is missing
on the server.
"""

import asyncio
import logging
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

from activities.settings import data_dir
from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release
from gatewright.store import Store, StoreError
from gatewright.temporal import GatewrightPlugin, SetupError
from gatewright.temporal.process import leave
from worker.settings import Settings
from workflows import ALL

GRACE = timedelta(seconds=30)
THREADS = 8


async def serve(settings: Settings, store: Store) -> None:
    """Connect, check, poll, until a signal says stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    plugin = GatewrightPlugin(store, check=settings.check)
    client = await Client.connect(**settings.connect, plugins=[plugin])
    with ThreadPoolExecutor(THREADS, thread_name_prefix="step") as threads:
        worker = Worker(
            client,
            task_queue=settings.task_queue,
            workflows=ALL,
            activities=[profile_dataset, draft_notes, dispatch_transform, publish_release],
            activity_executor=threads,
            max_concurrent_activities=THREADS,
            graceful_shutdown_timeout=GRACE,
        )
        running = asyncio.create_task(worker.run())
        stopping = asyncio.create_task(stop.wait())
        # A worker that cannot start says so at once; one that polls runs until the signal.
        done, _ = await asyncio.wait({running, stopping}, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            address, namespace = settings.connect["target_host"], client.namespace
            print(  # noqa: T201 - the one line that says that it is there
                f"worker ready: {address}, namespace {namespace}, task queue {settings.task_queue}", flush=True
            )
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not running.done():
            await worker.shutdown()
        await running


def main() -> int:
    """Read the settings, run, and turn what goes wrong into one line and an exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for library in ("temporalio", "alembic"):
        logging.getLogger(library).setLevel(logging.WARNING)
    try:
        settings = Settings.read()
        _writable(data_dir())
    except (ValueError, OSError) as wrong:
        return _say(f"a setting is wrong: {wrong}", 2)
    try:
        with Store.open(settings.store) as store:
            asyncio.run(serve(settings, store))
    except StoreError as away:
        return _say(f"the store {settings.store.partition('@')[2] or settings.store} cannot be used: {away}", 4)
    except SetupError as missing:
        return _say(str(missing), 1)
    except ValueError as wrong:
        return _say(f"a setting is wrong: {wrong}", 2)
    except RuntimeError as failed:
        if "connect" not in str(failed).lower():
            raise
        return _say(
            f"Temporal cannot be reached at {settings.connect['target_host']} ({failed}). "
            "Set TEMPORAL_ADDRESS, or start a server with `gatewright dev`.",
            4,
        )
    return 0


def _writable(folder: Path) -> None:
    """Whether profiles, jobs and releases can be kept there; found out now and not in the middle of a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as refused:
        msg = f"GATEWRIGHT_DATA_DIR {folder} cannot be written to ({refused.strerror})"
        raise ValueError(msg) from refused


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr)  # noqa: T201 - the operator's line
    return code


if __name__ == "__main__":
    leave(main())
