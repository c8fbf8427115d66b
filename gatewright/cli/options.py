"""The options that every command has, and how each of them is run."""

from typing import Annotated

import typer

from .out import Output
from .running import Work, run

Form = Annotated[Output, typer.Option("--output", "-o", help="text for people, json for scripts")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="a run's workflow id: app/user/session/number")]


def end(output: Output, work: Work) -> None:
    """Run the command, and end with its exit code."""
    raise typer.Exit(run(output, work))


__all__ = ["Form", "Run", "end"]
