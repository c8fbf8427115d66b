"""Receipts that were forged are named, although their chain holds: the history has other facts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from gatewright.protocol import Receipt
from tests.temporal.histories import AGAIN, ASKED, HAPPENED, REVIEWED, book_of, checked, events, forged, moved, sealed


class Forged(NamedTuple):
    """What somebody wrote who may write all of the chain, and what is said of it."""

    name: str
    forge: Callable[[list[Receipt]], list[Receipt]]
    number: int | None
    outcome: str
    words: str


def proof(receipt: Receipt, **changes: Any) -> dict[str, Any]:
    """The receipt of its effect with other words in it."""
    assert isinstance(receipt.effect.receipt, dict)
    return {**receipt.effect.receipt, **changes}


NOTHING = {"state": "performed", "name": "pay", "key": "gw1-0", "receipt": {"result_digest": "sha256:0"}}

FORGED = {
    "another principal": Forged(
        REVIEWED, lambda r: forged(r, 2, responder__principal="eve"), 2, "contradicted", "principal 'bob'"
    ),
    "another channel": Forged(
        REVIEWED, lambda r: forged(r, 2, responder__channel="inbox"), 2, "contradicted", "and the receipt 'inbox'"
    ),
    "another answer id": Forged(
        REVIEWED, lambda r: forged(r, 2, responder__answer_id="mine"), 2, "contradicted", "and the receipt 'mine'"
    ),
    "another content": Forged(
        REVIEWED, lambda r: forged(r, 2, responder__content_digest="sha256:0"), 2, "contradicted", "with other content"
    ),
    "another door": Forged(
        REVIEWED,
        lambda r: forged(r, 2, responder__door="update"),
        2,
        "contradicted",
        "came by signal, and not by update",
    ),
    "better evidence": Forged(
        REVIEWED, lambda r: forged(r, 2, responder__evidence="signed"), 2, "not_covered", "who answered is signed"
    ),
    "another round": Forged(
        REVIEWED, lambda r: forged(r, 2, occurrence__visit=3), 2, "contradicted", "review~2 is not visit 3"
    ),
    "another gate's digest": Forged(
        REVIEWED, lambda r: forged(r, 2, occurrence__digest="sha256:0"), 2, "contradicted", "never showed sha256:0"
    ),
    "another time": Forged(
        REVIEWED, lambda r: forged(r, 2, at=moved(r[1].at, 0.1)), 2, "contradicted", "no workflow task began at"
    ),
    "nobody answered": Forged(
        REVIEWED, lambda r: forged(r, 2, responder=None), 2, "contradicted", "names nobody who answered"
    ),
    "a deadline answered": Forged(
        REVIEWED,
        lambda r: forged(r, 2, responder__door="engine", responder__principal="engine:deadline"),
        2,
        "contradicted",
        "no timer of review~2's deadline had fired",
    ),
    "of another run": Forged(
        REVIEWED, lambda r: forged(r, 2, frame__identity__workflow_id="other"), 2, "contradicted", "it is of other"
    ),
    "of another execution": Forged(
        REVIEWED,
        lambda r: forged(r, 2, frame__identity__first_execution_run_id="other"),
        2,
        "contradicted",
        "first execution other",
    ),
    "one answer twice": Forged(
        REVIEWED, lambda r: sealed([*r[:2], r[1], *r[2:]]), 3, "contradicted", "answered already, as receipt 2 says"
    ),
    "one effect twice": Forged(
        REVIEWED, lambda r: sealed([*r, r[3]]), 5, "contradicted", "performed already, as receipt 4 says"
    ),
    "no answer": Forged(
        REVIEWED, lambda r: sealed([r[0], *r[2:]]), 3, "contradicted", "no receipt before it is of the answer"
    ),
    "no effect": Forged(REVIEWED, lambda r: list(r[:3]), None, "contradicted", "there is no receipt of it"),
    "not the first answer": Forged(REVIEWED, lambda r: sealed(r[1:]), None, "contradicted", "was given receipt 1"),
    "another result": Forged(
        REVIEWED,
        lambda r: forged(r, 4, effect__receipt=proof(r[3], result_digest="sha256:0")),
        4,
        "contradicted",
        "and not sha256:0",
    ),
    "another outside's word": Forged(
        REVIEWED,
        lambda r: forged(r, 4, effect__receipt=proof(r[3], outside="invoice 1")),
        4,
        "contradicted",
        "and the receipt 'invoice 1'",
    ),
    "another effect's key": Forged(
        REVIEWED, lambda r: forged(r, 4, effect__key="gw1-0"), 4, "contradicted", "gw1-0 is not a key of pay"
    ),
    "an authorisation of another call": Forged(
        REVIEWED, lambda r: forged(r, 3, effect__key="gw1-0"), 3, "contradicted", "gw1-0 is not a key of pay"
    ),
    "an authorisation of what was done": Forged(
        REVIEWED, lambda r: forged(r, 3, effect__state="performed"), 3, "contradicted", "is not performed"
    ),
    "what was done did not happen": Forged(
        REVIEWED, lambda r: forged(r, 4, effect__state="failed"), 4, "contradicted", "and the receipt says failed"
    ),
    "what nobody knows did not happen": Forged(
        AGAIN, lambda r: forged(r, 1, effect__state="failed"), 1, "contradicted", "nothing in the history proves"
    ),
    "what nobody knows was done": Forged(
        AGAIN,
        lambda r: forged(r, 1, effect={**NOTHING, "name": "transfer", "key": r[0].effect.key}),
        1,
        "contradicted",
        "no activity of this key came back",
    ),
    "the effect's own word instead of a person's": Forged(
        HAPPENED,
        lambda r: forged(r, 3, effect__receipt=proof(r[2], source="attempt")),
        3,
        "contradicted",
        "source 'ops', and the receipt 'attempt'",
    ),
    "a person's word that is left out": Forged(
        HAPPENED, lambda r: sealed([r[0], r[2]]), 2, "not_covered", "it rests on the word of ops"
    ),
    "the outside said something else": Forged(
        ASKED,
        lambda r: forged(r, 1, effect__receipt=proof(r[0], outside="nothing")),
        1,
        "contradicted",
        "and the receipt 'nothing'",
    ),
}


@pytest.mark.parametrize("what", FORGED)
async def test_each_receipt_that_was_forged_is_named_although_the_chain_holds(what: str) -> None:
    case = FORGED[what]
    book = await book_of(case.name)
    report = checked(book, events(case.name), receipts=case.forge(list(book.receipts)))

    assert report.findings[0].outcome == "confirmed", report.findings[0]
    found = [each for each in report.findings if each.number == case.number]
    assert any(each.outcome == case.outcome and case.words in each.words for each in found), report.findings
