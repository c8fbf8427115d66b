"""
What a run makes of an effect: planned, attempted, and, where an attempt is lost, found out about and decided.

    plan ── run ── performed ──────────────────────────────────────────> result
             └──── failed ── find out ── decide
                      CONTINUE      it happened after all ─────────────> result
                      REPLAY_CALLS  known not to have happened: failed:<effect>, and this call again
                      BLOCKED       blocked:<effect>: happened, did_not_happen, abort

The rules are the protocol's (`decide`); this file carries findings in and calls
out. A call that is replayed is the one that the decision names, under the key of
its next generation. A keyed effect whose outside may be told again is repeated
under the same key.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as ActivityTimeout

from gatewright.effects.declare import EffectKind
from gatewright.effects.wire import REPLACED, begun, never_reached, told
from gatewright.protocol.call import Call
from gatewright.protocol.canonical import plain
from gatewright.protocol.decision import Blocked, Continue, Decision, EffectKnowledge, ReplayCalls, decide
from gatewright.protocol.finding import Errand, Finding
from gatewright.protocol.receipt import EffectState
from gatewright.protocol.recovery import gate_when_blocked

from . import names
from .errors import CallAbortedError, innermost, innermost_type
from .performing import Came, Ended, Performance, Performing, Wanted
from .planning import PlanEffect, Planned, Resolved, ResolveEffect

LEDGER_RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10))
"""The ledger is asked again for as long as the store is away: nothing is performed meanwhile."""

LEDGER_TIMEOUT = timedelta(minutes=10)
"""How long the ledger may take: after a reset, histories are read."""

LEDGER_HEARTBEAT = timedelta(seconds=20)
"""How long a worker that died while it asked the ledger goes unnoticed."""


@dataclass(frozen=True)
class Next:
    """The call to make now; or, where something is `known` that decides first, the call that it is known of."""

    call: Call
    known: EffectKnowledge | None = None
    failed: ActivityError | None = None


async def perform(performing: Performing, wanted: Wanted) -> Any:
    """Perform one step or effect; see `Frame.perform`."""
    visit = performing.book.reserve_call(wanted.declaration.name)
    pending = f"{wanted.declaration.name}#{visit}"
    performing.pending[pending] = None
    try:
        if not wanted.declaration.effect:
            return await Performance(performing, wanted, visit).step()
        effect = EffectPerformance(performing, wanted, visit)
        if not workflow.patched(names.PATCH_EFFECTS):
            return await effect.as_first_released()
        return await effect.perform()
    finally:
        del performing.pending[pending]


class EffectPerformance(Performance):
    """One `Frame.perform` of an effect."""

    async def perform(self) -> Any:
        """Perform an effect: planned, attempted, and, where an attempt is lost, found out about and decided."""
        self._planned = True
        planned = await self._plan(self._call(ledger_id=self._book.ledger_id))
        self._consume(planned.call)
        now: Next | Ended = planned
        while isinstance(now, Next):
            call, known, failed = now.call, now.known, now.failed
            if known is None:
                came = await self._activity(call, Errand(reset=self._run.reset))
                if came.failed is None:
                    return self._done(call, came)
                self._remember_cancelled(came)
                if innermost_type(came.failed) == REPLACED and self._cancelled is None:
                    now = await self._plan(call.again(generation=call.generation + 1), replaces=call)
                    continue
                known, failed = await self._found_out(call, came.failed), came.failed
            now = await self._decided(decide(known, self._book), failed)
        return now.value

    async def _decided(self, decision: Decision, failed: ActivityError | None) -> Next | Ended:
        match decision:
            case Continue(performed=EffectKnowledge(call=call)):
                return await self._happened(call)
            case ReplayCalls() | Blocked() if self._cancelled is not None:
                # It is found out and recorded, and nobody is asked what follows: nothing does.
                self._write_failed(decision.call, decision.because, failed)
                raise self._cancelled
            case ReplayCalls():
                ended = await self._after_failure(decision.call, decision.because, failed)
                return ended or await self._plan(decision.replayed, replaces=decision.call)
            case Blocked() if self._may_tell_again(decision.because):
                ended = await self._after_failure(decision.call, decision.because, failed)
                return ended or Next(decision.call)
            case Blocked():
                return await self._handed_over(decision, failed)
            case _:
                msg = f"what is known of an effect never decides {decision.decision}"
                raise AssertionError(msg)

    async def _handed_over(self, blocked: Blocked, failed: ActivityError | None) -> Next | Ended:
        """A person finds out whether a call happened; what the ledger learned meanwhile beats the word."""
        wanted, call = self._wanted, blocked.call
        failure = self._write_failed(call, blocked.because, failed)
        answered = await self._run.ask(
            gate_when_blocked(
                blocked,
                kind=self._kind,
                arguments=_named(wanted.function, wanted.args),
                returns=self._returns,
                operators=self._run.operators,
            )
        )
        said = answered.value
        if said.decision == "abort":
            raise CallAbortedError(failure, answered.principal, said.comment) from failed
        word = ResolveEffect(
            call=call,
            kind=self._kind,
            happened=said.decision == "happened",
            by=answered.principal,
            comment=said.comment,
            receipt=said.receipt,
            result=plain(said.result),
            doubted=blocked.because.source == "history",
        )
        try:
            resolved = Resolved.model_validate(await self._ledger(names.RESOLVE_EFFECT, word, f"resolve {call.id}"))
        except ActivityError as refused:
            if is_cancelled_exception(refused) or not workflow.patched(names.PATCH_ASKED_AGAIN):
                raise
            words = f"{said.decision}, as {answered.principal} said, could not be written down: {innermost(refused)}"
            return Next(call, _unknown(call, words), failed)
        # Whoever decided has seen which ledger it was: the run relies on the one that has the word.
        self._book.ledger_id = resolved.ledger_id
        known = resolved.finding.about(call.again(generation=call.generation, ledger_id=resolved.ledger_id))
        if said.decision == "did_not_happen":
            decision = decide(known, self._book)
            if isinstance(decision, ReplayCalls):
                # Decided by that very answer: nobody is asked once more.
                return await self._plan(decision.replayed, replaces=decision.call)
            if failed is not None and innermost_type(failed) == "LedgerConflict":
                # It was performed with other arguments: nobody has said that its result is the one to go on with.
                return Next(call, blocked.because, failed)
        return Next(known.call, known, failed)

    async def as_first_released(self) -> Any:
        """An effect of a run that was opened before effects were planned: a failure fails the run."""
        listing = self._run.listing
        if self._book.ledger_id is None and not (listing.steady and self._book.gates):
            # Every gate brings it along. Whether one was asked is the same on replay; whether it has been listed is not.
            self._run.remember_ledger(await listing.ledger())
        call = self._call(ledger_id=self._book.ledger_id)
        self._consume(call)
        came = await self._activity(call, None)
        if came.failed is not None:
            self._write_failed(call, None, came.failed)
            raise came.failed
        return self._done(call, came)

    async def _plan(self, call: Call, *, replaces: Call | None = None) -> Next:
        """The call under the generation that counts, or what forbids to make it."""
        asked = PlanEffect(
            call=call, kind=self._kind, replaces=replaces.key if replaces else None, reset=self._run.reset
        )
        try:
            planned = Planned.model_validate(await self._ledger(names.PLAN_EFFECT, asked, f"plan {call.id}"))
        except ActivityError as failed:
            if is_cancelled_exception(failed):
                raise
            if self._run.reset and workflow.patched(names.PATCH_LOOKED):
                # This execution has not attempted it. Of those before it only the ledger knows, or history, that it would ask.
                return Next(call, _unknown(call, f"the ledger could not be asked: {innermost(failed)}"), failed)
            nothing = Finding(state=EffectState.NOT_ATTEMPTED, source="attempt", because=innermost(failed)[:2000])
            return Next(call, nothing.about(call), failed)
        if planned.finding is not None:
            stands = replaces or call
            return Next(stands, planned.finding.about(stands))
        self._run.remember_ledger(planned.ledger_id)
        return Next(call.again(generation=planned.generation, ledger_id=planned.ledger_id))

    async def _found_out(self, call: Call, failed: ActivityError) -> EffectKnowledge:
        """What is known of a call whose activity has failed for good."""
        if is_cancelled_exception(failed):
            self._write_failed(call, None, failed)
            raise failed
        cause, reached = failed.cause, True
        if isinstance(cause, ApplicationError):
            finding = told(cause)
            if finding is None and never_reached(cause):
                finding = Finding(state=EffectState.NOT_ATTEMPTED, source="attempt", because=cause.message)
            if finding is not None and (
                # It is the last attempt that says so, and speaks for itself alone.
                finding.state is not EffectState.NOT_ATTEMPTED
                or not workflow.patched(names.PATCH_LOOKED)
                or await self._never_begun(call)
            ):
                return finding.about(call)
        elif isinstance(cause, ActivityTimeout):
            reached = begun(cause.last_heartbeat_details)
        came = await self._activity(call, Errand(mode="examine", begun=reached, reset=self._run.reset))
        self._remember_cancelled(came)
        if came.finding is not None:
            return came.finding.about(call)
        said = told(came.failed.cause) if came.failed else None
        words = innermost(came.failed) if came.failed else "the activity side said nothing"
        return said.about(call) if said is not None else _unknown(call, words)

    async def _never_begun(self, call: Call) -> bool:
        """Whether the ledger knows of no attempt at it; false where it cannot be asked."""
        look = PlanEffect(call=call, kind=self._kind, look=True)
        try:
            planned = Planned.model_validate(await self._ledger(names.PLAN_EFFECT, look, f"was {call.id} attempted?"))
        except ActivityError as failed:
            if is_cancelled_exception(failed):
                raise
            return False
        return planned.finding is not None and planned.finding.state is EffectState.NOT_ATTEMPTED

    async def _happened(self, call: Call) -> Next | Ended:
        """The recorded result of a call that is known to have happened; where it is gone since, a person is asked."""
        came = await self._activity(call, Errand(mode="examine", begun=True))
        if came.failed is not None and (
            is_cancelled_exception(came.failed) or not workflow.patched(names.PATCH_ASKED_AGAIN)
        ):
            raise came.failed
        if came.failed is None:
            return Ended(self._done(call, came))
        self._remember_cancelled(came)
        return Next(call, _unknown(call, innermost(came.failed)), came.failed)

    def _remember_cancelled(self, came: Came) -> None:
        """A cancellation waits until it is recorded what is known of the effect, and then ends the call."""
        if came.cancelled is not None and workflow.patched(names.PATCH_CANCELLED):
            self._cancelled = came.cancelled

    def _may_tell_again(self, known: EffectKnowledge) -> bool:
        """Whether attempting it again under the same key is safe although nobody knows whether it happened."""
        return self._wanted.declaration.kind is EffectKind.KEYED and known.source == "attempt"

    async def _ledger(self, activity: str, asked: PlanEffect | ResolveEffect, summary: str) -> Any:
        """Ask the ledger through an ordinary activity: history then tells what it had."""
        self._run.running += 1
        try:
            return await workflow.execute_activity(
                activity,
                # Without defaults, so that a worker of the release before reads it too.
                asked.model_dump(mode="json", exclude_defaults=True),
                start_to_close_timeout=LEDGER_TIMEOUT,
                heartbeat_timeout=LEDGER_HEARTBEAT,
                retry_policy=LEDGER_RETRIES,
                summary=summary,
            )
        finally:
            self._run.running -= 1


def _unknown(call: Call, because: str) -> EffectKnowledge:
    """That nobody knows whether the call happened."""
    return Finding(state=EffectState.UNKNOWN, because=because[:2000]).about(call)


def _named(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments by the names of their parameters."""
    try:
        return dict(inspect.signature(function).bind(*args).arguments)
    except (TypeError, ValueError):
        return {f"argument {number}": argument for number, argument in enumerate(args, start=1)}
