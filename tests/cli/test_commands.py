"""What each command says and how it ends, as a process of its own against a real server."""

import asyncio
import json
from pathlib import Path
from typing import Any

from gatewright.cli.render import moment
from gatewright.store import SessionKey, Store
from gatewright.temporal import GateClient
from tests.cli.conftest import Ended, Gatewright
from tests.cli.pipelines import Approve
from tests.temporal.conversation import until

YES = '{"decision": "yes"}'


MISTAKES: list[tuple[list[str], int, str]] = [
    (
        ["start", "Approve", "--input", '{"a": }'],
        2,
        "--input: this is not JSON: Expecting value at line 1, column 7",
    ),
    (["start", "Approve", "--input", "@nowhere.json"], 2, "nowhere.json cannot be read"),
    (["start", "Approve", "--session", ""], 2, "--session"),
    (["answer", "RUN", "review", "--json", "yes"], 2, "quotes of its own"),
    (["answer", "RUN", "review", "--json", "1", "--set", "a=1"], 2, "cannot go together"),
    (["answer", "RUN", "review"], 2, "there is no terminal to ask at"),
    (["answer", "RUN", "review", "--set", "decison=yes"], 2, "there is no field 'decison'"),
    (["answer", "RUN", "x" * 500, "--json", "1"], 2, "interrupt id"),
    (["answer", "RUN", "nowhere", "--json", "1"], 3, ""),
    (["answer", "RUN", "nowhere", "--set", "a=1"], 3, ""),
    (["answer", "nowhere/a/b/1", "review", "--json", "1"], 4, "there is no run nowhere/a/b/1"),
    (["show", "nowhere"], 4, "there is no run nowhere"),
    (["watch", "nowhere"], 4, "there is no run nowhere"),
    (["receipts", "nowhere"], 4, "there is no run nowhere"),
    (["cancel", "nowhere", "--reason", "x"], 4, "nowhere"),
    (["cancel", "nowhere"], 2, "--reason"),
    (["gates", "--run", "nowhere"], 4, "no run nowhere"),
    (["gates", "--state", "ajar"], 2, "ajar"),
    (["show", "\udcff"], 2, "not UTF-8"),
]


async def test_each_mistake_is_named_in_a_line_or_two_and_has_its_exit_code(gatewright: Gatewright, run: str) -> None:
    """Never a traceback."""
    at_once = asyncio.Semaphore(2)

    async def make(arguments: list[str]) -> Ended:
        async with at_once:
            return await gatewright(*(run if each == "RUN" else each for each in arguments))

    ended = await asyncio.gather(*(make(arguments) for arguments, _, _ in MISTAKES))

    misjudged = [
        (arguments, was)
        for (arguments, code, said), was in zip(MISTAKES, ended, strict=True)
        if was.code != code or said not in was.err or "Traceback" in was.err or "fault" in was.err
    ]
    assert [] == misjudged


async def test_a_run_is_started_shown_answered_watched_and_verified(gatewright: Gatewright, run: str) -> None:
    """The whole way in text: what is printed names the run, the gate, the verdict and the receipt."""
    listed = await gatewright("gates", "--run", run)
    assert (listed.code, "review" in listed.out, "Well?" in listed.out) == (0, True, True)

    shown = await gatewright("show", run)
    assert shown.code == 0
    assert "level: whole number, at least 1, at most 5, default 1" in shown.out

    answered = await gatewright("answer", run, "--set", "decision=yes", "--set", "tags+=a")
    assert (answered.code, answered.out.splitlines()[0]) == (0, "admitted")
    assert "taking review" in answered.err

    watched = await gatewright("watch", run)
    assert watched.code == 0
    assert 'review by alice through cli: {"decision": "yes", "tags": ["a"], "level": 1, "note": ""}' in watched.out
    assert "completed" in watched.out

    receipts = await gatewright("receipts", run, "--verify")
    assert receipts.code == 0
    for fact in ("frame", "occurrence", "branch", "responder", "effect", "verified: 1 receipts hold"):
        assert fact in receipts.out


