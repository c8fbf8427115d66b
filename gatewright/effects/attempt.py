"""
One attempt at an effect: intent, outside, receipt, with the ledger asked before and told afterwards.

    begin      take the lease on the key, or wait until whoever has it is surely over; an earlier attempt's
               intent is settled first: by its kind the effect is done again, asked about, or left alone
    witness    Temporal writes down that the outside is about to be reached
    fence      the lease still runs
    outside    the effect's own code
    settle     performed, with result and receipt; or known not to have happened; or nobody knows

While the store is away the attempt waits and says so: an effect is never
performed unrecorded. What cannot be known leaves as `EffectUnknown`, with the
finding in its details, and is never tried again by itself.
"""

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from pydantic import JsonValue
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityOutboundInterceptor, ExecuteActivityInput

from gatewright.protocol.call import Call
from gatewright.protocol.canonical import NotJson, canonical, digest, plain
from gatewright.protocol.finding import Errand, Finding
from gatewright.protocol.receipt import EffectState
from gatewright.store import (
    Begun,
    Busy,
    CallReplaced,
    LedgerConflict,
    LedgerEntry,
    Plan,
    Store,
    StoreError,
    StoreUnavailable,
)

from .anyhow import called_anyhow
from .beats import Beats, NotCurrent, patiently, witness
from .declare import CannotTell, Declaration, DidNotHappen, EffectKind, Happened, Reconciliation
from .elsewhere import made_elsewhere
from .lease import LEASE, Lease, LeaseLost, elapsed
from .results import carried, recorded, restored
from .wire import REPLACED, begun

T = TypeVar("T")

MAX_ARGUMENTS = 8 * 1024
"""Up to which size, as JSON in bytes, the ledger keeps an effect's arguments for people to read."""

DEFAULT_LEASE = 10.0
"""How long a lease runs where the activity has no heartbeat time-out, in seconds."""

ASKING_AGAIN = 3
"""How often an outside that cannot be asked now is asked, before nobody can tell."""


class NotPerformed(Exception):  # noqa: N818 - it says what is known, as ledger states do
    """Raise it from an effect to say that the effect is known not to have happened; the attempt may be repeated."""


