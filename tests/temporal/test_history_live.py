"""Runs on a real server, exported by the `temporal` command and by the SDK, bear out the receipts that they gave."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import PayloadCodec
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from gatewright.cli.runs import read_chain
from gatewright.store import Store
from gatewright.temporal import Default, Frame, Gate, GateClient, GatewrightPlugin
from gatewright.temporal.history import HistoryReport, check_history, read_histories
from tests.conftest import binary
from tests.effects.outside import FUNCTIONS, HEALED, Doing
from tests.effects.test_blocked import aborted, reset
from tests.temporal.conversation import Conversation
from tests.temporal.histories import find, replaced, said
from tests.temporal.pipelines import ALL, STEPS

Does = Callable[..., Awaitable[Conversation]]
OpenRun = Callable[..., Awaitable[Conversation]]

BY = ["sdk", "command"]


@pytest.fixture
async def does(gates: GateClient, client: Client, queue: str, working: Any) -> AsyncIterator[Does]:
    """`await does("transfer", "name")` opens a run that performs one thing."""

    async def one(what: str, name: str, **options: Any) -> Conversation:
        workflow_id = f"{what}-{name}-{queue}"
        await client.start_workflow("Doing", args=[what, name, options], id=workflow_id, task_queue=queue)
        return Conversation(gates, workflow_id)

    async with working([Doing], list(FUNCTIONS.values())):
        yield one


class Exports:
    """Exports the executions of a run, the last one first, as whoever checks receipts would."""

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        self._folder = folder

    async def files(self, run: Conversation, by: str) -> list[Path]:
        """One file for each execution."""
        files: list[Path] = []
        run_id = (await run.handle.describe()).run_id
        while run_id:
            handle = run.gates.client.get_workflow_handle(run.id, run_id=run_id)
            history = await handle.fetch_history()
            files.append(self._folder / f"{run_id}.json")
            files[-1].write_text(history.to_json() if by == "sdk" else await self._shown(run.id, run_id))
            run_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
        return files

    async def _shown(self, workflow_id: str, run_id: str) -> str:
        command = [binary("temporal"), "workflow", "show", "--workflow-id", workflow_id, "--run-id", run_id]
        process = await asyncio.create_subprocess_exec(
            *command, "--output", "json", "--address", self._address, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        return out.decode()


@pytest.fixture
def exports(address: str, tmp_path: Path) -> Exports:
    """The dev server's."""
    return Exports(address, tmp_path)


async def checked(run: Conversation, files: Sequence[Path]) -> HistoryReport:
    anchor, chain = await read_chain(run.gates, run.id)
    return check_history(chain, anchor, chain[0].frame.identity if chain else None, read_histories(files))


async def happened(run: Conversation, effect: str) -> None:
    await run.opened(f"blocked:{effect}")
    word = {"decision": "happened", "receipt": "statement 12", "result": {"id": 7, "name": "by hand"}}
    await run.admitted(f"blocked:{effect}", word, principal="ada")
    await run.result()


async def did_not(run: Conversation, effect: str) -> None:
    await run.opened(f"blocked:{effect}")
    await run.admitted(f"blocked:{effect}", {"decision": "did_not_happen"}, principal="ada")
    await run.result()


async def gave_up(run: Conversation, effect: str) -> None:
    await run.opened(f"blocked:{effect}")
    await run.admitted(f"blocked:{effect}", {"decision": "abort"}, principal="ada")
    await aborted(run)


async def tried_again(run: Conversation, effect: str) -> None:
    await run.opened(f"failed:{effect}")
    HEALED.add(run.id.removeprefix(f"{effect}-").rsplit("-test-", 1)[0])
    await run.admitted(f"failed:{effect}", {"decision": "retry"}, principal="ada")
    await run.result()


async def finished(run: Conversation, effect: str) -> None:
    await run.result()


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize(
    ("what", "goes_on", "receipts"),
    [
        ("transfer", happened, ["unknown", "continuation", "performed"]),
        ("transfer", did_not, ["unknown", "continuation", "performed"]),
        ("transfer", gave_up, ["unknown", "continuation"]),
        ("decline", tried_again, ["failed", "continuation", "performed"]),
        ("keyed", tried_again, ["unknown", "continuation", "performed"]),
        ("asked", finished, ["performed"]),
    ],
)
async def test_whatever_became_of_an_effect_is_borne_out(
    does: Does, exports: Exports, what: str, goes_on: Any, receipts: list[str], by: str
) -> None:
    run = await does(what, f"history {what} {goes_on.__name__} {by}")
    await goes_on(run, what)
    report = await checked(run, await exports.files(run, by))

    assert [] == said(report)
    assert len(receipts) + 1 == report.count("confirmed")
    chain = (await run.gates.receipts(run.id)).receipts
    assert receipts == [each.effect.state.value if each.kind == "effect" else each.kind for each in chain]


async def test_a_run_that_was_reset_has_a_history_of_its_own(does: Does, exports: Exports) -> None:
    """The execution that a reset made bears out its receipts, and contradicts those of the one before."""
    run = await does("transfer", "history reset")
    await did_not(run, "transfer")
    before, [old] = await read_chain(run.gates, run.id), await exports.files(run, "command")
    await reset(run)
    await run.result()
    [new] = await exports.files(run, "command")

    assert [] == said(await checked(run, [new]))
    crossed = check_history(before[1], before[0], None, read_histories([new]))
    assert not crossed.ok
    assert check_history(before[1], before[0], None, read_histories([old])).ok


