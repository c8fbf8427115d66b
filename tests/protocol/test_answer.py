"""What is said, read from the JSON that people and programs send."""

from typing import Any

import pytest
from pydantic import ValidationError

from gatewright.protocol.admission import Repeated
from gatewright.protocol.answer import Answer, EvidenceClass, Failure, Message
from gatewright.protocol.canonical import NotJson
from tests.protocol.builders import answer


class TestReading:
    @pytest.mark.parametrize(
        "given",
        [
            {"interruptId": "review", "answerId": "a1", "response": True},
            {"interrupt_id": "review", "answer_id": "a1", "response": True},
            {"interruptId": "review", "answer_id": "a1", "response": True},
            {"answers": [{"interruptId": "review", "answerId": "a1", "response": True}]},
            {"answers": [{"interrupt_id": "review", "answer_id": "a1", "response": True}], "author": "user"},
        ],
    )
    def test_one_answer_may_be_sent_bare_or_in_a_list(self, given: dict[str, Any]) -> None:
        """In camelCase or snake_case: one line of JSON in Temporal's own UI answers a gate."""
        assert Message.of(Answer(answer_id="a1", interrupt_id="review", response=True)) == Message.model_validate(given)

    def test_author_and_text_of_a_bare_answer_belong_to_the_message(self) -> None:
        """So that a mixed or an agent's message is recognised whichever way it is written."""
        message = Message.model_validate({"interruptId": "review", "author": "agent", "text": "hello"})

        assert Message(answers=(Answer(interrupt_id="review"),), author="agent", text="hello") == message

    @pytest.mark.parametrize("given", [{}, {"text": "hello"}, {"answers": []}])
    def test_a_message_without_answers_is_read(self, given: dict[str, Any]) -> None:
        """It is then refused by name instead of failing to parse."""
        assert () == Message.model_validate(given).answers

    @pytest.mark.parametrize(
        "given",
        [
            {"interruptId": "review", "respones": True},
            {"interruptId": "review", "response": True, "approved": True},
            {"answers": [{"interruptId": "review", "approve": True}]},
            {"answers": [], "interruptId": "review"},
            {"interruptId": 7},
            {"interruptId": None},
            {"interruptId": "review", "failure": {"type": "timeout"}},
            {"interruptId": "review", "failure": {"type": "", "message": "no"}},
            {"interruptId": "review", "failure": {"type": "t", "message": "no", "code": 1}},
            {"interruptId": "x" * 401},
            {"answerId": "x" * 201},
            {"answers": [{}] * 101},
            {"answers": {"interruptId": "review"}},
            [{"interruptId": "review"}],
            "review",
            None,
        ],
    )
    def test_what_is_not_understood_is_not_read(self, given: Any) -> None:
        """A misspelt field in an approval must not be dropped in silence."""
        with pytest.raises(ValidationError):
            Message.model_validate(given)

    def test_an_answer_survives_json(self) -> None:
        """It is kept in books and histories."""
        said = answer(
            failure=Failure(type="timeout", message="no disk"),
            response=[1, 1.5, "é", None],
            evidence=EvidenceClass.SIGNED,
            digest="sha256:1",
            supersedes="a0",
        )

        assert said == Answer.model_validate_json(said.model_dump_json())
        assert said == Answer.model_validate_json(said.model_dump_json(by_alias=True))


class TestContentDigest:
    @pytest.mark.parametrize(
        "changes",
        [
            {"interrupt_id": "review~2"},
            {"interrupt_id": "", "gate": "review"},
            {"gate": "review"},
            {"response": False},
            {"response": 1},
            {"response": None},
            {"failure": Failure(type="timeout", message="no disk")},
            {"principal": "eve"},
            {"supersedes": "a0"},
        ],
    )
    def test_other_content_has_another_digest(self, changes: dict[str, Any]) -> None:
        """Who says what to which occurrence: true is not 1, and eve is not ada."""
        assert answer().content_digest != answer(**changes).content_digest

    @pytest.mark.parametrize(
        "changes",
        [{"answer_id": "a2"}, {"channel": "temporal"}, {"evidence": EvidenceClass.SIGNED}, {"digest": "sha256:1"}],
    )
    def test_the_way_it_was_sent_is_not_content(self, changes: dict[str, Any]) -> None:
        """A client that falls back from update to signal says the same."""
        assert answer().content_digest == answer(**changes).content_digest

    def test_what_was_seen_is_part_of_the_address_where_only_the_gate_is_named(self) -> None:
        """The same words to the next draft are another answer, not a repeat of the first."""
        first = answer(interrupt_id="", gate="review", digest="sha256:1")

        assert first.content_digest != first.model_copy(update={"digest": "sha256:2"}).content_digest

    def test_the_digest_does_not_depend_on_how_a_number_or_an_object_is_written(self) -> None:
        """JSON libraries order keys and write 1 and 1.0 as they please."""
        assert answer(response={"a": 1, "b": 2}).content_digest == answer(response={"b": 2.0, "a": 1.0}).content_digest

    def test_a_response_as_deep_as_json_is_read_has_a_digest(self) -> None:
        """One level more than admission takes would otherwise end in an error inside the run."""
        response: Any = []
        for _ in range(63):
            response = [response]

        assert answer(response=response).content_digest.startswith("sha256:")
        with pytest.raises(NotJson):
            _ = answer(response=[response]).content_digest


class TestName:
    def test_an_answer_is_named_by_its_id(self) -> None:
        """Where the sender gave one."""
        assert "a1" == answer().name

    def test_without_an_id_it_is_named_by_its_content(self) -> None:
        """The same words sent twice are recognised as a repeat, other words are not."""
        assert answer(answer_id="").name == answer(answer_id="", channel="temporal").name
        assert answer(answer_id="").name != answer(answer_id="", response=False).name
        assert answer(answer_id="").name.startswith("by-content-")


def test_what_a_newer_release_tells_is_read_without_what_this_one_does_not_know() -> None:
    """Client and worker may be of different releases; what decides something is read strictly all the same."""
    told = {"verdict": "repeated", "receipts": [], "of_a_later_release": 1}

    assert Repeated(receipts=()) == Repeated.model_validate(told)
    with pytest.raises(ValidationError):
        Answer.model_validate({"interruptId": "review", "of_a_later_release": 1})
