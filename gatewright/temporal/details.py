"""What Temporal's own UI shows of a run: the open gates, and how to answer them from where the reader stands."""

import json

from gatewright.protocol.book import Book

SHOWN = 5
"""How many open gates are described in full."""

MAX_MESSAGE = 500


def describe(book: Book) -> str:
    """Markdown for `workflow.set_current_details` (which costs no history event)."""
    if not book.open:
        return f"No gate is open; the run is {book.standing.value}."
    lines = []
    for record in book.open[:SHOWN]:
        gate = record.gate
        message = (gate.message or "") if gate else ""
        lines.append(f"### Gate `{record.interrupt_id}`\n\n{message[:MAX_MESSAGE]}")
        if gate and gate.deadline:
            lines.append(f"Deadline: {gate.deadline:%Y-%m-%d %H:%M:%S} UTC")
        example = json.dumps({"interruptId": record.interrupt_id, "response": "..."})
        lines.append(f"Answer with signal or update `answer`:\n\n```json\n{example}\n```")
    if len(book.open) > SHOWN:
        lines.append(f"... and {len(book.open) - SHOWN} more open gates.")
    return "\n\n".join(lines)
