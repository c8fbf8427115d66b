"""`gatewright effects`, and the calls under way that `gatewright show` names: as processes against a real server and store."""

import asyncio
import json
import sqlite3
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError

from gatewright.cli.render import moment
from gatewright.store import LedgerEntry, SessionKey, Store
from gatewright.temporal import GateClient, GatewrightPlugin
from tests.cli.conftest import Ended, Gatewright
from tests.temporal.conversation import Conversation, until

with workflow.unsafe.imports_passed_through():
    from gatewright.effects import NotPerformed, effect, step
    from gatewright.temporal import Frame, Gate

DONE: Counter[str] = Counter()
"""What the outside counted, by name."""

LOCKS: list[sqlite3.Connection] = []
"""Who keeps the store from everybody."""

GO_ON = asyncio.Event()


class Lost(Exception):  # noqa: N818
    """The outside was told, and its word got lost."""


@effect(kind="opaque", call_timeout=timedelta(milliseconds=100))
async def wire(name: str) -> str:
    """Whoever is called `lost` gets the money, and nobody hears of it, the first time."""
    DONE[name] += 1
    if name.startswith("lost") and DONE[name] == 1:
        msg = "no reply"
        raise Lost(msg)
    return f"wired {name}"


@effect(kind="keyed", attempts=1)
async def declined(name: str) -> str:
    """An effect that is known not to have happened."""
    msg = "the period is closed"
    raise NotPerformed(msg)


@effect(kind="keyed", heartbeat=timedelta(seconds=3))
async def robbed(path: str) -> str:
    """While it is done, the store goes away."""
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    LOCKS.append(lock)
    return "done"


@step()
async def halting(name: str) -> str:
    """The second attempt runs until the test says so."""
    if activity.info().attempt == 1:
        msg = "stumbled"
        raise Lost(msg)
    await GO_ON.wait()
    return "there"


CALLS: dict[str, Any] = {each.__name__: each for each in (wire, declined, robbed, halting)}


@workflow.defn
class Calls:
    """Make one call, and ask for a review; `later` asks first."""

    @workflow.init
    def __init__(self, which: str, name: str) -> None:
        self.frame = Frame()

    @workflow.run
    async def run(self, which: str, name: str) -> str:
        review = Gate("review", answer=bool, message="Well?")
        if which == "later":
            await self.frame.ask(review)
            return str(await self.frame.perform(wire, name))
        came = str(await self.frame.perform(CALLS[which], name))
        await self.frame.ask(review)
        return came


@pytest.fixture
async def running(working: Any) -> Any:
    """A worker lives."""
    async with working([Calls], list(CALLS.values())):
        yield


@pytest.fixture
def opened(client: Client, gates: GateClient, queue: str) -> Any:
    """`await opened("wire", "lost")`: a run that makes this call, as a conversation."""

    async def open_run(which: str, name: str) -> Conversation:
        run = f"{which}-{name.rpartition('/')[2]}-{queue}"
        await client.start_workflow("Calls", args=[which, name], id=run, task_queue=queue)
        return Conversation(gates, run)

    return open_run


@pytest.fixture
def blocked(opened: Any, store: Store, running: None) -> Any:
    """`await blocked("lost a")`: a run that asks whether `wire` happened, and the effect's entry."""

    async def until_blocked(name: str) -> tuple[Conversation, LedgerEntry]:
        run: Conversation = await opened("wire", name)
        await run.opened("blocked:wire")
        await until(lambda: run.gates.list(run=run.id), "the gate is listed")
        [entry] = store.ledger.entries(run=run.id)
        return run, entry

    return until_blocked


