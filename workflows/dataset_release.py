"""
The release of a data set, from a CSV file to a published Parquet file.

    profile_dataset ─► (review_profile) ─► draft_notes ─► dispatch_transform ─┬─► (confirm_release) ─► publish_release
                             ▲                                                └─► (transform: the job calls back)
                             └── revise ─────────────────────────────────────────────┘

The profile is the expensive cold start and runs once, whatever people send
while the run is paused. The transform runs in a process of its own and says
through a system gate that it is done, failed, or nothing until the deadline.
"""

import asyncio
from datetime import timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.models import Callback, Notes, Profile, Release, TransformPlan, TransformResult
    from activities.steps import dispatch_transform, draft_notes, profile_dataset, publish_release
    from gatewright.temporal import Answered, Frame, Gate, GateExpiredError, GateFailedError, GateKind, Policy

JOB = "system:transform"
"""The principal as which the background job answers its gate."""


class ReleaseRequest(BaseModel):
    """What to release; `source` is the path of a CSV file on the worker's machine."""

    source: str
    transform_minutes: float = Field(default=15, gt=0, description="how long the background job may stay silent")


class ProfileReview(BaseModel):
    """What a person decides about the columns, having seen the profile."""

    model_config = ConfigDict(extra="forbid")

    drop: list[str] = Field(default=[], description="Columns to leave out")
    mask: list[str] = Field(default=[], description="Columns whose values are replaced by stable pseudonyms")
    comment: str = Field(default="", description="For the release notes")


class Confirmation(BaseModel):
    """What a person decides about the release as a whole."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["release", "revise", "reject"] = Field(description="release, revise the columns, or reject")
    comment: str = Field(default="", description="Why")


class Recovery(BaseModel):
    """What a person decides when the transform failed or stayed silent."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["retry", "revise", "reject"] = Field(description="run it again, revise the columns, or give up")
    comment: str = Field(default="", description="Why")


class ReleaseOutcome(BaseModel):
    """How it ended: published, or rejected by whom and why."""

    status: Literal["released", "rejected"]
    release: Release | None = None
    by: str
    comment: str = ""


