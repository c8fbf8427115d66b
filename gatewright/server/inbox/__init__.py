"""
The inbox: pages on which people answer gates.

Rendered on the server and usable without JavaScript. The rules are the
protocol's: a page shows what the gate index lists, carries an answer to the run
with the evidence of what was shown, and tells what was ruled on it.
"""

from .pages import routes
from .site import Settings, Site

__all__ = ["Settings", "Site", "routes"]
