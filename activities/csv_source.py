"""
A CSV file as somebody named it: whether it is one, and how it is written.

Five things are settled here, each by one rule, before DuckDB sees the file:

1. It is a regular, non-empty file of text. Anything else is a `DatasetError` that says what to do.
2. Encoding: a byte order mark decides (UTF-8, UTF-16); else strict UTF-8; else Latin-1, or Windows-1252 where bytes
   0x80 to 0x9F occur. What is not UTF-8 is transcoded into the scratch folder.
3. Delimiter: of comma, semicolon, tab and bar the one that gives the first records the same number of fields, most
   often, then most fields.
4. The first record is the header. A name is trimmed, its control characters become spaces, and it is cut at 100
   characters; an empty name becomes `column_3`, a repeated one (whatever its case) `name_2`.
5. The digest is that of the bytes as stored.
"""

import codecs
import csv
import hashlib
import io
import itertools
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from activities.errors import DatasetError
from activities.files import CHUNK

DELIMITERS = ",;\t|"
NAME_LENGTH = 100
MAX_COLUMNS = 10_000
HEAD = 8 << 20
"""Characters read to find the header and the delimiter."""
LOOKED_AT = 50
"""Records compared to find the delimiter."""

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_C1 = frozenset(range(0x80, 0xA0))


@dataclass(frozen=True, kw_only=True)
class CsvSource:
    """A CSV file that DuckDB can be pointed at."""

    path: Path
    """The file that was named, absolute."""
    readable: Path
    """The same content as UTF-8, under a name of ours."""
    bytes: int
    sha256: str
    encoding: str
    delimiter: str
    names: list[str]
    blank_lines: int
    """Empty lines above the header."""
    stamp: tuple[int, int, int]

    def check_unchanged(self) -> None:
        """Raise a `DatasetError` if the file was replaced or written to since it was opened."""
        if _stamp(self.path.stat()) != self.stamp:
            raise DatasetError(f"{self.path} changed while it was being read. Wait until it is complete, start again.")


def open_source(named: str, scratch: Path) -> CsvSource:
    """
    Settle what a named file is. `scratch` is an empty folder that the caller removes.

    Raises `DatasetError` if it is missing, not a file, unreadable, empty, binary, or has no header.
    """
    path, status = _locate(named)
    # Under its own name DuckDB would take `*` for a pattern, `s3:` for a bucket and `.gz` for an archive.
    readable = scratch / "source.csv"
    encoding, sha256 = _read_through(path)
    if encoding in {"utf-8", "utf-8-sig"}:
        readable.symlink_to(path)
    else:
        _transcode(path, encoding, readable)
    head, cut = _head(readable)
    delimiter = _delimiter(head, cut=cut)
    first = list(itertools.islice(_records(head, delimiter), 2))
    if not first:
        raise DatasetError(f"{path} has no header: its lines are blank. The first line must name the columns.")
    if cut and len(first) == 1:
        raise DatasetError(f"{path} has no end to its first record within {HEAD:,} characters. Look for an open quote.")
    header = first[0]
    if len(header) > MAX_COLUMNS:
        raise DatasetError(f"{path} has {len(header):,} columns; at most {MAX_COLUMNS:,} can be released. Split it.")
    return CsvSource(
        path=path,
        readable=readable,
        bytes=status.st_size,
        sha256=sha256,
        encoding={"utf-8-sig": "utf-8 with byte order mark", "cp1252": "windows-1252"}.get(encoding, encoding),
        delimiter=delimiter,
        names=column_names(header),
        blank_lines=len(re.findall(r"\r\n|\r|\n", head[: len(head) - len(head.lstrip("\r\n"))])),
        stamp=_stamp(status),
    )