@pytest.mark.parametrize("by", BY)
async def test_a_run_that_continued_as_new_is_checked_over_all_its_executions(
    open_run: OpenRun, working: Any, exports: Exports, by: str
) -> None:
    """In any order, and in one file too; what is missing is said, with the command that exports it."""
    async with working(ALL, STEPS):
        run = await open_run("Rolling", 3)
        for interrupt_id, signal in (("round", False), ("round~2", True), ("round~3", False)):
            await run.opened(interrupt_id)
            await run.admitted(interrupt_id, 1, signal=signal)
        await run.result()
        files = await exports.files(run, by)
        whole = await checked(run, files)
        gap = await checked(run, [files[0], files[2]])
        beginning = await checked(run, files[2:])
        files[0].write_text("\n".join(file.read_text() for file in reversed(files)))
        merged = await checked(run, files[:1])

    assert [] == said(whole)
    assert whole == merged
    assert (3, 4) == (len(whole.executions), whole.count("confirmed"))
    assert gap.ok
    assert beginning.ok
    assert [2] == [number for number, *_ in said(gap) if number]
    assert [2, 3] == [number for number, *_ in said(beginning) if number]
    assert f"--run-id {whole.executions[1]}" in str(said(gap))
    assert f"--run-id {whole.executions[1]}" in str(said(beginning))


async def test_a_run_that_is_going_on_is_checked_as_far_as_it_has_come(
    open_run: OpenRun, working: Any, exports: Exports
) -> None:
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "going on")
        await run.opened("review")
        await run.admitted("review", {"approved": False})
        await run.opened("review~2")
        early = await exports.files(run, "sdk")
        report = await checked(run, early)
        assert report.ok
        assert 2 == report.count("confirmed")

        await run.admitted("review~2", {"approved": True}, signal=True)
        await run.result()
        later_on = await checked(run, early)

    assert later_on.ok
    assert {2, 3, 4} == {number for number, *_ in said(later_on) if number}


class Reversing(PayloadCodec):
    """Stands for an application's encryption."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/reversed"}, data=each.SerializeToString()[::-1]) for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(each.data[::-1]) for each in payloads]


async def test_what_an_application_encrypts_is_never_taken_for_confirmed(
    address: str, store: Store, queue: str, exports: Exports
) -> None:
    converter = dataclasses.replace(pydantic_data_converter, payload_codec=Reversing())
    client = await Client.connect(address, data_converter=converter, plugins=[GatewrightPlugin(store)])
    async with Worker(client, task_queue=queue, workflows=[Doing], activities=list(FUNCTIONS.values())):
        await client.start_workflow("Doing", args=["transfer", queue, {}], id=queue, task_queue=queue)
        run = Conversation(GateClient(client, store, task_queue=queue), queue)
        await happened(run, "transfer")
        files = await exports.files(run, "sdk")
        report = await checked(run, files)

    assert report.ok, said(report)
    assert {2, 3} == {number for number, *_ in said(report) if number}


@workflow.defn
class Brief:
    """A gate that has a default after a second."""

    @workflow.init
    def __init__(self) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self) -> str:
        gate = Gate("brief", answer=str, deadline=timedelta(seconds=1), on_deadline=Default("nobody came"))
        return (await self.frame.ask(gate)).value


async def test_a_default_at_a_deadline_is_borne_out_by_the_timer_that_fired(
    open_run: OpenRun, working: Any, exports: Exports
) -> None:
    async with working([Brief], [], workflow_runner=UnsandboxedWorkflowRunner()):
        run = await open_run("Brief")
        assert await run.result() == "nobody came"
        [file] = await exports.files(run, "command")
        report = await checked(run, [file])
        anchor, [receipt] = await read_chain(run.gates, run.id)

    assert [] == said(report)
    assert "is its deadline, and the answer is the gate's default" in report.findings[1].words

    history = json.loads(file.read_text())["events"]
    named = find(history, "TIMER_STARTED", holding="deadline of brief")
    replaced(named, "deadline of brief", "deadline of another")
    file.write_text(json.dumps({"events": history}))
    other = check_history([receipt], anchor, None, read_histories([file]))
    assert "no timer of brief's deadline had fired" in str(said(other))

    default = find(history, "MARKER_RECORDED", holding="nobody came")
    replaced(named, "deadline of another", "deadline of brief")
    replaced(default, "nobody came", "somebody came")
    file.write_text(json.dumps({"events": history}))
    other = check_history([receipt], anchor, None, read_histories([file]))
    assert "the answer is not the default that the gate had" in str(said(other))


async def test_a_run_that_fails_bears_out_what_it_had_answered(
    open_run: OpenRun, working: Any, exports: Exports
) -> None:
    async with working(ALL, STEPS):
        run = await open_run("Fails")
        await run.opened("go")
        await run.admitted("go")
        with pytest.raises(WorkflowFailureError):
            await run.result()
        assert [] == said(await checked(run, await exports.files(run, "command")))