class Attempt:
    """One attempt (or one look) at the call of one effect."""

    def __init__(
        self,
        call: Call,
        errand: Errand | None,
        declaration: Declaration,
        input: ExecuteActivityInput,
        *,
        store: Store,
        client: Client | None,
        outbound: ActivityOutboundInterceptor,
        beats: Beats,
    ) -> None:
        """`errand` is None for a run of an earlier release, whose calls were not planned."""
        self._call = call
        self._errand = errand
        self._declaration = declaration
        self._input = input
        self._store = store
        self._client = client
        self._outbound = outbound
        self._beats = beats
        self._repeatable = declaration.kind in {None, EffectKind.KEYED}
        heartbeat = outbound.info().heartbeat_timeout
        self._lease = Lease(call.key, secrets.token_hex(16), heartbeat.total_seconds() if heartbeat else DEFAULT_LEASE)
        self._told_begun = begun(outbound.info().heartbeat_details) or bool(errand and errand.begun)

    # Performing

    async def perform(self, function: Callable[[], Awaitable[Any]]) -> tuple[Payload, Finding]:
        """
        Have the effect performed once for its key, and give back its result and what is known.

        `function` is the effect's own code. Raises `ApplicationError`: type
        `EffectUnknown` (not retryable), `NotPerformed` (may be tried again), or
        what the code itself raised.
        """
        taken = await self._begin()
        if not taken.taken:
            return self._as_recorded(taken.entry)
        try:
            with self._held():
                if (known := await self._before(taken)) is not None:
                    return known
                await self._reach(taken)
                return await self._act(function)
        except StoreError as lost:
            # From here on the ledger has an intent: where it is gone, so is all that could be known.
            self._unknown(f"the ledger lost its entry while the attempt was under way: {lost}", None, lost)

    async def _begin(self) -> Begun:
        """The lease on the key; waits while another attempt may still be under way."""
        self._same_ledger()
        shown, arguments = self._arguments()
        while True:
            asked = elapsed()
            try:
                begin = await self._patiently(
                    lambda: self._store.ledger.begin(
                        self._call.key,
                        holder=self._lease.holder,
                        lease=self._lease.seconds,
                        call_seconds=self._declaration.call_timeout.total_seconds(),
                        arguments_digest=arguments,
                        arguments=shown,
                        alone=not self._repeatable,
                        new=None if self._errand else plan_of(self._call, self._declaration),
                    )
                )
            except CallReplaced as replaced:
                # A run that was reset to before the decision: it goes on with what was decided.
                finding = self._finding(replaced.entry, EffectState.FAILED, str(replaced))
                raise ApplicationError(
                    str(replaced), finding.model_dump(mode="json"), type=REPLACED, non_retryable=True
                ) from replaced
            except LedgerConflict as conflict:
                self._unknown(str(conflict), conflict.entry, conflict, kind="LedgerConflict")
            match begin:
                case Begun():
                    self._lease.extend(asked)
                    return begin
                case Busy():
                    await self._wait(begin)
                case None:
                    self._unknown(
                        f"the ledger has no entry under {self._call.key}, although this call was planned in it: it was "
                        "emptied, or restored from a backup that is older than the call"
                    )

    async def _before(self, taken: Begun) -> tuple[Payload, Finding] | None:
        """Settle what an earlier attempt has left; the outcome where there is one, None where the effect is to be done."""
        if taken.before == "planned" and (self._told_begun or await self._begun_elsewhere()):
            await self._block(
                "Temporal's history says that an attempt was about to reach the outside, and the ledger knows of none: "
                "it was restored from a backup that is older than that attempt"
            )
        if taken.before not in {"intended", "unknown"} or self._repeatable:
            return None
        known = await self._asked()
        if isinstance(known, CannotTell):
            await self._block(known.reason)
        if isinstance(known, DidNotHappen):
            return None
        payload = carried(activity.payload_converter(), known.result)
        return await self._performed(payload, known.receipt, source="reconcile")

    async def _begun_elsewhere(self) -> bool:
        """Whether an execution before a reset made this very call, and had come as far as the outside."""
        if self._client is None or self._errand is None or not self._errand.reset:
            return False
        return await made_elsewhere(self._client, self._call, self._outbound.info().workflow_run_id) == "begun"

    async def _asked(self) -> Reconciliation:
        """What the outside says; nothing where it cannot be asked."""
        reconcile = self._declaration.reconcile
        if reconcile is None:
            return CannotTell("an earlier attempt began it and ended without a word, and the outside cannot be asked")
        said: Reconciliation = await called_anyhow(reconcile, self._call, *self._input.args)
        return said

    async def _reach(self, taken: Begun) -> None:
        """The last step before the outside: Temporal knows, and the lease still runs."""
        try:
            if self._client is not None:
                await witness(self._client, self._outbound, self._beats)
            self._lease.check()
        except (NotCurrent, LeaseLost) as given_up:
            reason = f"the attempt was given up before it reached the outside: {given_up}"
            if taken.before in {"planned", "failed"}:
                await self._failed(reason)
            await self._release(reason)
            raise ApplicationError(reason, type=type(given_up).__name__) from given_up

    async def _act(self, function: Callable[[], Awaitable[Any]]) -> tuple[Payload, Finding]:
        try:
            result = await function()
        except NotPerformed as failure:
            entry = await self._failed(str(failure))
            finding = self._finding(entry, EffectState.FAILED, str(failure), source="attempt")
            raise ApplicationError(str(failure), finding.model_dump(mode="json"), type="NotPerformed") from failure
        except asyncio.CancelledError:
            if not inspect.iscoroutinefunction(self._input.fn):
                # Its thread may be at it still: nobody may take over before the lease and the call's time are over.
                raise
            await self._release("the attempt was cancelled")
            raise
        except Exception as failure:
            words = f"{type(failure).__name__}: {failure}"
            if self._declaration.kind is EffectKind.OPAQUE:
                await self._block(f"the attempt failed ({words}), and the outside cannot be asked", failure)
            await self._release(words)
            raise
        try:
            payload = carried(activity.payload_converter(), result)
        except Exception as wrong:
            lost = f"it was performed, and its result is lost, because it cannot be written as JSON: {wrong}"
            entry = await self._patiently(
                lambda: self._store.ledger.performed(self._call.key, result=None, receipt=self._proof())
            )
            raise ApplicationError(
                f"{self._call.id}: {lost}",
                self._finding(entry, EffectState.UNKNOWN, lost).model_dump(mode="json"),
                type="NotJson",
                non_retryable=True,
            ) from wrong
        return await self._performed(payload, self._proof(), source="attempt")

    async def _performed(self, payload: Payload, proof: JsonValue, *, source: str) -> tuple[Payload, Finding]:
        kept = recorded(payload)
        entry = await self._patiently(lambda: self._store.ledger.performed(self._call.key, result=kept, receipt=proof))
        if entry.result != kept:
            return self._as_recorded(entry)
        return payload, self._finding(entry, EffectState.PERFORMED, source=source)

    # Finding out

    async def examine(self) -> tuple[Payload | None, Finding]:
        """
        Find out whether the effect happened, and do nothing: what was recorded, what the outside says, or that nobody knows.

        Waits until no attempt can be under way any more.
        """
        self._same_ledger()
        while True:
            entry = await self._entry()
            if entry is None:
                self._unknown(
                    f"the ledger has no entry under {self._call.key}: it was emptied, or restored from a backup"
                )
            if entry.state == "performed":
                return self._as_recorded(entry)
            if (busy := await self._patiently(lambda: self._store.ledger.busy(self._call.key))) is None:
                break
            await self._wait(busy)
        match entry.state:
            case "failed":
                return None, self._finding(entry, EffectState.FAILED, entry.error or "")
            case "planned" if self._told_begun:
                reason = "history says that it was attempted, and the ledger, restored from a backup perhaps, does not"
                return None, self._finding(entry, EffectState.UNKNOWN, reason)
            case "planned":
                return None, self._finding(entry, EffectState.NOT_ATTEMPTED, "no attempt came as far as the outside")
            case _:
                return await self._reconciled(entry)

    async def _reconciled(self, entry: LedgerEntry) -> tuple[Payload | None, Finding]:
        if self._repeatable:
            # The outside tells the repeat by the key, so nobody has to find out: it may be attempted again.
            return None, self._finding(entry, EffectState.UNKNOWN, entry.error or "no word came back", source="attempt")
        try:
            known = await self._asked()
        except Exception as failure:
            if activity.info().attempt < ASKING_AGAIN:
                raise
            known = CannotTell(f"it could not be asked ({type(failure).__name__}: {failure})")
        match known:
            case Happened(result, receipt):
                return await self._performed(carried(activity.payload_converter(), result), receipt, source="reconcile")
            case DidNotHappen():
                reason = (
                    f"the outside says so; the last attempt said: {entry.error}"
                    if entry.error
                    else "the outside says so"
                )
                entry = await self._patiently(lambda: self._store.ledger.failed(self._call.key, error=reason))
                if entry.state == "performed":
                    return self._as_recorded(entry)
                return None, self._finding(entry, EffectState.FAILED, reason, source="reconcile")
            case CannotTell(reason):
                told = f"{reason}; the last attempt said: {entry.error}" if entry.error else reason
                entry = await self._patiently(lambda: self._store.ledger.unknown(self._call.key, error=told))
                if entry.state == "performed":
                    return self._as_recorded(entry)
                return None, self._finding(entry, EffectState.UNKNOWN, told)

    # The ledger

    async def keep_lease(self) -> None:
        """Extend the lease for as long as the attempt lives: a third of it apart, for ever; beside the heartbeat."""
        while True:
            await asyncio.sleep(self._lease.seconds / 3)
            asked = elapsed()
            try:
                if await asyncio.to_thread(
                    self._store.ledger.renew, self._call.key, self._lease.holder, lease=self._lease.seconds
                ):
                    self._lease.extend(asked)
                elif self._lease.until:
                    self._lease.lose()
            except StoreUnavailable as away:
                activity.logger.warning("the store is away, the lease on %s is not extended: %s", self._call.id, away)

    @contextmanager
    def _held(self) -> Iterator[None]:
        keeping = asyncio.create_task(self.keep_lease())
        token = LEASE.set(self._lease)
        try:
            yield
        finally:
            keeping.cancel()
            LEASE.reset(token)

    def _same_ledger(self) -> None:
        if self._call.ledger_id is not None and self._call.ledger_id != self._store.ledger_id:
            self._unknown(
                f"it relies on ledger {self._call.ledger_id}, and this worker's store holds {self._store.ledger_id}. "
                "Whether it was attempted is recorded there; point the worker to that store",
                kind="LedgerMismatch",
            )

    def _arguments(self) -> tuple[JsonValue, str]:
        """The arguments as people may read them, and their digest (of a shared step: its key stands for them)."""
        shared = self._declaration.kind is None
        try:
            shown: JsonValue = plain(list(self._input.args))
        except NotJson as wrong:
            if shared:
                return None, digest(self._call.key)
            raise ApplicationError(
                f"{self._call.id}: an effect's arguments are recorded by digest and must be JSON: {wrong}",
                Finding(state=EffectState.NOT_ATTEMPTED, source="attempt", because=str(wrong)).model_dump(mode="json"),
                type="NotJson",
                non_retryable=True,
            ) from wrong
        data = canonical(shown)
        kept = shown if len(data) <= MAX_ARGUMENTS else data[:MAX_ARGUMENTS].decode(errors="ignore") + "..."
        return kept, digest(self._call.key if shared else shown)

    async def _entry(self) -> LedgerEntry | None:
        return await self._patiently(lambda: self._store.ledger.entry(self._call.key))

    async def _release(self, error: str) -> None:
        await self._patiently(lambda: self._store.ledger.release(self._call.key, self._lease.holder, error=error))

    async def _failed(self, error: str) -> LedgerEntry:
        return await self._patiently(
            lambda: self._store.ledger.failed(self._call.key, error=error, holder=self._lease.holder)
        )

    async def _wait(self, busy: Busy) -> None:
        self._beats.waits_for = (
            f"another attempt at {self._call.id} may be under way for another {busy.remaining:.0f} seconds"
        )
        activity.logger.info("%s waits: %s", self._call.id, self._beats.waits_for)
        await asyncio.sleep(min(max(busy.remaining, 0.02), 1.0))
        self._beats.waits_for = ""

    async def _patiently(self, record: Callable[[], T]) -> T:
        return await patiently(record, self._beats)

    # What is said

    def _proof(self) -> JsonValue:
        return self._lease.receipts[-1] if self._lease.receipts else None

    def _as_recorded(self, entry: LedgerEntry) -> tuple[Payload, Finding]:
        payload = restored(activity.payload_converter(), entry.result)
        return payload, self._finding(entry, EffectState.PERFORMED, source=entry.said_by or "ledger")

    def _finding(
        self, entry: LedgerEntry | None, state: EffectState, because: str = "", *, source: str = "ledger"
    ) -> Finding:
        return Finding(
            state=state,
            source=source,
            because=because[:2000],
            attempts=entry.attempts if entry else 0,
            receipt=entry.receipt if entry else None,
        )

    async def _block(self, reason: str, cause: BaseException | None = None) -> NoReturn:
        """Nobody knows whether this attempt's call happened: the ledger says so too."""
        holder = self._lease.holder
        entry = await self._patiently(lambda: self._store.ledger.unknown(self._call.key, error=reason, holder=holder))
        self._unknown(reason, entry, cause)

    def _unknown(
        self,
        reason: str,
        entry: LedgerEntry | None = None,
        cause: BaseException | None = None,
        *,
        kind: str = "EffectUnknown",
    ) -> NoReturn:
        raise ApplicationError(
            f"it is not known whether {self._call.id} happened ({reason}); it is not repeated on hope",
            self._finding(entry, EffectState.UNKNOWN, reason).model_dump(mode="json"),
            type=kind,
            non_retryable=True,
        ) from cause


def plan_of(call: Call, declaration: Declaration) -> Plan:
    """The ledger's entry for a call that was not planned before."""
    return Plan(
        effect=call.name,
        kind=declaration.kind.value if declaration.kind else "once",
        workflow_id=call.identity.workflow_id,
        branch=str(call.branch),
        visit=call.visit,
        generation=call.generation,
    )
