"""
The Temporal shell. It owns no rules: it carries answers in and moves out, and waits.

A workflow hosts a `Frame` and asks `Gate`s through it; a worker is given the
`GatewrightPlugin`; whoever answers uses a `GateClient`.
"""

from gatewright.protocol.gate import Default, Gate, GateKind, Policy

from .asking import Answered
from .client import GateClient, Ruling
from .errors import (
    CallAbortedError,
    GateExpiredError,
    GateFailedError,
    NoWorkerError,
    ServerUnavailableError,
    SessionBusyError,
    SetupError,
    UnknownRunError,
)
from .frame import Frame
from .plugin import GatewrightPlugin
from .starting import Started
from .views import Delivered, GateView, RunView, TranscriptPage

__all__ = [
    "Answered",
    "CallAbortedError",
    "Default",
    "Delivered",
    "Frame",
    "Gate",
    "GateClient",
    "GateExpiredError",
    "GateFailedError",
    "GateKind",
    "GateView",
    "GatewrightPlugin",
    "NoWorkerError",
    "Policy",
    "Ruling",
    "RunView",
    "ServerUnavailableError",
    "SessionBusyError",
    "SetupError",
    "Started",
    "TranscriptPage",
    "UnknownRunError",
]
