"""
The dataset release as an ADK `Workflow`: the same steps, gates, words and values as `workflows/dataset_release.py`.

Its nodes call the plain functions of `activities/`, so every output is computed.
Two nodes are ADK's alone, because its graph has no other place for what is an
`if` in Python: `decide` (joins and chooses) and `outcome` (what is returned). A
transform that fails is left out: ADK cannot answer a gate with a failure, nor
close another one for it.

    profile_dataset ─► (review_profile) ─► draft_notes ─► dispatch_transform ─┬─► (confirm_release) ─┬─► decide
                             ▲                                                └─► (transform)  ──────┘     │
                             └───────────────────────── revise ────────────────────────────────────────────┤
                                              outcome ◄── publish_release ◄── release ─────────────────────┤
                                                 └─────────────────────────── reject ──────────────────────┘
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from google.adk import Workflow
from google.adk.agents.context import Context
from google.adk.events import RequestInput
from google.adk.workflow import START, JoinNode

from activities import settings
from activities.jobs import JobFolder, job_folder
from activities.models import Callback, JobOrder, Notes, Profile, TransformJob, TransformPlan, TransformResult
from activities.notes import written_notes
from activities.profiling import profile_csv
from activities.releases import published
from activities.transform_job import concluded, delivered
from workflows.dataset_release import Confirmation, ProfileReview, ReleaseOutcome

from .samples import event, words

Yields = Iterator[Any]
Keys = Callable[[str, int], str]


class Decide(JoinNode):
    """Waits for both answers and says which way to go on."""

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        decision = node_input["confirm_release"]["decision"]
        said = {"revise": "Back to the columns.", "reject": "The release was rejected."}
        if decision in said:
            yield event(message=said[decision])
        yield event(output=node_input, route=decision)


class Twin:
    """
    One session's workflow.

    `keys` gives the key of the n-th call of a step. ADK has none; they are those
    of the Gatewright run it is compared with, because the pseudonyms of masked
    values and the folders' names derive from them.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._jobs: list[JobFolder] = []

    def workflow(self) -> Workflow:
        """The graph."""
        decide = Decide(name="decide")
        # Taken once: each access makes another bound method, and a node is known by its object.
        dispatch, publish = self.dispatch_transform, self.publish_release
        return Workflow(
            name="DatasetRelease",
            edges=[
                (START, profile_dataset, review_profile, draft_notes, dispatch),
                (dispatch, confirm_release, decide),
                (dispatch, transform, decide),
                (decide, {"release": publish, "revise": review_profile, "reject": outcome}),
                (publish, outcome),
            ],
        )

    def dispatch_transform(self, ctx: Context) -> Yields:
        key = self._keys("dispatch_transform", int(ctx.run_id))
        folder = job_folder(settings.data_dir() / "jobs", key)
        callback = Callback(address="", namespace="", workflow_id="", interrupt_id="transform", answer_id="")
        folder.place(JobOrder(key=key, plan=_plan(ctx), callback=callback))
        self._jobs.append(folder)
        yield event(output=TransformJob(key=key, folder=str(folder.path), started=True).model_dump(mode="json"))

    def publish_release(self, ctx: Context) -> Yields:
        release = published(
            _plan(ctx),
            TransformResult.model_validate(_last(ctx, "transform")),
            Notes.model_validate(_last(ctx, "draft_notes")),
            _last(ctx, "review_profile"),
            ctx.user_id,
            key=self._keys("publish_release", int(ctx.run_id)),
            releases=settings.data_dir() / "releases",
        )
        yield event(output=release.model_dump(mode="json"))

    async def at_work(self) -> tuple[str, Any]:
        """Do the job that was dispatched last, as its process does; what it calls back with."""
        called: list[tuple[str, Any]] = []

        async def deliver(callback: Callback, *, response: Any, failure: Any) -> None:
            assert failure is None
            called.append((callback.interrupt_id, response))

        folder = self._jobs[-1]
        order = folder.order()
        assert order is not None
        result = await asyncio.to_thread(concluded, order, folder)
        assert await delivered(order.callback, result, deliver)
        return called[0]


def profile_dataset(node_input: Any) -> Yields:
    profile = profile_csv(words(node_input), profiles=settings.data_dir() / "profiles")
    yield event(output=profile.model_dump(mode="json"))


def review_profile(ctx: Context) -> Yields:
    profile, before = Profile.model_validate(_last(ctx, "profile_dataset")), _last(ctx, "confirm_release")
    again = f" Revision asked for by {ctx.user_id}: {before['comment']}" if before else ""
    schema = ProfileReview.model_json_schema()
    for name in ("drop", "mask"):
        schema["properties"][name]["items"]["enum"] = [column.name for column in profile.columns]
    yield RequestInput(
        interrupt_id="review_profile",
        message=f"Which of the {profile.column_count} columns of {profile.source} are to be dropped or masked?{again}",
        payload=profile.model_dump(mode="json"),
        response_schema=schema,
    )


def draft_notes(ctx: Context) -> Yields:
    profile, review = Profile.model_validate(_last(ctx, "profile_dataset")), _last(ctx, "review_profile")
    notes = written_notes(profile, dropped=review["drop"], masked=review["mask"], comment=review["comment"])
    yield event(output=notes.model_dump(mode="json"))


def confirm_release(ctx: Context) -> Yields:
    profile, plan = Profile.model_validate(_last(ctx, "profile_dataset")), _plan(ctx)
    notes = Notes.model_validate(_last(ctx, "draft_notes"))
    shown = {"drop": plan.drop, "mask": plan.mask, "round": plan.round, "notes": notes.text, "notes_by": notes.by}
    yield RequestInput(
        interrupt_id="confirm_release",
        message=f"Release {profile.rows:,} rows of {profile.source}? Once confirmed it is published.",
        payload=shown,
        response_schema=Confirmation,
    )


def transform(ctx: Context) -> Yields:
    yield RequestInput(
        interrupt_id="transform",
        message="The transform runs in the background and answers here when it is done.",
        payload=_plan(ctx).model_dump(mode="json"),
        response_schema=TransformResult,
    )


def outcome(ctx: Context) -> Yields:
    decision, release = _last(ctx, "confirm_release"), _last(ctx, "publish_release")
    status = "released" if release else "rejected"
    ended = ReleaseOutcome(status=status, release=release, by=ctx.user_id, comment=decision["comment"])
    yield event(output=ended.model_dump(mode="json"))


def _plan(ctx: Context) -> TransformPlan:
    profile, review = _last(ctx, "profile_dataset"), _last(ctx, "review_profile")
    return TransformPlan(
        source=profile["source"],
        sha256=profile["sha256"],
        drop=review["drop"],
        mask=review["mask"],
        round=len(_all(ctx, "review_profile")),
    )


def _last(ctx: Context, node: str) -> Any:
    """What a step gave, or what a gate was answered with, the last time; None where it has not come to that."""
    return (_all(ctx, node) or [None])[-1]


def _all(ctx: Context, node: str) -> list[Any]:
    """All of what a step gave, or a gate was answered with, from the session: an answer has no output event (E02)."""
    given = []
    for told in ctx.session.events:
        if told.output is not None and told.node_info.path.rpartition("/")[2].partition("@")[0] == node:
            given.append(told.output)
        given += [response.response for response in told.get_function_responses() if response.id == node]
    return given
