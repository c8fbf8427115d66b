"""
The adapter that keeps ADK's contract over runs on Temporal, for clients that know only ADK.

It speaks google-genai types and plain JSON in ADK's shapes and imports no
google-adk; `gatewright.adk.native` does, for code that calls an ADK `Runner`.
"""

from .apps import START, App, Graph, Node, text
from .gateway import Gateway
from .rejection import Rejection, RunFailed
from .turns import Accepted, Turn

__all__ = ["START", "Accepted", "App", "Gateway", "Graph", "Node", "Rejection", "RunFailed", "Turn", "text"]
