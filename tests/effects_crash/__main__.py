"""
Stop effects wherever they can be stopped, and print what came of it: `python -m tests.effects_crash --trials 100`.

Starts a Temporal server of its own, a PostgreSQL server where it is asked for,
and a process for each attempt, and leaves nothing behind. Exit code 1 where a
promise was broken.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from gatewright.temporal.process import leave
from tests.effects_crash.harness import DATABASES, Plan, crash
from tests.effects_crash.points import Trouble
from tests.effects_crash.tally import Outcome, Tally, notes, table


def main() -> int:
    """Read the options, try everything, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.effects_crash", description="Stop effects anywhere.")
    parser.add_argument("--trials", type=int, default=1, help="of each kind of effect at each point (1)")
    parser.add_argument("--seed", type=int, default=1, help="of their order, and of what is left to chance (1)")
    parser.add_argument("--at-once", type=int, default=12, help="trials at one time (12)")
    parser.add_argument("--database", action="append", choices=DATABASES, help="may be repeated (all of them)")
    parser.add_argument(
        "--scenario",
        action="append",
        choices=[trouble.name.lower() for trouble in Trouble],
        help="what happens to the first attempt; may be repeated (all of them)",
    )
    parser.add_argument("--report", type=Path, help="a file that takes the tables as well")
    chosen = parser.parse_args()
    # A job in the background is started with Ctrl-C ignored; and SIGTERM takes everything down as Ctrl-C does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    troubles = [trouble for trouble in Trouble if chosen.scenario is None or trouble.name.lower() in chosen.scenario]
    databases = [database for database in DATABASES if chosen.database is None or database in chosen.database]
    report: list[str] = []
    broken: list[str] = []
    for trouble in troubles:
        tallies: dict[str, Tally] = {}
        for database in databases:
            plan = Plan(database, (trouble,), trials=chosen.trials, seed=chosen.seed, at_once=chosen.at_once)
            tallies[database] = tally = asyncio.run(crash(plan, progress=_progress))
            broken += [f"{database}, {words}" for words in tally.broken()]
        report.append(f"### {trouble}\n\n{table(trouble, tallies)}\n\n{notes(trouble, tallies)}\n")
        print(report[-1], flush=True)
        if chosen.report is not None:
            chosen.report.parent.mkdir(parents=True, exist_ok=True)
            chosen.report.write_text("\n".join(report), encoding="utf-8")
    print("\n".join([f"{len(broken)} BROKEN PROMISES", *broken]) if broken else "No promise was broken.")
    return 1 if broken else 0


def _progress(outcome: Outcome, done: int, of: int) -> None:
    """One line that is written over, for whoever watches; what is broken stays."""
    for words in outcome.broken() if not outcome.disturbed else ():
        print(f"{outcome.case} ({outcome.name}): {words}", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(f"\r{done:,} of {of:,} trials", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        leave(main())
    except KeyboardInterrupt:
        leave(130)
