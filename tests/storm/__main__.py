"""
Storm paused runs and print what came of it: `python -m tests.storm --messages 2000`.

Starts a Temporal server of its own and workers as processes of their own, and
leaves nothing behind. Exit code 1 where any message came to something else
than it must.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from gatewright.cli.embedded import EmbeddedServer, find_binary
from gatewright.temporal.process import leave
from tests.storm.storm import Storm
from tests.storm.tally import Tally


async def storm(messages: int, seed: int) -> Tally:
    """A storm on a server that lives only for it."""
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        folder = Path(name)
        with EmbeddedServer(folder / "temporal.db") as server:
            binary = str(find_binary())
            return await Storm(server.address, binary, folder, messages=messages, seed=seed, progress=_progress).rage()


def main() -> int:
    """Read the options, storm, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description="Storm paused runs.")
    parser.add_argument("--messages", type=int, default=2000, help="hostile messages, good ones and races not counted")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which they are sent")
    chosen = parser.parse_args()
    # The SDK warns of each message of 2 MB that it is about to send.
    quiet = TelemetryConfig(logging=LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR")))
    Runtime.set_default(Runtime(telemetry=quiet))
    tally = asyncio.run(storm(chosen.messages, chosen.seed))
    print(report(tally, chosen.seed))
    return 1 if tally.mismatches else 0


def _progress(sent: int) -> None:
    """One line that is written over, for whoever watches."""
    if sys.stderr.isatty():
        print(f"\r{sent:,} messages", end="\r", file=sys.stderr, flush=True)


def report(tally: Tally, seed: int) -> str:
    """What came of it, as text."""
    seconds = tally.events["seconds"]
    events = "\n".join(f"  {number:>5} {what}" for what, number in sorted(tally.events.items()) if what != "seconds")
    wrong = "\n".join(tally.mismatches[:100])
    verdict = f"{len(tally.mismatches)} MISMATCHES\n{wrong}" if tally.mismatches else "No mismatch."
    return (
        f"{tally.sent:,} messages of {len(tally.kinds)} kinds in {seconds} s (seed {seed}); "
        f"{tally.delivered} of them got no verdict when they were sent and were judged in the run.\n\n"
        f"{tally.table()}\n\n{events}\n\n{verdict}"
    )


if __name__ == "__main__":
    leave(main())
