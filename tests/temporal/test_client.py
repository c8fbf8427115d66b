"""Starting, answering without a worker, reading, ending: what the client tells whoever uses it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from gatewright.protocol import Answer, Refusal, Refused, Repeated
from gatewright.store import OpeningConflict, SessionKey, Store
from gatewright.temporal import Delivered, GateClient, SessionBusyError, UnknownRunError
from tests.temporal.conversation import until
from tests.temporal.pipelines import ALL, COUNTED, STEPS

QUICKLY = timedelta(seconds=0.7)


async def test_an_answer_without_a_worker_lies_in_temporal_and_counts_once(
    open_run: Any, working: Any, client: Any, store: Store, queue: str
) -> None:
    """The fallback is a signal under the same answer id: the worker that comes back judges it, and a resend repeats."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "nobody home")
        await run.opened("review")
    impatient = GateClient(client, store, task_queue=queue, patience=QUICKLY)
    answer = Answer(answer_id="a1", interrupt_id="review", response={"approved": True, "level": 4}, principal="alice")

    ruling = await impatient.answer(run.id, answer)
    assert isinstance(ruling, Delivered)
    assert ruling.answer_ids == ("a1",)
    view = await impatient.get(run.id)
    assert (view.status, view.source, view.gates[0].interrupt_id) == ("running", "index", "review")
    assert view.gates[0].response_schema is not None
    async with working(ALL, STEPS):
        assert await run.result() == "paid 4"
        assert isinstance(await run.gates.answer(run.id, answer), Repeated)
        assert COUNTED["nobody home"] == 1


async def test_a_signal_brings_its_verdict_back_by_query(open_run: Any, working: Any) -> None:
    """Whoever sends a signal need not guess."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "by signal")
        await run.opened("review")

        refused = await run.refused("review", {"approved": 7}, answer_id="bad", signal=True)
        assert refused.refusal is Refusal.INVALID
        await run.admitted("review", {"approved": True}, answer_id="good", signal=True)
        await run.result()


async def test_a_dry_run_judges_and_changes_nothing(open_run: Any, working: Any) -> None:
    """The same ruling as the real one would be; neither book nor history notices."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "dry")
        await run.opened("review")
        before = (await run.gates.refusals(run.id), len((await run.handle.fetch_history()).events))
        bad = await run.gates.judge(run.id, Answer(interrupt_id="review", response={"approved": 7}))
        good = await run.gates.judge(run.id, Answer(interrupt_id="review", response={"approved": True}))

        assert (bad.verdict, good.verdict) == ("refused", "admitted")
        assert before == (await run.gates.refusals(run.id), len((await run.handle.fetch_history()).events))
        await run.admitted("review", {"approved": True})
        await run.result()
        over = await run.gates.judge(run.id, Answer(answer_id="x", interrupt_id="review", response={"approved": True}))
        assert isinstance(over, Refused)
        assert over.refusal is Refusal.FRAME_CLOSED


async def test_the_same_opening_finds_its_run(open_run: Any, working: Any, gates: GateClient) -> None:
    """Opening twice with one id is one run; with other input it is a mistake that is named."""
    key = SessionKey(app="a", user="u", session="twice")
    async with working(ALL, STEPS):
        openings = await asyncio.gather(*(gates.start("Quick", session=key, opening_id="o1") for _ in range(5)))
        assert {started.workflow_id for started in openings} == {"a/u/twice/1"}
        with pytest.raises(OpeningConflict):
            await gates.start("Reviewed", "other", session=key, opening_id="o1")


async def test_text_opens_nothing_while_a_run_of_the_session_is_open(
    working: Any, gates: GateClient, open_run: Any
) -> None:
    """L01: a second opening is refused with the open gates; `on_text="open"` makes run 2, whose ids are its own."""
    key = SessionKey(app="a", user="u", session="busy")
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "busy", session=key)
        await run.opened("review")
        with pytest.raises(SessionBusyError) as busy:
            await gates.start("Reviewed", "busy", session=key)
        assert busy.value.open == ("review",)
        second = await open_run("Reviewed", "busy two", session=key, on_text="open")
        await second.opened("review@2")

        # An answer for one run of the session never reaches another.
        assert (await second.refused("review", {"approved": True})).refusal is Refusal.UNKNOWN_GATE
        assert (await run.refused("review@2", {"approved": True})).refusal is Refusal.UNKNOWN_GATE
        await second.admitted("review@2", {"approved": True})
        await run.admitted("review", {"approved": True})
        assert (await second.result(), await run.result()) == ("paid 1", "paid 1")
        assert (COUNTED["busy"], COUNTED["busy two"]) == (1, 1)


async def test_a_run_that_ended_behind_the_stores_back_blocks_nobody(
    working: Any, gates: GateClient, open_run: Any, store: Store
) -> None:
    """Terminated by somebody else: the next opening finds out and goes ahead."""
    key = SessionKey(app="a", user="u", session="behind")
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "behind", session=key)
        await run.opened("review")
        await run.handle.terminate("by hand")
        second = await gates.start("Quick", session=key)

        assert second.workflow_id == "a/u/behind/2"
        assert [row.state for row in store.gates(run=run.id)] == ["closed"]
        refused = await run.refused("review", {"approved": True})
        assert refused.refusal is Refusal.FRAME_CLOSED
        assert "abandoned" in refused.reason


