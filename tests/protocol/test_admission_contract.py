"""What ADK 2.13 does with a message and what is done here instead; which of two reasons is told."""

from collections.abc import Callable

import pytest

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.answer import MAX_MESSAGE_BYTES, Answer, Message
from gatewright.protocol.book import Book
from gatewright.protocol.entries import Refusal, Refused
from tests.protocol.builders import (
    CONFIRM,
    CONFIRMING,
    INVITING,
    REVIEW,
    answer,
    answered,
    ask,
    closed,
    empty,
    judge,
    later,
    refusal,
    refused,
    say,
    superseded,
    waiting_at,
)


class TestContract:
    """What ADK 2.13 does in these places, and what is done here instead."""

    @pytest.mark.parametrize("text", ["ok", " "])
    def test_text_beside_an_answer_is_refused(self, text: str) -> None:
        """B02, in ADK's own words: nothing runs, nothing is recorded, the gate stays answerable."""
        ruling = refused(waiting_at(), Message(answers=(answer(),), text=text))

        assert ruling.reason.startswith("Message cannot contain both function responses and text. ")

    def test_empty_text_beside_an_answer_is_tolerated(self) -> None:
        """B03: clients send it without meaning anything."""
        assert "admitted" == judge(waiting_at(), Message(answers=(answer(),), text="")).verdict

    def test_an_unknown_id_refuses_the_whole_message(self) -> None:
        """B04: a known id in the same message is refused with it."""
        book = waiting_at()

        assert Refusal.UNKNOWN_GATE == refusal(book, answer(), answer(answer_id="a2", interrupt_id="nope"))
        assert ["review"] == [record.interrupt_id for record in book.open]

    def test_an_answer_without_an_id_restarts_nothing(self) -> None:
        """B05: ADK starts a fresh invocation from START."""
        ruling = refused(waiting_at(), answer(interrupt_id=""))

        assert Refusal.MISSING_ID == ruling.refusal
        assert "Open now: review." in ruling.reason

    def test_two_answers_to_one_gate_in_one_message_are_refused(self) -> None:
        """B13: in ADK the last wins."""
        ruling = refused(waiting_at(), answer(response=False), answer(answer_id="a2"))

        assert [Refusal.DUPLICATE_IN_MESSAGE] * 2 == [objection.refusal for objection in ruling.objections]

    @pytest.mark.parametrize("interrupt_id", ["confirm", "confirm~2", "review~2", "review~7"])
    def test_an_answer_is_never_held_for_a_gate_that_is_yet_to_come(self, interrupt_id: str) -> None:
        """B14: what was armed beforehand is refused, and the gate then opens unanswered."""
        book = waiting_at(REVIEW)
        say(book, answer(interrupt_id=interrupt_id))
        ask(book, CONFIRM)

        assert Refusal.NOT_OPEN_YET == book.tally(None).kept[0].refusal
        assert ["review", "confirm"] == [record.interrupt_id for record in book.open]

    @pytest.mark.parametrize("interrupt_id", ["review", "nope"])
    def test_before_the_first_gate_every_answer_is_early(self, interrupt_id: str) -> None:
        """Handlers run before the run does; it is not known yet what it will ask."""
        assert Refusal.NOT_OPEN_YET == refusal(empty(), answer(interrupt_id=interrupt_id))

    @pytest.mark.parametrize("interrupt_id", ["review@2", "review@3~2", "nope~0", "~2", "@2"])
    def test_an_id_of_another_run_is_unknown_here(self, interrupt_id: str) -> None:
        """A late answer to one run can never reach another of the same session."""
        assert Refusal.UNKNOWN_GATE == refusal(waiting_at(), answer(interrupt_id=interrupt_id))

    def test_an_id_of_another_run_is_told_apart(self) -> None:
        """The sender learns which run it is for, and which this is."""
        ruling = refused(waiting_at(run=3), answer(interrupt_id="review@2"))

        assert "review@2 belongs to run 2 of the session, and this is run 3. Open now: review@3." in ruling.reason

    def test_an_answer_of_the_first_round_is_not_consumed_by_the_second(self) -> None:
        """H02: delivered again, it earns its first receipt, and the second round stays open."""
        book = answered()
        ask(book, REVIEW, at=later(2))

        assert Repeated(receipts=tuple(book.receipts)) == judge(book, answer())
        assert Refusal.ALREADY_ANSWERED == refusal(book, answer(answer_id="a2"))
        assert ["review~2"] == [record.interrupt_id for record in book.open]

    def test_an_invalid_answer_does_not_poison_its_siblings(self) -> None:
        """D04: the valid answer of the same message is not applied, and can be sent again alone."""
        book = waiting_at(REVIEW, CONFIRM)
        ruling = say(book, answer(), CONFIRMING.model_copy(update={"response": "maybe"}))

        assert isinstance(ruling, Refused)
        assert [(Refusal.INVALID, "confirm")] == [(each.refusal, each.interrupt_id) for each in ruling.objections]
        assert "admitted" == say(book, answer()).verdict
        assert "admitted" == say(book, CONFIRMING).verdict

    def test_an_answered_id_beside_an_open_one_is_accepted_as_a_repeat(self) -> None:
        """L07: the open one proceeds; the other earns its first receipt again."""
        book = answered(gates=(REVIEW, CONFIRM))
        first = book.receipts[0]
        ruling = say(book, answer(), CONFIRMING)

        assert isinstance(ruling, Admitted)
        assert (first, book.receipts[1]) == ruling.receipts
        assert ["confirm"] == [entry.occurrence.interrupt_id for entry in ruling.entries]

    @pytest.mark.parametrize("author", ["agent", "model", "release_agent", "", "User"])
    def test_only_somebody_outside_answers(self, author: str) -> None:
        """What the run itself or a model wrote is no answer, whatever it looks like."""
        assert Refusal.NOT_AN_ANSWER == refusal(waiting_at(), Message(answers=(answer(),), author=author))

    @pytest.mark.parametrize("principal", ["agent:planner", "model", "engine:deadline"])
    def test_nobody_speaks_as_the_runs_own_side(self, principal: str) -> None:
        """The engine's principal is the engine's."""
        assert Refusal.NOT_AN_ANSWER == refusal(waiting_at(), answer(principal=principal))