async def test_the_ledger_is_listed_by_run_state_kind_and_effect(gatewright: Gatewright, store: Store) -> None:
    """Every filter narrows; as JSON every entry is whole."""
    for number, (effect_name, kind, run) in enumerate(
        [("pay", "keyed", "a"), ("pay", "keyed", "b"), ("mail", "opaque", "a"), ("profile", "once", "a")]
    ):
        _planned(store, f"{number:064x}", effect_name, kind=kind, run=run)
    store.ledger.begin(
        f"gw1-{2:064x}", holder="h", lease=60, call_seconds=0, arguments_digest="d", arguments=["x"], alone=True
    )

    async def keys(*options: str) -> list[str]:
        ended = await gatewright("effects", "list", *options, "-o", "json")
        assert ended.code == 0, ended.err
        return sorted(entry["key"][-1] for entry in ended.json)

    assert await keys() == ["0", "1", "2", "3"]
    assert await keys("--run", "a", "--effect", "pay") == ["0"]
    assert await keys("--state", "intended", "--state", "unknown") == ["2"]
    assert await keys("--kind", "once", "--kind", "opaque") == ["2", "3"]
    text = await gatewright("effects", "list", "--limit", "1", "--effect", "mail")
    assert text.out.split() == [
        *("state", "call", "kind", "run", "attempts", "when", "key"),
        *("intended", "mail#1", "opaque", "a", "1", *text.out.split()[-3:-1], "gw1-000000000000"),
    ]
    more = await gatewright("effects", "list", "--limit", "2")
    assert "there are more than 2" in more.err
    none = await gatewright("effects", "list", "--state", "failed", "-o", "json")
    assert (0, []) == (none.code, none.json)


MISTAKES: list[tuple[list[str], int, str]] = [
    (["list", "--run", "nowhere"], 4, "no run nowhere"),
    (["list", "--state", "lost"], 2, "lost"),
    (["show", "gw1-0000000"], 2, "the first 8 or more"),
    (["show", "happened"], 2, "is no key"),
    (["show", "abababab"], 2, "begins the keys of 2 effects"),
    (["show", "0123456789abcdef"], 4, "no effect under 0123456789abcdef"),
    (["resolve", "abababab1", "--happened"], 2, "--happened needs --receipt"),
    (["resolve", "abababab1", "--happened", "--receipt", "yes"], 2, "quotes of its own"),
    (["resolve", "abababab1", "--abort", "--result", "1"], 2, "go with --happened"),
    (["resolve", "abababab1", "--abort", "--did-not-happen"], 2, "say one of"),
    (["resolve", "abababab1", "--did-not-happen"], 4, "the store does not list r, and Temporal at "),
    (["resolve", "abababab1", "--abort", "--run-is-over"], 3, "cannot be aborted: Temporal does not know its run"),
    (["resolve", "abababab2", "--did-not-happen", "--run-is-over"], 4, "may be under way"),
    (["prune", "--older-than", "90"], 2, "as in 90d"),
    (["prune", "--older-than", "999999999w"], 2, "the calendar"),
]


async def test_each_mistake_is_named_in_a_line_and_has_its_exit_code(gatewright: Gatewright, store: Store) -> None:
    """Never a traceback; and nothing is written."""
    for number in "12":
        _planned(store, f"abababab{number}".ljust(64, "0"), "pay")
    key = "gw1-" + "abababab2".ljust(64, "0")
    store.ledger.begin(key, holder="h", lease=600, call_seconds=0, arguments_digest="d", alone=True)
    before = store.ledger.entries()
    at_once = asyncio.Semaphore(2)

    async def make(arguments: list[str]) -> Ended:
        async with at_once:
            return await gatewright("effects", *arguments)

    ended = await asyncio.gather(*(make(arguments) for arguments, _, _ in MISTAKES))

    misjudged = [
        (arguments, was)
        for (arguments, code, said), was in zip(MISTAKES, ended, strict=True)
        if was.code != code or said not in was.err or "Traceback" in was.err or "a fault" in was.err
    ]
    assert [] == misjudged
    assert before == store.ledger.entries()


async def test_a_blocked_effect_is_shown_with_what_can_be_done_and_resolved_as_happened(
    gatewright: Gatewright, blocked: Any, store: Store
) -> None:
    """The word is an answer to the run's gate: judged by it, a repeat the second time, and refused where it differs."""
    run, entry = await blocked("lost happened")

    shown = await gatewright("effects", "show", entry.key[:16])
    assert shown.code == 0, shown.err
    for said in (
        "wire#1  unknown, opaque",
        entry.key,
        '["lost happened"]',
        "Lost: no reply",
        f"{run.id} asks at blocked:wire",
        f"gatewright effects resolve {entry.key} --did-not-happen",
    ):
        assert said in shown.out

    word: tuple[str, ...] = ("effects", "resolve", entry.key[4:16], "--happened", "--receipt", '{"transaction": "T-1"}')
    without = await gatewright(*word)
    assert (3, "refused: invalid") == (without.code, without.out.partition("\n")[0]), without.err
    assert "the result that the effect would have returned" in without.out
    assert "blocked:wire is still open" in without.out

    word = (*word, "--result", '"wired by hand"', "--comment", "the bank's book has it")
    admitted = await gatewright(*word, "-o", "json")
    assert (0, "admitted") == (admitted.code, admitted.json["verdict"]), admitted.err
    responder = admitted.json["receipts"][0]["responder"]
    assert ("alice", "cli") == (responder["principal"], responder["channel"])
    await run.opened("review")
    again = await gatewright(*word)
    other = await gatewright("effects", "resolve", entry.key, "--did-not-happen", "--as", "bob")
    assert (0, True) == (again.code, again.out.startswith("repeated"))
    assert (3, "refused: already_answered") == (other.code, other.out.partition("\n")[0]), other.err

    await run.admitted("review", True)
    assert await run.result() == "wired by hand"
    stands = store.ledger.entry(entry.key)
    assert stands is not None
    assert (stands.state, stands.resolved_by, stands.receipt) == ("performed", "alice", {"transaction": "T-1"})
    assert DONE["lost happened"] == 1
    settled = await gatewright("effects", "show", entry.key, "-o", "json")
    assert ([], ["nothing: it happened, and is never attempted again"]) == (
        settled.json["open_gates"],
        settled.json["now"],
    )


