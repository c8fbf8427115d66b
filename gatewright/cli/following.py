"""Following a run: its entries as they come, whether its worker can go on with it, and its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from gatewright.temporal import GateClient, RunView

from .exits import AWAY, Stop

LOOK_SECONDS = 1.0
END_SECONDS = 15.0
"""How long Temporal may take to end a run that has written its last entry."""


def trouble_words(trouble: str) -> str:
    """What to say of a run whose last workflow task failed."""
    return f"the worker cannot go on with this run: {trouble}"


def stuck(run: str, trouble: str, way_out: str = "", **details: object) -> Stop:
    """The end of a command that will not wait for a worker to be mended; `details` are for scripts."""
    way_out = way_out or (
        f"It goes on by itself once a worker can take it; or end it: gatewright abandon {run} --reason TEXT"
    )
    return Stop(AWAY, f"{trouble_words(trouble)}\n{way_out}", kind="stuck", workflow_id=run, trouble=trouble, **details)


async def lasting_trouble(client: GateClient, run: str, view: RunView | None = None) -> str | None:
    """What keeps the worker from going on with a run, if it is seen twice, a second apart; `view` is a first look."""
    if (view or await client.get(run)).trouble is None:
        return None
    await asyncio.sleep(LOOK_SECONDS)
    return (await client.get(run)).trouble


async def follow(
    client: GateClient, run: str, after: int = 0, *, at_trouble: Callable[[str], None]
) -> AsyncIterator[dict[str, Any]]:
    """
    The transcript's entries as they come, until the run is over.

    While none comes, `at_trouble` is told what keeps the worker from going on
    with the run, look after look; it may raise.
    """
    entries = client.watch(run, after)

    async def following() -> dict[str, Any] | None:
        return await anext(entries, None)

    coming: asyncio.Task[dict[str, Any] | None] | None = None
    try:
        while True:
            coming = coming or asyncio.create_task(following())
            await asyncio.wait({coming}, timeout=LOOK_SECONDS)
            if not coming.done():
                if trouble := await lasting_trouble(client, run):
                    at_trouble(trouble)
                continue
            entry, coming = coming.result(), None
            if entry is None:
                return
            yield entry
    finally:
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError):
                await coming


async def until_over(client: GateClient, run: str) -> RunView:
    """A run that has written its last entry, once Temporal says that it is over; as it is then, or after 15 s."""
    ends = asyncio.get_running_loop().time() + END_SECONDS
    while True:
        view = await client.get(run)
        if view.status != "running" or asyncio.get_running_loop().time() > ends:
            return view
        await asyncio.sleep(0.1)


async def require_opened(client: GateClient, run: str) -> None:
    """`Stop` where the store has a number for the run, and Temporal does not know it (yet)."""
    record = await asyncio.to_thread(client.store.run, run)
    if record is None or record.standing != "allocated":
        return
    # Temporal may have it all the same: whoever opened it died before writing that down.
    if (await client.get(run)).status == "allocated":
        raise Stop(
            AWAY,
            f"{run} is being opened by another command, or its opening failed; run `gatewright start` again",
            kind="allocated",
            workflow_id=run,
        )
