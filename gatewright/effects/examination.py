"""Finding out whether an effect happened, and doing nothing."""

from temporalio import activity
from temporalio.api.common.v1 import Payload

from gatewright.protocol.finding import Finding
from gatewright.protocol.receipt import EffectState
from gatewright.store import LedgerEntry, StoreError

from .attending import Attending
from .declare import CannotTell, DidNotHappen, Happened
from .results import carried

ASKING_AGAIN = 3
"""How often an outside that cannot be asked now is asked, before nobody can tell."""


class Examination(Attending):
    """One look at the call of one effect."""

    async def examine(self) -> tuple[Payload | None, Finding]:
        """
        Find out whether the effect happened, and do nothing: what was recorded, what the outside says, or that nobody knows.

        Waits until no attempt can be under way any more. Raises `ApplicationError`
        of type `EffectUnknown` (not retryable) where the ledger has lost the
        call, or cannot be used.
        """
        self.same_ledger()
        try:
            return await self._looked()
        except StoreError as refused:
            self.unknown(f"the ledger cannot be used: {refused}", None, refused)

    async def _looked(self) -> tuple[Payload | None, Finding]:
        while True:
            entry = await self.entry()
            if entry is None:
                self.unknown(
                    f"the ledger has no entry under {self.call.key}: it was emptied, or restored from a backup"
                )
            if entry.state == "performed":
                return self.as_recorded(entry)
            if (busy := await self.patiently(lambda: self.ledger.busy(self.call.key))) is None:
                break
            await self.wait(busy)
        if await self.begun_elsewhere(entry, entry.state):
            reason = "an execution before the reset made this call, and the ledger, restored from a backup perhaps, says that nothing happened"
            return None, self.finding(entry, EffectState.UNKNOWN, reason, source="history")
        match entry.state:
            case "failed":
                return None, self.finding(entry, EffectState.FAILED, entry.error or "")
            case "planned" if self.told_begun:
                reason = "history says that it was attempted, and the ledger, restored from a backup perhaps, does not"
                return None, self.finding(entry, EffectState.UNKNOWN, reason)
            case "planned":
                return None, self.finding(entry, EffectState.NOT_ATTEMPTED, "no attempt came as far as the outside")
            case _:
                return await self._reconciled(entry)

    async def _reconciled(self, entry: LedgerEntry) -> tuple[Payload | None, Finding]:
        if self.repeatable:
            # The outside tells the repeat by the key, so nobody has to find out: it may be attempted again.
            return None, self.finding(entry, EffectState.UNKNOWN, entry.error or "no word came back", source="attempt")
        try:
            known = await self.asked()
        except Exception as failure:
            if activity.info().attempt < ASKING_AGAIN:
                raise
            known = CannotTell(f"it could not be asked ({type(failure).__name__}: {failure})")
        match known:
            case Happened(result, receipt):
                return await self.performed(carried(activity.payload_converter(), result), receipt, source="reconcile")
            case DidNotHappen():
                reason = (
                    f"the outside says so; the last attempt said: {entry.error}"
                    if entry.error
                    else "the outside says so"
                )
                entry = await self.patiently(lambda: self.ledger.failed(self.call.key, error=reason))
                if entry.state == "performed":
                    return self.as_recorded(entry)
                return None, self.finding(entry, EffectState.FAILED, reason, source="reconcile")
            case CannotTell(reason):
                told = f"{reason}; the last attempt said: {entry.error}" if entry.error else reason
                entry = await self.patiently(lambda: self.ledger.unknown(self.call.key, error=told))
                if entry.state == "performed":
                    return self.as_recorded(entry)
                return None, self.finding(entry, EffectState.UNKNOWN, told)
