"""Reaching Temporal and the store, as the environment says."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from gatewright.store import Store, StoreError, StoreUnavailable, default_url
from gatewright.store.database import read_url
from gatewright.temporal import GateClient, GatewrightPlugin

from .exits import AWAY, FAILED, Stop, usage

DEFAULT_ADDRESS = "localhost:7233"


def task_queue() -> str:
    """The task queue of new runs: GATEWRIGHT_TASK_QUEUE, or `gatewright`."""
    return os.environ.get("GATEWRIGHT_TASK_QUEUE", "").strip() or "gatewright"


def store_name(url: str) -> str:
    """The store's address without password and options."""
    return read_url(url).set(query={}).render_as_string(hide_password=True)


def open_store(*, make: bool = False) -> Store:
    """
    The store that GATEWRIGHT_STORE names.

    With `make` it is created or brought up to date where need be. Without,
    `Stop` says that there is none: a listing of a store that was only just made
    in the wrong folder would look like an empty inbox.
    """
    try:
        return Store.open(default_url(), migrate=make)
    except StoreUnavailable as away:
        raise Stop(AWAY, str(away), kind="store_unavailable") from away
    except StoreError as wrong:
        hint = ""
        if "GATEWRIGHT_STORE" not in os.environ and "there is no store" in str(wrong):
            hint = "; GATEWRIGHT_STORE is not set, so it is looked for below this folder"
        raise Stop(AWAY, f"{wrong}{hint}", kind="store_unusable") from wrong


async def connect(store: Store) -> Client:
    """A client of the Temporal that TEMPORAL_* names; `Stop` says in one line why there is none, and what to do."""
    try:
        config: dict[str, Any] = dict(ClientConfig.load_client_connect_config())
    except Exception as wrong:
        raise usage(f"the TEMPORAL_* settings or Temporal's config file cannot be read: {wrong}") from wrong
    address = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        return await Client.connect(**config, plugins=[GatewrightPlugin(store)])
    except (RuntimeError, ValueError, OSError) as failed:
        raise Stop(
            AWAY,
            f"Temporal cannot be reached at {address}: {_cause(failed)}. "
            "Start a server with `gatewright dev`, or set TEMPORAL_ADDRESS.",
            kind="unreachable",
        ) from failed


@asynccontextmanager
async def gate_client(*, make_store: bool = False, patience: float | None = None) -> AsyncIterator[GateClient]:
    """A `GateClient` for one command; `patience` is in seconds."""
    with open_store(make=make_store) as store:
        client = await connect(store)
        wait = timedelta(seconds=5 if patience is None else patience)
        yield GateClient(client, store, task_queue=task_queue(), patience=wait)


def _cause(failed: Exception) -> str:
    """What the transport says, without the layers that it says it through."""
    text = str(failed)
    for known in ("Connection refused", "dns error", "deadline has elapsed", "timed out", "InvalidCertificate"):
        if known in text:
            return known.lower() if known[0].isupper() else known
    return text.removeprefix("Failed client connect: ")


def answerer() -> str:
    """Who answers, unless the command line says otherwise: GATEWRIGHT_PRINCIPAL, or the account's name."""
    if named := os.environ.get("GATEWRIGHT_PRINCIPAL", "").strip():
        return named
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError) as nobody:
        raise Stop(FAILED, "this account has no name: say who answers with --as NAME", kind="no_principal") from nobody


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
