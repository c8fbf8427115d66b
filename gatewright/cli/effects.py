"""`gatewright effects list`, `show`, `prune` and `restored`: the ledger, read and kept."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from gatewright.protocol.recovery import BLOCKED, FAILED, system_name
from gatewright.protocol.telling import short
from gatewright.store import RUN_CLOSED, RUN_OPEN, Busy, GateRow, LedgerEntry, Store

from .connect import at_terminal, open_store
from .exits import AWAY, OK, Stop, usage
from .out import Out
from .render import moment, payload_lines, when
from .terminal import confirm

SEARCHED: Final = 20_000
"""Among how many effects, the one planned last first, the beginning of a key is looked for."""

_DIGITS = 64
_LEAST_DIGITS = 8
_PREFIXES = ("gw1-once-", "gw1-")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True)
class Wanted:
    """Which effects are listed."""

    run: str | None
    states: set[str] | None
    kinds: set[str] | None
    effect: str | None
    limit: int


@dataclass(frozen=True)
class Found:
    """The effect that a key names: its entry, or, where the ledger has lost that, the open gate that asks about it."""

    key: str
    run: str
    call: str
    entry: LedgerEntry | None


# Listing


def listed(out: Out, wanted: Wanted) -> int:
    """List effects from the ledger; no server is needed."""
    with open_store() as store:
        entries = store.ledger.entries(
            run=wanted.run, states=wanted.states, kinds=wanted.kinds, effect=wanted.effect, limit=wanted.limit + 1
        )
        if not entries and wanted.run is not None and store.run(wanted.run) is None:
            raise Stop(AWAY, f"the store lists no run {wanted.run}", kind="unknown_run")
    more, entries = len(entries) > wanted.limit, entries[: wanted.limit]
    if entries:
        heads = ("state", "call", "kind", "run", "attempts", "when", "key")
        out.table(heads, [_row(entry) for entry in entries])
    else:
        out.note("the ledger has no such effect")
    if more:
        out.note(f"there are more than {wanted.limit}: --limit {wanted.limit * 10}")
    out.data([_document(entry) for entry in entries])
    return OK


def _row(entry: LedgerEntry) -> list[str]:
    return [
        f"{entry.state}, contradicted" if entry.contradicted else entry.state,
        call_of(entry),
        entry.kind or "",
        entry.workflow_id,
        str(entry.attempts),
        when(entry.settled_at or entry.intended_at or entry.planned_at),
        short_key(entry.key),
    ]


def call_of(entry: LedgerEntry) -> str:
    """The call's readable id, as Temporal's UI shows it: `publish_release#1`, `#1.2` after a re-run."""
    return f"{entry.effect}#{entry.visit}" + (f".{entry.generation}" if entry.generation else "")


def short_key(key: str) -> str:
    """The beginning of a key, which names it where no other key begins so."""
    return key[: len(_prefix(key)) + 12]


def _prefix(key: str) -> str:
    return next((prefix for prefix in _PREFIXES if key.startswith(prefix)), "")


def _document(entry: LedgerEntry) -> dict[str, Any]:
    return {"call": call_of(entry), **entry.model_dump(mode="json")}


# Finding


def find(store: Store, given: str) -> Found:
    """The effect that a key, or its beginning, names; `Stop` where that is none, or more than one."""
    digits = given.removeprefix(_prefix(given))
    if not re.fullmatch(f"[0-9a-f]{{{_LEAST_DIGITS},{_DIGITS}}}", digits):
        raise usage(f"{given!r} is no key: give all of it, or the first {_LEAST_DIGITS} or more of its hex digits")
    whole = len(digits) == _DIGITS
    known = [store.ledger.entry(prefix + digits) for prefix in _PREFIXES] if whole else _beginning(store, given, digits)
    found = [Found(entry.key, entry.workflow_id, call_of(entry), entry) for entry in known if entry is not None]
    for row in store.gates(states={"open"}, search=BLOCKED, limit=SEARCHED):
        asked = key_asked(row.payload)
        if asked and _begins(asked, given, digits) and asked not in {each.key for each in found}:
            assert isinstance(row.payload, dict)  # noqa: S101 - it has a key
            found.append(Found(asked, row.workflow_id, str(row.payload.get("call", row.gate)), None))
    if len(found) > 1:
        names = ", ".join(each.key for each in found[:5])
        raise usage(f"{given} begins the keys of {len(found)} effects: {names}{', ...' if len(found) > 5 else ''}")
    if not found:
        hint = "" if whole else f" among the last {SEARCHED}; give all of an older one"
        raise Stop(
            AWAY,
            f"the ledger has no effect under {given}{hint}. `gatewright effects list` shows what it has",
            kind="unknown_effect",
        )
    return found[0]


def _beginning(store: Store, given: str, digits: str) -> list[LedgerEntry | None]:
    return [entry for entry in store.ledger.entries(limit=SEARCHED) if _begins(entry.key, given, digits)]


def _begins(key: str, given: str, digits: str) -> bool:
    return key.startswith(given) or key.removeprefix(_prefix(key)).startswith(digits)


def key_asked(payload: Any) -> str:
    """The key of the call that a gate of ours asks about; empty where it asks about none."""
    return str(payload.get("key") or "") if isinstance(payload, dict) else ""


def asking(store: Store, run: str, key: str, *, effect: str | None, prefixes: Sequence[str]) -> list[GateRow]:
    """The gates of a run, open or over, that were opened about this call, the newest first."""
    first = [] if effect is None else [system_name(prefix, effect) for prefix in prefixes]
    names: Sequence[str | None] = [*first, *(system_name(FAILED, name) for name in first)] or [None]
    rows = [row for name in names for row in store.gates(run=run, gate=name, limit=1000)]
    found = {row.interrupt_id: row for row in rows if _is_about(row.gate, prefixes) and key_asked(row.payload) == key}
    return sorted(found.values(), key=lambda row: row.opened_at, reverse=True)


def asks_whether_it_happened(gate: str) -> bool:
    """Whether a gate's name is that of one of ours that asks whether an effect happened, perhaps once more."""
    return _is_about(gate, (BLOCKED,))


