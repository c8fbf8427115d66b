"""
The profile of a CSV file: what a person needs to see before deciding what to drop and what to mask.

A profile travels in Temporal's history and is shown at a gate, so it has a size: below 128 KiB as JSON, whatever the
file holds. What does not fit is left out in steps (examples first, then length of values, then columns), and the
complete profile is written to a file that the short one names.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from activities.csv_source import CsvSource, open_source
from activities.csv_table import CsvTable, chunks, loaded
from activities.files import replace_durably
from activities.models import ColumnProfile, Profile
from activities.pulse import Pulse

SIZE_LIMIT = 128 * 1024
"""Bytes of JSON that a profile stays below."""
VALUE_LENGTH = 80
EXAMPLES = 3

_LADDER = ((200, 3, 80), (200, 1, 80), (200, 1, 40), (200, 0, 40), (100, 0, 40), (50, 0, 40), (20, 0, 40))
"""Columns, examples per column and length of a value; the first rung that fits is taken. The last always does."""


def profile_csv(named: str, *, profiles: Path) -> Profile:
    """
    Profile the CSV file at a path. `profiles` is the folder for complete profiles, made when it is needed.

    Raises `DatasetError` (never worth a retry) if the file is not a CSV file that can be read.
    """
    with Pulse() as pulse, TemporaryDirectory(prefix="gatewright-profile-") as folder:
        scratch = Path(folder)
        source = open_source(named, scratch)
        with loaded(source, scratch=scratch, pulse=pulse) as table:
            columns = list(_columns(table))
            return _fitted(source, table.rows, columns, profiles)


def shortened(value: str, length: int = VALUE_LENGTH) -> str:
    """A value as text of at most so many characters; an ellipsis stands for the rest."""
    return value if len(value) <= length else value[: length - 1] + "…"


def _columns(table: CsvTable) -> Iterator[ColumnProfile]:
    types = table.types(range(len(table.names)))
    for chunk in chunks(types):
        measures = ", ".join(_measures(position, types[position]) for position in chunk)
        measured = iter(table.connection.execute(f"SELECT {measures} FROM data").fetchone() or ())  # noqa: S608
        heads = ", ".join(f"left(c{position}, {VALUE_LENGTH + 1})" for position in chunk)
        # A view of the first rows is enough for examples, and costs nothing on a large file.
        early = table.connection.execute(f"SELECT {heads} FROM data LIMIT 100").fetchall()  # noqa: S608
        for offset, position in enumerate(chunk):
            values, distinct, minimum, maximum, first = (next(measured) for _ in range(5))
            seen = dict.fromkeys(row[offset] for row in early if row[offset] is not None)
            examples = list(seen or dict.fromkeys([first] if first is not None else []))[:EXAMPLES]
            yield ColumnProfile(
                name=table.names[position],
                type=types[position],
                nulls=table.rows - values,
                distinct=min(distinct, values),
                minimum=None if minimum is None else shortened(minimum),
                maximum=None if maximum is None else shortened(maximum),
                examples=[shortened(example) for example in examples],
            )


def _measures(position: int, kind: str) -> str:
    # The smallest beginning is the beginning of the smallest: long values need not be held.
    text = f"left(c{position}, {VALUE_LENGTH + 1})"
    value = text if kind == "VARCHAR" else f"c{position}::{kind}"
    return (
        f"count(c{position}), approx_count_distinct(c{position}), min({value})::VARCHAR, max({value})::VARCHAR,"
        f" any_value({text})"
    )


def _fitted(source: CsvSource, rows: int, columns: list[ColumnProfile], profiles: Path) -> Profile:
    complete = Profile(
        source=str(source.path),
        rows=rows,
        bytes=source.bytes,
        encoding=source.encoding,
        delimiter=source.delimiter,
        columns=columns,
        column_count=len(columns),
        truncated=False,
        full_profile=None,
        sha256=source.sha256,
    )
    if len(columns) <= _LADDER[0][0] and _size(complete) < SIZE_LIMIT:
        return complete
    profiles.mkdir(parents=True, exist_ok=True)
    full = profiles.resolve() / f"{source.sha256}.json"
    replace_durably(full, complete.model_dump_json(indent=1))
    shorter = complete
    for most, examples, length in _LADDER:
        shown = [_short(column, examples, length) for column in columns[:most]]
        shorter = complete.model_copy(update={"columns": shown, "truncated": True, "full_profile": str(full)})
        if _size(shorter) < SIZE_LIMIT:
            break
    return shorter


def _short(column: ColumnProfile, examples: int, length: int) -> ColumnProfile:
    return column.model_copy(
        update={
            "minimum": None if column.minimum is None else shortened(column.minimum, length),
            "maximum": None if column.maximum is None else shortened(column.maximum, length),
            "examples": [shortened(example, length) for example in column.examples[:examples]],
        }
    )


def _size(profile: Profile) -> int:
    """Bytes of JSON, in the longer of two spellings: some converters escape what is not ASCII and put spaces in."""
    return max(len(profile.model_dump_json().encode()), len(json.dumps(profile.model_dump())))
