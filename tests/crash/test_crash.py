"""Kill -9 of the worker, wherever it is: the same end, the same transcript, no step more often than its worker died."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.conftest import NewWorld, Undisturbed, manifest
from tests.crash.release import CONFIRM, POINTS, REVIEW, STEPS, see_through
from tests.crash.world import World

TOGETHER = (
    "profile_dataset.before",
    "review_profile.paused",
    "review_profile.answered",
    "confirm_release.paused",
    "publish_release.after",
)
"""Five of the points in one run: what `make test` has time for."""

pytestmark = pytest.mark.timeout(300)


async def came_to_the_same(made: World, undisturbed: Undisturbed, what: str) -> None:
    """Whatever died: what nobody could tell from a run in which nothing did."""
    result = await made.result()
    executions = made.executions()
    print(row(what, made, executions))

    assert "released" == result["status"]
    assert undisturbed.rows == result["release"]["rows"]
    assert [Path(result["release"]["parquet"]).parent] == made.releases
    assert undisturbed.masked == manifest(made)["masked"]
    assert undisturbed.lanes == await made.lanes()
    assert undisturbed.receipts == await made.receipts()
    for step in STEPS:
        assert 1 <= executions[step] <= 1 + made.crashes[step], executions
    # Whichever step a kill may have hit, it hit one.
    assert sum(executions[step] for step in STEPS) <= len(STEPS) + made.worker.kills, executions
    # Dispatched twice or not, one job does it.
    assert 1 == len(made.jobs)


def row(what: str, made: World, executions: Counter[str]) -> str:
    """One line of the table in docs/crash.md."""
    steps = " ".join(str(executions[step]) for step in STEPS)
    verdicts = ", ".join(
        f"{since:.1f} s after the kill ({after:.1f} s after the start)" for since, after in made.verdicts
    )
    return f"| {what} | {made.worker.kills} | {steps} | {verdicts or '-'} |"


async def test_a_worker_that_dies_again_and_again_changes_nothing(
    new_world: NewWorld, undisturbed: Undisturbed
) -> None:
    """In a step, before an answer and right after it, with two gates open, between an effect and its record; in one run."""
    async with new_world("together") as made:
        await see_through(made, TOGETHER)
        await came_to_the_same(made, undisturbed, "five of them in one run")
        assert 1 == made.executions()["publish_release"]
        assert 2 == made.executions()["profile_dataset"]


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("point", POINTS)
async def test_a_worker_may_die_at_any_point(point: str, new_world: NewWorld, undisturbed: Undisturbed) -> None:
    """One kill in each run, at every point that there is."""
    async with new_world(point) as made:
        await see_through(made, (point,))
        await came_to_the_same(made, undisturbed, point)
        if point in {"publish_release.after", "publish_release.recorded"}:
            assert 1 == made.executions()["publish_release"]


@pytest.mark.usefixtures("full")
async def test_a_job_that_is_killed_meets_its_gates_deadline_and_can_be_retried(new_world: NewWorld) -> None:
    """Nobody speaks for it: the deadline of its gate does, and a person decides; the retry is a call of its own."""
    async with new_world("job", minutes=0.25) as made:
        await made.worker.start()
        await made.gate("review_profile")
        await made.answer("review_profile", REVIEW)
        os.kill(await made.job(), signal.SIGKILL)
        await made.gate("transform_failed")
        # The worker that waits for the person dies as well.
        await made.crash("transform_failed")
        await made.answer("transform_failed", {"decision": "retry"}, timed=True)
        await made.gate("transform~2", "answered")
        await made.answer("confirm_release~2", CONFIRM)
        result = await made.result()
        print(row("the job, then the worker", made, made.executions()))

        assert "released" == result["status"]
        assert [Path(result["release"]["parquet"]).parent] == made.releases
        assert 2 == len(made.jobs)
        assert 5 == await made.receipts()
        assert {
            "main": [
                "opened",
                "performed profile_dataset#1",
                "asked review_profile",
                "answered review_profile",
                "performed draft_notes#1",
                "asked confirm_release",
                "superseded confirm_release",
                "asked transform_failed",
                "answered transform_failed",
                "asked confirm_release~2",
                "answered confirm_release~2",
                "consumed confirm_release~2",
                "performed publish_release#1",
                "closed",
            ],
            "transform": ["asked transform", "expired transform", "asked transform~2", "answered transform~2"],
            "dispatch": ["performed dispatch_transform#1", "performed dispatch_transform#2"],
        } == await made.lanes()
