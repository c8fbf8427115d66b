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
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from pydantic import JsonValue
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

from gatewright.protocol.call import Call
from gatewright.protocol.canonical import canonical
from gatewright.protocol.finding import Finding
from gatewright.protocol.receipt import EffectState
from gatewright.store import Begun, Busy, CallReplaced, LedgerConflict, Plan, StoreError, StoreUnavailable

from .attending import Attending
from .beats import NotCurrent
from .declare import CannotTell, Declaration, DidNotHappen, EffectKind
from .lease import LEASE, LeaseLost, elapsed
from .results import carried
from .wire import REPLACED

SEEN_THROUGH = 35.0
"""How long an attempt that is cancelled waits for what its thread asks of the store, in seconds: longer than the store waits for a lock."""


class NotPerformed(Exception):  # noqa: N818 - it says what is known, as ledger states do
    """
    Raise it from an effect to say that this attempt is known not to have done anything; it may be repeated.

    Of an attempt before it that ended without a word it says nothing: a keyed
    effect is then attempted again under the same key.
    """


class Attempt(Attending):
    """One attempt at the call of one effect."""

    async def perform(self, function: Callable[[], Awaitable[Any]]) -> tuple[Payload, Finding]:
        """
        Have the effect performed once for its key, and give back its result and what is known.

        `function` is the effect's own code. Raises `ApplicationError`: type
        `EffectUnknown` (not retryable), `NotPerformed` (may be tried again), or
        what the code itself raised.
        """
        self.same_ledger()
        taken = await self._begin()
        if not taken.taken:
            return self.as_recorded(taken.entry)
        try:
            with self._held():
                try:
                    if (known := await self._before(taken)) is not None:
                        return known
                    await self._reach(taken)
                except asyncio.CancelledError:
                    await self._give_back(taken, "the attempt was cancelled before it reached the outside")
                    raise
                except StoreError:
                    raise
                except Exception as failure:
                    # Of a lease that has been given back with a finding nothing is changed.
                    await self._give_back(taken, f"the attempt did not reach the outside: {failure}")
                    raise
                return await self._act(function, taken)
        except StoreError as lost:
            await self._not_recorded(lost)

    async def _not_recorded(self, refused: StoreError) -> NoReturn:
        """The ledger has an intent, and takes nothing more: nobody will know what came of it."""
        try:
            if await self.entry() is not None:
                reason = f"the ledger could not write down what came of it: {refused}"
                await self.block(reason, refused, reached=True)
        except StoreError as again:
            self.unknown(f"the ledger cannot be used: {again}", None, refused)
        # Where the entry is gone, so is all that could be known.
        self.unknown(f"the ledger lost its entry while the attempt was under way: {refused}", None, refused)

    async def _begin(self) -> Begun:
        """The lease on the key; waits while another attempt may still be under way."""
        shown, arguments = self.arguments()
        while True:
            asked = elapsed()
            beginning = asyncio.create_task(self._ask_for_the_lease(shown, arguments))
            try:
                begin = await asyncio.shield(beginning)
            except asyncio.CancelledError:
                await self._not_begun(beginning)
                raise
            match begin:
                case Begun():
                    self.lease.extend(asked)
                    return begin
                case Busy():
                    await self.wait(begin)
                case None:
                    self.unknown(
                        f"the ledger has no entry under {self.call.key}, although this call was planned in it: it was "
                        "emptied, or restored from a backup that is older than the call"
                    )

    async def _ask_for_the_lease(self, shown: JsonValue, arguments: str) -> Begun | Busy | None:
        try:
            return await self.patiently(
                lambda: self.ledger.begin(
                    self.call.key,
                    holder=self.lease.holder,
                    lease=self.lease.seconds,
                    call_seconds=self.declaration.call_timeout.total_seconds(),
                    arguments_digest=arguments,
                    arguments=shown,
                    alone=not self.repeatable,
                    new=None if self.errand else plan_of(self.call, self.declaration),
                )
            )
        except CallReplaced as replaced:
            # A run that was reset to before the decision: it goes on with what was decided.
            finding = self.finding(replaced.entry, EffectState.FAILED, str(replaced))
            raise ApplicationError(
                str(replaced), finding.model_dump(mode="json"), type=REPLACED, non_retryable=True
            ) from replaced
        except LedgerConflict as conflict:
            self.unknown(str(conflict), conflict.entry, conflict, kind="LedgerConflict")

    async def _not_begun(self, beginning: asyncio.Task[Begun | Busy | None]) -> None:
        """The attempt is cancelled: what its thread still asks of the ledger may take the lease for nobody."""
        await asyncio.wait({beginning}, timeout=SEEN_THROUGH)
        if not beginning.done():
            beginning.cancel()
        elif not beginning.cancelled() and beginning.exception() is None:
            await self._give_back(beginning.result(), "the attempt was cancelled before it reached the outside")

    async def _give_back(self, taken: Begun | Busy | None, reason: str) -> None:
        """The attempt ends before it has reached the outside: what was known before it is known after it."""
        if not isinstance(taken, Begun) or not taken.taken:
            return
        if taken.before in {"planned", "failed"}:
            await self.failed(reason)
        else:
            await self.release(reason)

    async def _before(self, taken: Begun) -> tuple[Payload, Finding] | None:
        """Settle what an earlier attempt has left; the outcome where there is one, None where the effect is to be done."""
        if (taken.before == "planned" and self.told_begun) or await self.begun_elsewhere(taken.entry, taken.before):
            knows = "knows of none" if taken.before == "planned" else "says that nothing has happened"
            await self.block(
                f"Temporal's history says that an attempt was about to reach the outside, and the ledger {knows}: "
                "it was restored from a backup that is older than that attempt"
            )
        if taken.before not in {"intended", "unknown"} or self.repeatable:
            return None
        known = await self.asked()
        if isinstance(known, CannotTell):
            await self.block(known.reason)
        if isinstance(known, DidNotHappen):
            return None
        payload = carried(activity.payload_converter(), known.result)
        return await self.performed(payload, known.receipt, source="reconcile")

    async def _reach(self, taken: Begun) -> None:
        """The last step before the outside: Temporal knows, and the lease still runs."""
        try:
            await self.beats.witness()
            self.lease.check()
        except (NotCurrent, LeaseLost) as given_up:
            reason = f"the attempt was given up before it reached the outside: {given_up}"
            await self._give_back(taken, reason)
            raise ApplicationError(reason, type=type(given_up).__name__) from given_up

    async def _act(self, function: Callable[[], Awaitable[Any]], taken: Begun) -> tuple[Payload, Finding]:
        try:
            result = await function()
        except NotPerformed as failure:
            finding = await self._not_performed(str(failure), taken)
            raise ApplicationError(str(failure), finding.model_dump(mode="json"), type="NotPerformed") from failure
        except asyncio.CancelledError:
            if not inspect.iscoroutinefunction(self.input.fn):
                # Its thread may be at it still: nobody may take over before the lease and the call's time are over.
                raise
            await self.release("the attempt was cancelled", reached=True)
            raise
        except Exception as failure:
            words = f"{type(failure).__name__}: {failure}"
            if self.declaration.kind is EffectKind.OPAQUE:
                reason = f"the attempt failed ({words}), and the outside cannot be asked"
                await self.block(reason, failure, reached=True)
            await self.release(words, reached=True)
            raise
        try:
            payload = carried(activity.payload_converter(), result)
        except Exception as wrong:  # noqa: BLE001 - whatever a converter raises
            return await self._lost_result(wrong)
        return await self.performed(payload, self.proof(), source="attempt")

    async def _lost_result(self, wrong: Exception) -> tuple[Payload, Finding]:
        """The effect came back with something that nobody can be told; what stands where another attempt has told it."""
        if self.declaration.kind is None:
            # A step: whoever shares it is not given a result that it never had.
            lost = f"its result cannot be written as JSON: {wrong}"
            await self.release(lost)
            raise ApplicationError(f"{self.call.id}: {lost}", type="NotJson", non_retryable=True) from wrong
        proof = self.proof()
        shown = "" if proof is None else f"; the outside gave {canonical(proof).decode()}"
        lost = f"it was performed, and its result is lost, because it cannot be written as JSON: {wrong}{shown}"
        holder = self.lease.holder
        entry = await self.patiently(
            lambda: self.ledger.unknown(self.call.key, error=lost, holder=holder, receipt=proof)
        )
        if entry.state == "performed":
            return self.as_recorded(entry)
        raise ApplicationError(
            f"{self.call.id}: {lost}",
            self.finding(entry, EffectState.UNKNOWN, lost).model_dump(mode="json"),
            type="NotJson",
            non_retryable=True,
        ) from wrong

    async def _not_performed(self, reason: str, taken: Begun) -> Finding:
        """What is known where the attempt says that it did nothing."""
        if self.declaration.kind is EffectKind.KEYED and taken.before in {"intended", "unknown"}:
            # It speaks for itself alone: the attempt before it may have been heard, and only the same key tells the outside so.
            await self.release(reason)
            return self.finding(taken.entry, EffectState.UNKNOWN, reason, source="attempt")
        return self.finding(await self.failed(reason), EffectState.FAILED, reason, source="attempt")

    # The lease

    async def _keep_lease(self) -> None:
        """Extend the lease for as long as the attempt lives: a third of it apart, for ever; beside the heartbeat."""
        while True:
            await asyncio.sleep(self.lease.seconds / 3)
            asked = elapsed()
            try:
                if await asyncio.to_thread(
                    self.ledger.renew, self.call.key, self.lease.holder, lease=self.lease.seconds
                ):
                    self.lease.extend(asked)
                elif self.lease.until:
                    self.lease.lose()
            except StoreUnavailable as away:
                activity.logger.warning("the store is away, the lease on %s is not extended: %s", self.call.id, away)

    @contextmanager
    def _held(self) -> Iterator[None]:
        keeping = asyncio.create_task(self._keep_lease())
        token = LEASE.set(self.lease)
        try:
            yield
        finally:
            keeping.cancel()
            LEASE.reset(token)


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
