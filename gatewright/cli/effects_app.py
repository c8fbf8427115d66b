"""The commands below `gatewright effects` and their options; what they do is in the modules beside this one."""

from enum import StrEnum
from typing import Annotated

import typer

from .options import Form, end
from .out import Out, Output

app = typer.Typer(
    help="The ledger: what is remembered of effects, and what a person says of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class State(StrEnum):
    """The states of an effect in the ledger."""

    PLANNED = "planned"
    INTENDED = "intended"
    PERFORMED = "performed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Kind(StrEnum):
    """The kinds of effects, and `once` for the shared result of a step."""

    KEYED = "keyed"
    RECONCILABLE = "reconcilable"
    OPAQUE = "opaque"
    ONCE = "once"


Key = Annotated[str, typer.Argument(metavar="KEY", help="an effect's key, or the first 8 or more of its hex digits")]


@app.command("list")
def list_(
    *,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="only effects of this run")] = None,
    state: Annotated[
        list[State] | None, typer.Option(metavar="STATE", help=f"only in this state ({', '.join(State)}); repeat it")
    ] = None,
    kind: Annotated[
        list[Kind] | None, typer.Option(metavar="KIND", help=f"only of this kind ({', '.join(Kind)}); repeat it")
    ] = None,
    effect: Annotated[str | None, typer.Option(metavar="NAME", help="only calls of this effect")] = None,
    limit: Annotated[int, typer.Option(min=1, help="how many at most")] = 100,
    output: Form = Output.TEXT,
) -> None:
    """List effects, the one planned last first.

    They are read from the store: Temporal need not run.
    """

    def work(out: Out) -> int:
        from . import effects

        wanted = effects.Wanted(
            run=run,
            states=None if state is None else {each.value for each in state},
            kinds=None if kind is None else {each.value for each in kind},
            effect=effect,
            limit=limit,
        )
        return effects.listed(out, wanted)

    end(output, work)


@app.command()
def show(key: Key, output: Form = Output.TEXT) -> None:
    """Show one effect, and what can be done about it now.

    It is read from the store: Temporal need not run.
    """

    def work(out: Out) -> int:
        from . import effects

        return effects.show(out, key)

    end(output, work)


@app.command()
def resolve(
    key: Key,
    *,
    happened: Annotated[bool, typer.Option("--happened", help="it happened; needs --receipt")] = False,
    did_not_happen: Annotated[
        bool, typer.Option("--did-not-happen", help="it did not; the run makes this very call again")
    ] = False,
    abort: Annotated[bool, typer.Option("--abort", help="end the call as failed, whatever happened")] = False,
    receipt: Annotated[
        str | None, typer.Option(metavar="JSON|@FILE|@-", help="with --happened: what proves it")
    ] = None,
    result: Annotated[
        str | None,
        typer.Option(
            metavar="JSON|@FILE|@-",
            help="with --happened: what the effect would have returned; needed where the run is over",
        ),
    ] = None,
    comment: Annotated[str | None, typer.Option(metavar="TEXT", help="how it was found out, for the record")] = None,
    principal: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="who says so (default: GATEWRIGHT_PRINCIPAL, or the account)"),
    ] = None,
    run_is_over: Annotated[
        bool, typer.Option("--run-is-over", help="the run is over for sure, although Temporal does not know it")
    ] = False,
    output: Form = Output.TEXT,
) -> None:
    """
    Say whether an effect happened of which nobody knows.

    While its run goes on, this answers the run's gate blocked:NAME, and the verdict is that of `gatewright answer`. Where the
    run is over, the word is written into the ledger, for whoever resets it; that it is over Temporal says, or the store.
    """

    async def work(out: Out) -> int:
        from .resolve import Given, resolve

        given = Given(key, happened, did_not_happen, abort, receipt, result, comment, principal, run_is_over)
        return await resolve(out, given)

    end(output, work)


@app.command()
def prune(
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="SPAN", help="settled longer ago than this: 90d, 36h, 12w")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say how many; forget nothing")] = False,
    output: Form = Output.TEXT,
) -> None:
    """Forget effects of runs that ended long ago.

    A key that is forgotten protects nothing any more: keep it for longer than Temporal keeps histories.
    """

    def work(out: Out) -> int:
        from . import effects

        return effects.prune(out, older_than, dry_run=dry_run)

    end(output, work)


@app.command()
def restored(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    output: Form = Output.TEXT,
) -> None:
    """Say that the store was restored from a backup.

    What the ledger learned since is lost: runs that relied on it stop at their next effect and ask.
    """

    def work(out: Out) -> int:
        from . import effects

        return effects.restored(out, sure=yes)

    end(output, work)
