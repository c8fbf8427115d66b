"""
The `gatewright` command (extra `gatewright[cli]`).

`main` is its entry; `gatewright.cli.embedded` needs neither typer nor rich.
"""

import sys


def main() -> None:
    """Run the command line and exit; without the extra's packages, say in one line how to get them."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.stderr.write("the gatewright command needs typer and rich: pip install 'gatewright[cli]'\n")
        sys.exit(2)
    from gatewright.temporal.process import leave

    from .running import main as run_command_line

    leave(run_command_line(sys.argv[1:]))