async def test_with_json_stdout_holds_one_document_and_nothing_else(gatewright: Gatewright, run: str) -> None:
    """Scripts read stdout whole; `watch` prints a document a line."""
    gates = await gatewright("gates", "-o", "json")
    assert [("review", "open")] == [(row["interrupt_id"], row["state"]) for row in gates.json]

    refused = await gatewright("answer", run, "--json", '{"decision": "perhaps"}', "-o", "json")
    assert (3, "refused", "invalid") == (
        refused.code,
        refused.json["verdict"],
        refused.json["objections"][0]["refusal"],
    )
    assert refused.json["objections"][0]["armed"] is True

    admitted = await gatewright("answer", run, "review", "--json", "@-", "-o", "json", stdin=YES)
    assert (0, "admitted", 1) == (admitted.code, admitted.json["verdict"], admitted.json["receipts"][0]["number"])

    watched = await gatewright("watch", run, "-o", "json")
    lines = [json.loads(line) for line in watched.out.splitlines()]
    assert list(range(1, len(lines) + 1)) == [line["cursor"] for line in lines]
    rest = await gatewright("watch", run, "--after", "2", "-o", "json")
    assert lines[2:] == [json.loads(line) for line in rest.out.splitlines()]

    shown = await gatewright("show", run, "-o", "json")
    assert ("completed", "approved") == (shown.json["status"], shown.json["result"])
    assert lines == [entry | {"cursor": at} for at, entry in enumerate(shown.json["transcript"], 1)]
    receipts = await gatewright("receipts", run, "--verify", "-o", "json")
    assert {"holds": True, "count": 1, "head": receipts.json["receipts"][0]["digest"]} == receipts.json["verified"]
    assert receipts.err == ""


async def test_the_same_command_twice_is_a_repeat_and_another_answer_is_refused(
    gatewright: Gatewright, run: str
) -> None:
    """An answer without an id is named by its content, also where the second one finds the gate closed."""
    command = ("answer", run, "review", "--set", "decision=no", "--set", "level=3")
    first, second = await gatewright(*command, "-o", "json"), await gatewright(*command, "-o", "json")
    other = await gatewright("answer", run, "review", "--set", "decision=yes", "--as", "bob")

    assert (0, "admitted") == (first.code, first.json["verdict"])
    assert (0, "repeated") == (second.code, second.json["verdict"])
    assert first.json["receipts"] == second.json["receipts"]
    assert (3, "refused: already_answered") == (other.code, other.out.splitlines()[0])
    assert "answered by alice" in other.out


async def test_of_two_answers_from_two_processes_exactly_one_counts(gatewright: Gatewright, run: str) -> None:
    """The race is decided by the run: one exit 0, one exit 3."""
    both = await asyncio.gather(
        gatewright("answer", run, "review", "--json", YES, "--as", "alice"),
        gatewright("answer", run, "review", "--json", '{"decision": "no"}', "--as", "bob"),
    )

    assert [0, 3] == sorted(ended.code for ended in both)


async def test_a_dry_run_tells_the_verdict_and_changes_nothing(gatewright: Gatewright, run: str) -> None:
    """Neither an admission nor a refusal leaves a trace."""
    good = await gatewright("answer", run, "review", "--json", YES, "--dry-run")
    bad = await gatewright("answer", run, "review", "--set", "level=9", "--dry-run")
    shown = await gatewright("show", run, "-o", "json")

    assert (0, "would be admitted") == (good.code, good.out.strip())
    assert (3, "would be refused: invalid") == (bad.code, bad.out.splitlines()[0])
    assert ["opened", "asked"] == [entry["kind"] for entry in shown.json["transcript"]]
    assert {} == shown.json["refusals"]["counts"]


async def test_an_answer_by_signal_and_one_with_the_digest_of_something_else(gatewright: Gatewright, run: str) -> None:
    """The digest says what was seen; the signal's verdict is read back."""
    stale = await gatewright("answer", run, "review", "--json", YES, "--digest", "sha256:0")
    signalled = await gatewright("answer", run, "review", "--json", YES, "--signal", "-o", "json")

    assert (3, "refused: stale_digest") == (stale.code, stale.out.splitlines()[0])
    assert (0, "signal") == (signalled.code, signalled.json["receipts"][0]["responder"]["door"])


