"""At a terminal: forms, confirmation, Ctrl-C."""

import asyncio
from pathlib import Path

from gatewright.temporal import GateClient
from tests.cli.conftest import GATEWRIGHT, Gatewright
from tests.cli.screen import Screen


async def test_a_form_asks_field_by_field_and_sends_what_was_seen(
    gatewright: Gatewright, run: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Message and payload first, then each field; the digest of the gate that was read goes with the answer."""

    def converse() -> tuple[int, str]:
        with Screen([*GATEWRIGHT, "answer", run], cwd=tmp_path, env=environment) as screen:
            screen.expect("Well?")
            screen.expect("decision> ")
            screen.enter("perhaps")
            screen.expect("none of the choices")
            screen.enter("1")
            screen.expect("level> ")
            screen.enter("")
            screen.expect("tags> ")
            screen.enter("")
            screen.expect("note> ")
            screen.enter("fine")
            screen.expect("admitted")
            return screen.end(), screen.seen

    code, _ = await asyncio.to_thread(converse)
    shown = await gatewright("show", run, "-o", "json")
    answered = next(entry for entry in shown.json["transcript"] if entry["kind"] == "answered")

    assert code == 0
    assert {"decision": "yes", "level": 1, "tags": [], "note": "fine"} == answered["value"]
    assert answered["answer"]["digest"] == answered["receipt"]["occurrence"]["digest"]


async def test_ctrl_c_in_a_form_sends_nothing(
    gatewright: Gatewright, run: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Exit 130, and the gate stays as it was."""

    def converse() -> int:
        with Screen([*GATEWRIGHT, "answer", run], cwd=tmp_path, env=environment) as screen:
            screen.expect("decision> ")
            screen.press_ctrl_c("nothing was sent")
            return screen.end()

    assert await asyncio.to_thread(converse) == 130
    gates = await gatewright("gates", "--run", run, "-o", "json")
    assert [("review", 0)] == [(row["interrupt_id"], row["refusals"]) for row in gates.json]


async def test_ctrl_c_ends_watching_and_says_where_to_go_on(
    run: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Exit 130; the run goes on."""

    def converse() -> int:
        with Screen([*GATEWRIGHT, "watch", run], cwd=tmp_path, env=environment) as screen:
            screen.expect("review: Well?")
            screen.press_ctrl_c(f"gatewright watch {run} --after 2")
            return screen.end()

    assert await asyncio.to_thread(converse) == 130


async def test_watching_names_the_trouble_of_a_run_and_goes_on_with_it(
    gatewright: Gatewright, worker: None, gates: GateClient, environment: dict[str, str], tmp_path: Path
) -> None:
    """Somebody may mend the worker meanwhile; it is said once, and the run's end ends the watching."""
    await gatewright("start", "NoSuch", "--session", "nosuch")
    run = "NoSuch/user/nosuch/1"

    with Screen([*GATEWRIGHT, "watch", run], cwd=tmp_path, env=environment) as screen:
        await asyncio.to_thread(screen.expect, "NoSuch is not registered on this worker")
        await gates.abandon(run, reason="it never will")
        await asyncio.to_thread(screen.expect, "terminated")
        code = await asyncio.to_thread(screen.end)

    assert (0, 1) == (code, screen.seen.count("the worker cannot go on with this run: "))


async def test_abandoning_asks_first_at_a_terminal(
    gatewright: Gatewright, run: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """An empty line leaves the run alone."""

    def converse(said: str) -> int:
        command = [*GATEWRIGHT, "abandon", run, "--reason", "test"]
        with Screen(command, cwd=tmp_path, env=environment) as screen:
            screen.expect("Abandon it? [y/N]")
            screen.enter(said)
            return screen.end()

    assert await asyncio.to_thread(converse, "") == 2
    assert (await gatewright("show", run, "-o", "json")).json["status"] == "running"
    assert await asyncio.to_thread(converse, "y") == 0
    assert (await gatewright("show", run, "-o", "json")).json["status"] == "terminated"