async def test_what_did_not_happen_is_called_again_under_the_next_key(
    gatewright: Gatewright, blocked: Any, store: Store
) -> None:
    """Both generations name each other."""
    run, entry = await blocked("lost again")

    said = await gatewright("effects", "resolve", entry.key, "--did-not-happen", "--as", "bob")
    assert (0, "admitted") == (said.code, said.out.partition("\n")[0]), said.err
    await run.opened("review")
    first, second = sorted(store.ledger.entries(run=run.id), key=lambda each: each.generation)
    assert (first.successor, DONE["lost again"]) == (second.key, 2)

    shown = [await gatewright("effects", "show", each.key) for each in (first, second)]
    assert "bob said that it did not happen" in shown[0].out
    assert f"replaced by  {second.key}" in shown[0].out
    assert f"replaces     {first.key}" in shown[1].out
    assert "wire#1.1  performed" in shown[1].out


async def test_a_call_that_is_aborted_ends_its_run(gatewright: Gatewright, blocked: Any) -> None:
    """`--abort` is an answer like the others."""
    run, entry = await blocked("lost aborted")

    aborted = await gatewright("effects", "resolve", entry.key, "--abort", "--comment", "enough")
    assert (0, "admitted") == (aborted.code, aborted.out.partition("\n")[0]), aborted.err
    with pytest.raises(WorkflowFailureError) as failed:
        await run.result()
    assert "aborted by alice: enough" in str(failed.value.cause)


async def test_nothing_is_decided_behind_the_back_of_a_run_that_asks_something_else(
    gatewright: Gatewright, opened: Any, running: None, store: Store
) -> None:
    """It says what the run waits for, and the ledger stays as it is."""
    run = await opened("declined", "not asked")
    await run.opened("failed:declined")
    await until(lambda: run.gates.list(run=run.id), "the gate is listed")
    [entry] = store.ledger.entries(run=run.id)

    ended = await gatewright("effects", "resolve", entry.key, "--did-not-happen", "-o", "json")
    shown = await gatewright("effects", "show", entry.key)

    assert (4, "not_asked", ["failed:declined"]) == (ended.code, ended.json["error"], ended.json["open"])
    assert "it waits at failed:declined" in ended.err
    assert [entry] == store.ledger.entries(run=run.id)
    assert f"gatewright answer {run.id} failed:declined" in shown.out


async def test_without_a_worker_the_word_is_delivered_and_not_judged(
    gatewright: Gatewright, opened: Any, working: Any, store: Store
) -> None:
    """Exit 4, as for any answer; the next worker judges it."""
    async with working([Calls], list(CALLS.values())):
        run = await opened("wire", "lost delivered")
        await run.opened("blocked:wire")
        await until(lambda: run.gates.list(run=run.id), "the gate is listed")
    [entry] = store.ledger.entries(run=run.id)

    word = ("effects", "resolve", entry.key, "--happened", "--receipt", '"T-2"', "--result", '"wired"')
    delivered = await gatewright(*word, "-o", "json")

    assert (4, "delivered") == (delivered.code, delivered.json["verdict"])
    async with working([Calls], list(CALLS.values())):
        await run.opened("review")
    assert DONE["lost delivered"] == 1


