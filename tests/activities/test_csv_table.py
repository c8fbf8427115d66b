"""A file is loaded as it was written, and a type is taken only where no value suffers by it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from activities.csv_source import open_source
from activities.csv_table import CsvTable, loaded
from activities.errors import DatasetError
from activities.pulse import Pulse


@contextmanager
def table_of(csv_file: Path, scratch: Path, content: str) -> Iterator[CsvTable]:
    """A file with this content, loaded."""
    csv_file.write_text(content, encoding="utf-8", newline="")
    with loaded(open_source(str(csv_file), scratch), scratch=scratch, pulse=Pulse()) as table:
        yield table


def rows_of(csv_file: Path, scratch: Path, content: str) -> list[tuple[str | None, ...]]:
    with table_of(csv_file, scratch, content) as table:
        return table.connection.execute("SELECT * FROM data").fetchall()


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "-20", "0"], "BIGINT"),
        (["9223372036854775807"], "BIGINT"),
        (["9223372036854775808"], "VARCHAR"),
        (["007", "12"], "VARCHAR"),
        (["+49"], "VARCHAR"),
        (["1.50", "2", "-3e-5"], "DOUBLE"),
        (["0.1234567890123456789"], "VARCHAR"),
        (["1e400"], "VARCHAR"),
        (["nan", "inf"], "VARCHAR"),
        (["true", "False", "TRUE"], "BOOLEAN"),
        (["1", "true"], "VARCHAR"),
        (["2024-02-29"], "DATE"),
        (["2023-02-29"], "VARCHAR"),
        (["2024-02-29 23:59", "2024-02-29T23:59:59.123456"], "TIMESTAMP"),
        (["2024-02-29T23:59:59Z"], "VARCHAR"),
        (["2024-02-29", "2024-02-29 10:00"], "VARCHAR"),
        (["1,5"], "VARCHAR"),
        ([" 1"], "VARCHAR"),
        (["", ""], "VARCHAR"),
    ],
)
def test_a_type_is_taken_only_if_every_value_survives_it(
    csv_file: Path, scratch: Path, values: Sequence[str], type_: str
) -> None:
    """Leading zeros, digits beyond a double's fifteen, offsets and impossible days stay text."""
    content = "value,other\n" + "".join(f'"{value}",x\n' for value in values)

    with table_of(csv_file, scratch, content) as table:
        assert {0: type_} == table.types([0])


def test_the_last_of_many_rows_counts_as_much_as_the_first(csv_file: Path, scratch: Path) -> None:
    """A type from a sample breaks on the row that the sample did not see."""
    content = "late,early,numbers\n" + ",a,1\n" * 500 + "1,,2\n" + "x,,3\n" + ",,4.5\n"

    with table_of(csv_file, scratch, content) as table:
        assert {0: "VARCHAR", 1: "VARCHAR", 2: "DOUBLE"} == table.types([0, 1, 2])


def test_values_that_first_come_late_still_give_a_type(csv_file: Path, scratch: Path) -> None:
    """Nulls in the first rows rule nothing out."""
    with table_of(csv_file, scratch, "late,x\n" + ",a\n" * 500 + "12,a\n") as table:
        assert {0: "BIGINT"} == table.types([0])


def test_quoted_line_ends_delimiters_and_quotes_are_data(csv_file: Path, scratch: Path) -> None:
    """RFC 4180, in all three kinds of line end."""
    for end in ("\n", "\r\n", "\r"):
        content = end.join(["a,b", '"x\ny","1,2 ""q"""', "3,4", ""])
        (scratch / "source.csv").unlink(missing_ok=True)
        (scratch / "table.duckdb").unlink(missing_ok=True)

        assert [("x\ny", '1,2 "q"'), ("3", "4")] == rows_of(csv_file, scratch, content)


def test_a_header_alone_is_a_table_without_rows(csv_file: Path, scratch: Path) -> None:
    """With or without a line end."""
    with table_of(csv_file, scratch, "a,b") as table:
        assert (0, {0: "VARCHAR", 1: "VARCHAR"}) == (table.rows, table.types([0, 1]))


def test_blank_lines_around_the_data_are_skipped(csv_file: Path, scratch: Path) -> None:
    """Above the header too."""
    assert [("1", "2"), ("3", "4")] == rows_of(csv_file, scratch, "\n\na,b\n1,2\n\n3,4\n\n")


def test_nothing_between_delimiters_is_null_quoted_or_not(csv_file: Path, scratch: Path) -> None:
    """CSV has no other way to write it."""
    assert [(None, None), (None, "x")] == rows_of(csv_file, scratch, 'a,b\n"",\n,x\n')


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "line 3 has 2 fields, the header has 3"),
        ("a,b\n1,2\n3,4,secret\n", "line 3 has 3 fields, the header has 2"),
        ('a,b\n"secret,2\n3,4\n', "line 2 has a quote that is not closed"),
        ('a,b\n"secret"x,2\n', "line 2 has a quote that is not closed, or text after one"),
        ("a,b\n1,secret\r\n3,4\n", "lines end in different ways"),
        ("a,b\n1," + "s" * 33_000_000 + "\n3,4\n", "longer than 32 MB"),
    ],
)
def test_a_file_that_does_not_fit_its_header_is_refused_by_line(
    csv_file: Path, scratch: Path, content: str, said: str
) -> None:
    """The line is named and not quoted: values do not belong into Temporal's history."""
    with pytest.raises(DatasetError) as refused, table_of(csv_file, scratch, content):
        pass

    assert said in refused.value.message
    assert "secret" not in refused.value.message


def test_a_surplus_empty_field_at_the_end_is_ignored(csv_file: Path, scratch: Path) -> None:
    """DuckDB's leniency, which the module's text tells of; it loses nothing."""
    assert [("1", "2"), ("3", "4")] == rows_of(csv_file, scratch, "a,b\n1,2\n3,4,\n")


def test_a_file_that_changed_before_it_was_loaded_is_refused(csv_file: Path, scratch: Path) -> None:
    """What was loaded would not be what the digest names."""
    csv_file.write_text("a\n1\n", encoding="utf-8")
    source = open_source(str(csv_file), scratch)
    csv_file.write_text("a\n1\n2\n", encoding="utf-8")

    with (
        pytest.raises(DatasetError, match="changed while it was being read"),
        loaded(source, scratch=scratch, pulse=Pulse()),
    ):
        pass
