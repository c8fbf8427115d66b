"""Functions of a pipeline's author that may or may not be async."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def called_anyhow(function: Callable[..., Any], *args: Any) -> Any:
    """Call one of them; what is not async runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    return await asyncio.to_thread(function, *args)
