"""What follows from a ruling, and that nothing can be decided without what justifies it."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gatewright.protocol.admission import Admitted, Pending, Repeated
from gatewright.protocol.answer import Evidence
from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.decision import Blocked, Continue, Decision, EffectKnowledge, Pause, ReplayCalls, decide
from gatewright.protocol.entries import Refused
from gatewright.protocol.receipt import EffectFact, EffectState
from tests.protocol.builders import CONFIRM, IDENTITY, REVIEW, ROOT, answer, chain, judge, say, waiting_at

PUBLISH = Call.at(IDENTITY, ROOT, "publish", 1, effect=True)
OTHER = Call.at(IDENTITY, ROOT, "publish", 2, effect=True)


def known(state: EffectState, call: Call = PUBLISH) -> EffectKnowledge:
    """Build what the ledger says about one call."""
    return EffectKnowledge(call=call, fact=EffectFact(state=state, name=call.name, key=call.key), source="ledger")


def refused() -> Refused:
    """Refuse an answer to a gate that was never asked."""
    ruling = judge(waiting_at(), answer(interrupt_id="nope"))
    assert isinstance(ruling, Refused)
    return ruling


class TestEvidence:
    @pytest.mark.parametrize(
        ("decision", "evidence"),
        [
            (Continue, {}),
            (Continue, {"receipts": ()}),
            *((Continue, {"performed": known(state)}) for state in EffectState if state is not EffectState.PERFORMED),
            (Pause, {}),
            (Pause, {"open": ()}),
            (ReplayCalls, {}),
            (ReplayCalls, {"call": PUBLISH}),
            (ReplayCalls, {"because": known(EffectState.FAILED)}),
            (ReplayCalls, {"call": OTHER, "because": known(EffectState.FAILED)}),
            *(
                (ReplayCalls, {"call": PUBLISH, "because": known(state)})
                for state in (EffectState.PERFORMED, EffectState.INTENDED, EffectState.UNKNOWN)
            ),
            (Blocked, {}),
            (Blocked, {"call": PUBLISH}),
            (Blocked, {"call": OTHER, "because": known(EffectState.UNKNOWN)}),
            *(
                (Blocked, {"call": PUBLISH, "because": known(state)})
                for state in (EffectState.PERFORMED, EffectState.FAILED, EffectState.NOT_ATTEMPTED)
            ),
        ],
    )
    def test_a_decision_cannot_be_built_without_its_evidence(self, decision: Any, evidence: dict[str, Any]) -> None:
        """Nor with another call's, nor with evidence of the opposite."""
        with pytest.raises(ValidationError):
            decision(**evidence)

    def test_nobody_says_something_about_an_effect_anonymously(self) -> None:
        """The source is the ledger, a reconciliation or a person."""
        with pytest.raises(ValidationError):
            EffectKnowledge(call=PUBLISH, fact=EffectFact(), source="")

    def test_every_state_of_an_effect_decides_one_thing(self) -> None:
        """CONTINUE, REPLAY_CALLS and BLOCKED share the states among them, without overlap."""
        possible = {
            state: [
                kind
                for kind, evidence in (
                    (Continue, {"performed": known(state)}),
                    (ReplayCalls, {"call": PUBLISH, "because": known(state)}),
                    (Blocked, {"call": PUBLISH, "because": known(state)}),
                )
                if builds(kind, evidence)
            ]
            for state in EffectState
        }

        assert {state: [type(decide(known(state), Book(IDENTITY)))] for state in EffectState} == possible


def builds(kind: Any, evidence: dict[str, Any]) -> bool:
    """Tell whether a decision can be built on this evidence."""
    try:
        kind(**evidence)
    except ValidationError:
        return False
    return True


class TestDecide:
    @pytest.mark.parametrize("verdict", [Admitted, Repeated])
    def test_an_answer_that_counts_continues_on_its_receipts(self, verdict: type[Admitted | Repeated]) -> None:
        """A repeat continues nothing anew: it points to the first receipts."""
        receipts = tuple(chain(2))

        assert Continue(receipts=receipts) == decide(verdict(receipts=receipts), waiting_at())

    def test_a_refusal_leaves_every_gate_armed(self) -> None:
        """The run waits where it waited, and the refusal says why nothing moved."""
        ruling = refused()

        assert Pause(open=("review", "confirm"), refused=ruling) == decide(ruling, waiting_at(REVIEW, CONFIRM))

    def test_a_refusal_is_evidence_even_where_no_gate_is_open(self) -> None:
        """A run between two gates is told what came."""
        assert Pause(refused=refused()) == decide(refused(), Book(IDENTITY))

    def test_an_incomplete_quorum_pauses(self) -> None:
        """Who must still agree is why nothing moved (reserved)."""
        pending = Pending(interrupt_ids=("review",), missing=1)

        assert Pause(open=("review",), pending=pending) == decide(pending, waiting_at())

    @pytest.mark.parametrize(
        ("state", "decision"),
        [
            (EffectState.PERFORMED, Continue(performed=known(EffectState.PERFORMED))),
            (EffectState.FAILED, ReplayCalls(call=PUBLISH, because=known(EffectState.FAILED))),
            (EffectState.NOT_ATTEMPTED, ReplayCalls(call=PUBLISH, because=known(EffectState.NOT_ATTEMPTED))),
            (EffectState.INTENDED, Blocked(call=PUBLISH, because=known(EffectState.INTENDED))),
            (EffectState.UNKNOWN, Blocked(call=PUBLISH, because=known(EffectState.UNKNOWN))),
        ],
    )
    def test_what_is_known_of_an_effect_decides(self, state: EffectState, decision: object) -> None:
        """What was known is handed on as it was said; nothing is replayed on hope."""
        assert decision == decide(known(state), waiting_at())

    def test_a_real_ruling_decides(self) -> None:
        """From the answer to what follows, with nothing in between."""
        book = waiting_at()
        admitted = say(book, answer())

        assert Continue(receipts=tuple(book.receipts)) == decide(admitted, book)

    @pytest.mark.parametrize("state", EffectState)
    def test_a_decision_survives_json(self, state: EffectState) -> None:
        """Tagged, so that it is read as what it is."""
        decision = decide(known(state), waiting_at())
        adapter: TypeAdapter[Any] = TypeAdapter(Decision)

        assert decision == adapter.validate_json(adapter.dump_json(decision))


def test_what_is_received_has_a_size() -> None:
    """Evidence is the receiver's own knowledge, and a size is never negative."""
    with pytest.raises(ValidationError):
        Evidence(size=-1)
