"""What a named file is, is settled before DuckDB sees it, and what cannot be released says why."""

import codecs
import os
import socket
from hashlib import sha256
from pathlib import Path

import pytest

from activities.csv_source import MAX_COLUMNS, column_names, open_source
from activities.errors import DatasetError


def complaint(named: str | Path, scratch: Path) -> str:
    """What is said about a file that cannot be released; never worth a retry."""
    with pytest.raises(DatasetError) as refused:
        open_source(str(named), scratch)
    assert ("DatasetError", True) == (refused.value.type, refused.value.non_retryable)
    return refused.value.message


def test_a_missing_file_is_named(tmp_path: Path, scratch: Path) -> None:
    """The person who typed the name sees the name."""
    assert "There is no file" in complaint(tmp_path / "nowhere.csv", scratch)
    assert "nowhere.csv" in complaint(tmp_path / "nowhere.csv", scratch)


def test_a_folder_is_not_a_file(tmp_path: Path, scratch: Path) -> None:
    """Nor is the empty name, which means the working directory."""
    assert "is a folder" in complaint(tmp_path, scratch)
    assert "is a folder" in complaint("", scratch)


def test_a_pipe_or_socket_is_refused_and_not_waited_for(tmp_path: Path, scratch: Path) -> None:
    """Opening a pipe that nobody writes to would hold the step for ever."""
    os.mkfifo(tmp_path / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))

        assert "not a regular file" in complaint(tmp_path / "pipe.csv", scratch)
        assert "not a regular file" in complaint(tmp_path / "s", scratch)


def test_a_name_that_no_file_can_have_is_refused(scratch: Path) -> None:
    """NUL characters and overlong names are refused by the system, and the refusal is passed on."""
    assert "cannot be opened" in complaint("a\0b.csv", scratch)
    assert "cannot be opened" in complaint("x" * 5_000, scratch)


def test_an_empty_file_is_refused(csv_file: Path, scratch: Path) -> None:
    """Zero bytes have no header; header-only files are another matter."""
    csv_file.touch()

    assert "empty (0 bytes)" in complaint(csv_file, scratch)


def test_blank_lines_are_no_header(csv_file: Path, scratch: Path) -> None:
    """Lines without any character name no columns."""
    csv_file.write_bytes(b"\n\r\n\n")

    assert "no header" in complaint(csv_file, scratch)


@pytest.mark.parametrize("content", [b"PK\3\4\0\0", b"a,b\n1,\0\n", b"x" * 2_000_000 + b"\0"])
def test_a_binary_file_is_refused(csv_file: Path, scratch: Path, content: bytes) -> None:
    """A NUL anywhere gives it away, also beyond the first megabyte."""
    csv_file.write_bytes(content)

    assert "binary file" in complaint(csv_file, scratch)


def test_too_many_columns_are_refused(csv_file: Path, scratch: Path) -> None:
    """A file that was transposed by mistake would otherwise take all memory."""
    csv_file.write_text(",".join("c" * (MAX_COLUMNS + 1)) + "\n", encoding="utf-8")

    assert "10,001 columns" in complaint(csv_file, scratch)


def test_a_header_without_end_is_refused(csv_file: Path, scratch: Path) -> None:
    """A quote that opens in the header and never closes makes the whole file one name."""
    csv_file.write_text('a,"b\n' + "1,2\n" * 2_200_000, encoding="utf-8")

    assert "no end to its first record" in complaint(csv_file, scratch)


@pytest.mark.parametrize(
    ("content", "encoding", "text"),
    [
        ("name\nZürich\n".encode(), "utf-8", "name\nZürich\n"),
        (codecs.BOM_UTF8 + "name\nZürich\n".encode(), "utf-8 with byte order mark", "\ufeffname\nZürich\n"),
        ("name\nZürich\n".encode("latin-1"), "latin-1", "name\nZürich\n"),
        ("name\n5 €\n".encode("cp1252"), "windows-1252", "name\n5 €\n"),
        (b"name\n\x80\x81\n", "latin-1", "name\n\x80\x81\n"),
        ("name\nŁódź\n".encode("utf-16"), "utf-16", "name\nŁódź\n"),
        (codecs.BOM_UTF16_BE + "name\nŁódź\n".encode("utf-16-be"), "utf-16", "name\nŁódź\n"),
        ("name\ré\r\n".encode("latin-1"), "latin-1", "name\ré\r\n"),
    ],
)
def test_the_encoding_is_found_and_said(
    csv_file: Path, scratch: Path, content: bytes, encoding: str, text: str
) -> None:
    """What DuckDB reads is UTF-8, with line ends as they were; the digest is that of the file as it is."""
    csv_file.write_bytes(content)

    source = open_source(str(csv_file), scratch)

    assert (encoding, ["name"]) == (source.encoding, source.names)
    assert text.encode() == source.readable.read_bytes()
    assert (sha256(content).hexdigest(), len(content)) == (source.sha256, source.bytes)


