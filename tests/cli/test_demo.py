"""`gatewright demo` and `gatewright dev`, from the root of the project as a user runs them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import GATEWRIGHT, ROOT, plain_environment
from tests.cli.screen import Screen

PATIENCE = 120.0
pytestmark = pytest.mark.skipif(not (ROOT / "worker/__main__.py").is_file(), reason="this checkout has no worker")


def demo(folder: Path, *arguments: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    command = [*GATEWRIGHT, "demo", "--data-dir", str(folder), *arguments]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    environment = plain_environment()
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdin=nothing, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.terminate()  # not killed: it has children to end
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def left_running(folder: Path) -> list[str]:
    """Servers and workers of this folder that still live (Linux: read from /proc)."""
    living = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            environment = (entry / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if ("start-dev" in command and str(folder) in command) or (
            "\0worker\0" in command and f"GATEWRIGHT_DATA_DIR={folder}" in environment
        ):
            living.append(command)
    return living


def test_unattended_it_ends_with_a_release_and_leaves_no_process(tmp_path: Path) -> None:
    """Parquet file, manifest, receipts that hold; as JSON one document."""
    ended = demo(tmp_path, "-o", "json")

    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    release = document["result"]["release"]
    assert Path(release["parquet"]).is_file()
    assert Path(release["manifest"]).is_file()
    assert ("completed", True) == (document["status"], document["receipts"]["holds"])
    assert [] == left_running(tmp_path)


def test_a_script_that_runs_dry_fails_with_the_name_of_the_gate_and_the_next_demo_goes_on(tmp_path: Path) -> None:
    """The run is kept: what was answered is not asked again, and --fresh begins anew."""
    first = tmp_path / "first.json"
    first.write_text('{"review_profile": [{"drop": ["no such column"]}, {"drop": ["notes"]}]}')
    second = tmp_path / "second.json"
    second.write_text('{"confirm_release": [{"decision": "release"}]}')

    dry = demo(tmp_path / "d", "--answers", str(first))
    resumed = demo(tmp_path / "d", "--answers", str(second))

    assert (1, True) == (dry.returncode, "no answer for gate confirm_release" in dry.stderr)
    assert '{"confirm_release": [{"decision": "release", "comment": ""}]}' in dry.stderr
    assert "refused: invalid" in dry.stdout
    assert resumed.returncode == 0, resumed.stderr
    assert "going on with" in resumed.stdout
    assert 1 == resumed.stdout.count("profile_dataset#1 done\n")
    assert [] == left_running(tmp_path / "d")


def test_a_file_of_ones_own_is_released_as_it_is(tmp_path: Path) -> None:
    """The answers for the sample name the sample's columns, which no other file need have."""
    own = tmp_path / "own.csv"
    own.write_text("fruit,price\napple,1\npear,2\n")

    ended = demo(tmp_path / "d", str(own), "-o", "json")

    assert ended.returncode == 0, ended.stderr
    assert 2 == json.loads(ended.stdout)["result"]["release"]["rows"]


def test_a_run_that_fails_is_called_failed_with_its_reason(tmp_path: Path) -> None:
    """Exit 1; Temporal's own word is waited for, and there is no result to show."""
    empty = tmp_path / "empty.csv"
    empty.write_text("")

    ended = demo(tmp_path / "d", str(empty))

    assert ended.returncode == 1, ended.stderr
    status, reason = ended.stdout.partition("/1 failed\n")[1:]
    assert status, ended.stdout
    assert "empty" in reason.splitlines()[0]
    assert "null" not in ended.stdout