async def test_a_word_that_the_run_asks_for_once_more_is_given_by_the_same_key(
    gatewright: Gatewright, opened: Any, working: Any, store: Store
) -> None:
    """Delivered while no worker lived, it lacks the result: the gate that asks again names the call too."""
    async with working([Calls], list(CALLS.values())):
        run = await opened("wire", "lost twice")
        await run.opened("blocked:wire")
        await until(lambda: run.gates.list(run=run.id), "the gate is listed")
    [entry] = store.ledger.entries(run=run.id)
    word: tuple[str, ...] = ("effects", "resolve", entry.key, "--happened", "--receipt", '"T-4"')
    delivered = await gatewright(*word)
    assert (4, True) == (delivered.code, delivered.out.startswith("delivered"))

    async with working([Calls], list(CALLS.values())):
        gate = await run.opened("failed:blocked:wire")
        await until(lambda: run.gates.list(run=run.id), "the gate is listed")
        assert ("wire#1", entry.key) == (gate.payload["call"], gate.payload["key"])
        shown = await gatewright("effects", "show", entry.key)
        assert f"{run.id} asks at failed:blocked:wire" in shown.out
        assert f"gatewright effects resolve {entry.key} --did-not-happen" in shown.out
        said = await gatewright(*word, "--result", '"by hand"')
        assert (0, "admitted") == (said.code, said.out.partition("\n")[0]), said.err
        again = await gatewright(*word, "--result", '"by hand"')
        assert (0, True) == (again.code, again.out.startswith("repeated")), again.err
        await run.admitted("review", True)
        assert await run.result() == "by hand"


@pytest.mark.parametrize("result", ["null", '"paid"'])
async def test_of_a_run_that_is_over_nothing_happened_without_its_result(
    result: str, gatewright: Gatewright, store: Store
) -> None:
    """Nobody would ask for it later; null is a result, where it is said."""
    key = _planned(store, "56" * 32, "pay", run="over")
    store.close_run("over", standing="completed", at=moment())
    word = ("effects", "resolve", key, "--happened", "--receipt", '"T-5"')

    without = await gatewright(*word)
    before = store.ledger.entry(key)
    said = await gatewright(*word, "--result", result)

    assert (2, True) == (without.code, "--happened needs --result JSON" in without.err), without.err
    assert before is not None
    assert ("planned", 0) == (before.state, said.code), said.err
    entry = store.ledger.entry(key)
    assert entry is not None
    assert ("performed", json.loads(result)) == (entry.state, entry.result)


async def test_of_a_run_that_is_over_the_ledger_keeps_the_word_for_whoever_resets_it(
    gatewright: Gatewright, blocked: Any, store: Store, client: Client, queue: str
) -> None:
    """Abandoned, resolved, reset: the effect is not made again."""
    run, entry = await blocked("lost reset")
    assert (await gatewright("abandon", run.id, "--reason", "test", "--yes")).code == 0
    shown = await gatewright("effects", "show", entry.key)
    assert "the run is over; what somebody finds out is kept" in shown.out

    aborted = await gatewright("effects", "resolve", entry.key, "--abort")
    word = ("effects", "resolve", entry.key, "--happened", "--receipt", '"T-3"', "--result", '"wired by word"')
    recorded = await gatewright(*word)
    again = await gatewright(*word, "-o", "json")
    other = await gatewright("effects", "resolve", entry.key, "--did-not-happen", "-o", "json")

    assert (3, True) == (aborted.code, "its run is over (terminated)" in aborted.err)
    assert (0, "written into the ledger: wire#1 performed") == (recorded.code, recorded.out.partition("\n")[0]), (
        recorded.err
    )
    assert (0, "unchanged", True) == (again.code, again.json["verdict"], again.json["agrees"])
    assert (3, "unchanged", False) == (other.code, other.json["verdict"], other.json["agrees"])

    described = await run.handle.describe()
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=run.id, run_id=described.run_id),
            workflow_task_finish_event_id=4,
            reason="to the beginning",
            request_id=f"reset-{queue}",
        )
    )
    reset = Conversation(run.gates, run.id)
    await reset.opened("review")
    await reset.admitted("review", True)
    assert await reset.result() == "wired by word"
    assert DONE["lost reset"] == 1


