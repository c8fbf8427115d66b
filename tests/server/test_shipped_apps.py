"""The shipped app: what text opens a release, and that its picture is of this pipeline."""

import inspect
import re

import pytest

from gatewright.adk import START
from worker.apps import APPS, RELEASE, release_request
from workflows import ALL
from workflows.dataset_release import DatasetRelease, ReleaseRequest


def test_every_pipeline_of_the_worker_is_an_app() -> None:
    """Under its workflow type."""
    assert {pipeline.__name__ for pipeline in ALL} == {app.pipeline for app in APPS}


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("data/people.csv", ReleaseRequest(source="data/people.csv")),
        ("  a file {1}.csv \n", ReleaseRequest(source="a file {1}.csv")),
        ('{"source": "a.csv", "transform_minutes": 2}', ReleaseRequest(source="a.csv", transform_minutes=2)),
    ],
)
def test_text_is_a_path_and_a_json_object_is_a_request(text: str, request_: ReleaseRequest) -> None:
    """Whichever it is."""
    assert request_ == release_request(text, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("   ", "which CSV file"),
        ("{}", "source: Field required"),
        ('{"source": "a", "transform_minutes": 0}', "transform_minutes: Input should be greater than 0"),
        ("{nope", "Invalid JSON"),
    ],
)
def test_text_that_opens_nothing_says_why(text: str, said: str) -> None:
    """And what would."""
    with pytest.raises(ValueError, match=said):
        release_request(text, {})


def test_the_picture_has_the_pipelines_own_places() -> None:
    """Every gate and every activity that it names, and no other; each is reached from the start."""
    source = inspect.getsource(DatasetRelease)
    gates = set(re.findall(r'Gate\(\s*"(\w+)"', source))
    performed = set(re.findall(r"self\.frame\.perform\(\s*(\w+)", source))
    drawn = {kind: {node.name for node in RELEASE.graph.nodes if node.kind == kind} for kind in ("gate", "function")}
    reached, before = {START}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {to for origin, to in RELEASE.graph.edges if origin in before}

    assert gates == drawn["gate"]
    assert performed == drawn["function"]
    assert reached == {START, *gates, *performed}
