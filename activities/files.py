"""Files that are there completely or not at all, also after a power cut."""

import hashlib
import os
import tempfile
from pathlib import Path

CHUNK = 1 << 20


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex; memory stays at one mebibyte."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def flush(path: Path) -> None:
    """Make a file's bytes, or a folder's entries, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str) -> None:
    """Write a new file as UTF-8 and flush it. The name appears at once: for files in a folder nobody looks into yet."""
    path.write_text(text, encoding="utf-8")
    flush(path)


def replace_durably(path: Path, text: str) -> None:
    """Write a file that readers see whole, old or new, never half."""
    # A name of its own for each writer: two must not share a half-written file.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(descriptor)
    partial = Path(name)
    try:
        write_durably(partial, text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    flush(path.parent)
