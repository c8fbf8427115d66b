"""
How a run performs a step, and what follows a failure: `failed:<step>` asks whether to retry, to skip or to abort.

What effects have besides, a ledger and doubts, is in `deciding.py`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, RetryState, is_cancelled_exception

from gatewright.effects.declare import Declaration, OnFailure
from gatewright.effects.results import finding_of, recorded
from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.canonical import digest, plain
from gatewright.protocol.decision import EffectKnowledge
from gatewright.protocol.entries import Consumed, Performed
from gatewright.protocol.finding import Errand, Finding
from gatewright.protocol.gate import Gate
from gatewright.protocol.identity import BranchPath
from gatewright.protocol.receipt import EffectFact, EffectState, Receipt
from gatewright.protocol.recovery import CallFailure, gate_after_failure

from . import names
from .asking import Answered
from .calls import Route, activity_options, awaited, kept, seen_through
from .errors import CallAbortedError, innermost, innermost_type
from .listing import Listing
from .outbound import calling

EXAMINED = 10
"""How often it is looked whether an effect happened, killed workers included, before a person is asked."""


@dataclass(frozen=True)
class Wanted:
    """What `Frame.perform` was asked for."""

    function: Callable[..., Any]
    declaration: Declaration
    args: tuple[Any, ...]
    authorised_by: Answered[Any] | None
    delta: dict[str, Any] | None
    route: Route
    on_failure: OnFailure
    on_skip: tuple[Any, ...]
    """The value that the pipeline goes on with where it can do without; empty where it cannot."""
    options: dict[str, Any]


@dataclass(frozen=True)
class Came:
    """What an activity came back with: a result and what is known of it, or a failure."""

    payload: Any = None
    finding: Finding | None = None
    failed: ActivityError | None = None
    cancelled: BaseException | None = None


@dataclass(frozen=True)
class Ended:
    """What `perform` returns."""

    value: Any


class Performing:
    """What the steps and effects of one run share. `reset`: the execution repeats what another has done."""

    def __init__(
        self,
        book: Book,
        branch: BranchPath,
        listing: Listing,
        ask: Callable[[Gate[Any]], Awaitable[Answered[Any]]],
        *,
        operators: tuple[str, ...] = (),
        reset: bool = False,
    ) -> None:
        self.book = book
        self.branch = branch
        self.listing = listing
        self.ask = ask
        self.operators = operators
        self.reset = reset
        self.running = 0
        """How many steps and effects run now."""
        self.pending: dict[str, None] = {}
        """The calls that are not over, by their ids: they run, or wait for a person."""

    def remember_ledger(self, ledger_id: str | None) -> None:
        """The first ledger that the run met is the one it relies on: another one is found out when an effect is called."""
        if self.book.ledger_id is None:
            self.book.ledger_id = ledger_id


class Performance:
    """One `Frame.perform`: a call, and those that come in its place."""

    def __init__(self, performing: Performing, wanted: Wanted, visit: int) -> None:
        self._run = performing
        self._book = performing.book
        self._wanted = wanted
        self._visit = visit
        self._planned = False
        """Whether the effect is planned in the ledger; of a run that was opened by an earlier release it is not."""
        self._cancelled: BaseException | None = None
        """The cancellation that came while an activity ran which failed: what is known is recorded before it counts."""
        self._started = 0
        """How many activities have been started for it: each has an id of its own."""

    # A step

    async def step(self) -> Any:
        """Run a step; a person decides what follows where it has failed for good."""
        call = self._call()
        self._consume(call)
        while True:
            came = await self._activity(call, None)
            if came.failed is None:
                return self._done(call, came)
            ended = await self._after_failure(call, None, came.failed)
            if ended is not None:
                return ended.value
            call = call.again(generation=call.generation + 1)

    # What a person says after a failure

    async def _after_failure(
        self, call: Call, known: EffectKnowledge | None, failed: ActivityError | None
    ) -> Ended | None:
        """None where it is to be tried again, and the value to go on with where it is skipped."""
        wanted = self._wanted
        failure = self._write_failed(call, known, failed)
        if failed is not None and (
            # In a run of an earlier release, and where the pipeline says so, it is the run that fails.
            is_cancelled_exception(failed) or wanted.on_failure == "fail" or not workflow.patched(names.PATCH_EFFECTS)
        ):
            raise failed
        gate = gate_after_failure(failure, may_skip=bool(wanted.on_skip), operators=self._run.operators)
        answered = await self._run.ask(gate)
        match answered.value.decision:
            case "retry":
                return None
            case "skip":
                output, output_digest = kept(wanted.on_skip[0])
                skipped = Performed(
                    at=workflow.now(), call=call, outcome="skipped", output=output, output_digest=output_digest
                )
                self._book.write(skipped)
                return Ended(wanted.on_skip[0])
            case _:
                raise CallAbortedError(failure, answered.principal, answered.value.comment) from failed

    # Activities

    async def _activity(self, call: Call, errand: Errand | None) -> Came:
        """Run the call's activity: the step or effect itself, or only the question whether it happened."""
        wanted, declaration = self._wanted, self._wanted.declaration
        options = activity_options(declaration, wanted.options)
        activity_id = call.id
        if errand is not None and errand.mode == "examine":
            activity_id = f"{call.id}?{self._started}"
            options = {
                "task_queue": options.get("task_queue"),
                # Long enough to wait for whatever may still be under way.
                "start_to_close_timeout": declaration.timeout + 2 * declaration.call_timeout,
                "heartbeat_timeout": declaration.heartbeat,
                "retry_policy": RetryPolicy(maximum_attempts=EXAMINED),
                "summary": f"did {call.id} happen?",
            }
        elif self._started and not call.generation:
            activity_id = f"{call.id}+{self._started}"
        self._started += 1
        function: Any = declaration.name if declaration.effect else wanted.function
        if declaration.effect:
            options["result_type"] = RawValue
        with calling(call, errand):
            handle = workflow.start_activity(function, args=wanted.args, activity_id=activity_id, **options)
        self._run.running += 1
        try:
            result, cancelled = await (seen_through(handle) if declaration.effect else awaited(handle))
            if isinstance(result, ActivityError):
                return Came(failed=result, cancelled=cancelled)
        except ActivityError as failed:
            return Came(failed=failed)
        finally:
            self._run.running -= 1
        if not declaration.effect:
            return Came(result, cancelled=cancelled)
        return Came(result.payload, finding_of(result.payload), cancelled=cancelled)

    # What is written

    @property
    def _kind(self) -> str:
        kind = self._wanted.declaration.kind
        return kind.value if kind else "step"

    @cached_property
    def _returns(self) -> Any:
        """The type that the effect's function says it returns; None where it says nothing."""
        try:
            return get_type_hints(self._wanted.function).get("return")
        except (NameError, TypeError):
            # Names that only a type checker sees.
            return None

    def _call(self, *, ledger_id: str | None = None) -> Call:
        authorised_by = self._wanted.authorised_by
        return Call.at(
            self._book.identity,
            self._run.branch,
            self._wanted.declaration.name,
            self._visit,
            effect=self._wanted.declaration.effect,
            authorised_by=authorised_by.occurrence.interrupt_id if authorised_by else None,
            ledger_id=ledger_id,
        )

    def _consume(self, call: Call) -> None:
        """The answer that authorises the call is consumed by it; for an effect there is a receipt of what was authorised."""
        answered = self._wanted.authorised_by
        if answered is None:
            return
        receipt = self._seal("authorisation", call, EffectFact(name=call.name, key=call.key)) if self._planned else None
        self._book.write(
            Consumed(at=workflow.now(), occurrence=answered.occurrence, by=call.id, key=call.key, receipt=receipt)
        )

    def _done(self, call: Call, came: Came) -> Any:
        result, receipt = came.payload, None
        if self._wanted.declaration.effect:
            result = workflow.payload_converter().from_payload(came.payload, self._returns)
        output, output_digest = kept(result)
        if self._wanted.declaration.effect:
            proof: dict[str, Any] = {"result_digest": output_digest}
            if self._planned and came.finding is not None:
                finding = came.finding
                proof = {
                    # Of what history has, so that it can be checked there.
                    "result_digest": digest(plain(recorded(came.payload))),
                    "outside": finding.receipt,
                    "attempts": finding.attempts,
                    "source": finding.source,
                }
            fact = EffectFact(state=EffectState.PERFORMED, name=call.name, key=call.key, receipt=proof)
            receipt = self._seal("effect", call, fact)
        self._book.write(
            Performed(
                at=workflow.now(),
                call=call,
                output=output,
                output_digest=output_digest,
                receipt=receipt,
                state_delta=self._wanted.delta,
                route=self._wanted.route,
            )
        )
        if (cancelled := came.cancelled or self._cancelled) is not None:
            raise cancelled
        return result

    def _write_failed(self, call: Call, known: EffectKnowledge | None, failed: ActivityError | None) -> CallFailure:
        """Record that the call is not done, with what is known of it, and say it in a form that a person can be shown."""
        if failed is not None:
            error, kind = innermost(failed)[:2000], innermost_type(failed)
        else:
            error, kind = known.because if known else "", "EffectUnknown"
        receipt = self._seal("effect", call, known.fact) if known is not None and self._planned else None
        self._book.write(
            Performed(at=workflow.now(), call=call, outcome="failed", error=error, error_type=kind, receipt=receipt)
        )
        not_happened = None
        if known is not None:
            not_happened = known.fact.state in {EffectState.FAILED, EffectState.NOT_ATTEMPTED}
        return CallFailure(
            call=call.id,
            name=call.name,
            key=call.key,
            kind=self._kind if call.effect else None,
            attempts=(known.attempts if known else None) or _attempts(failed, self._wanted),
            error=error,
            error_type=kind,
            known_not_to_have_happened=not_happened,
        )

    def _seal(self, kind: str, call: Call, fact: EffectFact) -> Receipt:
        record = self._book.gates.get(call.authorised_by or "")
        answered = self._wanted.authorised_by
        return Receipt.seal(
            self._book.head,
            kind=kind,
            at=workflow.now(),
            frame=self._book.frame,
            occurrence=record.fact if record else None,
            branch=call.branch,
            responder=answered.receipt.responder if answered else None,
            effect=fact,
        )


def _attempts(failed: ActivityError | None, wanted: Wanted) -> int | None:
    """How often Temporal has attempted it, where its failure says so: all that it was allowed, or a single one."""
    if failed is None or failed.retry_state is None:
        return None
    policy = wanted.options.get("retry_policy")
    allowed = policy.maximum_attempts if policy is not None else wanted.declaration.attempts
    return (allowed or None) if failed.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED else None
