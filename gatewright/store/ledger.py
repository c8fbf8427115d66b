"""
The ledger: what is remembered of effects.

A call is planned before anything is attempted, an intent is written before each
attempt, and the outcome afterwards, so that a crash in between leaves an intent,
which says: somebody must find out.

    planned ──> intended ──> performed      for ever
                         ──> failed         known not to have happened; the next attempt makes it intended again
                         ──> unknown        nobody knows; a later proof makes it performed or failed

An attempt holds a lease on the key and extends it while it lives; nobody else
begins before the lease (and, where two calls must not meet, the time that one
call may take) is over. Leases are measured by the database's clock. The ledger
records what it is told: whether an effect may be tried again is for its caller
to decide.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, Select, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from . import schema
from .errors import CallReplaced, EffectUnderWay, LedgerConflict, StoreError
from .records import RUN_CLOSED, Begun, Busy, LedgerEntry, Plan
from .room import Room

_LEDGER = schema.ledger.c
_NOT_ATTEMPTED = "it was not attempted"


class Ledger(Room):
    """The part of the store that remembers effects, by their keys."""

    # Before the effect

    def plan(
        self,
        *,
        key: str,
        effect: str,
        kind: str | None,
        workflow_id: str,
        branch: str,
        visit: int,
        generation: int,
        replaces: str | None = None,
    ) -> LedgerEntry:
        """
        Make the entry of a call before anything is attempted, or return what stands.

        An entry that has a successor is followed to the last one, or to one that
        is performed: a run that was reset finds the generation that counts.
        `replaces` is the key of the generation before, which must be known not to
        have happened (planned or failed; one that is missing is written down as
        such); otherwise nothing is written and that entry is returned.
        """
        plan = Plan(
            effect=effect, kind=kind, workflow_id=workflow_id, branch=branch, visit=visit, generation=generation
        )
        with self._database.write(replaces or key) as connection:
            now = self._database.now(connection)
            if replaces is not None:
                before = _entry(connection, replaces)
                if before is None:
                    earlier = plan.model_copy(update={"generation": generation - 1})
                    before = _made(connection, replaces, earlier, now)
                if before.state not in {"planned", "failed"}:
                    return before
                error = before.error or _NOT_ATTEMPTED
                settled = {"state": "failed", "error": error, "successor": key, "settled_at": before.settled_at or now}
                _change(connection, replaces, settled)
            found = _entry(connection, key) or _made(connection, key, plan, now)
            # Not past one that was performed after all, against somebody's word.
            while found.state != "performed" and found.successor is not None:
                if (following := _entry(connection, found.successor)) is None:
                    break
                found = following
            return found

    def begin(
        self,
        key: str,
        *,
        holder: str,
        lease: float,
        call_seconds: float,
        arguments_digest: str,
        arguments: JsonValue = None,
        alone: bool,
        new: Plan | None = None,
    ) -> Begun | Busy | None:
        """
        Begin an attempt: take the lease for `lease` seconds and write the intent down.

        `Busy` while another attempt holds the lease; with `alone`, also while a
        call that it began at the last moment may still be under way. Of an
        effect that is performed nothing is taken. None where there is no entry
        and `new` does not say what to make. `LedgerConflict`, and no change, if
        the key stands for other arguments, or if another generation was decided
        on in its place.
        """
        with self._database.write(key) as connection:
            now = self._database.now(connection)
            before = _entry(connection, key)
            if before is None:
                if new is None:
                    return None
                before = _made(connection, key, new, now)
            if before.arguments_digest not in {None, arguments_digest}:
                raise LedgerConflict(
                    f"key {key} stands for {before.effect} with arguments {before.arguments_digest}, not"
                    f" {arguments_digest}; a call with other arguments needs a key of its own",
                    before,
                )
            if before.state == "performed":
                return Begun(entry=before, before=before.state, taken=False)
            if before.successor is not None:
                raise CallReplaced(
                    f"key {key} stands for a call of {before.effect} that was given up ({before.error}): what was decided on in"
                    f" its place is recorded under {before.successor}",
                    before,
                )
            if before.holder != holder and (busy := _busy(before, now, alone=alone)) is not None:
                return busy
            changes: dict[str, Any] = {
                "holder": holder,
                "lease_until": now + timedelta(seconds=lease),
                "call_seconds": call_seconds,
                "attempts": before.attempts + 1,
                "intended_at": now,
                "arguments": arguments,
                "arguments_digest": arguments_digest,
            }
            if before.state in {"planned", "failed"}:
                changes |= {"state": "intended", "error": None, "settled_at": None}
            _change(connection, key, changes)
            return Begun(entry=before.model_copy(update=changes), before=before.state, taken=True)

    def busy(self, key: str) -> Busy | None:
        """Whether an attempt, or a call that it began at the last moment, may still be under way."""
        with self._database.read() as connection:
            entry = _entry(connection, key)
            return None if entry is None else _busy(entry, self._database.now(connection), alone=True)

    # While it is under way

    def renew(self, key: str, holder: str, *, lease: float) -> bool:
        """Extend the lease; false where it has run out or is not this holder's any more, or the effect is settled."""
        with self._database.write(key) as connection:
            entry = _entry(connection, key)
            now = self._database.now(connection)
            # Of one that has run out others may have concluded already that nothing is under way.
            if entry is None or entry.holder != holder or _busy(entry, now, alone=False) is None:
                return False
            _change(connection, key, {"lease_until": now + timedelta(seconds=lease)})
            return True

    def release(self, key: str, holder: str, *, error: str | None = None, reached: bool = False) -> None:
        """
        Give the lease back, because the attempt is over.

        With `reached` the outside may be at its call still: the lease ends, and
        who must be alone waits for as long as that call may take. The state
        stays; `error` is kept for people. Of another holder's lease nothing is
        changed.
        """
        with self._database.write(key) as connection:
            entry = _entry(connection, key)
            if entry is not None and entry.holder == holder and entry.state != "performed":
                ended = self._ended(connection, entry, reached=reached)
                _change(connection, key, ended | {"error": error or entry.error})

    # Afterwards

    def performed(self, key: str, *, result: JsonValue, receipt: JsonValue) -> LedgerEntry:
        """
        Write down that the effect happened, with its result, and return what stands.

        The first result stays for ever: repeating it changes nothing, and a
        different one is not taken. A person's word to the contrary, and what was
        known when another generation was decided on, is then contradicted, and
        the entry says so.
        """
        changes = {"state": "performed", "result": result, "receipt": receipt, "error": None, "holder": None}
        with self._database.write(key) as connection:
            before = self._intended(connection, key)
            if before.state == "performed":
                return before
            if before.resolution == "did_not_happen" or (before.state == "failed" and before.successor is not None):
                changes["contradicted"] = True
            return self._settle(connection, before, changes)

    def failed(self, key: str, *, error: str, holder: str | None = None) -> LedgerEntry:
        """
        Write down that the effect is known not to have happened, in any attempt, and return what stands.

        A performed entry stays performed. A `holder` whose lease another attempt
        has taken over does not know enough: nothing is changed then.
        """
        with self._database.write(key) as connection:
            before = self._intended(connection, key)
            if before.state == "performed" or (holder is not None and before.holder != holder):
                return before
            return self._settle(connection, before, {"state": "failed", "error": error, "holder": None})

    def unknown(
        self, key: str, *, error: str, holder: str | None = None, reached: bool = False, receipt: JsonValue = None
    ) -> LedgerEntry:
        """
        Write down that nobody knows whether the effect happened, and return what stands.

        What is performed or failed is known, and stays so. A `receipt` is what
        the outside gave before its word was lost. A `holder` gives its lease back
        with it, as `release` does; one whose lease another attempt has
        taken over, or a person's word has ended, changes nothing.
        """
        with self._database.write(key) as connection:
            before = self._intended(connection, key)
            if before.state in {"performed", "failed"} or (holder is not None and before.holder != holder):
                return before
            ended = {} if holder is None else self._ended(connection, before, reached=reached)
            proof = {} if receipt is None else {"receipt": receipt}
            return self._settle(connection, before, {"state": "unknown", "error": error} | proof | ended)

    def resolve(
        self,
        key: str,
        *,
        by: str,
        happened: bool,
        comment: str | None = None,
        receipt: JsonValue = None,
        result: JsonValue = None,
        new: Plan | None = None,
        despite_failed: bool = False,
    ) -> LedgerEntry:
        """
        Write down a person's word about a call, and return what stands: a fact beats a word.

        A performed entry stays as it is. `EffectUnderWay` while an attempt may
        be under way. `StoreError` where there is no entry and no `new`, and for
        `happened` of a call that is known not to have happened, unless
        `despite_failed` says that the ledger is not relied on there (it was
        restored from a backup).
        """
        word = "happened" if happened else "did_not_happen"
        with self._database.write(key) as connection:
            now = self._database.now(connection)
            before = _entry(connection, key)
            if before is None:
                if new is None:
                    raise StoreError(
                        f"the ledger has no entry under {key}; `gatewright effects list` shows what it has"
                    )
                before = _made(connection, key, new, now)
            if before.state == "performed" or (before.state == "failed" and not happened):
                return before
            if before.state == "failed" and not despite_failed:
                raise StoreError(
                    f"{key} is known not to have happened ({before.error}), so it cannot be said that it did"
                )
            if (busy := _busy(before, now, alone=True)) is not None:
                raise EffectUnderWay(
                    f"an attempt at {before.effect} may be under way for {busy.remaining:.0f} seconds more; say it again then"
                )
            said: dict[str, Any] = {
                "resolved_by": by,
                "resolution": word,
                "resolved_at": now,
                "holder": None,
                "error": comment or f"{by} said: {word}",
            }
            outcome = {"state": "performed", "result": result, "receipt": receipt} if happened else {"state": "failed"}
            return self._settle(connection, before, said | outcome)

    # Reading and keeping

    def entry(self, key: str) -> LedgerEntry | None:
        """What stands under the key, or `None`."""
        with self._database.read() as connection:
            return _entry(connection, key)

    def entries(
        self,
        *,
        run: str | None = None,
        states: Collection[str] | None = None,
        kinds: Collection[str] | None = None,
        effect: str | None = None,
        limit: int = 100,
    ) -> list[LedgerEntry]:
        """List entries, the one planned last first; `run` is a workflow id. Every filter narrows."""
        query = select(schema.ledger).order_by(_LEDGER.planned_at.desc(), _LEDGER.key).limit(max(limit, 0))
        for value, condition in (
            (run, _LEDGER.workflow_id == run),
            (states, _LEDGER.state.in_(states or ())),
            (kinds, _LEDGER.kind.in_(kinds or ())),
            (effect, _LEDGER.effect == effect),
        ):
            if value is not None:
                query = query.where(condition)
        with self._database.read() as connection:
            return _entries(connection, query)

    def prune(self, *, before: datetime, dry_run: bool = False) -> int:
        """
        Forget effects that are over and were settled before a time; how many there were.

        Only performed and failed ones, of runs that the store lists as over
        since before that time (shared results of steps belong to no run: there
        only the time counts). A call goes with all its generations or not at
        all. A key that is forgotten protects nothing any more: keep it for
        longer than Temporal keeps histories, because a run that is reset asks for it.
        """
        old = [
            entry for entry in self._settled(before) if entry.kind == "once" or self._over(entry.workflow_id, before)
        ]
        keys = {entry.key for entry in old}
        links = self._links()
        while kept := {key for link in links if not link <= keys for key in link & keys}:
            keys -= kept
        if not dry_run:
            # The last generation first: while the one before it stands, it is not attempted.
            for _, key in sorted(((entry.generation, entry.key) for entry in old if entry.key in keys), reverse=True):
                with self._database.write(key) as connection:
                    connection.execute(
                        delete(schema.ledger).where(_LEDGER.key == key, _LEDGER.state.in_(("performed", "failed")))
                    )
        return len(keys)

    def _settled(self, before: datetime) -> list[LedgerEntry]:
        with self._database.read() as connection:
            return _entries(
                connection,
                select(schema.ledger).where(
                    _LEDGER.state.in_(("performed", "failed")),
                    or_(_LEDGER.settled_at < before, _LEDGER.settled_at.is_(None) & (_LEDGER.planned_at < before)),
                ),
            )

    def _links(self) -> list[set[str]]:
        """Each key with that of its successor, of which one is kept if the other is."""
        query = select(_LEDGER.key, _LEDGER.successor).where(_LEDGER.successor.in_(select(_LEDGER.key)))
        with self._database.read() as connection:
            return [{key, successor} for key, successor in connection.execute(query)]

    def _over(self, workflow_id: str, before: datetime) -> bool:
        runs = schema.runs.c
        with self._database.read() as connection:
            closed = select(runs.closed_at).where(runs.workflow_id == workflow_id, runs.standing.in_(RUN_CLOSED))
            at = connection.execute(closed).scalar_one_or_none()
            return at is not None and at < before

    def _intended(self, connection: Connection, key: str) -> LedgerEntry:
        before = _entry(connection, key)
        if before is None:
            raise StoreError(f"the ledger has no intent under key {key}; write the intent before the effect")
        return before

    def _ended(self, connection: Connection, entry: LedgerEntry, *, reached: bool) -> dict[str, Any]:
        """What changes with the end of an attempt; where it `reached` the outside, its call may go on for `call_seconds`."""
        if not reached or entry.lease_until is None:
            return {"holder": None}
        return {"lease_until": min(entry.lease_until, self._database.now(connection))}

    def _settle(self, connection: Connection, before: LedgerEntry, changes: dict[str, Any]) -> LedgerEntry:
        changes = changes | {"settled_at": self._database.now(connection)}
        after = LedgerEntry(**dict(before) | changes)
        _change(connection, before.key, changes)
        return after