def test_a_character_across_two_chunks_is_still_utf8(csv_file: Path, scratch: Path) -> None:
    """Files are read by the megabyte, and characters do not know that."""
    csv_file.write_bytes(b"a\n" + b"x" * ((1 << 20) - 3) + "é\n".encode())

    assert "utf-8" == open_source(str(csv_file), scratch).encoding


def test_a_character_cut_off_at_the_end_is_not_utf8(csv_file: Path, scratch: Path) -> None:
    """Strict means to the last byte."""
    csv_file.write_bytes(b"a\nx\n" + "é".encode()[:1])

    assert "latin-1" == open_source(str(csv_file), scratch).encoding


@pytest.mark.parametrize(
    ("text", "delimiter", "names"),
    [
        ("a,b\n1,2\n", ",", ["a", "b"]),
        ("a;b\n1,5;2,5\n", ";", ["a", "b"]),
        ("a\tb\n1\t2\n", "\t", ["a", "b"]),
        ("a|b\n1|2\n", "|", ["a", "b"]),
        ("a;b;c\n", ";", ["a", "b", "c"]),
        ("alone\n1\n", ",", ["alone"]),
        ('"a;x",b\n1,2\n', ",", ["a;x", "b"]),
        ('a,b\n"1;2;3","4;5;6"\n', ",", ["a", "b"]),
        ("\n\r\na,b\n1,2\n", ",", ["a", "b"]),
        ('"a\nb",c\n1,2\n', ",", ["a b", "c"]),
        ("a,b,\n1,2,\n", ",", ["a", "b", "column_3"]),
    ],
)
def test_the_delimiter_is_the_one_that_gives_every_record_the_same_fields(
    csv_file: Path, scratch: Path, text: str, delimiter: str, names: list[str]
) -> None:
    """Quoted delimiters do not count, decimal commas do not win, and one column is a CSV file too."""
    csv_file.write_text(text, encoding="utf-8", newline="")

    source = open_source(str(csv_file), scratch)

    assert (delimiter, names) == (source.delimiter, source.names)


def test_names_are_trimmed_filled_in_and_all_different() -> None:
    """Case does not tell columns apart in DuckDB, so it does not here."""
    header = [" id ", "", "City", "city", "CITY", "city_2", "a\tb", "n" * 500, ""]

    assert ["id", "column_2", "City", "city_2", "CITY_3", "city_2_2", "a b", "n" * 100, "column_9"] == column_names(
        header
    )


def test_ten_thousand_equal_names_are_told_apart_in_good_time() -> None:
    """Numbering goes on where it stopped: counting from two each time would take fifty million steps."""
    assert "x_10000" == column_names(["x"] * 10_000)[-1]


@pytest.mark.parametrize(
    "name", ["a*.csv", "[ab]?.csv", "it's; DROP TABLE data.csv", "s3:x.csv", "x.csv.gz", "-", "日本"]
)
def test_a_file_name_is_only_a_name(tmp_path: Path, scratch: Path, name: str) -> None:
    """DuckDB would take some of these for patterns, buckets or archives; it is never shown them."""
    file = tmp_path / name
    file.write_bytes(b"a\n1\n")

    source = open_source(str(file), scratch)

    assert ("source.csv", file) == (source.readable.name, source.path)


def test_a_file_that_is_written_to_meanwhile_is_noticed(csv_file: Path, scratch: Path) -> None:
    """The digest would be that of a file which is not the one that was loaded."""
    csv_file.write_bytes(b"a\n1\n")
    source = open_source(str(csv_file), scratch)
    source.check_unchanged()
    csv_file.write_bytes(b"a\n1\n2\n")

    with pytest.raises(DatasetError, match="changed while it was being read"):
        source.check_unchanged()
