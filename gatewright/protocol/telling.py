"""Values and entries of a transcript in words, for people. Pure."""

import json
from collections.abc import Callable
from typing import Any


def short(value: Any, limit: int = 200) -> str:
    """JSON on one line, shortened to `limit` characters."""
    return clip(json.dumps(value, ensure_ascii=False, default=str), limit)


def clip(text: str, limit: int) -> str:
    """The text, shortened to `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def entry_words(entry: dict[str, Any]) -> str:
    """What an entry of a transcript says, on one line; its time and kind are beside it."""
    words = _ENTRIES.get(entry["kind"])
    return words(entry) if words else f"{_at(entry)} {entry.get('state', '')}".strip()


def _at(entry: dict[str, Any]) -> str:
    return str(entry.get("interrupt_id", ""))


def _answered(entry: dict[str, Any]) -> str:
    said = entry["answer"]
    value = f"failed: {said['failure']['message']}" if said.get("failure") else short(entry.get("value"), 120)
    return f"{_at(entry)} by {said['principal'] or 'nobody named'} through {said['channel']}: {value}"


def _refused(entry: dict[str, Any]) -> str:
    first = entry["objections"][0]
    return f"{first['refusal']} {entry.get('principal') or ''}: {clip(first['reason'], 200)}"


def _performed(entry: dict[str, Any]) -> str:
    failed = f": {entry['error']}" if entry.get("error") else ""
    return f"{entry.get('call_id', '')} {entry['outcome']}{failed}"


_ENTRIES: dict[str, Callable[[dict[str, Any]], str]] = {
    "opened": lambda entry: f"{entry['pipeline']} {entry.get('text') or short(entry.get('input'), 120)}",
    "asked": lambda entry: f"{_at(entry)}: {clip(entry['gate'].get('message') or '', 160)}",
    "answered": _answered,
    "refused": _refused,
    "dead_lettered": lambda entry: f"{entry['name']} by {entry['door']}: {entry['reason']}",
    "consumed": lambda entry: f"{_at(entry)} by {entry['by']}",
    "performed": _performed,
    "expired": lambda entry: f"{_at(entry)}: {entry['outcome']}",
    "superseded": lambda entry: f"{_at(entry)}: {entry['reason']}",
    "said": lambda entry: str(entry["text"]),
    "closed": lambda entry: f"{entry['standing']}{': ' + entry['reason'] if entry.get('reason') else ''}",
}