async def test_a_run_that_goes_on_in_another_namespace_is_not_decided_behind_its_back(
    gatewright: Gatewright, blocked: Any, store: Store, address: str
) -> None:
    """Both are named, with the way out; whoever knows better says so, and not where Temporal knows the run."""
    run, entry = await blocked("lost elsewhere")
    word = ("effects", "resolve", entry.key, "--did-not-happen", "-o", "json")
    elsewhere = {"TEMPORAL_NAMESPACE": "elsewhere"}

    refused = await gatewright(*word, env=elsewhere)
    here = await gatewright(*word, "--run-is-over")
    assert (4, "run_not_known", run.id) == (refused.code, refused.json["error"], refused.json["workflow_id"])
    assert f"the store does not list {run.id}, and Temporal at {address} (namespace elsewhere)" in refused.err
    assert "--run-is-over" in refused.err
    assert (2, True) == (here.code, "goes on" in here.err)
    assert [entry] == store.ledger.entries(run=run.id)

    said = await gatewright(*word, "--run-is-over", env=elsewhere)
    assert (0, "recorded", "failed") == (said.code, said.json["verdict"], said.json["entry"]["state"]), said.err


async def test_a_run_that_temporal_has_forgotten_is_over_where_the_store_says_so(
    gatewright: Gatewright, store: Store
) -> None:
    """One that is listed as open may go on elsewhere."""
    run, _ = store.allocate_run(
        SessionKey(app="app", user="user", session="forgotten"),
        opening_id="o",
        pipeline="P",
        task_queue="q",
        input_digest=None,
        at=moment(),
        refuse_if_open=False,
    )
    key = _planned(store, "34" * 32, "pay", run=run.workflow_id)

    refused = await gatewright("effects", "resolve", key, "--did-not-happen")
    store.close_run(run.workflow_id, standing="completed", at=moment())
    said = await gatewright("effects", "resolve", key, "--did-not-happen")

    assert (4, True) == (refused.code, f"the store lists {run.workflow_id} as allocated" in refused.err)
    assert (0, "written into the ledger: pay#1 failed") == (said.code, said.out.partition("\n")[0]), said.err
    assert "its run is over (completed)" in said.out


async def test_what_is_known_not_to_have_happened_cannot_be_said_to_have(gatewright: Gatewright, store: Store) -> None:
    """One line, exit 1, and the ledger as it was: a fact beats a word."""
    key = _planned(store, "cd" * 32, "pay")
    first = await gatewright("effects", "resolve", key, "--did-not-happen", "--run-is-over")
    before = store.ledger.entries()

    word = ("--happened", "--receipt", "1", "--result", "null", "--run-is-over")
    ended = await gatewright("effects", "resolve", key, *word)

    assert (0, "written into the ledger: pay#1 failed") == (first.code, first.out.partition("\n")[0]), first.err
    assert (1, 1) == (ended.code, len(ended.err.splitlines()))
    assert "known not to have happened" in ended.err
    assert before == store.ledger.entries()


async def test_what_a_person_said_and_the_outside_contradicted_is_said_in_words(
    gatewright: Gatewright, store: Store
) -> None:
    """In the list and in full."""
    key = _planned(store, "ef" * 32, "pay")
    store.ledger.begin(key, holder="h", lease=0, call_seconds=0, arguments_digest="d", alone=True)
    store.ledger.resolve(key, by="bob", happened=False)
    store.ledger.performed(key, result="paid", receipt=None)

    shown, listed = await gatewright("effects", "show", key), await gatewright("effects", "list")

    assert "CONTRADICTED: bob said that it did not happen, and it was performed all the same" in shown.out
    assert "performed, contradicted" in listed.out


async def test_effects_of_runs_that_ended_long_ago_are_forgotten(gatewright: Gatewright, store: Store) -> None:
    """`--dry-run` counts and keeps; what is not old enough stays."""
    key = _planned(store, "12" * 32, "pay", run="old")
    store.ledger.begin(key, holder="h", lease=60, call_seconds=0, arguments_digest="d", alone=True)
    store.ledger.performed(key, result="paid", receipt=None)
    store.close_run("old", standing="completed", at=moment() - timedelta(seconds=1))

    early = await gatewright("effects", "prune", "--older-than", "1h", "-o", "json")
    dry = await gatewright("effects", "prune", "--older-than", "0s", "--dry-run", "-o", "json")
    assert (0, 1, True) == (early.json["forgotten"], dry.json["forgotten"], dry.json["dry_run"])
    assert store.ledger.entry(key) is not None
    gone = await gatewright("effects", "prune", "--older-than", "0s")
    assert (0, True) == (gone.code, gone.out.startswith("1 effects settled before"))
    assert store.ledger.entry(key) is None


