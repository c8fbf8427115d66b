"""What an attempt at an effect and a mere look at it share: the call, its ledger, and the words for what is known."""

import asyncio
import secrets
from collections.abc import Callable
from typing import NoReturn, TypeVar

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
from gatewright.store import Busy, LedgerEntry, Store

from .anyhow import called_anyhow
from .beats import Beats, patiently
from .declare import CannotTell, Declaration, DidNotHappen, EffectKind, Happened, Reconciliation
from .elsewhere import made_elsewhere
from .lease import Lease
from .results import carried, recorded, restored
from .wire import begun

T = TypeVar("T")

MAX_ARGUMENTS = 8 * 1024
"""Up to which size, as JSON in bytes, the ledger keeps an effect's arguments for people to read."""

DEFAULT_LEASE = 10.0
"""How long a lease runs where the activity has no heartbeat time-out, in seconds."""


class Attending:
    """One call of one effect, as the activity side attends to it."""

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
        self.call = call
        self.errand = errand
        self.declaration = declaration
        self.input = input
        self.store = store
        self.client = client
        self.outbound = outbound
        self.beats = beats
        self.ledger = store.ledger
        self.repeatable = declaration.kind in {None, EffectKind.KEYED}
        heartbeat = outbound.info().heartbeat_timeout
        self.lease = Lease(call.key, secrets.token_hex(16), heartbeat.total_seconds() if heartbeat else DEFAULT_LEASE)
        self.told_begun = begun(outbound.info().heartbeat_details) or bool(errand and errand.begun)

    async def asked(self) -> Reconciliation:
        """What the outside says; nothing where it cannot be asked, or says what cannot be understood."""
        reconcile = self.declaration.reconcile
        if reconcile is None:
            return CannotTell("an earlier attempt began it and ended without a word, and the outside cannot be asked")
        said = await called_anyhow(reconcile, self.call, *self.input.args)
        if isinstance(said, DidNotHappen | CannotTell):
            return said
        if not isinstance(said, Happened):
            return CannotTell(f"its reconcile= returned {said!r}, and not Happened, DidNotHappen or CannotTell")
        try:
            carried(activity.payload_converter(), said.result)
            return Happened(said.result, plain(said.receipt))
        except Exception as wrong:  # noqa: BLE001 - whatever a converter raises
            return CannotTell(f"it says that it happened, and what it gives cannot be written as JSON: {wrong}")

    async def performed(self, payload: Payload, proof: JsonValue, *, source: str) -> tuple[Payload, Finding]:
        """Write down that it happened; what stands, which is the first result."""
        kept = recorded(payload)
        entry = await self.patiently(lambda: self.ledger.performed(self.call.key, result=kept, receipt=proof))
        if entry.result != kept:
            return self.as_recorded(entry)
        return payload, self.finding(entry, EffectState.PERFORMED, source=source)

    # The ledger

    def same_ledger(self) -> None:
        """Refuse, as not known, where the run relies on another ledger than this worker has."""
        if self.call.ledger_id is not None and self.call.ledger_id != self.store.ledger_id:
            self.unknown(
                f"it relies on ledger {self.call.ledger_id}, and this worker's store holds {self.store.ledger_id}. "
                "Whether it was attempted is recorded there; point the worker to that store",
                kind="LedgerMismatch",
            )

    def arguments(self) -> tuple[JsonValue, str]:
        """The arguments as people may read them, and their digest (of a shared step: its key stands for them)."""
        shared = self.declaration.kind is None
        try:
            shown: JsonValue = plain(list(self.input.args))
        except NotJson as wrong:
            if shared:
                return None, digest(self.call.key)
            raise ApplicationError(
                f"{self.call.id}: an effect's arguments are recorded by digest and must be JSON: {wrong}",
                Finding(state=EffectState.NOT_ATTEMPTED, source="attempt", because=str(wrong)).model_dump(mode="json"),
                type="NotJson",
                non_retryable=True,
            ) from wrong
        data = canonical(shown)
        kept = shown if len(data) <= MAX_ARGUMENTS else data[:MAX_ARGUMENTS].decode(errors="ignore") + "..."
        return kept, digest(self.call.key if shared else shown)

    async def entry(self) -> LedgerEntry | None:
        """What stands under the key."""
        return await self.patiently(lambda: self.ledger.entry(self.call.key))

    async def begun_elsewhere(self, entry: LedgerEntry, state: str) -> bool:
        """
        Whether an execution before a reset had come as far as the outside with this call, of which `state` says nothing.

        A ledger that was restored from a backup has `failed` of an attempt
        before the one that did it. What a person has said since then is asked by
        nobody again.
        """
        if self.client is None or self.errand is None or not self.errand.reset:
            return False
        if state not in {"planned", "failed"} or entry.resolution is not None or entry.successor is not None:
            return False
        return await made_elsewhere(self.client, self.call, self.outbound.info().workflow_run_id) == "begun"

    async def release(self, error: str, *, reached: bool = False) -> None:
        """
        Give the lease back.

        Where the outside was `reached` it may be at its call still, and a kind
        whose calls must not meet waits for that.
        """
        reached = reached and not self.repeatable
        await self.patiently(
            lambda: self.ledger.release(self.call.key, self.lease.holder, error=error, reached=reached)
        )

    async def failed(self, error: str) -> LedgerEntry:
        """Write down that it is known not to have happened, as far as this attempt still has the lease."""
        return await self.patiently(lambda: self.ledger.failed(self.call.key, error=error, holder=self.lease.holder))

    async def wait(self, busy: Busy) -> None:
        """Wait a while for another attempt to be over, and say so."""
        self.beats.waits_for = (
            f"another attempt at {self.call.id} may be under way for another {busy.remaining:.0f} seconds"
        )
        activity.logger.info("%s waits: %s", self.call.id, self.beats.waits_for)
        await asyncio.sleep(min(max(busy.remaining, 0.02), 1.0))
        self.beats.waits_for = ""

    async def patiently(self, record: Callable[[], T]) -> T:
        """Do one thing in the store, for as long as it is away."""
        return await patiently(record, self.beats)

    # What is said

    def proof(self) -> JsonValue:
        """What the effect gave as the outside's own proof."""
        return self.lease.receipts[-1] if self.lease.receipts else None

    def as_recorded(self, entry: LedgerEntry) -> tuple[Payload, Finding]:
        """The result that the ledger has, as Temporal carries it."""
        payload = restored(activity.payload_converter(), entry.result)
        return payload, self.finding(entry, EffectState.PERFORMED, source=entry.said_by or "ledger")

    def finding(
        self, entry: LedgerEntry | None, state: EffectState, because: str = "", *, source: str = "ledger"
    ) -> Finding:
        """What is known, in the form that travels to the run."""
        return Finding(
            state=state,
            source=source,
            because=because[:2000],
            attempts=entry.attempts if entry else 0,
            receipt=entry.receipt if entry else None,
        )

    async def block(self, reason: str, cause: BaseException | None = None, *, reached: bool = False) -> NoReturn:
        """Nobody knows whether the call happened: the ledger says so too. `reached` as for `release`."""
        holder = self.lease.holder
        entry = await self.patiently(
            lambda: self.ledger.unknown(self.call.key, error=reason, holder=holder, reached=reached)
        )
        self.unknown(reason, entry, cause)

    def unknown(
        self,
        reason: str,
        entry: LedgerEntry | None = None,
        cause: BaseException | None = None,
        *,
        kind: str = "EffectUnknown",
    ) -> NoReturn:
        """End the attempt with the finding that nobody knows; it is not tried again by itself."""
        raise ApplicationError(
            f"it is not known whether {self.call.id} happened ({reason}); it is not repeated on hope",
            self.finding(entry, EffectState.UNKNOWN, reason).model_dump(mode="json"),
            type=kind,
            non_retryable=True,
        ) from cause