@workflow.defn
class DatasetRelease:
    """Profile, review, draft, transform, confirm, publish."""

    @workflow.init
    def __init__(self, request: ReleaseRequest) -> None:
        """Host the frame: answers may arrive before `run` does."""
        self.request = request
        self.frame = Frame(gates=["review_profile", "transform", "confirm_release", "transform_failed"])

    @workflow.run
    async def run(self, request: ReleaseRequest) -> ReleaseOutcome:
        """Go round until the data set is released or rejected."""
        profile = await self.frame.perform(profile_dataset, request.source)
        decision: Answered[Any] | None = None
        number = 0
        while True:
            number += 1
            review = await self.frame.ask(self._review_gate(profile, decision))
            notes = await self.frame.perform(
                draft_notes, profile, review.value.drop, review.value.mask, review.value.comment
            )
            plan = TransformPlan(
                source=profile.source,
                sha256=profile.sha256,
                drop=review.value.drop,
                mask=review.value.mask,
                round=number,
            )
            decision, transform = await self._decide(profile, plan, notes)
            match decision.value.decision:
                case "release":
                    if transform is None:
                        msg = "a release is confirmed only together with its transform"
                        raise AssertionError(msg)
                    release = await self.frame.perform(
                        publish_release,
                        plan,
                        transform,
                        notes,
                        review.value.model_dump(),
                        decision.principal,
                        authorised_by=decision,
                    )
                    return ReleaseOutcome(
                        status="released", release=release, by=decision.principal, comment=decision.value.comment
                    )
                case "reject":
                    self.frame.say("The release was rejected.")
                    return ReleaseOutcome(status="rejected", by=decision.principal, comment=decision.value.comment)
                case _:
                    self.frame.say("Back to the columns.")

    async def _decide(
        self, profile: Profile, plan: TransformPlan, notes: Notes
    ) -> tuple[Answered[Any], TransformResult | None]:
        """The decision that ends this round, and the finished transform where it is to be released."""
        while True:
            transform = asyncio.create_task(self._transform(plan))
            confirm = asyncio.create_task(self.frame.ask(self._confirm_gate(profile, plan, notes)))
            try:
                await workflow.wait([transform, confirm], return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                await _stop(transform)
                await _stop(confirm)
                raise
            if confirm.done() and not (transform.done() and transform.exception()):
                confirmed = confirm.result()
                if confirmed.value.decision != "release":
                    # Its gate is superseded with it: the job's late call is refused and cannot reach the next round.
                    await _stop(transform)
                    return confirmed, None
            try:
                result = await transform
            except (GateFailedError, GateExpiredError) as failed:
                await _stop(confirm)
                recovery = await self.frame.ask(self._recovery_gate(plan, failed.message))
                if recovery.value.decision == "retry":
                    continue
                return recovery, None
            return await confirm, result

    async def _transform(self, plan: TransformPlan) -> TransformResult:
        """Dispatch the job and wait at the gate that it calls."""
        interrupt_id = self.frame.upcoming("transform")
        gate = self.frame.ask(
            Gate(
                "transform",
                answer=TransformResult,
                kind=GateKind.SYSTEM,
                message="The transform runs in the background and answers here when it is done.",
                payload=plan,
                deadline=timedelta(minutes=self.request.transform_minutes),
                policy=Policy(invited=(JOB,)),
            )
        )
        # The gate opens first, so that a job that is quicker than this run finds it.
        answered = asyncio.create_task(gate)
        callback = Callback(
            address="",
            namespace=workflow.info().namespace,
            workflow_id=workflow.info().workflow_id,
            interrupt_id=interrupt_id,
            answer_id=f"transform-of-{interrupt_id}",
        )
        try:
            await self.frame.perform(dispatch_transform, plan, callback)
            return (await answered).value
        except (Exception, asyncio.CancelledError):
            await _stop(answered)
            raise

    def _review_gate(self, profile: Profile, before: Answered[Any] | None) -> Gate[ProfileReview]:
        again = f" Revision asked for by {before.principal}: {before.value.comment}" if before else ""
        schema = ProfileReview.model_json_schema()
        if not profile.truncated and profile.columns:
            # Only columns that exist can be chosen: a misspelt one is refused where it is typed.
            for field in ("drop", "mask"):
                schema["properties"][field]["items"]["enum"] = list(dict.fromkeys(c.name for c in profile.columns))
        return Gate(
            "review_profile",
            answer=ProfileReview,
            narrowed=schema,
            message=f"Which of the {profile.column_count} columns of {profile.source} are to be dropped or masked?{again}",
            payload=profile,
        )

    def _confirm_gate(self, profile: Profile, plan: TransformPlan, notes: Notes) -> Gate[Confirmation]:
        return Gate(
            "confirm_release",
            answer=Confirmation,
            message=f"Release {profile.rows:,} rows of {profile.source}? Once confirmed it is published.",
            payload={
                "drop": plan.drop,
                "mask": plan.mask,
                "round": plan.round,
                "notes": notes.text,
                "notes_by": notes.by,
            },
            policy=Policy(dangerous=True),
        )

    def _recovery_gate(self, plan: TransformPlan, why: str) -> Gate[Recovery]:
        return Gate(
            "transform_failed",
            answer=Recovery,
            message=f"The transform did not succeed: {why}",
            payload=plan,
        )


async def _stop(task: asyncio.Task[Any]) -> None:
    """Stop waiting for this, and see it stopped before the pipeline goes on."""
    task.cancel()
    await workflow.wait([task])
    if not task.cancelled():
        # Its failure is no news any more; asyncio wants it taken note of all the same.
        task.exception()