def test_a_pipeline_that_the_worker_lacks_ends_the_demo(tmp_path: Path) -> None:
    """Exit 4 with the worker's words; what is stuck cannot be cancelled, and --fresh gets past it."""
    for name in ("worker", "activities", "workflows"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    plan = tmp_path / "worker/demo.json"
    plan.write_text(plan.read_text().replace('"DatasetRelease"', '"NoSuch"'))

    stuck = demo(tmp_path / "d", cwd=tmp_path)
    again = demo(tmp_path / "d", "--fresh", cwd=tmp_path)

    assert (4, 4) == (stuck.returncode, again.returncode), again.stderr
    assert "the worker cannot go on with this run: " in stuck.stderr
    assert "NoSuch is not registered" in stuck.stderr
    assert "is abandoned" in again.stdout
    assert "/2" in again.stdout
    assert [] == left_running(tmp_path / "d")


def test_what_cannot_run_is_said_at_once(tmp_path: Path) -> None:
    """A file that is missing, a folder without a worker, answers of another form: exit 2, and nothing was started."""
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"review_profile": {}}')
    missing = demo(tmp_path / "d", str(tmp_path / "missing.csv"))
    folder = demo(tmp_path / "d", str(tmp_path))
    elsewhere = demo(tmp_path / "d", cwd=tmp_path)
    misshapen = demo(tmp_path / "d", "--answers", str(wrong))

    assert (2, True) == (missing.returncode, "there is no file" in missing.stderr)
    assert (2, True) == (folder.returncode, "is a folder" in folder.stderr)
    assert (2, True) == (elsewhere.returncode, "run this from a checkout" in elsewhere.stderr)
    assert (2, True) == (misshapen.returncode, "gate name" in misshapen.stderr)
    assert not (tmp_path / "d").exists()


def test_at_a_terminal_a_form_asks_and_ctrl_c_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    """Exit 130 and no process left; the same command goes on at the gate that was open."""
    command = [*GATEWRIGHT, "demo", "--data-dir", str(tmp_path)]
    with Screen(command, cwd=ROOT, env=plain_environment()) as screen:
        screen.expect("drop> ")
        screen.enter("no such column")
        screen.expect("none of the choices")
        screen.press_ctrl_c("Go on with: gatewright demo --data-dir")
        assert screen.end() == 130
    assert [] == left_running(tmp_path)

    with Screen(command, cwd=ROOT, env=plain_environment()) as screen:
        screen.expect("going on with")
        screen.expect("drop> ")
        screen.enter('{"drop": ["notes"]}')
        screen.expect("decision> ")
        screen.enter("release")
        screen.expect("comment> ")
        screen.enter("")
        screen.expect("type confirm_release to send this> ")
        screen.enter("confirm_release")
        screen.expect("chained and verified")
        assert screen.end() == 0
    assert [] == left_running(tmp_path)


def test_sigterm_leaves_a_run_that_goes_on_as_ctrl_c_does(tmp_path: Path) -> None:
    """The same sentence, and no process left."""
    command = [*GATEWRIGHT, "demo", "--data-dir", str(tmp_path)]
    with Screen(command, cwd=ROOT, env=plain_environment()) as screen:
        screen.expect("drop> ")
        screen.terminate("Go on with: gatewright demo --data-dir")
        assert screen.end() == 128 + signal.SIGTERM
    assert [] == left_running(tmp_path)


def test_dev_serves_until_it_is_told_to_stop_and_starts_a_worker_that_died_again(tmp_path: Path) -> None:
    """A port that is taken is stepped over, and what to export is said."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = ["dev", "--port", str(port), "--data-dir", str(tmp_path), "-o", "json"]
        served = subprocess.Popen(
            [*GATEWRIGHT, *arguments],
            cwd=ROOT,
            env=plain_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert served.stdout is not None
            greeting = json.loads(served.stdout.readline())
            os.kill(_worker(tmp_path), signal.SIGKILL)
            assert served.stderr is not None
            while "the worker died (signal 9)" not in (line := served.stderr.readline()):
                assert line, "it ended without a word about its worker"
            ends = time.monotonic() + PATIENCE
            while (tmp_path / "worker.log").read_text().count("worker ready") < 2:
                assert time.monotonic() < ends, "the worker was not started again"
                time.sleep(0.1)
            served.send_signal(signal.SIGINT)
            served.communicate(timeout=PATIENCE)
        finally:
            served.kill()
            served.communicate()

    assert greeting["address"] != f"127.0.0.1:{port}"
    assert f"export TEMPORAL_ADDRESS={greeting['address']}" in greeting["env"]
    assert 130 == served.returncode
    assert [] == left_running(tmp_path)


def _worker(folder: Path) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"\0worker\0" not in (entry / "cmdline").read_bytes():
                continue
            if f"GATEWRIGHT_DATA_DIR={folder}\0".encode() in (entry / "environ").read_bytes():
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError("no worker runs")
