"""
A CSV file inside DuckDB: loaded once as text, with the types that its values allow.

Loading everything as text first keeps the values as they were written. A column then gets a type only if every value
survives the cast without loss, judged over all rows and not over a sample: `007` stays text, so does a 20-digit number,
so does a time with an offset. Profiling and transforming use the same rule, so that the Parquet file has the types that
were shown.

Rows must have as many fields as the header: a row with more or fewer is a `DatasetError` that names the line, since
filling up or cutting off would publish something that nobody wrote. Two leniencies are DuckDB's: one surplus empty
field at the end of a row is ignored, and so are blank lines, unless there is only one column.

Memory is bounded: the table lives in a file in the scratch folder, and DuckDB may use 1 GB and two threads.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path

import duckdb

from activities.csv_source import CsvSource
from activities.errors import DatasetError
from activities.pulse import Pulse

MEMORY_LIMIT = "1GB"
THREADS = 2
ROW_LIMIT = 32_000_000
"""Bytes in one record; DuckDB's read buffer grows with it."""
AT_ONCE = 100
"""Columns in one query: a query over 5,000 columns would not stay within the memory."""
SAMPLE = 100
"""First rows, which rule out types before all rows are asked."""

_NUMBER = "-?(0|[1-9][0-9]*)"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = "[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"

TYPES = {
    "BOOLEAN": ("(?i)true|false", "true"),
    "BIGINT": (_NUMBER, "try_cast(? AS BIGINT) IS NOT NULL"),
    # Up to 15 digits a DOUBLE gives back what was written.
    "DOUBLE": (
        _NUMBER + "([.][0-9]+)?([eE][+-]?[0-9]{1,3})?",
        "length(regexp_replace(?, '[eE].*|[-.]', '', 'g')) <= 15 AND isfinite(try_cast(? AS DOUBLE))",
    ),
    "DATE": (_DAY, "try_cast(? AS DATE) IS NOT NULL"),
    "TIMESTAMP": (_DAY + "[ T]" + _TIME, "try_cast(? AS TIMESTAMP) IS NOT NULL"),
}
"""Type by type, the pattern of a value and a condition on it; the first that fits all values of a column is taken."""


@dataclass(frozen=True)
class CsvTable:
    """The loaded file: table `data` with text columns `c0`, `c1`, ... in the order of `names`."""

    connection: duckdb.DuckDBPyConnection
    names: Sequence[str]
    rows: int

    def types(self, positions: Iterable[int]) -> dict[int, str]:
        """The type of each column at these positions; a column without any value is VARCHAR."""
        found: dict[int, str] = {}
        for chunk in chunks(positions):
            candidates = self._possible(chunk)
            while asked := {position: kinds.pop(0) for position, kinds in candidates.items() if kinds}:
                for position in self._fitting(asked):
                    found[position] = asked[position]
                    del candidates[position]
            found |= dict.fromkeys(candidates, "VARCHAR")
        return dict(sorted(found.items()))

    def _possible(self, chunk: list[int]) -> dict[int, list[str]]:
        """The types that the first rows do not rule out; most text columns are done with that."""
        columns = ", ".join(f"c{position}" for position in chunk)
        tests = ", ".join(_fits("value", kind) for kind in TYPES)
        # Unpivoted, since DuckDB prepares every pattern anew for every column that it is applied to.
        verdicts = self.connection.execute(
            f"SELECT name, {tests} FROM (UNPIVOT (SELECT {columns} FROM data LIMIT {SAMPLE})"  # noqa: S608
            " ON COLUMNS(*) INTO NAME name VALUE value) GROUP BY name"
        ).fetchall()
        possible = {position: list(TYPES) for position in chunk}
        for name, *fits in verdicts:
            possible[int(name.removeprefix("c"))] = list(compress(TYPES, fits))
        return possible

    def _fitting(self, asked: dict[int, str]) -> list[int]:
        """Those of the asked columns all of whose values have the asked type."""
        tests = ", ".join(_fits(f"c{position}", kind) for position, kind in asked.items())
        verdicts = self.connection.execute(f"SELECT {tests} FROM data").fetchone() or ()  # noqa: S608
        return list(compress(asked, verdicts))


def _fits(column: str, kind: str) -> str:
    """SQL: whether all values of a column fit a type; null if there are no values, so that no type does."""
    pattern, condition = TYPES[kind]
    # CASE, unlike AND, spares the condition the values that have failed already; failing casts are slow.
    test = f"CASE WHEN regexp_full_match({column}, '{pattern}') THEN {condition.replace('?', column)} ELSE false END"
    return f"bool_and({test}) FILTER ({column} IS NOT NULL)"


@contextmanager
def loaded(source: CsvSource, *, scratch: Path, pulse: Pulse) -> Iterator[CsvTable]:
    """
    Load a source into DuckDB for the length of a `with` block.

    Raises `DatasetError` for rows that do not fit the header, quotes that are never closed, mixed line ends, records of
    more than 32 MB, and a file that changed meanwhile.
    """
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": MEMORY_LIMIT,
        "threads": THREADS,
        "temp_directory": str(scratch / "spill"),
        # Nothing is fetched from the network because of what a file contains.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with duckdb.connect(scratch / "table.duckdb", config=settings) as connection, pulse.guard(connection):
        rows = _load(connection, source)
        source.check_unchanged()
        yield CsvTable(connection, source.names, rows)


def chunks(positions: Iterable[int]) -> Iterator[list[int]]:
    """The positions in order, as many at a time as one query takes."""
    rest = iter(positions)
    while chunk := list(islice(rest, AT_ONCE)):
        yield chunk


def _load(connection: duckdb.DuckDBPyConnection, source: CsvSource) -> int:
    try:
        connection.execute(
            """
            CREATE TABLE data AS SELECT * FROM read_csv(
                $path, delim = $delimiter, columns = $columns, skip = $skip, max_line_size = $limit,
                auto_detect = false, header = true, quote = '"', escape = '"', strict_mode = true, compression = 'none')
            """,
            {
                "path": str(source.readable),
                "delimiter": source.delimiter,
                "columns": {f"c{position}": "VARCHAR" for position in range(len(source.names))},
                "skip": source.blank_lines,
                "limit": ROW_LIMIT,
            },
        )
    except duckdb.InterruptException:
        raise
    except duckdb.InvalidInputException as error:
        raise DatasetError(f"{source.path}: {_complaint(str(error))}") from None
    counted = connection.execute("SELECT count(*) FROM data").fetchone()
    return int(counted[0]) if counted else 0


def _complaint(message: str) -> str:
    """Say what DuckDB found in our words: its own message quotes the line, and values do not belong into histories."""
    line = re.search(r"CSV Error on Line: (\d+)", message)
    where = f"line {line[1]}" if line else "some line"
    if widths := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        return f"{where} has {widths[2]} fields, the header has {widths[1]}. Correct the line or quote the delimiter."
    if "unterminated quote" in message:
        return f'{where} has a quote that is not closed, or text after one. Write quotes inside values as "".'
    if "Maximum line size" in message:
        return f"{where} is longer than {ROW_LIMIT // 1_000_000} MB. Split the record, or leave the large values out."
    if "invalid state" in message:
        return "lines end in different ways (LF, CR LF, CR). Save the file with one kind of line end."
    return f"{where} is not CSV as RFC 4180 has it. Save the file again as CSV."
