"""
Receipts checked against an exported history: what a run says of itself, held against what Temporal recorded.

A chain of receipts that holds (`verify`) was not altered since it was written;
whether it was written truly is another question. Here each receipt is looked
for in the history: the answer as it was delivered, the deadline as it passed,
the effect as it was scheduled and came back. Three things hold throughout:

1. Pure: receipts and histories in, a report out. Nobody is asked.
2. What is not there to be seen (another execution's file, an encrypted payload,
   a compacted beginning) is `not_covered`, and never taken for confirmed.
3. Also the other way round: what the history has and no receipt tells of is named.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from shlex import quote

from gatewright.protocol.identity import FrameIdentity
from gatewright.protocol.receipt import Anchor, Broken, EffectState, Receipt, verify
from gatewright.protocol.word import Told

from .history_answers import (
    INEXACT,
    Outcome,
    Saying,
    answer_in,
    contradicted,
    not_covered,
    not_shown,
    receipts_given,
    together,
)
from .history_calls import authorisation_in, effect_in, key_of
from .history_facts import Facts, Made, facts_of
from .history_files import EXPORT, Execution, History, HistoryError, chained, read_histories, read_history


class HistoryFinding(Told):
    """What a history says of one receipt (`number`), or, without a number, of the chain or of something beside it."""

    number: int | None = None
    what: str
    outcome: Outcome
    words: str


class HistoryReport(Told):
    """What came of the check; `ok` where nothing is contradicted, whatever may not be covered."""

    workflow_id: str
    first_execution_run_id: str
    executions: tuple[str, ...]
    findings: tuple[HistoryFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is contradicted."""
        return not self.count("contradicted")

    def count(self, outcome: Outcome) -> int:
        """How many findings have this outcome."""
        return sum(finding.outcome == outcome for finding in self.findings)


def check_history(
    receipts: Sequence[Receipt], anchor: Anchor, identity: FrameIdentity | None, history: History
) -> HistoryReport:
    """
    Hold a run's receipts against its exported history.

    `anchor` is where the receipts go on from, and `identity` the run that they
    are said to be of (None: whatever the receipts themselves say). There is one
    finding for the chain, one for each receipt, and one for everything else
    that is amiss or cannot be seen.
    """
    check = _Check(receipts, anchor, identity, history)
    return HistoryReport(
        workflow_id=history.workflow_id,
        first_execution_run_id=history.first_execution_run_id,
        executions=tuple(execution.run_id for execution in history.executions),
        findings=tuple(check.findings()),
    )


