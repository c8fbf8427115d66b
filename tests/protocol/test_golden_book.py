"""Books that were written by an earlier release are read by this one: runs and archives live longer than releases."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from gatewright.protocol.admission import Admitted, admit_default
from gatewright.protocol.answer import Failure
from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.entries import (
    Closed,
    Consumed,
    DeadLettered,
    Entry,
    Expired,
    Opened,
    Performed,
    Said,
)
from gatewright.protocol.gate import Default, Gate, GateKind, Policy
from gatewright.protocol.identity import Occurrence, Standing
from gatewright.protocol.receipt import EffectFact, EffectState, Receipt, Verified, verify
from tests.protocol.builders import CONFIRM, IDENTITY, REVIEW, ROOT, answer, ask, empty, expired, later, say, superseded

BOOKS = Path(__file__).parent / "books"
JOB = Gate("job", answer={"type": "integer"}, kind=GateKind.SYSTEM)
PUBLISH = Call.at(IDENTITY, ROOT, "publish", 1, effect=True, authorised_by="confirm", ledger_id="l1")


def written_today() -> dict[str, Any]:
    """Write two books through the API: one with everything that happens to a run, and what it carries over from it."""
    book = empty()
    book.ledger_id = "l1"
    book.write(Opened(at=later(0), pipeline="DatasetRelease", text="go", input={"source": "é.csv"}))
    book.write(Said(at=later(0), text="profiling", branch=ROOT))
    ask(book, REVIEW)
    say(book, answer(response="perhaps"))
    say(book, answer())
    ask(book, Gate("draft", policy=Policy(invited=("ada",), separate_from=("review",), strict=True, dangerous=True)))
    superseded("draft", book)
    ask(book, Gate("choose", answer=int, deadline=CONFIRM.deadline, on_deadline=Default(1)))
    book.write(Expired(at=later(60), occurrence=Occurrence(gate="choose"), outcome="default"))
    book.write(admit_default(book, book.gates["choose"], at=later(60)))
    ask(book, CONFIRM)
    say(book, answer(answer_id="c1", interrupt_id="confirm", response={"result": "release"}))
    book.write(Consumed(at=later(2), occurrence=Occurrence(gate="confirm"), by=PUBLISH.id, key=PUBLISH.key))
    receipt = Receipt.seal(
        book.head,
        kind="effect",
        at=later(3),
        frame=book.frame,
        occurrence=book.receipts[-1].occurrence,
        branch=PUBLISH.branch,
        responder=book.receipts[-1].responder,
        effect=EffectFact(state=EffectState.PERFORMED, name="publish", key=PUBLISH.key, receipt={"rows": 3}),
    )
    book.write(Performed(at=later(3), call=PUBLISH, output={"path": "out.parquet"}, receipt=receipt))
    book.write(
        Performed(at=later(4), call=Call.at(IDENTITY, ROOT, "profile", 1, effect=False), outcome="failed", error="x")
    )
    ask(book, CONFIRM)
    expired(book, "confirm~2")
    ask(book, JOB)
    say(book, answer(answer_id="j1", interrupt_id="job", response=None, failure=Failure(type="Killed", message="9")))
    ask(book, Gate("review", answer=list[str], message="And now?", payload=[1.5, "é", None]))
    say(book, answer(answer_id="n1", interrupt_id="nope"))
    book.write(DeadLettered(at=later(5), door="signal", name="answer", reason="not JSON", size=3, preview="{x}"))
    carried = book.compacted()
    say(carried, answer(answer_id="r2", interrupt_id="review~2", response=["a"]))
    book.write(Closed(at=later(90), standing=Standing.COMPLETED, reason="done", output={"ok": True}))
    written: dict[str, Any] = json.loads(json.dumps({"closed": book.to_json(), "carried": carried.to_json()}))
    return written


def still_says(old: Any, new: Any) -> bool:
    """Tell whether all that was written is still said: a later release may add fields, and lose none."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and still_says(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(still_says, old, new))
    return type(old) is type(new) and bool(old == new)


GOLDEN: dict[str, dict[str, Any]] = json.loads((BOOKS / "v1.json").read_text(encoding="utf-8"))


class TestVersionOne:
    @pytest.mark.parametrize("name", ["closed", "carried"])
    def test_it_is_read_and_says_the_same(self, name: str) -> None:
        """Read, written again, and compared with what was written then."""
        assert still_says(GOLDEN[name], json.loads(json.dumps(Book.from_json(GOLDEN[name]).to_json())))

    def test_it_has_every_kind_of_entry(self) -> None:
        """A kind that is added needs a book that has one."""
        kinds = {entry["kind"] for book in GOLDEN.values() for entry in book["entries"]}
        tallied = {
            entry["kind"]
            for book in GOLDEN.values()
            for tally in (*book["refusals"].values(), book["dead_letters"])
            for entry in tally["first"]
        }
        every = {each.model_fields["kind"].default for each in get_args(get_args(Entry)[0])}

        assert every == kinds | tallied

    def test_what_is_written_today_is_what_was_written_then(self) -> None:
        """
        Digests, keys, receipts and ids included; only a refusal's words may change.

        Where this fails, keep `v1.json` as it is, add a book beside it, and see
        that both are read.
        """
        then = {name: {**book, "refusals": {}} for name, book in GOLDEN.items()}

        assert still_says(then, written_today())

    @pytest.mark.parametrize("name", ["closed", "carried"])
    def test_its_receipts_still_verify(self, name: str) -> None:
        """Though they were sealed by another release."""
        book = Book.from_json(GOLDEN[name])

        assert Verified(len(book.receipts), book.receipts[-1].digest) == verify(book.receipts, book.anchor)

    def test_a_run_goes_on_from_it(self) -> None:
        """It knows who answered what, which numbers are taken, and what was refused."""
        book = Book.from_json(GOLDEN["carried"])

        assert {
            "review": "answered",
            "draft": "superseded",
            "choose": "answered",
            "confirm": "answered",
            "confirm~2": "expired",
            "job": "answered",
            "review~2": "answered",
        } == {key: record.state for key, record in book.gates.items()}
        assert "repeated" == say(book, answer()).verdict
        assert "refused" == say(book, answer(answer_id="a9")).verdict
        assert "review~3" == ask(book, REVIEW)
        assert 2 == book.reserve_call("publish")
        assert isinstance(say(book, answer(answer_id="a9", interrupt_id="review~3")), Admitted)
