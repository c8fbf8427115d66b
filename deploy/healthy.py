#!/usr/bin/env python
"""
Whether the worker or the HTTP server of this container is well: `healthy.py worker`, `healthy.py serve`.

The worker has no port to ask at, so Temporal is asked: it is well if this machine's worker has lately asked its task
queue for work. That covers the process, the connection, the credentials, the namespace and the queue's name. A worker
that is busy with long steps goes on asking for workflow tasks, and so stays well. One that takes tasks and does not
finish them is not found out here; Temporal's own time-outs give its tasks to another.

The server is asked for `/health`. Exit codes: 0 well, 1 not, with one line that says why.
"""

import asyncio
import http.client
import os
import socket
import sys
from datetime import UTC, datetime, timedelta

LATELY = timedelta(minutes=2)
"""A worker asks again at the latest 70 seconds after it asked, whether or not there was work."""

PATIENCE = timedelta(seconds=10)


async def worker() -> str | None:
    """What is wrong with the worker of this machine; None if nothing is."""
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
    from temporalio.client import Client

    from worker.settings import Settings

    settings = Settings.read()
    async with asyncio.timeout(PATIENCE.total_seconds()):
        client = await Client.connect(**settings.connect)
        described = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=client.namespace,
                task_queue=TaskQueue(name=settings.task_queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            )
        )
    here = f"@{socket.gethostname()}"
    asked = [poller.last_access_time.ToDatetime(UTC) for poller in described.pollers if poller.identity.endswith(here)]
    where = f"task queue {settings.task_queue} of namespace {client.namespace}"
    if not asked:
        return f"no worker of {here[1:]} asks {where} for work"
    age = datetime.now(UTC) - max(asked)  # noqa: TID251 - no workflow code
    if age > LATELY:
        return f"the worker last asked {where} for work {age.total_seconds():.0f} s ago"
    return None


def serve() -> str | None:
    """What is wrong with the HTTP server of this machine; None if nothing is."""
    port = int(os.environ.get("GATEWRIGHT_PORT", "").strip() or "8000")
    # Not urllib, which would ask a proxy of the environment.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE.total_seconds())
    connection.request("GET", "/health")
    answer = connection.getresponse()
    return None if answer.status == http.HTTPStatus.OK else f"/health answered {answer.status}"


def main(arguments: list[str]) -> int:
    """Ask, and say what is wrong."""
    try:
        match arguments:
            case ["worker"]:
                wrong = asyncio.run(worker())
            case ["serve"]:
                wrong = serve()
            case _:
                wrong = "say which is meant: healthy.py worker, or healthy.py serve"
    except Exception as failed:  # noqa: BLE001 - whatever it is, it is not well, and one line says so
        wrong = f"{type(failed).__name__}: {failed}"
    if wrong is not None:
        print(wrong, file=sys.stderr)  # noqa: T201 - for `docker inspect`
    return 0 if wrong is None else 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Not sys.exit: the SDK's native threads can abort an interpreter that is being taken down, and lose the exit code.
    os._exit(code)
