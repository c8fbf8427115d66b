"""
The transform: a source CSV becomes a Parquet file without the dropped columns and with the masked ones masked.

A masked value is replaced by the first 12 hex digits of SHA-256 over a salt (the job's key), a colon and the value as
it was written. Within one job equal values stay equal, so that joins and counts still work; empty ones stay empty. The
salt is not published with the release, but it is not a secret either: it keeps two releases from being joined, and
does not keep somebody who can read Temporal's history from guessing values out of a known list.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from activities.csv_source import open_source
from activities.csv_table import CsvTable, loaded
from activities.errors import TransformRejected
from activities.files import digest_of, flush
from activities.models import TransformPlan, TransformResult
from activities.pulse import Pulse

MASK_LENGTH = 12
SCRATCH = ".scratch-"
"""How the working folders beside a target begin."""
ROW_GROUP_CELLS = 4_000_000
"""Cells that Parquet's writer holds in memory at once; DuckDB's own figure of rows suits narrow tables only."""


def transformed(plan: TransformPlan, *, salt: str, target: Path) -> TransformResult:
    """
    Carry out a plan; the Parquet file appears under its name when it is complete and on disk.

    Raises `DatasetError` as profiling does, and `TransformRejected` with type `source_changed`, `unknown_columns` or
    `no_columns`.
    """
    with Pulse() as pulse, TemporaryDirectory(prefix=SCRATCH, dir=target.parent) as folder:
        scratch = Path(folder)
        source = open_source(plan.source, scratch)
        if source.sha256 != plan.sha256:
            raise TransformRejected(
                "source_changed",
                f"{source.path} is no longer the file that was reviewed (SHA-256 {source.sha256[:12]}…, reviewed "
                f"{plan.sha256[:12]}…). Start a new release of it, or put the reviewed file back.",
            )
        _check_known([*plan.drop, *plan.mask], source.names)
        kept = [position for position, name in enumerate(source.names) if name not in set(plan.drop)]
        if not kept:
            raise TransformRejected("no_columns", "Every column is dropped, so nothing is left. Keep one at least.")
        written = scratch / "data.parquet"
        with loaded(source, scratch=scratch, pulse=pulse) as table:
            _write(table, kept, masked=set(plan.mask), salt=salt, written=written)
            rows = table.rows
        flush(written)
        result = TransformResult(
            path=str(target.resolve()),
            rows=rows,
            columns=[source.names[position] for position in kept],
            bytes=written.stat().st_size,
            sha256=digest_of(written),
        )
        written.replace(target)
        flush(target.parent)
        return result


def _check_known(named: Sequence[str], names: Sequence[str]) -> None:
    unknown = sorted(set(named) - set(names))
    if unknown:
        listed = "; ".join(_hint(name, names) for name in unknown[:20])
        more = f"; and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        raise TransformRejected(
            "unknown_columns", f"The source has no such columns: {listed}{more}. Names count exactly, case included."
        )


def _hint(name: str, names: Sequence[str]) -> str:
    spelled = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), spelled, n=1)
    shown = repr(name if len(name) <= 100 else name[:99] + "…")
    return f"{shown} (closest: {spelled[close[0]]!r})" if close else shown


def _write(table: CsvTable, kept: Sequence[int], *, masked: set[str], salt: str, written: Path) -> None:
    types = table.types([position for position in kept if table.names[position] not in masked])
    selected = []
    for position in kept:
        # A masked column has no type: the mask is text.
        value = f"c{position}::{types[position]}" if position in types else _mask(f"c{position}")
        quoted = table.names[position].replace('"', '""')
        selected.append(f'{value} AS "{quoted}"')
    group = max(2_048, min(122_880, ROW_GROUP_CELLS // len(kept)))
    parameters = {"target": str(written)} | ({"salt": salt} if len(types) < len(kept) else {})
    table.connection.execute(
        f"COPY (SELECT {', '.join(selected)} FROM data) TO $target"  # noqa: S608 — identifiers are quoted
        f" (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group})",
        parameters,
    )


def _mask(column: str) -> str:
    return f"CASE WHEN {column} IS NOT NULL THEN left(sha256($salt || ':' || {column}), {MASK_LENGTH}) END"
