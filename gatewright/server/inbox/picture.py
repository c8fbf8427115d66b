"""
A run as a picture: the places of its pipeline from top to bottom, and where it waits.

An app says what its pipeline looks like (`gatewright.adk.Graph`). Of a run that
belongs to none, the gates that it has reached are shown, one after the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gatewright.adk import START, App, Graph, Node
from gatewright.store import GateRow

MAX_NODES = 60
WIDTH, HEIGHT, ACROSS, DOWN = 168, 34, 24, 26
"""A place's size, and the room between places, in pixels."""

State = Literal["", "waits", "passed", "over"]


@dataclass(frozen=True)
class Place:
    """One place: where it is drawn, and how the run stands there (`waits`, `passed`, `over`: not answered any more)."""

    name: str
    kind: str
    x: int
    y: int
    state: State = ""
    visits: int = 0

    @property
    def label(self) -> str:
        """Its name, as much of it as there is room for."""
        return self.name if len(self.name) <= 21 else f"{self.name[:20]}…"


@dataclass(frozen=True)
class Picture:
    """Places and the lines between them, in a frame of so many pixels; `words` say the same."""

    width: int
    height: int
    places: tuple[Place, ...]
    lines: tuple[str, ...]
    words: str


def picture(app: App | None, gates: Iterable[GateRow]) -> Picture | None:
    """The picture of a run with these gates; None where there is nothing to draw."""
    rows = sorted(gates, key=lambda row: (row.opened_at, row.visit))
    declared = app.graph if app is not None else Graph()
    graph = declared if declared.nodes else _reached(rows)
    if not graph.nodes or len(graph.nodes) > MAX_NODES:
        return None
    return _drawn(graph, _standing(rows))


def _reached(rows: Iterable[GateRow]) -> Graph:
    return Graph.chain(*(Node(name, kind="gate") for name in dict.fromkeys(row.gate for row in rows)))


def _standing(rows: Iterable[GateRow]) -> Mapping[str, tuple[State, int]]:
    standing: dict[str, tuple[State, int]] = {}
    for row in rows:
        state: State = "waits" if row.state == "open" else "passed" if row.state == "answered" else "over"
        # The gate of a call that failed or is blocked stands at the call's own place.
        place = row.gate.partition(":")[2] if row.gate.startswith(("blocked:", "failed:")) else row.gate
        for name in {row.gate, place}:
            known, visits = standing.get(name, ("", 0))
            standing[name] = ("waits" if known == "waits" else state, visits + (name == row.gate))
    return standing


def _drawn(graph: Graph, standing: Mapping[str, tuple[State, int]]) -> Picture:
    edges = [(one, other) for one, other in graph.edges if one != START]
    layers: dict[int, list[Node]] = {}
    for node, layer in _layers(graph).items():
        layers.setdefault(layer, []).append(node)
    widest = max(len(each) for each in layers.values())
    # Loops back to an earlier place run along the right edge.
    margin = 26 if any(_back(graph, one, other) for one, other in edges) else 0
    width = widest * (WIDTH + ACROSS) + margin
    places: dict[str, Place] = {}
    for layer, nodes in sorted(layers.items()):
        left = (widest - len(nodes)) * (WIDTH + ACROSS) // 2 + ACROSS // 2
        for number, node in enumerate(nodes):
            state, visits = standing.get(node.name, ("", 0))
            x, y = left + number * (WIDTH + ACROSS), 4 + layer * (HEIGHT + DOWN)
            places[node.name] = Place(node.name, node.kind, x, y, state, visits)
    lines = tuple(_line(places[one], places[other], width) for one, other in edges if {one, other} <= places.keys())
    height = 8 + len(layers) * (HEIGHT + DOWN) - DOWN
    return Picture(width, height, tuple(places.values()), lines, _words(places.values()))


def _layers(graph: Graph) -> dict[Node, int]:
    """How far from the start each place is drawn: below everything that leads to it, loops aside."""
    order = {node.name: number for number, node in enumerate(graph.nodes)}
    layer = dict.fromkeys(order, 0)
    # Nodes are declared in the order of the pipeline, so that an edge to an earlier one is a loop.
    for node in graph.nodes:
        for one, other in graph.edges:
            if one == node.name and order.get(other, -1) > order[one]:
                layer[other] = max(layer[other], layer[one] + 1)
    return {node: layer[node.name] for node in graph.nodes}


def _back(graph: Graph, one: str, other: str) -> bool:
    order = {node.name: number for number, node in enumerate(graph.nodes)}
    return order.get(other, 0) <= order.get(one, 0)


def _line(one: Place, other: Place, width: int) -> str:
    middle = one.x + WIDTH // 2
    if other.y > one.y:
        end = other.x + WIDTH // 2
        half = (one.y + HEIGHT + other.y) // 2
        return f"M{middle} {one.y + HEIGHT} C{middle} {half} {end} {half} {end} {other.y - 2}"
    right, edge = one.x + WIDTH, width - 6
    # A loop to itself leaves below the middle and comes back above it.
    apart = 10 if one is other else 0
    top, bottom = other.y + HEIGHT // 2 - apart, one.y + HEIGHT // 2 + apart
    return (
        f"M{right} {bottom} C{edge + apart} {bottom + apart} {edge + apart} {top - apart} {other.x + WIDTH + 2} {top}"
    )


def _words(places: Iterable[Place]) -> str:
    said = {"waits": "waits here", "passed": "answered", "over": "over"}
    parts = [f"{place.name} ({said[place.state]})" if place.state else place.name for place in places]
    return "The pipeline: " + ", ".join(parts)
