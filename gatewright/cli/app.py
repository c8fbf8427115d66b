"""The commands and their options; what they do is in the modules beside this one."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from .effects_app import app as effects
from .options import Form, Run
from .options import end as _end
from .out import Out, Output
from .webhooks import EVENTS

app = typer.Typer(
    name="gatewright",
    help="Gates for durable pipelines on Temporal: start runs, see what they wait for, answer, follow.",
    epilog=(
        "Exit codes: 0 admitted, repeated, done; 3 refused; 4 not found, unreachable or not judged yet; 2 usage; "
        "1 anything else; 130 Ctrl-C.  Settings: TEMPORAL_* as the temporal command reads them, GATEWRIGHT_STORE, "
        "GATEWRIGHT_TASK_QUEUE, GATEWRIGHT_PRINCIPAL."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
stores = typer.Typer(help="The database beside Temporal.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(stores, name="store")
app.add_typer(effects, name="effects")

Reason = Annotated[str, typer.Option("--reason", help="why, for the record")]
DataDir = Annotated[Path, typer.Option("--data-dir", help="where database files, logs and releases are kept")]


@app.command()
def start(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="the workflow type")],
    *,
    input: Annotated[str | None, typer.Option("--input", metavar="JSON|@FILE|@-", help="the pipeline's input")] = None,
    session: Annotated[
        str | None, typer.Option(help="the conversation that the run belongs to (default: a new one)")
    ] = None,
    app: Annotated[str | None, typer.Option(help="the session's app (default: the pipeline's name)")] = None,
    user: Annotated[str | None, typer.Option(help="the session's user (default: user)")] = None,
    opening_id: Annotated[
        str | None, typer.Option(help="the same opening id finds the run that it opened before")
    ] = None,
    on_text: Annotated[
        Literal["refuse", "open"], typer.Option(help="what to do while a run of the session is open")
    ] = "refuse",
    task_queue: Annotated[str | None, typer.Option(help="default: GATEWRIGHT_TASK_QUEUE, or gatewright")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="wait until it waits for a person, or ends")] = False,
    output: Form = Output.TEXT,
) -> None:
    """Open a run, the next of its session."""

    async def work(out: Out) -> int:
        from . import runs
        from .jsonarg import read_json

        given = None if input is None else read_json(input, "--input")
        return await runs.start(
            out,
            pipeline,
            given,
            app=app,
            user=user,
            session=session,
            opening_id=opening_id,
            on_text=on_text,
            queue=task_queue,
            wait=wait,
        )

    _end(output, work)


@app.command()
def gates(
    run: Annotated[str | None, typer.Option("--run", help="only the gates of this run")] = None,
    state: Annotated[
        Literal["open", "answered", "expired", "superseded", "closed", "all"],
        typer.Option(help="only gates in this state"),
    ] = "open",
    search: Annotated[str | None, typer.Option(help="only gates with this text in message, gate or run")] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many at most")] = 100,
    output: Form = Output.TEXT,
) -> None:
    """List gates, newest first.

    They are read from the store: Temporal need not run.
    """

    def work(out: Out) -> int:
        from . import listing

        return listing.gates(out, run=run, state=state, search=search, limit=limit)

    _end(output, work)


@app.command()
def show(run: Run, output: Form = Output.TEXT) -> None:
    """Show a run: calls under way, gates, transcript, refusals, dead letters."""

    async def work(out: Out) -> int:
        from . import runs

        return await runs.show(out, run)

    _end(output, work)


@app.command()
def answer(
    run: Run,
    interrupt_id: Annotated[
        str | None, typer.Argument(metavar="INTERRUPT_ID", help="which gate; - or none for the only one that is open")
    ] = None,
    *,
    json: Annotated[str | None, typer.Option("--json", metavar="JSON|@FILE|@-", help="the answer as JSON")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="K=V", help="one field of the answer: k=text, k:=JSON, k+=item, a.b=nested; repeat it"
        ),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="who answers (default: GATEWRIGHT_PRINCIPAL, or the account)"),
    ] = None,
    answer_id: Annotated[str | None, typer.Option(help="names this answer (default: by its content)")] = None,
    digest: Annotated[str | None, typer.Option(help="the digest of what was seen; another one is refused")] = None,
    signal: Annotated[bool, typer.Option("--signal", help="send it as a signal, and read the verdict back")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be ruled; send nothing")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.1, max=600, metavar="SECONDS", help="how long to wait for a verdict (default: 5)"),
    ] = None,
    output: Form = Output.TEXT,
) -> None:
    """
    Answer a gate and print the verdict. Without --json and --set, a form asks.

    With --set a value is text where the gate asks for text, JSON where it does
    not and the value is JSON, and text otherwise. `k=` is empty text, or null
    where only null fits. The same command twice is a repeat: it counts once.
    """

    async def work(out: Out) -> int:
        from .answer import Given, answer

        given = Given(run, interrupt_id, json, sets or [], principal, answer_id, digest, signal, dry_run, timeout)
        return await answer(out, given)

    _end(output, work)


@app.command()
def watch(
    run: Run,
    after: Annotated[int, typer.Option(min=0, help="leave out the first N entries")] = 0,
    output: Form = Output.TEXT,
) -> None:
    """Follow a run until it ends.

    As JSON, one entry of its transcript a line.
    """

    async def work(out: Out) -> int:
        from . import runs

        return await runs.watch(out, run, after)

    _end(output, work)


@app.command()
def receipts(
    run: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="a run's workflow id, or a file of receipts printed as JSON")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="check the chain; exit 1 names the first broken link")
    ] = False,
    history: Annotated[
        list[Path] | None,
        typer.Option(
            "--history",
            metavar="FILE",
            help="check each receipt against this history (temporal workflow show -o json); repeat it for a run that "
            "continued as new; exit 1 names what is contradicted",
        ),
    ] = None,
    output: Form = Output.TEXT,
) -> None:
    """Print a run's chain of receipts.

    Each has five facts: frame, occurrence, branch, responder, effect.  With --history they are checked offline: of a run
    that is over, Temporal need not run.
    """

    async def work(out: Out) -> int:
        from . import receipts as chain

        return await chain.receipts(out, run, check=verify, files=history or ())

    _end(output, work)


@app.command()
def cancel(run: Run, reason: Reason, output: Form = Output.TEXT) -> None:
    """Ask a run to end in its own way.

    Its cleanup runs and its gates close.
    """

    async def work(out: Out) -> int:
        from . import runs

        return await runs.cancel(out, run, reason)

    _end(output, work)


@app.command()
def abandon(
    run: Run,
    reason: Reason,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    output: Form = Output.TEXT,
) -> None:
    """End a run at once.

    It ends whether or not a worker lives, and nothing of it runs any more; its record is kept.
    """

    async def work(out: Out) -> int:
        from . import runs

        return await runs.abandon(out, run, reason, sure=yes)

    _end(output, work)


@app.command()
def reindex(
    query: Annotated[str | None, typer.Option(help="only runs that this Temporal list filter names")] = None,
    output: Form = Output.TEXT,
) -> None:
    """Rebuild the store's listing from Temporal."""

    async def work(out: Out) -> int:
        from . import listing

        return await listing.reindex(out, query)

    _end(output, work)