class TestOrder:
    """Which of two reasons wins: the one that the sender must hear first."""

    @pytest.mark.parametrize(
        ("wins", "book", "said", "at"),
        [
            (Refusal.MIXED_MESSAGE, waiting_at, Message(answers=(answer(),), text="x", author="agent"), 3),
            (Refusal.NOT_AN_ANSWER, waiting_at, Message(author="agent"), 3),
            (Refusal.MISSING_ID, lambda: closed(waiting_at()), answer(interrupt_id=""), 31),
            (Refusal.INVALID, lambda: closed(waiting_at()), answer(response=float("nan")), 31),
            (Refusal.CONFLICT, lambda: closed(answered()), answer(response=False), 31),
            (Refusal.CONFLICT, answered, answer(interrupt_id="nope"), 3),
            (Refusal.FRAME_CLOSED, lambda: closed(answered()), answer(answer_id="a2"), 31),
            (Refusal.FRAME_CLOSED, lambda: closed(waiting_at()), answer(interrupt_id="nope"), 31),
            (Refusal.SUPERSEDED, superseded, answer(supersedes="a0", response="perhaps"), 3),
            (Refusal.MAY_NOT_SUPERSEDE, answered, answer(answer_id="a2", supersedes="a1"), 3),
            (
                Refusal.ALREADY_ANSWERED,
                lambda: answered(CONFIRMING, gates=(CONFIRM,)),
                answer(interrupt_id="confirm", digest="sha256:0"),
                61,
            ),
            (Refusal.EXPIRED, lambda: waiting_at(CONFIRM), answer(interrupt_id="confirm", digest="sha256:0"), 60),
            (Refusal.NOT_INVITED, lambda: waiting_at(INVITING), answer(principal="eve", digest="sha256:0"), 3),
            (Refusal.NOT_INVITED, lambda: waiting_at(INVITING), answer(principal="eve", response="perhaps"), 3),
            (Refusal.STALE_DIGEST, waiting_at, answer(digest="sha256:0", response="perhaps"), 3),
        ],
    )
    def test_the_first_rule_to_object_wins(
        self, wins: Refusal, book: Callable[[], Book], said: Answer | Message, at: float
    ) -> None:
        """Who is not invited, for one, learns neither whether the digest is right nor what the schema wants."""
        assert wins == refusal(book(), said, at=later(at))

    def test_a_message_that_is_too_large_is_not_looked_at(self) -> None:
        """Not even whether it is mixed."""
        message = Message(answers=(answer(),), text="x")

        assert Refusal.TOO_LARGE == refused(waiting_at(), message, size=MAX_MESSAGE_BYTES + 1).refusal
        assert "admitted" == judge(waiting_at(), answer(), size=MAX_MESSAGE_BYTES).verdict
