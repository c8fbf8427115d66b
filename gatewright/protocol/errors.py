"""
What can go wrong that is somebody's mistake, drawn once.

    GatewrightError
    ├── GateError        a gate was defined wrongly          (raised where the gate is made)
    ├── IdentityError    an id, branch or workflow id is not of our form
    └── BookError        a book cannot be read, or an entry does not fit it

A person's stale, late or malformed answer is not an error: it is a `Refused`,
a value (see admission.py).
"""


class GatewrightError(Exception):
    """The root of everything that Gatewright raises on purpose."""


class GateError(GatewrightError, ValueError):
    """A gate was defined wrongly: what it shows or asks cannot be rendered, or its policy cannot be kept."""


class IdentityError(GatewrightError, ValueError):
    """An interrupt id, a branch path or a gate's name is not of the form that identity.py describes."""


class BookError(GatewrightError, ValueError):
    """A book is of another version or damaged, or an entry contradicts what the book already says."""