@stores.command()
def migrate(output: Form = Output.TEXT) -> None:
    """Make the store, or bring it to the schema of this release."""

    def work(out: Out) -> int:
        from . import listing

        return listing.migrate(out)

    _end(output, work)


@stores.command()
def info(output: Form = Output.TEXT) -> None:
    """Say where the store is and what is in it."""

    def work(out: Out) -> int:
        from . import listing

        return listing.info(out)

    _end(output, work)


@app.command()
def demo(
    csv: Annotated[str | None, typer.Argument(metavar="CSV", help="the file to release (default: a sample)")] = None,
    answers: Annotated[
        str | None, typer.Option(metavar="FILE", help='answers for nobody to type: {"gate": [answer, ...]}')
    ] = None,
    data_dir: DataDir = Path("data"),
    fresh: Annotated[bool, typer.Option("--fresh", help="cancel a run that was not finished, and begin anew")] = False,
    output: Form = Output.TEXT,
) -> None:
    """
    Run the example from end to end.

    Server, worker, run, and a form at each gate. Without a terminal, prepared answers are given. A demo that was interrupted
    goes on where it was.
    """

    def work(out: Out) -> int:
        from .demo import demo

        return demo(out, csv, answers=answers, data_dir=data_dir, fresh=fresh)

    _end(output, work)