def column_names(header: list[str]) -> list[str]:
    """The names by which columns are known from here on: trimmed, not empty, and all different whatever their case."""
    taken: set[str] = set()
    repeats: dict[str, int] = {}
    names = []
    for position, written in enumerate(header, start=1):
        plain = "".join(character if character.isprintable() else " " for character in written).strip()
        name = plain[:NAME_LENGTH].rstrip() or f"column_{position}"
        chosen = name
        # DuckDB and many readers of Parquet do not tell `City` from `city`.
        while chosen.lower() in taken:
            repeats[name.lower()] = repeats.get(name.lower(), 1) + 1
            chosen = f"{name}_{repeats[name.lower()]}"
        taken.add(chosen.lower())
        names.append(chosen)
    return names


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _locate(named: str) -> tuple[Path, os.stat_result]:
    try:
        path = Path(named).resolve()
        status = path.stat()
    except FileNotFoundError:
        raise DatasetError(f"There is no file {named!r}. Check the name; it is read on the worker's machine.") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(f"{named!r} cannot be opened: {reason}. Name a readable CSV file.") from error
    if stat.S_ISDIR(status.st_mode):
        raise DatasetError(f"{path} is a folder. Name one CSV file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise DatasetError(f"{path} is not a regular file. Write the data to a CSV file and name that.")
    if status.st_size == 0:
        raise DatasetError(f"{path} is empty (0 bytes). Name a CSV file whose first line names the columns.")
    return path, status


def _read_through(path: Path) -> tuple[str, str]:
    """Read the whole file once, and return the Python name of its encoding and its digest."""
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
            decoder = codecs.getincrementaldecoder(encoding)()
            strict = True
            while chunk := file.read(CHUNK):
                hasher.update(chunk)
                if encoding != "utf-16" and b"\0" in chunk:
                    raise DatasetError(f"{path} is a binary file, not CSV text. Unpack or export it as CSV first.")
                strict = strict and _decodes(decoder, chunk)
            strict = strict and _decodes(decoder, b"", final=True)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}. Give the worker the right to read it.") from error
    if strict:
        return encoding, hasher.hexdigest()
    if encoding == "utf-16":
        raise DatasetError(f"{path} begins as UTF-16 but is not valid UTF-16. Save it again as UTF-8.")
    return _single_byte(path), hasher.hexdigest()


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _single_byte(path: Path) -> str:
    """Windows-1252 differs from Latin-1 in 0x80 to 0x9F only, and leaves five of those undefined."""
    seen: set[int] = set()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            seen.update(_C1.intersection(chunk))
    if not seen:
        return "latin-1"
    return "cp1252" if _decodes(codecs.getincrementaldecoder("cp1252")(), bytes(seen), final=True) else "latin-1"


def _transcode(path: Path, encoding: str, target: Path) -> None:
    # newline="" on both sides: line ends inside quoted values are data.
    with path.open(encoding=encoding, newline="") as old, target.open("w", encoding="utf-8", newline="") as new:
        while text := old.read(CHUNK):
            if "\0" in text:
                raise DatasetError(f"{path} contains NUL characters, so it is not CSV text. Export it as CSV again.")
            new.write(text)


def _head(readable: Path) -> tuple[str, bool]:
    with readable.open(encoding="utf-8-sig", newline="") as file:
        head = file.read(HEAD)
        return head, bool(file.read(1))


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    """The non-empty records of a text, up to the first that Python's reader objects to."""
    # Python's own limit, 131,072 characters, is for the whole process; it may be raised without harm.
    csv.field_size_limit(max(csv.field_size_limit(), HEAD))
    try:
        # newline="" lets the reader, not the text, decide what a line end inside quotes is.
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if record:
                yield record
    except csv.Error:
        return


def _delimiter(head: str, *, cut: bool) -> str:
    best, chosen = (0.0, 1), ","
    for delimiter in DELIMITERS:
        widths = [len(record) for record in itertools.islice(_records(head, delimiter), LOOKED_AT)]
        if cut and 1 < len(widths) < LOOKED_AT:
            # The head ends somewhere inside this record.
            widths.pop()
        if not widths or widths[0] < 2:
            continue
        score = (widths.count(widths[0]) / len(widths), widths[0])
        if score > best:
            best, chosen = score, delimiter
    return chosen