def _busy(entry: LedgerEntry, now: datetime, *, alone: bool) -> Busy | None:
    if entry.holder is None or entry.lease_until is None or entry.state == "performed":
        return None
    until = entry.lease_until + timedelta(seconds=entry.call_seconds if alone else 0)
    remaining = (until - now).total_seconds()
    return Busy(remaining=remaining, holder=entry.holder) if remaining > 0 else None


def _made(connection: Connection, key: str, plan: Plan, now: datetime) -> LedgerEntry:
    entry = LedgerEntry(key=key, state="planned", planned_at=now, **dict(plan))
    try:
        with connection.begin_nested():
            connection.execute(insert(schema.ledger).values(dict(entry)))
    except IntegrityError:
        # A generation is made under the lock of the one before it, so another writer may have come first.
        if (found := _entry(connection, key)) is None:
            raise
        return found
    return entry


def _change(connection: Connection, key: str, changes: dict[str, Any]) -> None:
    connection.execute(update(schema.ledger).where(_LEDGER.key == key).values(changes))


def _entries(connection: Connection, query: Select[Any]) -> list[LedgerEntry]:
    return [
        LedgerEntry(**{name: row[name] for name in LedgerEntry.model_fields})
        for row in connection.execute(query).mappings()
    ]


def _entry(connection: Connection, key: str) -> LedgerEntry | None:
    entries = _entries(connection, select(schema.ledger).where(_LEDGER.key == key))
    return entries[0] if entries else None
