"""
The process that does one transform and says so: `python -m activities.transform_job JOBFILE`.

It is started by `dispatch_transform` and outlives the worker that started it. The outcome, success or failure, is
written down before it is delivered, so a process that dies in between is followed by one that only delivers. Delivery
is tried for ten minutes; after that the process gives up with exit code 1, and another dispatch tries again.
"""

import argparse
import asyncio
import logging
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from activities.callback import call_back
from activities.errors import DatasetError, TransformRejected
from activities.jobs import JobFolder
from activities.models import Callback, JobFailure, JobOrder, JobOutcome
from activities.transforming import SCRATCH, transformed
from gatewright.temporal.process import leave

logger = logging.getLogger("activities.transform_job")

DELIVERY_WINDOW = 600.0
"""Seconds for which delivery is tried: a server or a worker may be restarting."""
LONGEST_PAUSE = 30.0


class Deliver(Protocol):
    """How an outcome reaches the run that waits for it; raises while that is not possible."""

    def __call__(
        self, callback: Callback, *, response: dict[str, Any] | None, failure: dict[str, Any] | None
    ) -> Awaitable[None]:
        """Deliver one outcome."""
        ...


def main(arguments: Sequence[str]) -> int:
    """Do the job that JOBFILE orders; 0 if its outcome is delivered, or is another process's to deliver."""
    parser = argparse.ArgumentParser(prog="python -m activities.transform_job", description="Do one transform job.")
    parser.add_argument("jobfile", type=Path, help="the job.json of a job folder")
    parser.add_argument("--lock", type=int, help="the inherited file descriptor that holds the folder's lock")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s")
    folder = JobFolder(chosen.jobfile.resolve().parent)
    order = folder.order()
    if order is None:
        logger.error("There is no %s: name the job.json of a job folder.", folder.order_file)
        return 2
    # Held until this process ends, in whichever way: the descriptor is never closed.
    if chosen.lock is None and folder.lock() is None:
        logger.info("Another process is doing this job.")
        return 0
    if folder.delivered:
        logger.info("This job was done and delivered before.")
        return 0
    if (outcome := folder.outcome()) is None:
        outcome = concluded(order, folder)
        folder.conclude(outcome)
    if asyncio.run(delivered(order.callback, outcome, call_back)):
        folder.mark_delivered()
        return 0
    return 1


def concluded(order: JobOrder, folder: JobFolder) -> JobOutcome:
    """Do the transform, and turn any failure into one that the waiting run can show to a person."""
    logger.info("Transforming %s (round %d).", order.plan.source, order.plan.round)
    # A process that was killed leaves its scratch folder; we hold the lock, so it is nobody's.
    for leftover in folder.path.glob(f"{SCRATCH}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        result = transformed(order.plan, salt=order.key, target=folder.data_file)
    except TransformRejected as error:
        failure = JobFailure(type=error.type or "rejected", message=error.message)
    except DatasetError as error:
        failure = JobFailure(type="unreadable_source", message=error.message)
    except Exception as error:
        # The text of an unforeseen error may quote values; the log stays on this machine, the failure does not.
        logger.exception("The transform failed.")
        failure = JobFailure(
            type="internal", message=f"The transform failed with {type(error).__name__}; see {folder.log_file}."
        )
    else:
        logger.info("Wrote %d rows and %d columns.", result.rows, len(result.columns))
        return JobOutcome(result=result)
    logger.warning("The transform failed (%s): %s", failure.type, failure.message)
    return JobOutcome(failure=failure)


async def delivered(
    callback: Callback,
    outcome: JobOutcome,
    deliver: Deliver,
    *,
    window: float = DELIVERY_WINDOW,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Deliver an outcome, trying again with growing pauses; false if that did not succeed within the window."""
    response = outcome.result.model_dump(mode="json") if outcome.result else None
    failure = outcome.failure.model_dump(mode="json") if outcome.failure else None
    deadline, length = clock() + window, 1.0
    while True:
        try:
            await deliver(callback, response=response, failure=failure)
        except Exception as error:  # noqa: BLE001 — whatever it is may pass, and the work is done
            logger.warning("Could not call back %s: %s: %s", callback.interrupt_id, type(error).__name__, error)
        else:
            logger.info("Called back %s of %s.", callback.interrupt_id, callback.workflow_id)
            return True
        if clock() + length > deadline:
            logger.error("Gave up calling back %s; dispatch the job again to retry.", callback.interrupt_id)
            return False
        await pause(length)
        length = min(length * 2, LONGEST_PAUSE)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
