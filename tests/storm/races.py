"""Two good answers that contradict each other, at one moment, round after round: exactly one of them counts."""

import asyncio
import random

from gatewright.protocol import Refusal
from tests.storm.arms import ADMITTED, ALL, Shot, Target
from tests.storm.channels import DELIVERED
from tests.storm.pipeline import Order
from tests.storm.runs import Stage
from tests.storm.tally import Owed
from tests.temporal.conversation import until


async def race(stage: Stage, rounds: int, dice: random.Random) -> str:
    """Race a pair at each of a run's gates, then let it end; the run's name in the files that count."""
    order = Order(name="raced", folder=stage.folder)
    # Started past the client, which gives a pipeline one argument.
    workflow_id = "raced/storm/pairs/1"
    handle = await stage.gates.client.start_workflow(
        "Raced",
        args=[order, rounds],
        id=workflow_id,
        task_queue=stage.queue,
    )
    target = Target(workflow_id, order.name, "")
    owed = Owed()
    winners = [await _round(stage, target, number, dice, owed) for number in range(1, rounds + 1)]
    await stage.reach(target, "rest")
    counted = (await stage.gates.refusals(workflow_id)).counts
    losers = sum(by_name.get(Refusal.ALREADY_ANSWERED, 0) for by_name in counted.values())
    if losers != rounds:
        stage.tally.complain(f"{losers} losers of {rounds} pairs were refused {Refusal.ALREADY_ANSWERED}")
    await stage.channels.send(Shot("good", [{"interruptId": "rest"}], ADMITTED), workflow_id, "client update")
    stage.tally.outcomes[ADMITTED, "client update"] += 1
    result = await handle.result()
    if result != winners:
        stage.tally.complain(f"the raced run continued with {result}, the winners were {winners}")
    # An answer a round, `rest`, what was performed, and the end.
    await stage.verify(workflow_id, rounds + 3)
    return order.name


async def _round(stage: Stage, target: Target, number: int, dice: random.Random, owed: Owed) -> int:
    at = "race" if number == 1 else f"race~{number}"
    await stage.reach(target, at)
    channels = dice.choice(ALL), dice.choice(ALL)
    shots = [
        Shot("racing", [{"interruptId": at, "response": value, "answerId": f"pair-{number}-{value}"}], ADMITTED)
        for value in (1, 2)
    ]
    told = await asyncio.gather(
        *(stage.channels.send(shot, target.workflow_id, way) for shot, way in zip(shots, channels, strict=True))
    )

    async def answered() -> str | None:
        for gate in await stage.gates.gates(target.workflow_id):
            if gate.interrupt_id == at and gate.answer is not None:
                return gate.answer.answer_id
        return None

    first = await until(answered, f"{at} is answered")
    winner = [shot.args[0]["answerId"] for shot in shots].index(first)
    for index, (shot, way, heard) in enumerate(zip(shots, channels, told, strict=True)):
        expect = ADMITTED if index == winner else Refusal.ALREADY_ANSWERED.value
        stage.tally.outcomes[expect, way] += 1
        stage.tally.kinds[shot.kind] += 1
        if heard.name not in {expect, DELIVERED}:
            where = f"{at}, by {way} against {channels[1 - index]}"
            stage.tally.complain(f"{where}: expected {expect}, was told {heard.name}: {heard.words}")
    return winner + 1