@app.command()
def dev(
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Temporal's port; the next free one if it is taken")
    ] = 7233,
    ui_port: Annotated[int, typer.Option(min=1, max=65535, help="the port of Temporal's UI, likewise")] = 8233,
    data_dir: DataDir = Path("data"),
    no_worker: Annotated[bool, typer.Option("--no-worker", help="without the worker")] = False,
    serve_port: Annotated[
        int, typer.Option(min=1, max=65535, help="the port of ADK's HTTP API and UI, likewise")
    ] = 8000,
    no_serve: Annotated[bool, typer.Option("--no-serve", help="without ADK's HTTP API")] = False,
    output: Form = Output.TEXT,
) -> None:
    """Serve Temporal, its UI, the worker, and ADK's HTTP API and UI.

    Until Ctrl-C; runs are kept in the data folder.
    """

    def work(out: Out) -> int:
        from .dev import dev

        serving = None if no_serve else serve_port
        return dev(out, port=port, ui_port=ui_port, serve_port=serving, data_dir=data_dir, worker=not no_worker)

    _end(output, work)


@app.command()
def serve(
    apps: Annotated[
        list[str] | None,
        typer.Option("--app", metavar="NAME=PIPELINE[@TASK_QUEUE]", help="serve this workflow type; repeat it"),
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option(
            "--apps",
            metavar="MODULE:ATTRIBUTE",
            envvar="GATEWRIGHT_APPS",
            help="serve the apps of this module (default: worker.apps:APPS of the current folder)",
        ),
    ] = None,
    *,
    host: Annotated[str, typer.Option(envvar="GATEWRIGHT_HOST", help="the address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, envvar="GATEWRIGHT_PORT", help="0: any free one")] = 8000,
    on_text: Annotated[
        Literal["refuse", "open"], typer.Option(help="what text does while a run of the session is open")
    ] = "refuse",
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="GATEWRIGHT_TOKEN_FILE",
            metavar="FILE",
            help="who may call: lines of TOKEN PRINCIPAL (bearer tokens)",
        ),
    ] = None,
    principal_header: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWRIGHT_PRINCIPAL_HEADER", metavar="NAME", help="the header in which a proxy says who calls"
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(envvar="GATEWRIGHT_TRUSTED_PROXY", metavar="ADDRESS", help="the proxy's address or network"),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(envvar="GATEWRIGHT_ALLOW_HOST", metavar="HOST", help="a name that the server is called by"),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(envvar="GATEWRIGHT_ALLOW_ORIGIN", metavar="ORIGIN", help="an origin whose pages may call"),
    ] = None,
    temporal_ui: Annotated[
        str,
        typer.Option(envvar="GATEWRIGHT_TEMPORAL_UI", metavar="URL", help="Temporal's UI, to link to from the inbox"),
    ] = "",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="listen for other machines though nobody says who they are")
    ] = False,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="leave ADK's developer UI out")] = False,
    public_url: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWRIGHT_PUBLIC_URL", metavar="URL", help="where people find it (default: where it listens)"
        ),
    ] = None,
    webhook: Annotated[
        list[str] | None,
        typer.Option(envvar="GATEWRIGHT_WEBHOOK", metavar="URL", help="where to post what happens at gates; repeat it"),
    ] = None,
    webhook_secret_file: Annotated[
        Path | None,
        typer.Option(
            envvar="GATEWRIGHT_WEBHOOK_SECRET_FILE",
            metavar="FILE",
            help="what posts are signed with: whsec_BASE64 (Standard Webhooks)",
        ),
    ] = None,
    webhook_on: Annotated[
        str, typer.Option(envvar="GATEWRIGHT_WEBHOOK_ON", metavar="EVENTS", help="which events, with commas in between")
    ] = EVENTS,
    webhook_insecure: Annotated[
        bool, typer.Option("--webhook-insecure", help="post by plain http to other machines too")
    ] = False,
    output: Form = Output.TEXT,
) -> None:
    """Serve the inbox, and pipelines to ADK's clients.

    The inbox where people answer gates, ADK's HTTP API, and its developer UI where google-adk is installed, until SIGINT or SIGTERM.
    """

    async def work(out: Out) -> int:
        from .serve import Serving, serve
        from .webhooks import Telling

        wanted = Serving(
            apps=tuple(apps or ()),
            attributes=tuple(attributes or ()),
            host=host,
            port=port,
            on_text=on_text,
            token_file=token_file,
            principal_header=principal_header,
            trusted_proxies=tuple(trusted_proxy or ()),
            allow_hosts=tuple(allow_host or ()),
            allow_origins=tuple(allow_origin or ()),
            insecure=insecure,
            ui=not no_ui,
            temporal_ui=temporal_ui,
            public_url=public_url,
            telling=Telling(tuple(webhook or ()), webhook_secret_file, webhook_on, webhook_insecure),
        )
        return await serve(out, wanted)

    _end(output, work)
