"""
For code that calls an ADK `Runner`, A2A servers among it: the same runs, through ADK's own classes.

Needs the extra `gatewright[adk]`. This room owns no rules: every message goes
through the `Gateway`, and what that rejects is raised as the exception that
ADK would raise.
"""

from .runner import TemporalRunner
from .sessions import TemporalSessionService

__all__ = ["TemporalRunner", "TemporalSessionService"]
