"""A profile says what is in a file, and stays below its size whatever that is."""

from pathlib import Path

import pytest

from activities.errors import DatasetError
from activities.models import ColumnProfile, Profile
from activities.profiling import SIZE_LIMIT, profile_csv, shortened

SAMPLE = Path(__file__).parents[2] / "activities" / "sample" / "orders.csv"


def profile(csv_file: Path, content: str, *, encoding: str = "utf-8") -> Profile:
    csv_file.write_text(content, encoding=encoding, newline="")
    return profile_csv(str(csv_file), profiles=csv_file.parent / "profiles")


def size(profile: Profile) -> int:
    return len(profile.model_dump_json().encode())


def test_the_bundled_sample_is_profiled(tmp_path: Path) -> None:
    """The first thing that anybody runs."""
    profile = profile_csv(str(SAMPLE), profiles=tmp_path)

    assert (200, 8, False, None) == (profile.rows, profile.column_count, profile.truncated, profile.full_profile)
    assert {
        "order_id": "BIGINT",
        "ordered_at": "TIMESTAMP",
        "customer": "VARCHAR",
        "email": "VARCHAR",
        "city": "VARCHAR",
        "amount": "DOUBLE",
        "coupon": "VARCHAR",
        "notes": "VARCHAR",
    } == {column.name: column.type for column in profile.columns}
    assert all(column.nulls for column in profile.columns if column.name in {"email", "amount", "coupon", "notes"})


def test_a_column_is_described_by_its_values(csv_file: Path) -> None:
    """Numbers are ordered as numbers, examples are as they were written, nulls are counted apart."""
    profiled = profile(csv_file, "amount,city\n10.50,Zürich\n9,\n9,Łódź\n")

    assert [
        ColumnProfile(
            name="amount", type="DOUBLE", nulls=0, distinct=2, minimum="9.0", maximum="10.5", examples=["10.50", "9"]
        ),
        ColumnProfile(
            name="city",
            type="VARCHAR",
            nulls=1,
            distinct=2,
            minimum="Zürich",
            maximum="Łódź",
            examples=["Zürich", "Łódź"],
        ),
    ] == profiled.columns


def test_an_example_is_found_however_late_it_comes(csv_file: Path) -> None:
    """A column that is empty for long is not shown as if it were empty."""
    profiled = profile(csv_file, "rare,x\n" + ",1\n" * 1_000 + "here,1\n")

    assert ["here"] == profiled.columns[0].examples


def test_a_header_alone_has_columns_and_no_rows(csv_file: Path) -> None:
    """Zero rows are a fact, not an error."""
    profiled = profile(csv_file, "a,b\n")

    assert (0, ["a", "b"], [None, None]) == (
        profiled.rows,
        [column.name for column in profiled.columns],
        [column.minimum for column in profiled.columns],
    )


def test_the_encoding_is_said(csv_file: Path) -> None:
    """A person sees from it whether the file was understood."""
    profiled = profile(csv_file, "city\nZürich\n", encoding="latin-1")

    assert ("latin-1", ["Zürich"]) == (profiled.encoding, profiled.columns[0].examples)


def test_columns_of_one_name_are_told_apart(csv_file: Path) -> None:
    """The names in the profile are the ones to drop and mask by."""
    assert ["a", "a_2", "A_3"] == [column.name for column in profile(csv_file, "a,a,A\n1,2,3\n").columns]


def test_names_and_values_cannot_become_sql(csv_file: Path) -> None:
    """Hostile text comes back as text."""
    hostile = "x\"; DROP TABLE data; --'{}$1?"
    profiled = profile(csv_file, "{0};y\n{0};1\n".format('"' + hostile.replace('"', '""') + '"'))

    assert (hostile, [hostile]) == (profiled.columns[0].name, profiled.columns[0].examples)


def test_a_wide_file_is_shown_in_part_and_written_in_full(csv_file: Path) -> None:
    """Five thousand columns: two hundred at most are shown, and the file that the profile names has all."""
    profiled = profile(csv_file, ",".join(f"c{n}" for n in range(5_000)) + "\n" + ",".join("v" * 5_000) + "\n")

    assert (5_000, True) == (profiled.column_count, profiled.truncated)
    assert (200, True) == (len(profiled.columns), size(profiled) < SIZE_LIMIT)
    assert profiled.full_profile is not None
    complete = Profile.model_validate_json(Path(profiled.full_profile).read_text("utf-8"))
    assert (5_000, False) == (len(complete.columns), complete.truncated)


def test_values_of_a_megabyte_are_cut(csv_file: Path) -> None:
    """Eighty characters of each are shown, the last of them an ellipsis."""
    profiled = profile(csv_file, "a,b\n" + f"{'é' * 1_000_000},{'y' * 1_000_000}\n" * 3)

    assert [["é" * 79 + "…"], ["y" * 79 + "…"]] == [column.examples for column in profiled.columns]
    assert ("é" * 79 + "…", False) == (profiled.columns[0].minimum, profiled.truncated)


@pytest.mark.parametrize("character", ["\x01", "🙂", '"'])
def test_no_content_makes_a_profile_larger_than_its_limit(csv_file: Path, character: str) -> None:
    """Long names, long values, and characters that JSON writes with six bytes or twelve."""
    width = 300
    names = ",".join(f'"{n}{"🙂" * 120}"' for n in range(width))
    value = '"' + (character * 200).replace('"', '""') + '"'
    profiled = profile(csv_file, names + "\n" + "\n".join(",".join([value] * width) for _ in range(3)) + "\n")

    assert (True, True) == (size(profiled) < SIZE_LIMIT, profiled.truncated)
    assert len(profiled.columns) >= 20


def test_five_megabytes_are_counted_exactly(csv_file: Path) -> None:
    """Rows and nulls are counted, not estimated; distinct values are estimated to a few per cent."""
    rows = 100_000
    content = "id,group,text\n" + "".join(f"{n},{n * n % 50},{'' if n % 4 else 'x' * 160}\n" for n in range(rows))
    profiled = profile(csv_file, content)

    assert profiled.bytes > 4_900_000
    assert (rows, [0, 0, 75_000]) == (profiled.rows, [column.nulls for column in profiled.columns])
    assert rows == pytest.approx(profiled.columns[0].distinct, rel=0.15)


def test_a_ragged_file_is_refused(csv_file: Path) -> None:
    """Nothing is filled up or cut off."""
    with pytest.raises(DatasetError, match="line 3 has 1 fields"):
        profile(csv_file, "a,b\n1,2\n3\n")


def test_a_value_is_shortened_to_its_length() -> None:
    """The ellipsis is part of the length."""
    assert ("x" * 80, "x" * 79 + "…") == (shortened("x" * 80), shortened("x" * 81))