def _is_about(gate: str, prefixes: Sequence[str]) -> bool:
    return gate.startswith((*prefixes, *(FAILED + prefix for prefix in prefixes)))


# Showing


def show(out: Out, given: str) -> int:
    """All that is known of one effect, and what can be done about it."""
    with open_store() as store:
        found = find(store, given)
        entry = found.entry
        rows = asking(store, found.run, found.key, effect=entry.effect if entry else None, prefixes=(BLOCKED, FAILED))
        gates = [row for row in rows if row.state == "open"]
        busy = store.ledger.busy(found.key)
        generations = _generations(store, entry) if entry else []
        record = store.run(found.run)
    over = record is not None and record.standing in RUN_CLOSED
    before = next((each.key for each in generations if each.successor == found.key), None)
    todo = list(_todo(found, gates, busy, over=over))
    if entry is None:
        out.say(f"{found.call}  the ledger has no entry of it: it never had one, or was restored from a backup", "red")
        out.say(f"  {'key':<12} {found.key}")
        out.say(f"  {'run':<12} {found.run}")
    else:
        for line in _lines(entry, before, busy):
            out.say(line)
    out.say("  now")
    for line in todo:
        out.say(f"    {line}")
    document = _document(entry) if entry else {"key": found.key, "call": found.call, "workflow_id": found.run}
    out.data(
        document
        | {
            "predecessor": before,
            "lease": {"held": busy is not None, "remaining_seconds": busy.remaining if busy else 0},
            "open_gates": [row.interrupt_id for row in gates],
            "now": todo,
        }
    )
    return OK


def _generations(store: Store, entry: LedgerEntry) -> list[LedgerEntry]:
    of_run = store.ledger.entries(run=entry.workflow_id, effect=entry.effect, limit=SEARCHED)
    return [each for each in of_run if (each.branch, each.visit) == (entry.branch, entry.visit)]


def _lines(entry: LedgerEntry, before: str | None, busy: Busy | None) -> Iterable[str]:
    yield f"{call_of(entry)}  {entry.state}, {entry.kind or 'of a kind that an earlier release did not write down'}"
    if entry.contradicted:
        yield (
            f"  CONTRADICTED: {entry.resolved_by or 'an attempt'} said that it did not happen, and it was performed all the same."
            + (f" Look whether {entry.successor} made it happen once more." if entry.successor else "")
        )
    yield _line("key", entry.key)
    yield _line("run", entry.workflow_id)
    yield _line("branch", f"{entry.branch}, generation {entry.generation}")
    if entry.arguments is not None:
        yield from _value("arguments", entry.arguments)
    if entry.arguments_digest:
        yield _line("", entry.arguments_digest)
    yield _line("planned", when(entry.planned_at))
    began = f", the latest began {when(entry.intended_at)}" if entry.intended_at else ""
    yield _line("attempts", f"{entry.attempts}{began}")
    if entry.settled_at:
        yield _line("settled", when(entry.settled_at))
    if entry.state == "performed":
        yield from _value("result", entry.result)
    if entry.state == "performed" or entry.receipt is not None:
        yield from _value("receipt", entry.receipt)
    # With a person's word the ledger keeps the comment where an attempt's error would be.
    spoken = entry.resolved_at is not None and (entry.intended_at is None or entry.intended_at <= entry.resolved_at)
    if entry.error and not spoken:
        yield _line("error", entry.error.replace("\n", " "))
    yield _line("lease", _lease(entry, busy))
    if entry.resolved_by:
        said = "that it happened" if entry.resolution == "happened" else "that it did not happen"
        why = entry.error or "" if spoken else ""
        comment = "" if why.startswith(f"{entry.resolved_by} said:") else why.replace("\n", " ")
        yield _line("resolved", f"{entry.resolved_by} said {said}, {when(entry.resolved_at)}")
        if comment:
            yield _line("", comment)
    if before:
        yield _line("replaces", before)
    if entry.successor:
        yield _line("replaced by", entry.successor)