async def test_a_refusal_that_no_run_can_record_is_in_the_store(open_run: Any, working: Any, store: Store) -> None:
    """After the run is over, and for a run that never was."""
    async with working(ALL, STEPS):
        run = await open_run("Quick")
        await run.opened("go")
        await run.admitted("go", 1)
        await run.result()
        await run.refused("go", 2, answer_id="late", principal="bob")
        with pytest.raises(UnknownRunError, match="no run nowhere"):
            await run.gates.answer("nowhere", Answer(interrupt_id="go", response=1))

        assert [("frame_closed", "bob")] == [(row.refusal, row.principal) for row in store.refusals(run=run.id)]
        assert ["unknown_gate"] == [row.refusal for row in store.refusals(run="nowhere")]


async def test_cancel_lets_the_run_end_and_closes_its_gates(open_run: Any, working: Any, store: Store) -> None:
    """N03: a cancelled run takes no answers any more, and the record says why."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "cancelled")
        await run.opened("review")
        await run.gates.cancel(run.id, reason="wrong file")
        with pytest.raises(WorkflowFailureError):
            await run.result()

        assert (await run.refused("review", {"approved": True})).refusal is Refusal.FRAME_CLOSED
        record = store.run(run.id)
        assert record is not None
        assert (record.standing, record.reason) == ("cancelled", "wrong file")
        assert [row.state for row in store.gates(run=run.id)] == ["superseded"]
        with pytest.raises(UnknownRunError, match="not running"):
            await run.gates.cancel(run.id, reason="again")


async def test_abandon_needs_no_worker_and_keeps_the_archive(open_run: Any, working: Any, store: Store) -> None:
    """The run ends at once; transcript and receipts of what it did are kept."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "abandoned")
        await run.opened("review")
        await run.admitted("review", {"approved": False})
        await run.opened("review~2")
        await run.gates.abandon(run.id, reason="no longer needed")
    kinds = [entry["kind"] for entry in (await run.gates.transcript(run.id)).entries]

    assert kinds == ["opened", "performed", "asked", "answered", "asked", "closed"]
    assert (await run.gates.get(run.id)).status == "terminated"
    record = store.run(run.id)
    assert record is not None
    assert (record.standing, record.reason) == ("abandoned", "no longer needed")
    assert (await run.refused("review~2", {"approved": True})).refusal is Refusal.FRAME_CLOSED


async def test_watch_tells_what_happens_as_it_happens(open_run: Any, working: Any) -> None:
    """From the opening to the end, each entry once; from a cursor, only what came after."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "watched")
        seen: list[str] = []

        async def watch() -> None:
            async for entry in run.gates.watch(run.id, every=timedelta(seconds=0.05)):
                seen.append(entry["kind"])

        watching = asyncio.create_task(watch())
        await run.opened("review")
        await run.admitted("review", {"approved": True})
        await run.result()
        await asyncio.wait_for(watching, 10)

        assert seen == ["opened", "performed", "asked", "answered", "consumed", "performed", "closed"]
        rest = [entry["kind"] async for entry in run.gates.watch(run.id, after=5)]
        assert rest == ["performed", "closed"]


async def test_reindex_makes_the_index_anew(
    open_run: Any, working: Any, client: Any, tmp_path: Any, queue: str
) -> None:
    """An empty store lists, after it, what Temporal knows: open gates, and archives of runs that are over."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "reindexed")
        await run.opened("review")
        await run.admitted("review", {"approved": False}, principal="alice")
        await run.opened("review~2")
        over = await open_run("Quick")
        await over.opened("go")
        await over.admitted("go", 5)
        await over.result()
        with Store.open(f"sqlite:///{tmp_path}/anew.db") as anew:
            keeper = GateClient(client, anew, task_queue=queue)

            async def both_read() -> bool:
                # Temporal's own list is eventually consistent.
                ids = {run.id, over.id}
                query = " OR ".join(f"WorkflowId = '{workflow_id}'" for workflow_id in sorted(ids))
                return await keeper.reindex(query) == 2

            await until(both_read, "both runs are listed")
            rows = {row.interrupt_id: (row.state, row.principal) for row in anew.gates(run=run.id)}
            assert rows == {"review": ("answered", "alice"), "review~2": ("open", None)}
            record = anew.run(over.id)
            assert record is not None
            assert record.standing == "completed"
            assert anew.archive(over.id) is not None
        await run.admitted("review~2", {"approved": True})
        await run.result()


async def test_an_earlier_refusal_is_not_taken_for_the_verdict_of_a_later_signal(open_run: Any, working: Any) -> None:
    """The same words, refused as early and then sent again in time: each signal is told its own verdict."""
    async with working(ALL, STEPS):
        run = await open_run("Reviewed", "early and in time")
        await run.opened("review")
        early = await run.refused("review~2", {"approved": True}, signal=True)
        assert early.refusal is Refusal.NOT_OPEN_YET
        await run.admitted("review", {"approved": False})
        await run.opened("review~2")
        await run.admitted("review~2", {"approved": True}, signal=True)

        assert await run.result() == "paid 1"
