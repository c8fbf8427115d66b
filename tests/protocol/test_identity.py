"""Who may continue, and where: ids that name one occurrence for ever, and branches that are compared whole."""

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gatewright.protocol.errors import IdentityError
from gatewright.protocol.identity import MAX_NAME, MAX_NUMBER, Activation, BranchPath, Occurrence, session_run
from gatewright.store import SessionKey

TRICKY = ["review", "review~2", "review@2", "review@2~2", "review~2@2", "review~0", "review~2~0", "review~0~0"]
TRICKY += ["review~1", "review@1", "rm@1", "wf_tool_confirmation:p@1/rm@1", "a~0", "~", "@", "~0", "~2", "@2", "~02"]
TRICKY += ["review@02", "review~١", "review~2\n", "a~9999999999999999", " ", "é", "e\u0301", "😀", "a/b", "50%", "%40"]

# Built from our own marks, so that nearly every name looks like a suffix of something.
names = st.sampled_from(TRICKY) | st.text("ab~@012", min_size=1, max_size=8) | st.text(min_size=1, max_size=12)
numbers = st.integers(1, 12) | st.integers(1, MAX_NUMBER)
occurrences = st.builds(Occurrence, gate=names.filter(lambda name: name.isprintable()), run=numbers, visit=numbers)


class TestInterruptId:
    @pytest.mark.parametrize(
        ("interrupt_id", "gate", "run", "visit"),
        [
            ("review", "review", 1, 1),
            ("review~2", "review", 1, 2),
            ("review@2", "review", 2, 1),
            ("review@2~2", "review", 2, 2),
            ("review~2~0", "review~2", 1, 1),
            ("review~2~0~3", "review~2", 1, 3),
            ("review@2~0@2~2", "review@2", 2, 2),
            ("review@2~2~0", "review@2~2", 1, 1),
            ("a~0~0", "a~0", 1, 1),
            ("rm@1", "rm@1", 1, 1),
            ("rm@1@2", "rm@1", 2, 1),
            ("~", "~", 1, 1),
            ("@~2", "@", 1, 2),
            ("~2~0", "~2", 1, 1),
        ],
    )
    def test_the_wire_form_is_part_of_the_protocol(self, interrupt_id: str, gate: str, run: int, visit: int) -> None:
        """Clients keep these ids and send them back years later."""
        occurrence = Occurrence(gate=gate, run=run, visit=visit)

        assert interrupt_id == occurrence.interrupt_id
        assert occurrence == Occurrence.parse(interrupt_id)

    @given(occurrences)
    @settings(max_examples=300, deadline=None)
    @example(Occurrence(gate="review~" + "9" * 16, run=MAX_NUMBER, visit=MAX_NUMBER))
    def test_the_wire_form_reads_back(self, occurrence: Occurrence) -> None:
        """Whatever the author called the gate; two occurrences can then never share an id."""
        assert occurrence == Occurrence.parse(occurrence.interrupt_id)

    def test_no_two_occurrences_share_an_id(self) -> None:
        """All of the tricky names beside each other, in the first runs and visits of one session."""
        beside = [
            Occurrence(gate=gate, run=run, visit=visit) for gate, run, visit in product(TRICKY, (1, 2), (1, 2, 10))
        ]

        assert len(set(beside)) == len({occurrence.interrupt_id for occurrence in beside})

    @given(st.sampled_from(["review", "a"]).flatmap(lambda head: st.text("~@0129", max_size=8).map(head.__add__)))
    @settings(max_examples=300, deadline=None)
    def test_an_id_has_one_spelling(self, interrupt_id: str) -> None:
        """What parses is exactly what is written: no second spelling could slip past a comparison of texts."""
        try:
            occurrence = Occurrence.parse(interrupt_id)
        except IdentityError:
            return

        assert interrupt_id == occurrence.interrupt_id

    @pytest.mark.parametrize(
        "interrupt_id", ["", "~0", "@2", "~2", "@2~2", "review~0", "review~0~2", "rm@1~0", "x" * (MAX_NAME + 1)]
    )
    def test_an_id_that_no_occurrence_has_is_an_error(self, interrupt_id: str) -> None:
        """It says where to take a right one from."""
        with pytest.raises(IdentityError, match="take it from the gate as it was listed"):
            Occurrence.parse(interrupt_id)

    def test_endless_digits_are_no_number(self) -> None:
        """They belong to the name, which is then too long; Python's own refusal to read them never shows."""
        with pytest.raises(IdentityError):
            Occurrence.parse("review~" + "9" * 5000)

    def test_the_first_arrival_keeps_the_name_that_adk_gives_it(self) -> None:
        """A client written for ADK finds the id that it knows."""
        assert "adk_request_input" == Occurrence(gate="adk_request_input").interrupt_id

    @pytest.mark.parametrize("wrong", [{"gate": ""}, {"gate": "x" * 201}, {"run": 0}, {"visit": 0}, {"visit": 10**15}])
    def test_an_occurrence_that_has_no_id_cannot_be_built(self, wrong: dict[str, object]) -> None:
        """An empty id could not be answered (B17); a number beyond a JSON reader's could not be receipted."""
        with pytest.raises(ValidationError):
            Occurrence.model_validate({"gate": "review"} | wrong)


