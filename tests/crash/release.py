"""The release as a person sees it through, with the worker dying wherever the test says."""

import os
import signal
from collections.abc import Mapping

from tests.crash.world import World

STEPS = ("profile_dataset", "draft_notes", "dispatch_transform", "publish_release")
PLACES = ("before", "after", "recorded")

IN_STEPS = [f"{step}.{place}" for step in STEPS for place in PLACES if place != "recorded" or step == "publish_release"]
AT_GATES = [
    "review_profile.paused",
    "review_profile.answered",
    "confirm_release.paused",
    "confirm_release.answered",
]
POINTS = [*IN_STEPS, *AT_GATES]
"""Where the worker is killed: in the middle of each step; at each gate before its answer, and right after the verdict."""

LEADS_TO = {"review_profile": ("draft_notes", "dispatch_transform"), "confirm_release": ("publish_release",)}
"""Which steps run without anybody's answer once a gate has its own: how far they have come when the kill arrives, the machine says."""

REVIEW = {"drop": [], "mask": ["email"], "comment": "as discussed"}
CONFIRM = {"decision": "release", "comment": "go"}


async def see_through(world: World, points: tuple[str, ...]) -> None:
    """Answer what is asked, and kill -9 the worker at each of these points."""
    assert set(points) <= set(POINTS)
    for point in set(points) & set(IN_STEPS):
        world.hold(point)
    await world.worker.start()
    await _step(world, "profile_dataset", points)
    await _gate(world, "review_profile", REVIEW, points)
    await _step(world, "draft_notes", points)
    await _step(world, "dispatch_transform", points)
    if "confirm_release.paused" in points:
        await _with_the_transform_open(world)
    # Then the transcript's order is the same in every run: the job has called back before the person decides.
    await world.gate("transform", "answered")
    await _gate(world, "confirm_release", CONFIRM, points)
    await _step(world, "publish_release", points)


async def _step(world: World, step: str, points: tuple[str, ...]) -> None:
    for place in PLACES:
        if f"{step}.{place}" in points:
            await world.kill_at(f"{step}.{place}")


async def _gate(world: World, gate: str, response: Mapping[str, object], points: tuple[str, ...]) -> None:
    await world.gate(gate)
    # At confirm_release it happens while the transform's gate is open too, see below.
    paused = f"{gate}.paused" in points and gate != "confirm_release"
    if paused:
        await world.crash(gate)
    await world.answer(gate, response, timed=paused)
    if f"{gate}.answered" in points:
        # The verdict is out, and the steps that it leads to may have begun.
        await world.crash(gate, *LEADS_TO[gate])


async def _with_the_transform_open(world: World) -> None:
    """Kill the worker while the job works and two gates are open; the job is stopped, so that it cannot call back before."""
    pid = await world.job()
    os.kill(pid, signal.SIGSTOP)
    try:
        await world.gate("confirm_release")
        await world.gate("transform")
        await world.crash("confirm_release")
        await world.gate("transform")
    finally:
        os.kill(pid, signal.SIGCONT)
