"""The mark that says that the outside is about to be reached stands once it is written, whatever was sent before it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

with workflow.unsafe.imports_passed_through():
    from gatewright.effects.beats import Beats, NotCurrent
    from gatewright.effects.wire import begun

ROUNDS, AT_ONCE = 4, 20

SENT: dict[str, Callable[[Beats], Awaitable[Any]]] = {}
"""What the activity of a workflow, by its id, does with its beats."""

CLIENTS: dict[str, Client] = {}
"""The client that an activity's beats have, by workflow id."""


class Around(Interceptor):
    """Gives the activity of a workflow its beats, as Gatewright's own interceptor does."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See base class."""
        return _Around(next)


class _Around(ActivityInboundInterceptor):
    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self.outbound = outbound
        super().init(outbound)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        run = activity.info().workflow_id
        assert run is not None
        return await SENT[run](Beats(self.outbound, CLIENTS[run]))


@activity.defn
async def reaches() -> None:
    """Its interceptor is all there is to it."""


@activity.defn
def reaches_in_a_thread() -> None:
    """The same of an activity whose task the SDK does not cancel."""


@workflow.defn
class Once:
    """One activity, once."""

    @workflow.run
    async def run(self, name: str, heartbeat: float) -> Any:
        """What its activity gave back."""
        return await workflow.execute_activity(
            name,
            start_to_close_timeout=timedelta(seconds=120),
            heartbeat_timeout=timedelta(seconds=heartbeat),
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


Started = WorkflowHandle[Any, Any]
Start = Callable[..., Awaitable[Started]]


@pytest.fixture
async def plain(address: str) -> Client:
    """A client without the plugin: the beats here are the test's own."""
    return await Client.connect(address)


@pytest.fixture
async def start(plain: Client) -> AsyncIterator[Start]:
    """Start a workflow whose activity does what it is given with its beats."""
    queue = f"beats-{uuid4()}"

    async def begin(
        does: Callable[[Beats], Awaitable[Any]],
        *,
        name: str = "reaches",
        heartbeat: float = 10,
        by: Client | None = None,
    ) -> Started:
        run = f"beats-{uuid4()}"
        SENT[run], CLIENTS[run] = does, by or plain
        return await plain.start_workflow(Once.run, args=[name, heartbeat], id=run, task_queue=queue)

    with ThreadPoolExecutor(4) as threads:
        async with Worker(
            plain,
            task_queue=queue,
            workflows=[Once],
            activities=[reaches, reaches_in_a_thread],
            activity_executor=threads,
            interceptors=[Around()],
        ):
            yield begin


async def marked(handle: Started) -> bool:
    """Whether Temporal has the mark of the run's pending activity."""
    [pending] = (await handle.describe()).raw_description.pending_activities
    return begun(await handle._client.data_converter.decode(pending.heartbeat_details.payloads))


async def why(handle: Started) -> BaseException | None:
    """What the activity ended with."""
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    ended = failed.value.cause
    return ended.cause if isinstance(ended, ActivityError) else ended


async def test_a_beat_at_the_same_moment_does_not_erase_the_mark(start: Start, plain: Client) -> None:
    """One that the SDK sends arrives whenever it likes: three times of four after the mark, where it is an attempt's first."""

    async def at_once(beats: Beats) -> int:
        run = activity.info().workflow_id
        assert run is not None
        stood = 0
        for number in range(ROUNDS):
            beats = Beats(beats.outbound, beats.client)
            beats.report(f"round {number}")
            await asyncio.gather(beats.beat(), beats.witness())
            await asyncio.sleep(0.1)
            stood += await marked(plain.get_workflow_handle(run))
        return stood

    handles = [await start(at_once, heartbeat=60) for _ in range(AT_ONCE)]
    assert await asyncio.gather(*(handle.result() for handle in handles)) == [ROUNDS] * AT_ONCE


async def test_a_beat_behind_the_mark_has_it(start: Start, plain: Client) -> None:
    async def afterwards(beats: Beats) -> bool:
        await beats.witness()
        beats.report("what the effect says itself")
        await beats.beat()
        await asyncio.sleep(0.3)
        run = activity.info().workflow_id
        assert run is not None
        return await marked(plain.get_workflow_handle(run))

    assert await (await start(afterwards)).result() is True


@pytest.mark.parametrize("name", ["reaches", "reaches_in_a_thread"])
async def test_a_cancellation_is_heard_before_the_mark(start: Start, name: str) -> None:
    """The reply says so to us, and a heartbeat of the SDK's to the SDK."""
    waits, went_on = asyncio.Event(), []

    async def cancelled(beats: Beats) -> None:
        keeping = asyncio.create_task(beats.keep())
        try:
            await beats.beat()
            waits.set()
            for _ in range(20):
                await asyncio.sleep(0.1)
            await beats.witness()
            went_on.append(1)
        finally:
            keeping.cancel()

    handle = await start(cancelled, name=name, heartbeat=1)
    await waits.wait()
    await handle.cancel()
    assert isinstance(await why(handle), CancelledError)
    assert not went_on


async def test_a_cancellation_is_heard_with_the_mark(start: Start) -> None:
    """The effect has not begun yet, and does not."""
    taken, asked, went_on = asyncio.Event(), asyncio.Event(), []

    async def cancelled(beats: Beats) -> None:
        taken.set()
        await asked.wait()
        await beats.witness()
        went_on.append(1)

    handle = await start(cancelled)
    await taken.wait()
    await handle.cancel()
    await asyncio.sleep(0.5)
    asked.set()
    assert isinstance(await why(handle), CancelledError)
    assert not went_on


async def test_an_attempt_that_temporal_gave_up_does_not_go_on(start: Start) -> None:
    ended: asyncio.Queue[BaseException | None] = asyncio.Queue()

    async def late(beats: Beats) -> None:
        try:
            await asyncio.shield(asyncio.sleep(2))
            await beats.witness()
        except BaseException as raised:
            ended.put_nowait(raised)
            raise
        ended.put_nowait(None)

    await why(await start(late, name="reaches_in_a_thread", heartbeat=1))
    assert isinstance(await ended.get(), NotCurrent)


async def test_a_heartbeat_without_a_reply_could_arrive_later(start: Start, address: str) -> None:
    """So the attempt ends before the mark, and costs no more than itself."""
    host, port = address.split(":")
    inside: list[asyncio.StreamWriter] = []

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        inside.extend((writer, there_writer))
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer), return_exceptions=True)

    wire = await asyncio.start_server(forward, "127.0.0.1", 0)
    cut_off = await Client.connect(f"127.0.0.1:{wire.sockets[0].getsockname()[1]}")
    wire.close()
    for end in inside:
        end.transport.abort()

    async def unheard(beats: Beats) -> None:
        await beats.beat()
        await beats.witness()

    reason = await why(await start(unheard, by=cut_off))
    assert isinstance(reason, ApplicationError)
    assert reason.type == "NotCurrent"
    assert "a heartbeat got no reply" in reason.message


@pytest.mark.parametrize("first", ["beat", "witness"])
async def test_a_report_that_cannot_be_encoded_ends_the_attempt(start: Start, first: str) -> None:
    went_on = []

    async def strange(beats: Beats) -> None:
        beats.report(object())
        if first == "beat":
            await beats.beat()
        await beats.witness()
        went_on.append(1)

    reason = await why(await start(strange))
    assert isinstance(reason, ApplicationError)
    assert "object" in reason.message
    assert not went_on


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
