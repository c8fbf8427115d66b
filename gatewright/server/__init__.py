"""
The inbox, ADK's HTTP API and its developer UI over a `Gateway` (extra `gatewright[server]`).

`create_app` makes the ASGI app, `serve` runs it until it is told to stop. This
room owns no rules of conversation: it reads requests, says who sends them, and
writes what the gateway yields.
"""

from .app import create_app, find_ui
from .inbox import Settings
from .security import Security, SecurityError, read_tokens
from .serving import bind, serve

__all__ = ["Security", "SecurityError", "Settings", "bind", "create_app", "find_ui", "read_tokens", "serve"]
