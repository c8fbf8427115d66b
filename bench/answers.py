"""
From an answer to the next pause, side by side: `python -m bench.answers [--quick] [--json FILE]`.

Gatewright, the same pipeline written by hand on Temporal, temporalio-google-adk
and ADK's own runner, all in one run on one machine, in turns. What is
measured and what came of it: docs/bench.md.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from bench.parts import cold, crash, latency, throughput
from bench.report import tables
from bench.sides import NAMES, sides
from gatewright.cli.embedded import EmbeddedError, find_binary
from gatewright.temporal.names import ATTRIBUTE_PIPELINE, ATTRIBUTE_SESSION
from gatewright.temporal.process import leave

PARTS = ("latency", "cold", "crash", "throughput")

FULL = {
    "rounds": [10] * 4 + [50] * 2 + [200],
    "latency_at": [1, 10, 50, 100, 200],
    "cold_at": [10, 100],
    "cold_repeats": 5,
    "crash_repeats": 3,
    "pipelines": 200,
    "together": 20,
    "gates": 3,
    "throughput_rounds": 2,
    "limit": 150.0,
}
"""What is run; `limit` is how many seconds a side may take for one round, one cold answer or one set of pipelines."""

QUICK = FULL | {
    "rounds": [10, 50],
    "latency_at": [1, 10, 50],
    "cold_at": [10],
    "cold_repeats": 1,
    "crash_repeats": 1,
    "pipelines": 12,
    "together": 6,
    "throughput_rounds": 1,
    "limit": 20.0,
}

SERVER = [
    "--sqlite-pragma",
    "journal_mode=WAL",
    "--sqlite-pragma",
    "synchronous=1",
    "--dynamic-config-value",
    "history.transferProcessorMaxPollRPS=10000",
]
"""One server for all sides. Without the last setting a second workflow task within 50 ms waits 30 to 40 ms on any of them."""


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[str]:
    """A development server over a file; its address."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_binary()),
        ip="127.0.0.1",
        dev_server_log_level="never",
        dev_server_database_filename=str(folder / "temporal.db"),
        search_attributes=[SearchAttributeKey.for_keyword(name) for name in (ATTRIBUTE_PIPELINE, ATTRIBUTE_SESSION)],
        dev_server_extra_args=SERVER,
    ) as environment:
        yield str(environment.client.service_client.config.target_host)


async def measure(names: list[str], parts: list[str], settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Run the parts; the results, and the tables as text."""
    results: dict[str, Any] = {"about": _about(), "settings": settings}
    limit = settings["limit"]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with serving(Path(folder)) as address:
            chosen = await sides(names, address, Path(folder))
            for part in parts:
                began = time.monotonic()
                match part:
                    case "latency":
                        results[part] = await latency(chosen, settings["rounds"], settings["latency_at"], limit)
                    case "cold":
                        results[part] = await cold(chosen, settings["cold_at"], settings["cold_repeats"], limit)
                    case "crash":
                        results[part] = await crash(chosen, settings["crash_repeats"], limit)
                    case _:
                        load = (settings["pipelines"], settings["together"], settings["gates"])
                        results[part] = await throughput(chosen, *load, settings["throughput_rounds"], limit)
                _say(f"{part}: {time.monotonic() - began:.0f} s")
    return results, tables(results, {side.name: side.label for side in chosen})


def main() -> int:
    """Read the options, measure, print. Exit code 0 whatever the figures; 4 where there is no server to start."""
    parser = argparse.ArgumentParser(prog="python -m bench.answers", description=__doc__.splitlines()[1])
    parser.add_argument("--quick", action="store_true", help="under two minutes, with fewer and smaller runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file")
    parser.add_argument("--sides", default=",".join(NAMES), help=f"of {','.join(NAMES)}; bare is what ratios are to")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--pipelines", type=int, help="how many pipelines throughput is measured with")
    parser.add_argument("--limit", type=float, help="seconds after which a side is cut off")
    chosen = parser.parse_args()
    names, parts = chosen.sides.split(","), chosen.parts.split(",")
    for given, known in ((names, NAMES), (parts, PARTS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"{', '.join(unknown)} is none of {', '.join(known)}")
    settings = dict(QUICK if chosen.quick else FULL)
    settings |= {name: value for name in ("pipelines", "limit") if (value := getattr(chosen, name)) is not None}
    try:
        results, text = asyncio.run(measure(names, parts, settings))
    except EmbeddedError as missing:
        _say(str(missing))
        return 4
    print(text)  # noqa: T201 - the result
    if chosen.json:
        chosen.json.write_text(json.dumps(results, indent=1), "utf-8")
    return 0


def _about() -> dict[str, Any]:
    packages = ("temporalio", "google-adk", "temporalio-google-adk", "gatewright")
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "packages": {name: version(name) for name in packages},
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - progress


if __name__ == "__main__":
    leave(main())
