"""
An app's graph for the graph tab of ADK's UI: as data, and as DOT, which the browser draws itself.

Shapes and colours are ADK's (`build_graph`, `build_graph_image`), so that a
pipeline looks there as it would under `adk web`. A gate is marked as one.
"""

import html
from typing import Any

from gatewright.adk import START, App, Graph

END = "__END__"

_LIGHT = {
    "background": "#F8FAFC",
    "fill": "#FFFFFF",
    "line": "#94A3B8",
    "text": "#0F172A",
    "edge": "#64748B",
    "label": "#475569",
    START: ("#10B981", "#059669"),
    END: ("#EF4444", "#DC2626"),
}
_DARK = {
    "background": "#0F172A",
    "fill": "#1E293B",
    "line": "#475569",
    "text": "#F8FAFC",
    "edge": "#94A3B8",
    "label": "#CBD5E1",
    START: ("#059669", "#047857"),
    END: ("#DC2626", "#B91C1C"),
}
_ICONS = {
    "agent": ("✦", "#42A5F5"),
    "workflow": ("⊷", "#9333EA"),
    "function": ("ƒ", "#10B981"),
    "join": ("⌵", "#F59E0B"),
    "gate": ("?", "#9333EA"),
}


def _drawn(app: App) -> Graph:
    """The graph that the app declares; one node for one that declares none."""
    return app.graph if app.graph.nodes else Graph.chain(app.root_name)


def as_data(app: App) -> dict[str, Any]:
    """The answer of `build_graph`, in ADK's snake_case."""
    graph = _drawn(app)
    # ADK knows no gates: they are functions that ask.
    nodes: dict[str, dict[str, Any]] = {START: {"name": START, "type": "start", "rerun_on_resume": False}}
    for node in graph.nodes:
        kind = "function" if node.kind == "gate" else node.kind
        shown = {"name": node.name, "description": node.description, "rerun_on_resume": False, "type": kind}
        nodes.setdefault(node.name, shown)
    edges = [{"from_node": nodes[a], "to_node": nodes[b]} for a, b in graph.edges if a in nodes and b in nodes]
    root = {
        "name": app.root_name,
        "description": app.description,
        "rerun_on_resume": True,
        "graph": {"nodes": list(nodes.values()), "edges": edges},
    }
    return {"name": app.name, "root_agent": root}


def as_dot(app: App, *, dark: bool) -> str:
    """The graph as DOT, with ADK's dark or light look."""
    graph = _drawn(app)
    look: dict[str, Any] = _DARK if dark else _LIGHT
    node = (
        f'color="{look["line"]}" fillcolor="{look["fill"]}" fontcolor="{look["text"]}" fontname=Helvetica fontsize=12'
    )
    edge = f'color="{look["edge"]}" fontcolor="{look["label"]}" fontname=Helvetica fontsize=10 penwidth=1.2'
    lines = [
        f'graph [bgcolor="{look["background"]}" fontname=Helvetica nodesep=0.5 pad=0.5 ranksep=0.8 splines=spline]',
        f'node [{node} margin="0.25,0.15" penwidth=1.5 shape=rect style="rounded,filled"]',
        f"edge [arrowhead=vee arrowsize=0.7 {edge}]",
        _terminal(START, "START", look),
    ]
    names = [place.name for place in graph.nodes if place.name != START]
    for place in graph.nodes:
        if place.name != START:
            icon, colour = _ICONS.get(place.kind, _ICONS["function"])
            label = f'<<FONT COLOR="{colour}" POINT-SIZE="14">{icon}</FONT> {html.escape(place.name)}>'
            lines.append(
                f'{_id(place.name)} [label={label} fillcolor="{look["fill"]}" style="rounded,filled" tooltip={_id(place.kind.title())}]'
            )
    lines += [f"{_id(a)} -> {_id(b)}" for a, b in graph.edges]
    if last := [name for name in names if name not in {a for a, _ in graph.edges}]:
        lines.append(_terminal(END, "END", look))
        lines += [f"{_id(name)} -> {_id(END)}" for name in last]
    return "digraph {\n" + "".join(f"\t{line}\n" for line in lines) + "}\n"


def _terminal(name: str, label: str, look: dict[str, Any]) -> str:
    fill, line = look[name]
    return (
        f'{_id(name)} [label={label} color="{line}" fillcolor="{fill}" fixedsize=true fontcolor="{look["text"]}" '
        'fontname="Helvetica-Bold" shape=oval style=filled width=0.9]'
    )


def _id(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
