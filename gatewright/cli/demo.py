"""`gatewright demo`: one run from an embedded Temporal server to its end, answered by whoever sits there or by a script."""

import asyncio
import hashlib
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path

from temporalio.client import Client

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.answer import Answer
from gatewright.protocol.telling import short
from gatewright.store import SessionKey, Store
from gatewright.temporal import (
    Delivered,
    GateClient,
    GateView,
    GatewrightPlugin,
    NoWorkerError,
    SessionBusyError,
)

from .answer import confirm_by_name
from .children import children
from .closing import tell_end
from .connect import answerer, at_terminal
from .embedded import EmbeddedServer
from .exits import INTERRUPTED, Stop, usage
from .following import follow, lasting_trouble, stuck
from .out import Out
from .render import entry_line, gate_lines, moment
from .script import Plan, Script
from .terminal import ask_form
from .verdict import show_ruling
from .worker_process import WorkerProcess, child_environment, require_worker

CANCEL_SECONDS = 60.0


def demo(out: Out, csv: str | None, *, answers: str | None, data_dir: Path, fresh: bool) -> int:
    """Run the demo; every process that it starts is ended on every way out."""
    require_worker()
    plan = Plan.read()
    source = Path(csv or plan.sample).absolute()
    if source.is_dir():
        raise usage(f"{source} is a folder: name a CSV file in it")
    if not source.is_file():
        raise usage(f"there is no file {source}")
    script = Script.read(answers) if answers is not None else None
    if script is None and not at_terminal():
        script = plan.script_for(source)
    folder = data_dir.absolute()
    store_file = str(folder / "gatewright.db")
    server = EmbeddedServer(folder / "temporal.db")
    worker = WorkerProcess(lambda: child_environment(server.address, store_file, folder), folder, out.note)
    with children() as ends:
        try:
            ends.callback(server.stop)
            ends.callback(worker.stop)
            with out.busy("starting Temporal and the worker"):
                server.start()
                worker.start()
            with Store.open(store_file) as store:
                conversation = Demo(out, plan, source, script, store, worker, data_dir)
                return asyncio.run(conversation.run(server.address, fresh=fresh))
        except KeyboardInterrupt:
            return _interrupted(out, csv, data_dir)
        except Stop as stop:
            if stop.code == INTERRUPTED:
                return _interrupted(out, csv, data_dir)
            raise
        except SystemExit:
            # SIGTERM; after SIGHUP there may be nobody left to read it.
            with suppress(OSError):
                _interrupted(out, csv, data_dir)
            raise


class Demo:
    """The conversation with one run."""

    def __init__(
        self,
        out: Out,
        plan: Plan,
        source: Path,
        script: Script | None,
        store: Store,
        worker: WorkerProcess,
        data_dir: Path,
    ) -> None:
        self._out = out
        self._plan = plan
        self._source = source
        self._script = script
        self._store = store
        self._worker = worker
        self._data_dir = data_dir
        self._principal = answerer() if script is None else "demo-script"

    async def run(self, address: str, *, fresh: bool) -> int:
        """Open the run or find it, answer its gates, and say how it ended."""
        tending = asyncio.create_task(self._tend())
        try:
            client = await Client.connect(address, plugins=[GatewrightPlugin(self._store)])
            gates = GateClient(client, self._store)
            run = await self._open(gates, fresh=fresh)
            async for entry in follow(gates, run, at_trouble=partial(_give_up, run)):
                self._tell(entry_line(entry))
                if entry["kind"] == "asked" and entry["gate"].get("kind", "human") == "human":
                    await self._attend(gates, run, entry["interrupt_id"])
            look = shlex.join(["gatewright", "dev", "--data-dir", str(self._data_dir)])
            return await tell_end(self._out, gates, run, f"in {self._data_dir}; look at the run with `{look}`")
        finally:
            tending.cancel()
            with suppress(asyncio.CancelledError):
                await tending

    async def _open(self, gates: GateClient, *, fresh: bool) -> str:
        try:
            return await self._start(gates)
        except SessionBusyError as busy:
            run = busy.workflow_id
            if not fresh:
                self._tell(f"going on with {run}, which was not finished (--fresh begins anew)")
                return run
            self._tell(f"cancelling {run}, which was not finished")
        reason = "gatewright demo --fresh"
        await gates.cancel(run, reason=reason)
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                async for _ in follow(gates, run, at_trouble=partial(_give_up, run)):
                    continue
        except (TimeoutError, Stop):
            self._tell("it cannot end in its own way, and is abandoned")
            await gates.abandon(run, reason=reason)
        return await self._start(gates)

    async def _start(self, gates: GateClient) -> str:
        place = hashlib.sha256(str(self._source).encode("utf-8", "surrogateescape")).hexdigest()[:8]
        key = SessionKey(app=self._plan.pipeline, user="demo", session=f"{self._source.stem[:80] or 'csv'}-{place}")
        started = await gates.start(self._plan.pipeline, self._plan.input_for(self._source), session=key)
        self._tell(f"opened {started.workflow_id}")
        return started.workflow_id

    async def _attend(self, gates: GateClient, run: str, interrupt_id: str) -> None:
        """Have a gate answered, again and again until it no longer waits."""
        while (gate := await self._waiting(gates, run, interrupt_id)) is not None:
            self._tell("")
            for line in gate_lines(gate, moment(), fields=False):
                self._tell(line)
            if self._script is not None:
                response = self._script.next(gate)
                self._tell(f"  the script answers {short(response)}")
            else:
                response = ask_form(self._out, gate.response_schema, strict=gate.policy.strict)
                try:
                    confirm_by_name(gate)
                except Stop as wrong:
                    if wrong.code == INTERRUPTED:
                        raise
                    self._tell(wrong.message)
                    continue
            said = Answer(
                interrupt_id=interrupt_id,
                response=response,
                principal=self._principal,
                channel="cli" if self._script is None else "demo",
                digest=gate.digest,
            )
            ruling = await gates.answer(run, said)
            if not self._out.json:
                show_ruling(self._out, ruling, run)
            self._tell("")
            if isinstance(ruling, Admitted | Repeated):
                return
            if isinstance(ruling, Delivered):
                await asyncio.sleep(1)

    async def _waiting(self, gates: GateClient, run: str, interrupt_id: str) -> GateView | None:
        """The gate as the run itself shows it, if it is open; a worker that is away is waited for."""
        while True:
            try:
                views = await gates.gates(run)
            except NoWorkerError:
                if trouble := await lasting_trouble(gates, run):
                    _give_up(run, trouble)
                await asyncio.sleep(1)
                continue
            return next((each for each in views if each.interrupt_id == interrupt_id and each.state == "open"), None)

    async def _tend(self) -> None:
        while True:
            self._worker.tend()
            await asyncio.sleep(0.5)

    def _tell(self, text: str) -> None:
        """Progress: on stdout in text form, on stderr beside JSON."""
        if self._out.json:
            self._out.note(text)
        else:
            self._out.say(text)


def _give_up(run: str, trouble: str) -> None:
    raise stuck(run, trouble, "Mend the worker and run the same command again, or begin anew with --fresh.")


def _interrupted(out: Out, csv: str | None, data_dir: Path) -> int:
    parts = ["gatewright", "demo", *([csv] if csv else [])]
    if data_dir != Path("data"):
        parts += ["--data-dir", str(data_dir)]
    out.note(f"\ninterrupted; the run is kept in {data_dir}. Go on with: {shlex.join(parts)}")
    return INTERRUPTED