async def test_after_a_restore_a_run_asks_before_its_next_effect(
    gatewright: Gatewright, opened: Any, working: Any, address: str, tmp_path: Path, store: Store
) -> None:
    """The ledger has another id; the call is found by a key that the ledger itself does not have."""
    before = store.ledger_id
    async with working([Calls], list(CALLS.values())):
        run = await opened("later", "restored")
        await run.opened("review")
        await until(lambda: run.gates.list(run=run.id), "the gate is listed")
    restored = await gatewright("effects", "restored", "-o", "json")
    assert before == restored.json["before"]

    with Store.open(f"sqlite:///{tmp_path}/gatewright.db") as reopened:
        assert reopened.ledger_id == restored.json["ledger_id"] != before
        fresh = await Client.connect(address, plugins=[GatewrightPlugin(reopened)])
        async with working([Calls], list(CALLS.values()), client=fresh):
            await run.admitted("review", True)
            gate = await run.opened("blocked:wire")
            await until(lambda: run.gates.list(run=run.id), "the gate is listed")
            key = gate.payload["key"]

            shown = await gatewright("effects", "show", key[:20])
            said = await gatewright("effects", "resolve", key[:20], "--did-not-happen")

            assert (0, True) == (shown.code, "wire#1  the ledger has no entry of it" in shown.out), shown.err
            assert f"{run.id} asks at blocked:wire" in shown.out
            assert (0, "admitted") == (said.code, said.out.partition("\n")[0]), said.err
            assert await run.result() == "wired restored"
    assert DONE["restored"] == 1


async def test_whoever_says_that_the_store_was_restored_is_told_what_follows(
    gatewright: Gatewright, store: Store
) -> None:
    """What to do next, in text."""
    before = store.ledger_id

    ended = await gatewright("effects", "restored")

    assert ended.code == 0
    for said in (before, "Restart every worker", "gatewright reindex", "asks at blocked:NAME"):
        assert said in ended.out


async def test_show_names_the_calls_under_way_and_why_they_were_tried_again(
    gatewright: Gatewright, opened: Any, running: None
) -> None:
    """Attempt, and the last failure; nothing once it is done."""
    GO_ON.clear()
    run = await opened("halting", "steps")

    async def second_attempt() -> bool:
        return any(call.attempt == 2 and call.state == "started" for call in (await run.gates.get(run.id)).calls)

    await until(second_attempt, "the second attempt runs")
    shown = await gatewright("show", run.id)
    document = await gatewright("show", run.id, "-o", "json")
    GO_ON.set()
    await run.opened("review")
    later = await gatewright("show", run.id, "-o", "json")

    assert "halting#1 attempt 2, runs; the last attempt failed: Lost: stumbled" in shown.out
    [call] = document.json["calls"]
    assert ("halting#1", "halting", "started", 2, "Lost: stumbled", None) == (
        call["activity_id"],
        call["activity_type"],
        call["state"],
        call["attempt"],
        call["last_failure"],
        call["waits_for"],
    )
    assert [] == later.json["calls"]


async def test_show_says_that_an_effect_waits_for_the_store(
    gatewright: Gatewright, opened: Any, working: Any, address: str, tmp_path: Path
) -> None:
    """The store is locked after the outside was reached: the effect waits, says so, and ends once it is back."""
    path = tmp_path / "gatewright.db"
    with Store.open(f"sqlite:///{path}?timeout=0.2") as impatient:
        own = await Client.connect(address, plugins=[GatewrightPlugin(impatient)])
        async with working([Calls], list(CALLS.values()), client=own):
            run = await opened("robbed", str(path))
            try:

                async def waits() -> bool:
                    return any(call.waits_for for call in (await run.gates.get(run.id)).calls)

                await until(waits, "the effect says what it waits for")
                shown = await gatewright("show", run.id)
            finally:
                for lock in LOCKS:
                    lock.execute("ROLLBACK")
                    lock.close()
                LOCKS.clear()
            await run.opened("review")

    assert "robbed#1 attempt 1, waits: the store is away: " in shown.out


def _planned(store: Store, digits: str, name: str, *, kind: str = "keyed", run: str = "r") -> str:
    key = f"gw1-{'once-' if kind == 'once' else ''}{digits}"
    store.ledger.plan(key=key, effect=name, kind=kind, workflow_id=run, branch=f"P@1/{name}@1", visit=1, generation=0)
    return key
