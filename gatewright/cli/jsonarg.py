"""JSON as it is given on a command line: in place, in a file, or on stdin."""

import json
import sys
from pathlib import Path
from typing import Any

from .exits import Stop, usage


def read_json(argument: str, option: str) -> Any:
    """
    The value that `option` was given: JSON, `@FILE`, or `@-` for stdin.

    Raises `Stop` (usage) that names the file, line and column of what is wrong.
    """
    if not argument.startswith("@"):
        return parse_json(argument, option)
    name = argument[1:]
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise usage(
            f"{option}: {name or 'a file name'} cannot be read ({error.strerror}); write @FILE or @-"
        ) from error
    where = "stdin" if name == "-" else name
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{option}: {where} is not UTF-8 (byte {error.start}); JSON is") from error
    return parse_json(text, f"{option}: {where}")


def parse_json(text: str, where: str) -> Any:
    """`text` as JSON; `Stop` (usage) says in which line and column of `where` it ends being that."""
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        hint = "" if text.strip()[:1] in {"{", "[", '"'} else """; text needs quotes of its own, as in '"yes"'"""
        raise usage(
            f"{where}: this is not JSON: {error.msg} at line {error.lineno}, column {error.colno}{hint}"
        ) from error
    except UnicodeEncodeError as error:
        raise usage(f"{where}: a text in this JSON holds half a surrogate pair, which nothing can carry") from error
    except RecursionError as error:
        raise usage(f"{where}: this JSON is nested too deep") from error
    except Stop as wrong:
        raise usage(f"{where}: {wrong.message}") from wrong
    except ValueError as error:  # an integer of more digits than Python reads
        raise usage(f"{where}: a number in this JSON is too long") from error
    return value


def _no_constant(name: str) -> Any:
    raise usage(f"{name} is not JSON; give a finite number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise usage(f"the key {key!r} is there twice in one object; give it once")
        found[key] = value
    return found
