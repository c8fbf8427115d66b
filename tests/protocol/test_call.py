"""The key names one call of one effect for ever, whatever else changes."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from gatewright.protocol.call import Call
from gatewright.protocol.identity import BranchPath, FrameIdentity
from tests.protocol.builders import IDENTITY

ROOT = BranchPath.parse("release@1")


def call(**changes: Any) -> Call:
    """Build the first call of `publish` in the session's first run."""
    given: dict[str, Any] = {"identity": IDENTITY, "root": ROOT, "name": "publish", "visit": 1, "effect": True}
    return Call.at(**given | changes)


OTHERS: dict[str, dict[str, Any]] = {
    "namespace": {"identity": FrameIdentity(**IDENTITY.model_dump() | {"namespace": "prod"})},
    "workflow id": {"identity": FrameIdentity(**IDENTITY.model_dump() | {"workflow_id": "datasets/ada/s1/2"})},
    "first execution": {"identity": FrameIdentity(**IDENTITY.model_dump() | {"first_execution_run_id": "e2"})},
    "branch": {"root": BranchPath.parse("release@2")},
    "nested branch": {"root": BranchPath.parse("release@1/inner@1")},
    "visit": {"visit": 2},
    "name": {"name": "publish2"},
    "generation": {"generation": 1},
}


class TestKey:
    def test_the_key_is_the_same_for_ever(self) -> None:
        """The ledger remembers effects by it; a change here would do every effect again."""
        assert "gw1-235512f8dacf5c52f1e699b77682a8b49e10c0678bf515b70efc67cbc5579509" == call().key

    @pytest.mark.parametrize("component", OTHERS)
    def test_the_key_differs_in_each_component(self, component: str) -> None:
        """So that no two calls are taken for one."""
        assert call().key != call(**OTHERS[component]).key

    def test_no_two_of_the_others_are_taken_for_one(self) -> None:
        """Each component has its own place in the key."""
        assert len(OTHERS) == len({call(**changes).key for changes in OTHERS.values()})

    @pytest.mark.parametrize("changes", [{"authorised_by": "review"}, {"ledger_id": "l1"}, {"effect": False}])
    def test_the_key_does_not_depend_on_anything_else(self, changes: dict[str, Any]) -> None:
        """Who authorised a call and where it is remembered may change between two attempts."""
        assert call().key == call(**changes).key

    @pytest.mark.parametrize("name", ["publish", "a/b", "50% é 😀", "x" * 200])
    def test_a_key_is_safe_as_a_header_and_a_file_name(self, name: str) -> None:
        """Whatever the effect is called."""
        assert re.fullmatch(r"gw1-[0-9a-f]{64}", call(name=name).key)

    def test_components_cannot_run_into_each_other(self) -> None:
        """`a` beside `b/c` is not `a/b` beside `c`."""
        one = FrameIdentity(namespace="a", workflow_id="b/c", first_execution_run_id="e")
        two = FrameIdentity(namespace="a/b", workflow_id="c", first_execution_run_id="e")

        assert call(identity=one).key != call(identity=two).key


class TestCall:
    def test_the_activity_carries_a_readable_id(self) -> None:
        """A person finds it in Temporal's UI."""
        assert "publish#1" == call().id
        assert "publish#2" == call(visit=2).id
        assert "publish#1.2" == call(generation=2).id

    def test_a_call_knows_its_branch(self) -> None:
        """Below the one that makes it."""
        assert BranchPath.parse("release@1/publish@3") == call(visit=3).branch

    def test_a_call_survives_json(self) -> None:
        """It travels in a header to the activity side."""
        whole = call(authorised_by="review~2", ledger_id="l1", generation=1)

        assert whole == Call.model_validate_json(whole.model_dump_json())

    @pytest.mark.parametrize("wrong", [{"visit": 0}, {"generation": -1}, {"name": ""}, {"name": "x" * 201}])
    def test_a_call_that_cannot_be_counted_is_not_built(self, wrong: dict[str, Any]) -> None:
        """Numbers start at one, generations at none."""
        with pytest.raises(ValidationError):
            call(**wrong)
