"""What the command line of `gatewright serve` says about webhooks."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .exits import usage

if TYPE_CHECKING:
    from gatewright.server import Webhooks
    from gatewright.store import Store

EVENTS = "opened,answered,expired,blocked"
"""What is told unless the command line says otherwise: everything."""


@dataclass(frozen=True)
class Telling:
    """Where gates are told of, and how; without URLs, nowhere."""

    urls: tuple[str, ...] = ()
    secret_file: Path | None = None
    on: str = EVENTS
    insecure: bool = False


def read_webhooks(
    wanted: Telling, public_url: str
) -> "tuple[Callable[[Store], Webhooks] | None, list[str], list[str]]":
    """
    What tells of the gates of a store, the endpoints as people may see them, and what to warn of.

    `Stop` for what is wrong with the options, before anything is served; it
    shows neither a secret nor more of a URL than scheme and host.
    """
    from gatewright.server import SecurityError, Webhooks, read_endpoint, read_secrets, read_types, unique

    if not wanted.urls:
        return None, [], []
    if wanted.secret_file is None:
        raise usage("--webhook needs --webhook-secret-file FILE: what is not signed, anybody could have sent")
    try:
        endpoints = unique(read_endpoint(url, insecure=wanted.insecure) for url in wanted.urls)
        types = read_types(wanted.on)
        keys, warning = read_secrets(wanted.secret_file)
    except SecurityError as wrong:
        raise usage(str(wrong)) from wrong

    def make(store: "Store") -> Webhooks:
        return Webhooks(store, endpoints, keys, public_url=public_url, types=types)

    return make, [endpoint.name for endpoint in endpoints], [warning] if warning else []
