"""
What the worker reads from the environment.

    TEMPORAL_*               address, namespace, TLS and API key, as the `temporal` command reads them
    GATEWRIGHT_STORE         the store's URL (default: sqlite:///data/gatewright.db)
    GATEWRIGHT_TASK_QUEUE    which task queue to serve (default: gatewright)
    GATEWRIGHT_DATA_DIR      where profiles, jobs and releases go (default: data)
    GATEWRIGHT_MODEL         the Gemini model that drafts release notes (default: none, a template does)
    GATEWRIGHT_CHECK         0 leaves the start-up checks out, where the operator API is closed (default: 1)
"""

import os
from dataclasses import dataclass
from typing import Any, Self

from temporalio.envconfig import ClientConfig

from gatewright.store import default_url


@dataclass(frozen=True)
class Settings:
    """Where the worker connects, and what it serves."""

    connect: dict[str, Any]
    store: str
    task_queue: str
    check: bool

    @classmethod
    def read(cls) -> Self:
        """The environment's word; `ValueError` for a value that is none."""
        try:
            connect = dict(ClientConfig.load_client_connect_config())
        except Exception as wrong:  # the SDK raises errors of its native part here, of no common type
            msg = f"TEMPORAL_* or temporal.toml: {wrong}"
            raise ValueError(msg) from wrong
        connect.setdefault("target_host", "localhost:7233")
        check = os.environ.get("GATEWRIGHT_CHECK", "1")
        if check not in {"0", "1"}:
            msg = f"GATEWRIGHT_CHECK is 0 or 1, not {check!r}"
            raise ValueError(msg)
        return cls(
            connect=connect,
            store=default_url(),
            task_queue=os.environ.get("GATEWRIGHT_TASK_QUEUE", "").strip() or "gatewright",
            check=check == "1",
        )
