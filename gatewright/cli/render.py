"""Gates and transcripts in words."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from gatewright.protocol.question import field_lines
from gatewright.protocol.telling import clip, entry_words, short
from gatewright.store import GateRow
from gatewright.temporal import GateView
from gatewright.temporal.views import CallUnderWay


def when(at: datetime | str | None) -> str:
    """A time in UTC, to the second."""
    if at is None:
        return ""
    read = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{read.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def moment() -> datetime:
    """The time now, from which ages are counted."""
    return datetime.now(UTC)  # noqa: TID251 - a client's own clock


def span(length: timedelta) -> str:
    """A length of time in its two largest units."""
    seconds = max(int(length.total_seconds()), 0)
    units = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    first = next((place for place, (count, _) in enumerate(units) if count), 3)
    return " ".join(f"{count}{unit}" for count, unit in units[first : first + 2] if count) or "0s"


def due(deadline: datetime | None, now: datetime) -> str:
    """How long there is until a deadline."""
    if deadline is None:
        return ""
    return f"in {span(deadline - now)}" if deadline > now else f"passed {span(now - deadline)} ago"


def gate_rows(rows: Iterable[GateRow], now: datetime) -> list[list[str]]:
    """A listing's rows: run, interrupt id, pipeline, state, message, age, deadline."""
    return [
        [
            row.workflow_id,
            row.interrupt_id,
            row.pipeline,
            row.state if row.kind != "system" else f"{row.state} (system)",
            clip(row.message.replace("\n", " "), 60),
            span(now - row.opened_at),
            due(row.deadline, now) if row.state == "open" else "",
        ]
        for row in rows
    ]


def gate_lines(view: GateView, now: datetime, *, fields: bool = True) -> list[str]:
    """One gate in full; without `fields` where a form asks for them one by one."""
    system = ", for another program" if view.kind.value == "system" else ""
    dangerous = ", DANGEROUS" if view.policy.dangerous else ""
    lines = [f"{view.interrupt_id}  {view.state}{system}{dangerous}, opened {when(view.opened_at)}"]
    if view.message:
        lines += [f"  {line}" for line in view.message.splitlines()]
    if view.state == "open":
        if view.deadline:
            lines.append(f"  deadline: {when(view.deadline)} ({due(view.deadline, now)})")
        if view.policy.invited:
            lines.append(f"  invited: {', '.join(view.policy.invited)}")
        if view.payload is not None:
            lines += ["  shows:", *payload_lines(view.payload, "    ")]
        if fields:
            lines += ["  asks for:", *field_lines(view.response_schema, indent="    ")]
    if answer := view.answer:
        said = short(answer.failure or answer.value)
        lines.append(
            f"  answered {when(answer.at)} by {answer.principal or 'nobody named'} through {answer.channel}: {said}"
        )
        lines.append(f"  answer id {answer.answer_id}, receipt {answer.receipt[:23]}…")
    elif view.closed_at:
        lines.append(f"  {view.state} {when(view.closed_at)}{f': {view.reason}' if view.reason else ''}")
    if view.consumed_by:
        lines.append(f"  consumed by {', '.join(view.consumed_by)}")
    if view.refusals:
        lines.append(f"  refused answers: {view.refusals}")
    return lines


def call_line(call: CallUnderWay, now: datetime) -> str:
    """A call that is under way: which attempt it is, what it waits for, and why the one before failed."""
    # A step or effect is known by its id; what the run asks by itself has only a number.
    named = call.activity_id.startswith(call.activity_type)
    name = call.activity_id if named else f"{call.activity_type} ({call.activity_id})"
    if call.waits_for:
        does = f"waits: {call.waits_for}"
    elif call.state == "started":
        does = "runs"
    elif call.state != "scheduled":
        does = call.state.replace("_", " ")
    elif call.next_attempt_at is not None and call.next_attempt_at > now:
        does = f"begins in {span(call.next_attempt_at - now)}"
    else:
        does = "no worker has taken it"
    failed = f"; the last attempt failed: {call.last_failure}" if call.last_failure else ""
    return clip(f"{name} attempt {call.attempt}, {does}{failed}".replace("\n", " "), 400)


def payload_lines(payload: Any, indent: str, *, limit: int = 30) -> list[str]:
    """A payload for people: an object by its keys, a list of objects as a list; shortened to `limit` lines."""
    lines = list(_payload(payload, indent, 0))
    if len(lines) > limit:
        lines = [*lines[:limit], f"{indent}... {len(lines) - limit} more lines (--output json shows all)"]
    return lines


def _payload(value: Any, indent: str, depth: int) -> Iterable[str]:
    if depth < 2 and isinstance(value, dict) and value:
        width = min(max(len(str(key)) for key in value), 24)
        for key, item in value.items():
            long = isinstance(item, dict | list) and len(short(item, 200)) >= 80 and depth < 1
            if long or (isinstance(item, str) and "\n" in item):
                yield f"{indent}{key}:"
                yield from _payload(item, indent + "  ", depth + 1)
            else:
                yield f"{indent}{key:<{width}}  {_cell(item, 160)}"
    elif depth < 2 and isinstance(value, list) and value:
        yield from _table(value, indent) if _uniform(value) else (f"{indent}- {_cell(item, 160)}" for item in value)
    elif isinstance(value, str):
        for line in value.splitlines() or [""]:
            yield f"{indent}{clip(line, 300)}"
    else:
        yield f"{indent}{short(value, 160)}"


def _uniform(values: list[Any]) -> bool:
    """Whether these are objects with the same few fields."""
    first = values[0]
    return (
        isinstance(first, dict)
        and 1 < len(first) <= 8
        and all(isinstance(each, dict) and list(each) == list(first) for each in values)
    )


def _table(values: list[dict[str, Any]], indent: str) -> Iterable[str]:
    heads = [clip(str(key), 28) for key in values[0]]
    rows = [heads, *([_cell(item, 28) for item in each.values()] for each in values)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    for row in rows:
        yield indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(value: Any, limit: int) -> str:
    text = value if isinstance(value, str) else "" if value is None else short(value, limit)
    return clip(text.replace("\n", " "), limit)


def entry_line(entry: dict[str, Any]) -> str:
    """One entry of a transcript as one line."""
    return f"{when(entry['at'])}  {entry['kind']:<13} {entry_words(entry)}".rstrip()
