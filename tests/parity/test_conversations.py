"""The same conversation with ADK's `Runner` and with Gatewright differs where it is meant to, and nowhere else."""

from uuid import uuid4

import pytest

from .comparing import alone, compared
from .conftest import Serving
from .playing import GatewaySide, RunnerSide, play
from .samples import sample
from .scripts import SCRIPTS

SAMPLES = {name: script for name, script in SCRIPTS.items() if script.app != "dataset_release"}


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_conversation_goes_as_with_adk(name: str, serving: Serving) -> None:
    """
    Every event, every rejection's words, and the session afterwards.

    Where Gatewright lets a message change nothing and ADK does not, what comes
    after it must be what ADK says when nobody sent the message.
    """
    script, session = SAMPLES[name], f"s-{uuid4().hex[:12]}"
    adk = await play(RunnerSide(script.app, sample(script.app), session), script)
    if spared := alone(name):
        without = await play(RunnerSide(script.app, sample(script.app), session), script.without(spared))
        turns = {step: (adk if step in spared else without)["turns"][step] for step in script.steps}
        adk = {**without, "turns": turns}

    async with serving(script.app) as gateway:
        ours = await play(GatewaySide(gateway, script.app, session), script)

    wrong = compared(name, adk, ours)
    assert not wrong, "\n".join(wrong)
