"""Our pipelines as ADK apps: what `gatewright serve` offers to ADK's clients."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from gatewright.adk import START, App, Graph, Node
from workflows.dataset_release import DatasetRelease, ReleaseRequest


def release_request(text: str, _state: Mapping[str, Any]) -> ReleaseRequest:
    """
    The request that a user's text makes: a JSON object is one, any other text is the source's path.

    `ValueError` says what is wrong with it.
    """
    said = text.strip()
    if not said:
        raise ValueError("say which CSV file to release: its path on the worker's machine")
    if not said.startswith("{"):
        return ReleaseRequest(source=said)
    try:
        return ReleaseRequest.model_validate_json(said)
    except ValidationError as wrong:
        faults = "; ".join(
            f"{'.'.join(map(str, error['loc'])) or 'the request'}: {error['msg']}" for error in wrong.errors()
        )
        form = json.dumps({"source": "data.csv", "transform_minutes": 15})
        raise ValueError(f"this is no request: {faults}. Write a path, or JSON like {form}") from wrong


RELEASE = App(
    name="dataset_release",
    pipeline=DatasetRelease.__name__,
    description="Profile a CSV file, review its columns, transform it, confirm, publish.",
    opens=release_request,
    graph=Graph(
        nodes=(
            Node("profile_dataset"),
            Node("review_profile", kind="gate"),
            Node("draft_notes"),
            Node("dispatch_transform"),
            Node("confirm_release", kind="gate"),
            Node("transform", kind="gate"),
            Node("transform_failed", kind="gate"),
            Node("publish_release"),
        ),
        edges=(
            (START, "profile_dataset"),
            ("profile_dataset", "review_profile"),
            ("review_profile", "draft_notes"),
            ("draft_notes", "dispatch_transform"),
            ("dispatch_transform", "confirm_release"),
            ("dispatch_transform", "transform"),
            ("confirm_release", "publish_release"),
            ("transform", "publish_release"),
            ("confirm_release", "review_profile"),
            ("transform", "transform_failed"),
            ("transform_failed", "dispatch_transform"),
            ("transform_failed", "review_profile"),
        ),
    ),
)

APPS = [RELEASE]
"""What is served where no other apps are named."""