async def test_a_dangerous_gate_must_be_named(gatewright: Gatewright, worker: None) -> None:
    """`the only open one` is not good enough where a slip is dear."""
    started = await gatewright("start", "Approve", "--input", "2", "--wait", "-o", "json")
    run = started.json["workflow_id"]
    assert (await gatewright("answer", run, "-", "--set", "decision=yes")).code == 0

    unnamed = await gatewright("answer", run, "-", "--set", "decision=yes")
    named = await gatewright("answer", run, "launch", "--set", "decision=yes")

    assert (2, True) == (unnamed.code, "launch is marked dangerous" in unnamed.err)
    assert named.code == 0


async def test_while_a_run_of_the_session_is_open_another_is_refused_with_its_gates(
    gatewright: Gatewright, worker: None
) -> None:
    """The same opening id finds the run again; text opens another only where that is asked for."""
    same = ("start", "Approve", "--input", "1", "--session", "busy", "-o", "json")
    first = await gatewright(*same, "--opening-id", "o1", "--wait")
    again = await gatewright(*same, "--opening-id", "o1")
    busy = await gatewright(*same)
    other = await gatewright("start", "Approve", "--input", "2", "--session", "busy", "--opening-id", "o1")
    beside = await gatewright(*same, "--on-text", "open")

    assert ("Approve/user/busy/1", True) == (first.json["workflow_id"], first.json["created"])
    assert ("Approve/user/busy/1", False) == (again.json["workflow_id"], again.json["created"])
    assert (3, "session_busy", ["review"]) == (busy.code, busy.json["error"], busy.json["open"])
    assert (3, "") == (other.code, other.out)
    assert (0, "Approve/user/busy/2") == (beside.code, beside.json["workflow_id"])


async def test_without_a_worker_an_answer_is_delivered_and_not_judged(
    gatewright: Gatewright, working: Any, gates: GateClient
) -> None:
    """Exit 4 until somebody judged it; a start without a worker warns."""
    async with working([Approve], []):
        started = await gatewright("start", "Approve", "--input", "1", "--wait", "-o", "json")
    run = started.json["workflow_id"]

    delivered = await gatewright("answer", run, "review", "--json", YES, "--timeout", "1", "-o", "json")
    shown = await gatewright("show", run)
    alone = await gatewright("start", "Approve", "--input", "1", "--task-queue", "nobody", "-o", "json")

    assert (4, "delivered") == (delivered.code, delivered.json["verdict"])
    assert (0, True) == (shown.code, "what the store last heard" in shown.err)
    assert (0, True) == (alone.code, "no worker polls task queue nobody" in alone.err)
    async with working([Approve], []):
        assert await gates.client.get_workflow_handle(run).result() == "approved"


async def test_a_run_is_cancelled_or_abandoned_with_its_reason(gatewright: Gatewright, run: str, worker: None) -> None:
    """What is over cannot be ended again, and is told from what never was."""
    cancelled = await gatewright("cancel", run, "--reason", "no longer needed", "-o", "json")
    watched = await gatewright("watch", run)
    late = await gatewright("answer", run, "review", "--json", YES)
    other = (await gatewright("start", "Approve", "--input", "1", "--wait", "-o", "json")).json["workflow_id"]
    abandoned = await gatewright("abandon", other, "--reason", "gone wrong")
    again = await gatewright("abandon", other, "--reason", "gone wrong")

    assert (0, "cancel") == (cancelled.code, cancelled.json["requested"])
    assert (0, True) == (watched.code, "cancelled" in watched.out)
    assert (3, "refused: frame_closed") == (late.code, late.out.splitlines()[0])
    assert (0, 4) == (abandoned.code, again.code)


async def test_a_run_that_its_worker_cannot_take_is_not_waited_for(gatewright: Gatewright, worker: None) -> None:
    """Neither a pipeline that the worker lacks nor an input of another form: the trouble is named, with exit 4."""
    unknown = await gatewright("start", "NoSuch", "--input", "{}", "--wait", "-o", "json")
    misfit = await gatewright("start", "Approve", "--input", '{"sauce": "x"}', "--session", "misfit", "--wait")
    shown = await gatewright("show", "Approve/user/misfit/1")

    assert (4, "stuck") == (unknown.code, unknown.json["error"])
    assert "NoSuch is not registered on this worker" in unknown.json["trouble"]
    assert (4, True) == (misfit.code, "the worker cannot go on with this run: " in misfit.err)
    assert "gatewright abandon Approve/user/misfit/1" in misfit.err
    assert (0, True) == (shown.code, "the worker cannot go on with this run: " in shown.err)


