"""Answers that were written down beforehand, for a demo that nobody watches."""

import json
import shlex
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gatewright.protocol.example import example
from gatewright.protocol.question import ABSENT
from gatewright.temporal import GateView

from .exits import FAILED, Stop, usage
from .jsonarg import parse_json, read_json

DEMO = Path("worker/demo.json")


@dataclass(frozen=True)
class Plan:
    """What `gatewright demo` runs: worker/demo.json of the current folder."""

    pipeline: str
    sample: str
    input: Any
    answers: dict[str, Any]
    """For the sample: they may name its columns."""

    answers_own: dict[str, Any]
    """For any other file."""

    @classmethod
    def read(cls) -> Self:
        """The plan of the current folder; `Stop` (usage) where there is none, or it is not complete."""
        try:
            raw = DEMO.read_text("utf-8")
        except OSError as error:
            raise usage(f"{DEMO} cannot be read ({error.strerror}): it says what the demo runs") from error
        plan = parse_json(raw, str(DEMO))
        try:
            answers = plan.get("answers", {})
            own = plan.get("answers_own", answers)
            return cls(plan["pipeline"], plan["sample"], plan["input"], answers, own)
        except (KeyError, TypeError) as error:
            raise usage(f"{DEMO} must be an object with pipeline, sample and input (missing: {error})") from error

    def script_for(self, csv: Path) -> "Script":
        """The answers for this file, for when nobody is there to give others."""
        of_sample = csv.resolve() == Path(self.sample).resolve()
        return Script(self.answers if of_sample else self.answers_own, str(DEMO))

    def input_for(self, csv: Path) -> Any:
        """The pipeline's input, with `{csv}` replaced by the file's path wherever it stands."""
        return _replaced(self.input, str(csv))


def start_example() -> str:
    """The command that opens a run of the current folder's sample; empty where it has none."""
    try:
        plan = Plan.read()
        given = json.dumps(plan.input_for(Path(plan.sample)))
    except Stop:
        return ""
    return f"gatewright start {shlex.quote(plan.pipeline)} --input {shlex.quote(given)}"


class Script:
    """For each gate's name the answers to give, one after the other; it fails loudly when it runs dry."""

    def __init__(self, answers: Any, name: str) -> None:
        """`name` says in messages where the answers are from; `Stop` (usage) if they have another form."""
        if not isinstance(answers, dict) or not all(isinstance(each, list) for each in answers.values()):
            raise usage(f'{name}: write {{"gate name": [answer, ...], ...}}')
        self._name = name
        self._left = {gate: deque(each) for gate, each in answers.items()}

    @classmethod
    def read(cls, path: str) -> Self:
        """The script in a file."""
        return cls(read_json(f"@{path}", "--answers"), path)

    def next(self, gate: GateView) -> Any:
        """The next answer for a gate; `Stop` (failed), naming the gate, if there is none."""
        if not (left := self._left.get(gate.gate)):
            fitting = example(gate.response_schema, strict=gate.policy.strict)
            shown = "" if fitting is ABSENT else f", such as {json.dumps({gate.gate: [fitting]}, ensure_ascii=False)}"
            raise Stop(
                FAILED,
                f"{self._name} has no {'more answers' if left is not None else 'answer'} for gate {gate.gate}. "
                f"Add one{shown}; or run this in a terminal.",
                kind="script_dry",
                gate=gate.gate,
            )
        return left.popleft()


def _replaced(value: Any, csv: str) -> Any:
    if isinstance(value, str):
        return value.replace("{csv}", csv)
    if isinstance(value, dict):
        return {key: _replaced(item, csv) for key, item in value.items()}
    return [_replaced(item, csv) for item in value] if isinstance(value, list) else value
