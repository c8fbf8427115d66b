"""
ADK's runner as a process of its own: `python -m bench.adk_worker memory|sqlite|database FILE`.

It reads one JSON command a line from standard input and prints one line for
each when the run has paused or ended: the nearest that ADK has to a worker.
"""

import argparse
import asyncio
import json
import sys
from typing import Any

from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from bench.graph import APP, USER, graph, plain_step


def service(kind: str, file: str) -> BaseSessionService:
    """The session service of this name over `file`."""
    match kind:
        case "memory":
            return InMemorySessionService()
        case "sqlite":
            return SqliteSessionService(file)
        case _:
            return DatabaseSessionService(f"sqlite+aiosqlite:///{file}")


async def serve(sessions: BaseSessionService) -> None:
    """Obey one command after the other, each in a task of its own, until the input ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    runners: dict[int, Runner] = {}
    tasks: set[asyncio.Task[None]] = set()

    async def obey(command: dict[str, Any]) -> None:
        try:
            await _obey(sessions, runners, command)
            error = None
        except Exception as failed:  # noqa: BLE001 - it is told to whoever measures
            error = f"{type(failed).__name__}: {failed}"[:300]
        print(json.dumps({"id": command["id"], "error": error}), flush=True)  # noqa: T201 - the reply

    print("ready", flush=True)  # noqa: T201 - whoever started it waits for this line
    while line := await reader.readline():
        task = asyncio.create_task(obey(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _obey(sessions: BaseSessionService, runners: dict[int, Runner], command: dict[str, Any]) -> None:
    gates = command["gates"]
    runner = runners.get(gates)
    if runner is None:
        runners[gates] = runner = Runner(app_name=APP, node=graph(gates, plain_step), session_service=sessions)
    number = command["number"]
    if number == 0:
        await sessions.create_session(app_name=APP, user_id=USER, session_id=command["run"])
        part = types.Part(text="go")
    else:
        response = {"approved": True, "number": number}
        said = types.FunctionResponse(id=f"review-{number}", name="adk_request_input", response=response)
        part = types.Part(function_response=said)
    message = types.Content(role="user", parts=[part])
    asked = False
    async for event in runner.run_async(user_id=USER, session_id=command["run"], new_message=message):
        asked = asked or bool(event.get_function_calls())
    if asked != (number < gates):
        msg = f"after answer {number} of {gates} the run {'asks again' if asked else 'asks nothing'}"
        raise RuntimeError(msg)


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.adk_worker")
    parser.add_argument("kind", choices=["memory", "sqlite", "database"])
    parser.add_argument("file")
    chosen = parser.parse_args()
    asyncio.run(serve(service(chosen.kind, chosen.file)))


if __name__ == "__main__":
    main()
