"""
The inbox, ADK's HTTP API and its developer UI over a `Gateway` (extra `gatewright[server]`).

`create_app` makes the ASGI app, `serve` runs it until it is told to stop,
`Webhooks` tells others of gates meanwhile. This room owns no rules of conversation: it reads requests, says who sends them, and
writes what the gateway yields.
"""

from .app import create_app, find_ui
from .endpoints import Endpoint, Secrets, read_endpoint, read_public_url, read_secrets, read_types, unique
from .inbox import Settings
from .security import Security, SecurityError, read_tokens
from .serving import bind, serve
from .webhooks import Pace, Webhooks

__all__ = [
    "Endpoint",
    "Pace",
    "Secrets",
    "Security",
    "SecurityError",
    "Settings",
    "Webhooks",
    "bind",
    "create_app",
    "find_ui",
    "read_endpoint",
    "read_public_url",
    "read_secrets",
    "read_tokens",
    "read_types",
    "serve",
    "unique",
]