def _line(name: str, words: str) -> str:
    return f"  {name:<12} {words}"


def _value(name: str, value: Any) -> Iterable[str]:
    if not isinstance(value, dict | list):
        yield _line(name, "none" if value is None else short(value, 300))
    elif len(text := short(value, 10_000)) <= 160:
        yield _line(name, text)
    else:
        yield f"  {name}"
        yield from payload_lines(value, "    ")


def _lease(entry: LedgerEntry, busy: Busy | None) -> str:
    if busy is not None and entry.lease_until is not None:
        until = entry.lease_until + timedelta(seconds=entry.call_seconds)
        return f"held until {when(entry.lease_until)}; a call of the outside may be under way until {when(until)}"
    if entry.holder is not None and entry.lease_until is not None and entry.state != "performed":
        return f"ran out {when(entry.lease_until)}: its attempt is over or stopped"
    return "free"


def _todo(found: Found, gates: Iterable[GateRow], busy: Busy | None, *, over: bool) -> Iterable[str]:
    """What can be done about an effect, one thing a line."""
    entry, asked = found.entry, False
    for row in gates:
        asked = True
        yield f"{found.run} asks at {row.interrupt_id}; find out, and say so:"
        if asks_whether_it_happened(row.gate):
            yield from _resolving(found.key)
        else:
            yield f"gatewright answer {found.run} {row.interrupt_id}"
    if asked:
        return
    if entry is not None and entry.state == "performed":
        yield "nothing: it happened, and is never attempted again"
    elif entry is not None and entry.successor:
        yield f"nothing: this call was made again. gatewright effects show {entry.successor}"
    elif busy is not None:
        yield f"wait: an attempt, or a call that it began, may be under way for {busy.remaining:.0f} seconds more"
    elif entry is not None and entry.state == "failed":
        yield f"nothing: it is known not to have happened. gatewright show {found.run}"
    elif over:
        yield "the run is over; what somebody finds out is kept for whoever resets it:"
        yield from list(_resolving(found.key))[:2]
    else:
        yield f"nothing is asked about it now. gatewright show {found.run}"


def _resolving(key: str) -> Iterable[str]:
    yield f"gatewright effects resolve {key} --happened --receipt JSON --result JSON"
    yield f"gatewright effects resolve {key} --did-not-happen"
    yield f"gatewright effects resolve {key} --abort"


# Keeping


def prune(out: Out, older_than: str, *, dry_run: bool) -> int:
    """Forget effects that were settled long ago, of runs that ended long ago."""
    before = moment() - _span(older_than)
    with open_store() as store:
        count = store.ledger.prune(before=before, dry_run=dry_run)
    would = "would be forgotten" if dry_run else "forgotten: their keys protect nothing any more"
    out.say(f"{count} effects settled before {when(before)}, of runs over since then, {would}")
    out.data({"forgotten": count, "before": before.isoformat(), "dry_run": dry_run})
    return OK


def _span(text: str) -> timedelta:
    read = re.fullmatch(r"([0-9]{1,9})([smhdw])", text.strip())
    if read is None:
        raise usage(f"--older-than: {text!r} is no length of time; write a number and s, m, h, d or w, as in 90d")
    try:
        length = timedelta(seconds=int(read[1]) * _UNITS[read[2]])
        _ = moment() - length
    except OverflowError as error:
        raise usage(f"--older-than: {text} reaches back further than the calendar") from error
    return length


def restored(out: Out, *, sure: bool) -> int:
    """Give the ledger another id, so that no run takes what the backup does not know for what never happened."""
    with open_store() as store:
        before, waiting = store.ledger_id, _open_runs(store)
        if not sure and at_terminal():
            out.note(f"Every run that relies on ledger {before} will stop at its next effect and ask a person.")
            if not confirm("Was the store restored from a backup?"):
                raise usage("nothing was changed")
        fresh = store.renew_ledger_id()
    out.say(f"the ledger is {fresh} now; it was {before}")
    out.say("  1. Restart every worker: a worker reads the ledger's id when it starts.")
    out.say("  2. gatewright reindex: the gates and runs that Temporal has and the backup has not.")
    out.say(
        f"  3. Every run that relied on the ledger before ({waiting} are open, as far as the store knows) stops at its next "
        "effect"
    )
    out.say("     and asks at blocked:NAME: gatewright gates --search blocked:")
    out.data({"ledger_id": fresh, "before": before, "open_runs": waiting})
    return OK


def _open_runs(store: Store) -> int:
    count, before = 0, None
    while page := store.runs(standing=RUN_OPEN, limit=1000, before=before):
        count += len(page)
        before = page[-1].cursor
    return count


__all__ = [
    "Found",
    "Wanted",
    "asking",
    "asks_whether_it_happened",
    "call_of",
    "find",
    "key_asked",
    "listed",
    "prune",
    "restored",
    "short_key",
    "show",
]
