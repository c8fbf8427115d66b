"""Whatever happens in whatever order, the ledger says what a model of a few lines says."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from gatewright.store import Begun, Busy, CallReplaced, EffectUnderWay, Store, StoreError
from tests.store.builders import PLAN, attempt, planned

GENERATIONS = st.integers(0, 2)
HOLDERS = st.sampled_from(["h1", "h2", "h3"])
HOUR = 3600.0
_examples = itertools.count()


@dataclass
class Known:
    """What the model says of one generation. A lease lasts for the whole test or is over at once, and so does a call."""

    state: str = "planned"
    attempts: int = 0
    holder: str | None = None
    lease: bool = False
    call: bool = False
    successor: int | None = None
    result: int | None = None
    word: str | None = None
    contradicted: bool = False

    def living(self, *, alone: bool) -> bool:
        """Whether an attempt, or with `alone` its last call, may be under way."""
        return self.holder is not None and self.state != "performed" and (self.lease or (alone and self.call))

    def end(self, *, reached: bool) -> None:
        """The attempt gives its lease back; where it `reached` the outside, its last call may go on."""
        self.lease = False
        self.holder = self.holder if reached else None


class Calls(RuleBasedStateMachine):
    """One call and its generations, each attempted by three holders."""

    def __init__(self, store: Store) -> None:
        """Use keys of this example's own."""
        super().__init__()
        self.ledger = store.ledger
        self.example = next(_examples)
        self.known: dict[int, Known] = {}
        self.attempts: dict[int, int] = {}
        self.results: dict[int, object] = {}

    def key(self, generation: int) -> str:
        return f"{self.example}.{generation}"

    def last(self, generation: int) -> int:
        """The last generation, or the first of them that was performed after all."""
        while self.known[generation].state != "performed":
            successor = self.known[generation].successor
            if successor is None:
                break
            generation = successor
        return generation

    @rule(generation=GENERATIONS)
    def plan(self, generation: int) -> None:
        entry = self.ledger.plan(**planned(key=self.key(generation), generation=generation))
        self.known.setdefault(generation, Known())
        assert self.key(self.last(generation)) == entry.key

    @rule(generation=GENERATIONS)
    def replace(self, generation: int) -> None:
        following = generation + 1
        entry = self.ledger.plan(
            **planned(key=self.key(following), generation=following, replaces=self.key(generation))
        )
        before = self.known.setdefault(generation, Known())
        if before.state not in {"planned", "failed"}:
            assert self.key(generation) == entry.key
            return
        before.state, before.successor = "failed", following
        self.known.setdefault(following, Known())
        assert self.key(self.last(following)) == entry.key

    @rule(generation=GENERATIONS, holder=HOLDERS, lease=st.booleans(), call=st.booleans(), alone=st.booleans())
    def begin(self, generation: int, holder: str, lease: bool, call: bool, alone: bool) -> None:
        asked = attempt(holder=holder, lease=HOUR * lease, call_seconds=HOUR * call, alone=alone)
        known = self.known.get(generation)
        if known is not None and known.state != "performed" and known.successor is not None:
            with pytest.raises(CallReplaced):
                self.ledger.begin(self.key(generation), **asked)
            return
        begun = self.ledger.begin(self.key(generation), **asked)
        if known is None:
            assert begun is None
        elif known.state != "performed" and known.holder != holder and known.living(alone=alone):
            assert isinstance(begun, Busy)
            assert known.holder == begun.holder
        else:
            assert isinstance(begun, Begun)
            assert (known.state, known.state != "performed") == (begun.before, begun.taken)
            if begun.taken:
                known.holder, known.lease, known.call = holder, lease, call
                known.attempts += 1
                known.state = "unknown" if known.state == "unknown" else "intended"

    @rule(generation=GENERATIONS, holder=HOLDERS)
    def renew(self, generation: int, holder: str) -> None:
        known = self.known.get(generation, Known())
        may = known.holder == holder and known.living(alone=False)
        assert may == self.ledger.renew(self.key(generation), holder, lease=HOUR)

    @rule(generation=GENERATIONS, holder=HOLDERS, reached=st.booleans())
    def release(self, generation: int, holder: str, reached: bool) -> None:
        self.ledger.release(self.key(generation), holder, reached=reached)
        known = self.known.get(generation)
        if known is not None and known.holder == holder and known.state != "performed":
            known.end(reached=reached)

    @rule(generation=GENERATIONS, result=st.integers(0, 9))
    def performed(self, generation: int, result: int) -> None:
        known = self.known.get(generation)
        if known is None:
            with pytest.raises(StoreError):
                self.ledger.performed(self.key(generation), result=result, receipt=None)
            return
        self.ledger.performed(self.key(generation), result=result, receipt=None)
        if known.state != "performed":
            known.contradicted = known.word == "did_not_happen" or known.successor is not None
            known.state, known.result, known.holder = "performed", result, None

    @rule(generation=GENERATIONS, holder=st.none() | HOLDERS)
    def failed(self, generation: int, holder: str | None) -> None:
        known = self.known.get(generation)
        if known is None:
            return
        self.ledger.failed(self.key(generation), error="no", holder=holder)
        if known.state != "performed" and holder in {None, known.holder}:
            known.state, known.holder = "failed", None

    @rule(generation=GENERATIONS, holder=st.none() | HOLDERS, reached=st.booleans())
    def unknown(self, generation: int, holder: str | None, reached: bool) -> None:
        known = self.known.get(generation)
        if known is None:
            return
        self.ledger.unknown(self.key(generation), error="?", holder=holder, reached=reached)
        if known.state not in {"performed", "failed"} and holder in {None, known.holder}:
            known.state = "unknown"
            if holder is not None:
                known.end(reached=reached)

    @rule(generation=GENERATIONS, happened=st.booleans(), made=st.booleans())
    def resolve(self, generation: int, happened: bool, made: bool) -> None:
        new = PLAN.model_copy(update={"generation": generation}) if made else None
        known = self.known.get(generation) or (Known() if made else None)
        said: str | None
        try:
            self.ledger.resolve(self.key(generation), by="ada", happened=happened, new=new)
        except EffectUnderWay:
            said = "under way"
        except StoreError:
            said = "refused"
        else:
            said = None
        if known is None or (known.state == "failed" and happened):
            assert "refused" == said
        elif known.state not in {"performed", "failed"} and known.living(alone=True):
            assert "under way" == said
        else:
            assert said is None
            self.known[generation] = known
            if known.state not in {"performed", "failed"}:
                known.state, known.word = ("performed", "happened") if happened else ("failed", "did_not_happen")
                known.holder = None

    @invariant()
    def they_agree(self) -> None:
        for generation in range(4):
            entry, known = self.ledger.entry(self.key(generation)), self.known.get(generation)
            if known is None:
                assert entry is None
                continue
            assert entry is not None
            says = (entry.state, entry.attempts, entry.holder, entry.resolution, entry.result, entry.contradicted)
            assert (*(known.state, known.attempts, known.holder, known.word, known.result, known.contradicted),) == says
            assert (None if known.successor is None else self.key(known.successor)) == entry.successor
            assert known.living(alone=True) == (self.ledger.busy(entry.key) is not None)

    @invariant()
    def attempts_only_grow_and_what_was_performed_never_changes(self) -> None:
        for generation in self.known:
            entry = self.ledger.entry(self.key(generation))
            assert entry is not None
            assert entry.attempts >= self.attempts.get(generation, 0)
            self.attempts[generation] = entry.attempts
            if generation in self.results:
                assert self.results[generation] == entry
            elif entry.state == "performed":
                self.results[generation] = entry


def test_the_ledger_says_what_the_model_says(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "store.db")) as store:

        class OfStore(Calls):
            def __init__(self) -> None:
                super().__init__(store)

        run_state_machine_as_test(
            OfStore,
            settings=settings(
                max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )
