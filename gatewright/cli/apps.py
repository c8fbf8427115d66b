"""Which apps `gatewright serve` offers: named on the command line, or declared in code."""

import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .exits import FAILED, Stop, usage

if TYPE_CHECKING:
    from gatewright.adk import App

SHIPPED = "worker.apps:APPS"
"""The apps of a checkout, served where none are named."""


def read_apps(declared: Sequence[str], attributes: Sequence[str]) -> "list[App]":
    """The apps that the command line names, or those of the checkout, if any; `Stop` says what is wrong with them."""
    if not (declared or attributes) and has_apps():
        attributes = (SHIPPED,)
    apps = [*map(_declared, declared)]
    for attribute in attributes:
        apps += _imported(attribute)
    names = [app.name for app in apps]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise usage(f"two apps are called {', '.join(doubled)}: each needs a name of its own")
    return apps


def has_apps() -> bool:
    """Whether the current folder declares apps."""
    return Path("worker/apps.py").is_file()


def _declared(text: str) -> "App":
    from gatewright.adk import App

    name, equals, rest = text.partition("=")
    pipeline, at, queue = rest.rpartition("@") if "@" in rest else (rest, "", "")
    if not (name and equals and pipeline) or (at and not queue):
        raise usage(f"--app {text!r}: write NAME=PIPELINE or NAME=PIPELINE@TASK_QUEUE, as in release=DatasetRelease")
    try:
        return App(name=name, pipeline=pipeline, task_queue=queue or None)
    except ValueError as wrong:
        raise usage(f"--app {text!r}: {wrong}") from wrong


def _imported(text: str) -> "list[App]":
    from gatewright.adk import App

    module_name, colon, attribute = text.partition(":")
    if not (module_name and colon and attribute):
        raise usage(f"--apps {text!r}: write MODULE:ATTRIBUTE, as in {SHIPPED}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{module_name}.".startswith(f"{missing.name}."):
            raise usage(
                f"--apps {text}: there is no module {missing.name} below {here} or on Python's path"
            ) from missing
        raise usage(f"--apps {text}: {module_name} needs the module {missing.name}, which is not there") from missing
    except Exception as failed:
        raise Stop(
            FAILED, f"--apps {text}: importing it failed: {type(failed).__name__}: {failed}", kind="import_failed"
        ) from failed
    try:
        found: Any = module
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as missing:
        raise usage(f"--apps {text}: the module {module_name} has no attribute {attribute}") from missing
    apps = [found] if isinstance(found, App) else list(found) if isinstance(found, Iterable) else [found]
    for app in apps:
        if not isinstance(app, App):
            raise usage(
                f"--apps {text} holds a {type(app).__name__}: it must be a gatewright.adk.App, or a list of them"
            )
    if not apps:
        raise usage(f"--apps {text} is empty: nothing would be served")
    return apps