async def test_a_run_that_was_never_opened_is_told_from_one_that_waits_for_nobody(
    gatewright: Gatewright, store: Store
) -> None:
    """Nothing is said to it, and nothing recorded: to start it again is what helps."""
    key = SessionKey(app="Approve", user="user", session="never")
    record, _ = store.allocate_run(
        key, opening_id="o", pipeline="Approve", task_queue="q", input_digest="d", at=moment(), refuse_if_open=True
    )
    run = record.workflow_id

    ended = [
        await gatewright("answer", run, "review", "--json", YES),
        await gatewright("answer", run, "--set", "decision=yes"),
        await gatewright("cancel", run, "--reason", "x"),
        await gatewright("abandon", run, "--reason", "x"),
        await gatewright("watch", run),
    ]

    assert [4] * 5 == [each.code for each in ended]
    assert all("its opening failed; run `gatewright start` again" in each.err for each in ended)
    assert [] == store.refusals(run=run, limit=10)
    assert "its opening failed" in (await gatewright("show", run)).out


async def test_the_index_is_rebuilt_from_temporal(
    gatewright: Gatewright, run: str, tmp_path: Path, gates: GateClient
) -> None:
    """A store that was lost lists the open gate again; what the command says of the store holds no password."""
    fresh = {"GATEWRIGHT_STORE": str(tmp_path / "fresh.db")}
    missing = await gatewright("gates", env=fresh)
    query = f"GatewrightSession = '{run.rpartition('/')[0]}'"

    async def listed() -> bool:
        return (await gates.client.count_workflows(query)).count == 1

    await until(listed, "Temporal lists the run")
    reindexed = await gatewright("reindex", "--query", query, "-o", "json", env=fresh)
    open_ones = await gatewright("gates", "-o", "json", env=fresh)
    info = await gatewright("store", "info", "-o", "json", env=fresh)

    assert (4, True) == (missing.code, "gatewright store migrate" in missing.err)
    assert {"runs": 1} == reindexed.json
    assert [run] == [row["workflow_id"] for row in open_ones.json]
    assert ({"open": 1}, {"open": 1}) == (info.json["runs"], info.json["gates"])


async def test_a_chain_with_a_link_that_was_altered_is_named(
    gatewright: Gatewright, run: str, store: Store, gates: GateClient, working: Any
) -> None:
    """`receipts --verify` ends with 1 and the number of the link."""
    await gatewright("answer", run, "review", "--json", '{"decision": "no"}')
    await gatewright("answer", run, "review~2", "--json", YES)
    await gatewright("watch", run)
    kept = json.dumps(store.archive(run))
    lost = "Approve/user/lost/1"
    forged = kept.replace(run, lost).replace('"principal": "alice"', '"principal": "mallory"')
    assert forged != kept
    store.close_run(lost, standing="completed", at=(await gates.get(run)).closed_at, archive=json.loads(forged))  # type: ignore[arg-type]

    broken = await gatewright("receipts", lost, "--verify")

    assert (1, True) == (broken.code, "BROKEN at receipt 1" in broken.out)


async def test_no_server_is_said_in_one_line_with_the_address_and_what_to_do(gatewright: Gatewright, run: str) -> None:
    """Exit 4; as JSON the error is the document."""
    nowhere = {"TEMPORAL_ADDRESS": "127.0.0.1:9"}
    text = await gatewright("show", run, env=nowhere)
    document = await gatewright("show", run, "-o", "json", env=nowhere)

    assert (4, 1) == (text.code, len(text.err.splitlines()))
    assert "127.0.0.1:9" in text.err
    assert "gatewright dev" in text.err
    assert "unreachable" == document.json["error"]


async def test_text_that_somebody_else_wrote_cannot_command_the_terminal(gatewright: Gatewright, run: str) -> None:
    """Escape sequences in an answer are shown, not obeyed."""
    await gatewright(
        "answer", run, "review", "--set", "decision=yes", "--set", "note=\x1b[2Jgone", "--as", "al\x1b[31mice"
    )
    shown = await gatewright("show", run)

    assert "\x1b" not in shown.out
    assert "al\\x1b[31mice" in shown.out
