"""Somebody who answers gates by a script, over the real client."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.answer import Answer
from gatewright.protocol.gate import GateKind
from gatewright.temporal import GateClient, GateView, NoWorkerError, Ruling


class ScriptError(AssertionError):
    """The script has no answer for a gate that opened, or answers left for gates that never did."""


class AnswerRefusedError(AssertionError):
    """An answer of the script was not admitted; `ruling` says why."""

    def __init__(self, interrupt_id: str, ruling: Ruling) -> None:
        self.ruling = ruling
        super().__init__(f"{interrupt_id}: {ruling!r}")


class ScriptedPerson:
    """
    Answers each human gate of a run with the next response that the script has for it.

    The script maps a gate's name to its responses, one for each visit. Answer
    ids derive from principal and interrupt id, so that a person who is played
    twice repeats and does not contradict itself.
    """

    def __init__(
        self,
        gates: GateClient,
        script: Mapping[str, Sequence[Any]],
        *,
        principal: str = "scripted",
        signal: bool = False,
    ) -> None:
        self._gates = gates
        self._left = {name: list(responses) for name, responses in script.items()}
        self._principal = principal
        self._signal = signal
        self.rulings: dict[str, Ruling] = {}
        """What was ruled, by interrupt id."""

    async def play(self, workflow_id: str, *, timeout: timedelta = timedelta(seconds=60)) -> None:  # noqa: ASYNC109
        """
        Answer until the run is over.

        `ScriptError` when a gate opens that the script does not know or when
        answers are left at the end; `AnswerRefusedError` when one is refused;
        `TimeoutError` when nothing ends in time.
        """
        async with asyncio.timeout(timeout.total_seconds()):
            while True:
                try:
                    view = await self._gates.get(workflow_id)
                except NoWorkerError:
                    view = None
                if view is not None and view.source == "run":
                    for gate in view.gates:
                        if (
                            gate.state == "open"
                            and gate.kind is GateKind.HUMAN
                            and gate.interrupt_id not in self.rulings
                        ):
                            await self._answer(workflow_id, gate)
                if view is not None and view.status != "running":
                    break
                await asyncio.sleep(0.05)
        if left := {name: responses for name, responses in self._left.items() if responses}:
            msg = f"the run {workflow_id} is over, and the script still has answers for {', '.join(left)}"
            raise ScriptError(msg)

    async def _answer(self, workflow_id: str, gate: GateView) -> None:
        responses = self._left.get(gate.gate)
        if not responses:
            msg = f"{gate.interrupt_id} opened ({gate.message}), and the script has no answer left for {gate.gate!r}"
            raise ScriptError(msg)
        answer = Answer(
            answer_id=f"{self._principal}-{gate.interrupt_id}",
            interrupt_id=gate.interrupt_id,
            response=responses.pop(0),
            principal=self._principal,
            channel="script",
            digest=gate.digest,
        )
        ruling = await self._gates.answer(workflow_id, answer, signal=self._signal)
        self.rulings[gate.interrupt_id] = ruling
        if not isinstance(ruling, Admitted | Repeated):
            raise AnswerRefusedError(gate.interrupt_id, ruling)
