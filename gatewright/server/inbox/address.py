"""The addresses of the inbox, and the commands that do the same from a shell."""

import json
import shlex
from dataclasses import dataclass, fields, replace
from typing import Any, Literal
from urllib.parse import quote, urlencode

VIEWS = {
    "open": "Open",
    "mine": "Mine",
    "blocked": "Blocked",
    "refused": "Refused",
    "answered": "Answered",
    "expired": "Expired",
    "all": "All",
}
"""The views of the list, by their names in its address."""

SORTS = {"opened": "opened_at", "deadline": "deadline", "closed": "closed_at"}
PAGE_ROWS = 50
MAX_PAGE = 10_000


@dataclass(frozen=True)
class Listed:
    """Which gates are listed and how: all of it is in the address."""

    view: str = "open"
    q: str = ""
    pipeline: str = ""
    gate: str = ""
    app: str = ""
    sort: Literal["opened", "deadline", "closed"] = "opened"
    dir: Literal["asc", "desc"] = "desc"
    page: int = 1

    @classmethod
    def of(cls, query: Any) -> "Listed":
        """Read the parameters of a request; what is none of ours, or wrong, counts as left out."""
        given: dict[str, Any] = {name: query[name][:400] for name in ("q", "pipeline", "gate", "app") if name in query}
        known = {"view": VIEWS, "sort": SORTS, "dir": ("asc", "desc")}
        given |= {name: query[name] for name, values in known.items() if query.get(name) in values}
        page = query.get("page", "")
        if page.isascii() and page.isdigit():
            given["page"] = min(max(int(page[:9]), 1), MAX_PAGE)
        return cls(**given)

    def url(self, **changes: Any) -> str:
        """The address of this list, or of one that differs; a change begins at the first page."""
        wanted = replace(self, **({"page": 1} | changes))
        said = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
        differs = {name: value for name, value in said.items() if value != getattr(_PLAIN, name)}
        return "/inbox" + (f"?{urlencode(differs)}" if differs else "")

    @property
    def narrowed(self) -> bool:
        """Whether anything but the view narrows it."""
        return bool(self.q or self.pipeline or self.gate or self.app)


_PLAIN = Listed()


def gate_url(run: str, interrupt_id: str, **more: str) -> str:
    """The page of a gate."""
    return "/inbox/gate?" + urlencode({"run": run, "id": interrupt_id, **more})


def run_url(run: str, **more: str) -> str:
    """The page of a run."""
    return "/inbox/run?" + urlencode({"run": run, **more})


def temporal_url(base: str, namespace: str, run: str) -> str:
    """The page of a run in Temporal's own UI."""
    return f"{base.rstrip('/')}/namespaces/{quote(namespace, safe='')}/workflows/{quote(run, safe='')}"


def answer_command(run: str, interrupt_id: str, response: Any) -> str:
    """What answers a gate from a shell."""
    said = json.dumps(response, ensure_ascii=False)
    return f"gatewright answer {shlex.quote(run)} {shlex.quote(interrupt_id)} --json {shlex.quote(said)}"


def curl_command(base: str, session: dict[str, str], interrupt_id: str, response: Any, *, token: bool) -> str:
    """What answers it over ADK's HTTP API; `session` has its `appName`, `userId` and `sessionId`."""
    reply = {"id": interrupt_id, "name": "adk_request_input", "response": {"result": response}}
    body = {**session, "newMessage": {"role": "user", "parts": [{"functionResponse": reply}]}}
    lines = [
        f"curl {shlex.quote(base + '/run')}",
        "-H 'Content-Type: application/json'",
        *(['-H "Authorization: Bearer $TOKEN"'] if token else []),
        f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}",
    ]
    return " \\\n  ".join(lines)


def signal_command(run: str, interrupt_id: str, response: Any, principal: str) -> str:
    """What leaves the answer with Temporal, whether or not a worker lives."""
    said = {"interrupt_id": interrupt_id, "response": response, "principal": principal}
    return (
        f"temporal workflow signal --workflow-id {shlex.quote(run)} --name answer \\\n"
        f"  --input {shlex.quote(json.dumps(said, ensure_ascii=False))}"
    )