class TestBranch:
    def test_a_branch_owns_what_lies_below_it(self) -> None:
        """And itself."""
        path = BranchPath.parse("a@1/b@1")

        assert path.owns(path)
        assert path.owns(path.child("c", 1))
        assert BranchPath().owns(path)

    @pytest.mark.parametrize("other", ["a@1/b@10", "a@1/b@11/c@1", "a@1", "a@2/b@1", "a@1/bb@1", "b@1", "a@1/B@1", ""])
    def test_a_branch_does_not_own_what_only_begins_with_the_same_letters(self, other: str) -> None:
        """`a@1/b@1` is a prefix of `a@1/b@10` as a text, and that is how ADK crosses branches."""
        assert not BranchPath.parse("a@1/b@1").owns(BranchPath.parse(other))

    @given(st.lists(st.builds(Activation, name=names, visit=numbers), max_size=4))
    @settings(max_examples=200, deadline=None)
    def test_a_branch_reads_back(self, components: list[Activation]) -> None:
        """Names with `/`, `@`, `%` and any unicode included."""
        path = BranchPath(components)

        assert path == BranchPath.parse(str(path))
        assert len(components) == len(BranchPath.parse(str(path)))

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a/b@2", "a%2Fb%402@1"),
            ("50%", "50%25@1"),
            ("%40", "%2540@1"),
            ("ü", "%C3%BC@1"),
            ("draft notes: v1", "draft notes: v1@1"),
        ],
    )
    def test_what_would_be_read_as_structure_is_escaped(self, name: str, text: str) -> None:
        """And what would not stays legible."""
        assert text == str(BranchPath().child(name, 1))

    @pytest.mark.parametrize(
        "text",
        [
            "a",
            "@1",
            "a@",
            "a@0",
            "a@01",
            "a@-1",
            "a@١",
            "a@1/",
            "/a@1",
            "a@1//b@1",
            "a@" + "9" * 5000,
            "x" * 201 + "@1",
        ],
    )
    def test_what_is_no_branch_is_an_error(self, text: str) -> None:
        """It says how a component reads."""
        with pytest.raises(IdentityError, match="should read name@visit"):
            BranchPath.parse(text)


class TestSessionRun:
    @given(st.tuples(*[st.text(min_size=1, max_size=8)] * 3), st.integers(1, MAX_NUMBER))
    @settings(max_examples=200, deadline=None)
    def test_the_number_in_a_workflow_id_is_the_run(self, parts: tuple[str, str, str], number: int) -> None:
        """For every id that the store gives out."""
        try:
            session = SessionKey(app=parts[0], user=parts[1], session=parts[2])
        except ValidationError:
            return

        assert number == session_run(session.workflow_id(number))

    @pytest.mark.parametrize(
        "workflow_id",
        [
            "release-7",
            "a/b/c",
            "a/b/c/0",
            "a/b/c/02",
            "a/b/c/2/3",
            "a/b//2",
            "/b/c/2",
            "a/b/c/-2",
            "a/b/c/٢",
            "a/b/c/2\n",
            "a b/c/d/2",
            "a%2fb/c/d/2",
            "a%zz/c/d/2",
            "%00/c/d/2",
            "x" * 201 + "/c/d/2",
        ],
    )
    def test_any_other_id_is_its_sessions_only_run(self, workflow_id: str) -> None:
        """As the store has it: another spelling of a session's id is another workflow to Temporal."""
        assert SessionKey.parse(workflow_id) is None
        assert 1 == session_run(workflow_id)

    @given(st.text("ab/%20éF", max_size=12).map(lambda head: head + "/2"))
    @settings(max_examples=300, deadline=None)
    def test_protocol_and_store_agree(self, workflow_id: str) -> None:
        """Otherwise one session would list two gates under one interrupt id."""
        parsed = SessionKey.parse(workflow_id)

        assert (parsed[1] if parsed else 1) == session_run(workflow_id)
