"""What ADK calls an app: a pipeline under the name by which ADK's clients know it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

START = "__START__"
"""The name of the node before the first one, as ADK writes it."""

Opens = Callable[[str, Mapping[str, Any]], Any]


def text(words: str, state: Mapping[str, Any]) -> Any:  # noqa: ARG001 - the signature of `App.opens`
    """The workflow is given the text as it was said."""
    return words


@dataclass(frozen=True)
class Node:
    """One place of a pipeline, for the picture of it: `kind` is ADK's (`function`, `gate`, `workflow`, ...)."""

    name: str
    kind: str = "function"
    description: str = ""


@dataclass(frozen=True)
class Graph:
    """
    The picture of a pipeline: its nodes and edges, `START` before the first.

    A hand-written pipeline is code, so the picture is what its author says; it
    decides nothing.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()

    @classmethod
    def chain(cls, *nodes: Node | str) -> "Graph":
        """The picture of nodes one after the other."""
        known = tuple(node if isinstance(node, Node) else Node(node) for node in nodes)
        names = [START, *(node.name for node in known)]
        return cls(known, tuple(pairwise(names)))


@dataclass(frozen=True)
class App:
    """
    A pipeline as an ADK app.

    `name` is the first part of its runs' workflow ids, `pipeline` the workflow
    type, `root` the name that ADK's clients are told of the root agent (the
    frame's name; the pipeline's by default). `opens` makes the workflow's input
    from the text that opens a run and the session's state; a `ValueError` of it
    is told to whoever sent the text, and no run is opened.
    """

    name: str
    pipeline: str
    root: str = ""
    task_queue: str | None = None
    description: str = ""
    opens: Opens = text
    graph: Graph = field(default_factory=Graph)

    @property
    def root_name(self) -> str:
        """The name of the root agent, as ADK's clients see it."""
        return self.root or self.pipeline