class _Check:
    def __init__(
        self, receipts: Sequence[Receipt], anchor: Anchor, identity: FrameIdentity | None, history: History
    ) -> None:
        self._receipts = receipts
        self._anchor = anchor
        self._identity = identity
        self._history = history
        self._facts: Facts = facts_of(history)

    def findings(self) -> Iterator[HistoryFinding]:
        """All of them: the chain, each receipt, what has none, and what is not covered."""
        yield self._chain()
        earlier: list[tuple[Receipt, Saying]] = []
        for receipt in self._receipts:
            said = self._receipt(receipt, earlier)
            earlier.append((receipt, said))
            yield HistoryFinding(number=receipt.number, what=what_is(receipt), outcome=said.outcome, words=said.words)
        for what, said in (*self._unreceipted(), *self._uncovered()):
            yield HistoryFinding(what=what, outcome=said.outcome, words=said.words)

    def _chain(self) -> HistoryFinding:
        verdict = verify(self._receipts, self._anchor)
        if isinstance(verdict, Broken):
            words = f"broken at receipt {verdict.number}: {verdict.reason}"
            return HistoryFinding(number=verdict.number, what="chain", outcome="contradicted", words=words)
        if self._identity is not None and (wrong := self._other_run(self._identity)):
            return HistoryFinding(what="chain", outcome="contradicted", words=wrong)
        words = f"{verdict.count} receipts hold" + (f", the last is {verdict.head}" if verdict.count else "")
        return HistoryFinding(what="chain", outcome="confirmed", words=words)

    # One receipt

    def _receipt(self, receipt: Receipt, earlier: Sequence[tuple[Receipt, Saying]]) -> Saying:
        if wrong := self._other_run(receipt.frame.identity):
            return contradicted(wrong)
        if (untimely := self._untimely(receipt.at)) is not None:
            return untimely
        compacted = bool(self._anchor.number)
        match receipt.kind:
            case "continuation":
                return together([answer_in(self._facts, receipt), *self._misshown(receipt), *_twice(receipt, earlier)])
            case "authorisation":
                return authorisation_in(self._facts, receipt, earlier, compacted=compacted)
            case "effect":
                return effect_in(self._facts, receipt, earlier, compacted=compacted)

    def _other_run(self, identity: FrameIdentity) -> str | None:
        ours = (self._history.workflow_id, self._history.first_execution_run_id)
        if (identity.workflow_id, identity.first_execution_run_id) == ours:
            return None
        return (
            f"it is of {identity.workflow_id}, first execution {identity.first_execution_run_id}, "
            f"and the history of {ours[0]}, first execution {ours[1]}"
        )

    def _untimely(self, at: datetime) -> Saying | None:
        """What is wrong with the time: a receipt is written when a workflow task begins, and at no other time."""
        spans = self._facts.spans
        if any(abs(shown - at) <= INEXACT for span in spans for shown in span.times):
            return None
        history = self._history
        if not spans[-1].settled and at > max(spans[-1].times, default=spans[-1].begins):
            # As a query told it, before Temporal had taken the task's word; a task that is lost may come to another end.
            return not_covered("the workflow task that wrote it was not completed when the history ends")
        before = at < spans[0].begins and not history.begins
        after = at > spans[-1].ends and history.ends == "elsewhere"
        between = any(
            one.ends <= at <= other.begins and not later.follows(earlier)
            for one, other, earlier, later in zip(
                spans, spans[1:], history.executions, history.executions[1:], strict=False
            )
        )
        if before or after or between:
            return not_covered("no history was given of the execution that wrote it")
        return contradicted(f"no workflow task began at {at.isoformat()}, when it says that it was written")

    def _misshown(self, receipt: Receipt) -> Iterator[Saying]:
        """What a gate showed, where the history must have it all: from the beginning to an end in the run's own time."""
        here = next((span for span in self._facts.spans if span.begins <= receipt.at <= span.ends), None)
        if here is None or not here.settled or not self._history.begins or self._history.gaps:
            return
        if receipt.occurrence is not None and (wrong := not_shown(self._facts, receipt.occurrence)):
            yield wrong

    # What has no receipt

    def _unreceipted(self) -> Iterator[tuple[str, Saying]]:
        performed = {each.effect.key for each in self._receipts if each.effect.state is EffectState.PERFORMED}
        for key, made in self._facts.made.items():
            if key_of(made[0].call) != key:
                yield made[0].call.id, contradicted(f"{made[0].where} carries a key that is not its call's")
            elif wrong := self._other_run(made[0].call.identity):
                yield made[0].call.id, contradicted(f"{made[0].where} is a call of another run: {wrong}")
            elif key not in performed and made[0].call.effect:
                yield from self._unproved(made)
        yield from self._ungiven()

    def _unproved(self, made: Sequence[Made]) -> Iterator[tuple[str, Saying]]:
        """An effect that came back as performed, and no receipt says so."""
        done = [each for each in made if each.performed]
        attempts = [each for each in done if not each.examined]
        for each in attempts[:1] or done[:1]:
            words = f"{each.where} came back as performed, and there is no receipt of it"
            if each.noted is None:
                yield each.call.id, not_covered(f"{words}: the run had not taken note of it when the history ends")
            elif not attempts:
                yield each.call.id, not_covered(f"{words}: it was found out, and the run did not go on with it")
            else:
                yield each.call.id, self._left_out(words, each.noted)

    def _ungiven(self) -> Iterator[tuple[str, Saying]]:
        """A receipt that was given as a verdict, and is not among these."""
        known = {receipt.digest for receipt in self._receipts}
        for delivery in self._facts.deliveries:
            for number, digest, _ in receipts_given(delivery):
                if digest in known:
                    continue
                known.add(digest)
                words = f"{delivery.where} was given receipt {number} ({digest}), which is not among these"
                if number <= self._anchor.number:
                    yield f"receipt {number}", not_covered(f"{words}: it is kept elsewhere")
                elif any(receipt.number >= number for receipt in self._receipts):
                    yield f"receipt {number}", contradicted(words)
                else:
                    yield f"receipt {number}", self._left_out(words, delivery.there_by)

    def _left_out(self, words: str, noted: datetime) -> Saying:
        """Something was noted at this time that no receipt tells of: whether it is left out, or may stand elsewhere."""
        if self._anchor.number and (not self._receipts or noted < self._receipts[0].at):
            return not_covered(f"{words}; it may be among those that are kept elsewhere")
        if self._history.ends != "over" and not any(receipt.at > noted + INEXACT for receipt in self._receipts):
            return not_covered(f"{words}; the receipts were read before it")
        return contradicted(f"{words}: it was left out, or the receipts were saved before the run was over")

    # What is not covered

    def _uncovered(self) -> Iterator[tuple[str, Saying]]:
        if number := self._anchor.number:
            yield (
                "beginning",
                not_covered(f"receipts 1 to {number} are kept elsewhere; the chain goes on from {self._anchor.digest}"),
            )
        executions = self._history.executions
        if not self._history.begins:
            before = executions[0].started.continued_execution_run_id
            yield (
                "history",
                not_covered(f"execution {before} and those before it were not given; {self._export(before)}"),
            )
        for one, other in self._history.gaps:
            missing = one.next_run_id or other.started.continued_execution_run_id
            yield "history", not_covered(f"execution {missing} is missing after {one.run_id}; {self._export(missing)}")
        if self._history.ends == "elsewhere":
            missing = executions[-1].next_run_id
            yield (
                "history",
                not_covered(f"the run goes on in execution {missing}, which was not given; {self._export(missing)}"),
            )
        for what, count in self._facts.veiled.items():
            yield what, not_covered(f"{count} of them cannot be read without the application's codec")

    def _export(self, run_id: str) -> str:
        return f"export it: {EXPORT.replace('RUN_ID', run_id).replace(' ID ', f' {quote(self._history.workflow_id)} ')}"


def _twice(receipt: Receipt, earlier: Sequence[tuple[Receipt, Saying]]) -> Iterator[Saying]:
    """An occurrence is answered once."""
    for before, _ in earlier:
        if before.kind == "continuation" and receipt.occurrence and before.occurrence == receipt.occurrence:
            yield contradicted(f"it was answered already, as receipt {before.number} says")


def what_is(receipt: Receipt) -> str:
    """A receipt in a few words: who answered what, or which effect came to what."""
    if receipt.kind == "continuation":
        who = receipt.responder.principal or "nobody named" if receipt.responder else "nobody"
        return f"{receipt.occurrence.interrupt_id if receipt.occurrence else 'no gate'} answered by {who}"
    name = receipt.branch[-1] if receipt.branch else receipt.effect.name
    if receipt.kind == "authorisation":
        return f"{name} authorised at {receipt.occurrence.interrupt_id if receipt.occurrence else 'no gate'}"
    return f"{name} {receipt.effect.state.value.replace('_', ' ')}"


__all__ = [
    "Execution",
    "History",
    "HistoryError",
    "HistoryFinding",
    "HistoryReport",
    "Outcome",
    "chained",
    "check_history",
    "read_histories",
    "read_history",
    "what_is",
]
