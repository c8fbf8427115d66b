"""The tables as text, and which goals they meet."""

from collections.abc import Sequence
from typing import Any

from bench.parts import Cells

Labels = dict[str, str]

GATEWRIGHT, BARE = "gatewright", "bare"


def table(title: str, columns: Sequence[tuple[str, str]], cells: Cells, labels: Labels, *, digits: int = 0) -> str:
    """
    One line for each side: the columns (key, heading), each with its ratio to bare Temporal.

    `cut off` stands for what a side did not reach, with the reason below.
    """
    rows = [[title, *(heading for _, heading in columns)]]
    for name, cell in cells.items():
        row = [labels[name]]
        for key, _ in columns:
            value, base = cell.get(key), cells.get(BARE, {}).get(key)
            if value is None:
                row.append("cut off" if "cut_off" in cell else "")
            elif base and name != BARE and key not in {"flatness", "events", "failed"}:
                row.append(f"{value:,.{digits}f} ({value / base:.2f})")
            else:
                row.append(f"{value:,.{2 if key == 'flatness' else 1 if key == 'events' else digits}f}")
        rows.append(row)
    text = "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])
    reasons = [f"{labels[name]}: cut off {cell['cut_off']}" for name, cell in cells.items() if "cut_off" in cell]
    return "\n".join([text, *reasons])


def tables(results: dict[str, Any], labels: Labels) -> str:
    """Every table of one run."""
    at, gates = results["settings"]["latency_at"], results["settings"]["cold_at"]
    parts = []
    if "latency" in results:
        pauses = [(f"pause@{k}", f"K={k}") for k in at]
        more = [("flatness", "last tenth / first tenth"), ("events", "history events per gate")]
        parts.append(table("answer to next pause, ms", [*pauses, *more], results["latency"], labels))
        temporal = {name: cell for name, cell in results["latency"].items() if cell.get(f"verdict@{at[0]}")}
        parts.append(
            table("answer to verdict, ms", [(f"verdict@{k}", f"K={k}") for k in at], temporal, labels, digits=1)
        )
    if "cold" in results:
        columns = [
            (f"{kind}@{gate}", f"{words} at gate {gate}")
            for gate in gates
            for kind, words in (
                ("pause", "new process, from the answer"),
                ("total", "from its start"),
                ("uncached", "no run kept in memory"),
            )
        ]
        parts.append(table("cold, ms", columns, results["cold"], labels))
    if "crash" in results:
        columns = [("verdict", "answer to verdict"), ("since_kill", "kill to verdict, the worker's start included")]
        parts.append(table("after kill -9, ms", columns, results["crash"], labels))
    if "throughput" in results:
        settings = results["settings"]
        title = f"{settings['pipelines']} pipelines of {settings['gates']} gates, {settings['together']} at a time"
        columns = [("per_second", "pipelines per second"), ("failed", "failed")]
        parts.append(table(title, columns, results["throughput"], labels, digits=1))
    return "\n\n".join([*parts, goals(results)])


def goals(results: dict[str, Any]) -> str:
    """What Gatewright is held to, and whether this run shows it."""
    lines: list[str] = []

    def hold(what: str, value: float | None, bound: float, *, least: bool = False) -> None:
        if value is not None:
            met = value >= bound if least else value <= bound
            word = "at least" if least else "at most"
            lines.append(f"{'met   ' if met else 'MISSED'} {what}: {value:.2f} ({word} {bound:g})")

    def ratio(part: str, key: str, other: str = BARE) -> float | None:
        mine, base = results[part].get(GATEWRIGHT, {}).get(key), results[part].get(other, {}).get(key)
        return mine / base if mine and base else None

    at = results["settings"]["latency_at"]
    if "latency" in results:
        mine = results["latency"].get(GATEWRIGHT, {})
        for gates in at:
            hold(f"answer to next pause / bare at K={gates}", ratio("latency", f"pause@{gates}"), 1.3)
        hold("flat in K", mine.get("flatness"), 1.2)
        hold("history events per gate", mine.get("events"), 16)
        for gates in at:
            hold(f"/ temporalio-google-adk at K={gates}", ratio("latency", f"pause@{gates}", "tga"), 1.0)
            if gates >= 50:
                for other in ("adk-sqlite", "adk-database"):
                    hold(f"/ {other} at K={gates}", ratio("latency", f"pause@{gates}", other), 1.0)
    if "cold" in results:
        for gate in results["settings"]["cold_at"]:
            for key in (f"pause@{gate}", f"uncached@{gate}"):
                hold(f"cold / bare, {key}", ratio("cold", key), 1.5)
    if "crash" in results:
        verdict = results["crash"].get(GATEWRIGHT, {}).get("verdict")
        hold("seconds to a verdict after kill -9", verdict and verdict / 1000, 2.0)
    if "throughput" in results:
        hold("pipelines per second / bare", ratio("throughput", "per_second"), 0.8, least=True)
        hold("... / temporalio-google-adk", ratio("throughput", "per_second", "tga"), 1.0, least=True)
    return "\n".join(lines)
