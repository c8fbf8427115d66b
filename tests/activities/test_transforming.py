"""A transform does what the plan says to the file that was reviewed, or says by name why not."""

import hashlib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from activities.errors import DatasetError, TransformRejected
from activities.models import TransformPlan, TransformResult
from activities.transforming import transformed
from tests.activities.builders import ORDERS, plan_of


def transform(plan: TransformPlan, folder: Path, *, salt: str = "key") -> TransformResult:
    return transformed(plan, salt=salt, target=folder / "data.parquet")


def content(path: str | Path) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """Names with types, and rows, of a Parquet file."""
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet($path)", {"path": str(path)})
        return [(column[0], str(column[1])) for column in found.description or []], found.fetchall()


def rejection(plan: TransformPlan, folder: Path) -> TransformRejected:
    with pytest.raises(TransformRejected) as rejected:
        transform(plan, folder)
    assert [] == list(folder.iterdir())
    return rejected.value


def test_columns_are_dropped_and_masked_and_the_rest_is_typed(csv_file: Path, scratch: Path) -> None:
    """Equal values have equal masks, nulls stay null, numbers become numbers."""
    csv_file.write_text(ORDERS, encoding="utf-8")

    result = transform(plan_of(csv_file), scratch)

    mask = hashlib.sha256(b"key:zoe@example.org").hexdigest()[:12]
    assert (
        [("id", "BIGINT"), ("email", "VARCHAR"), ("amount", "DOUBLE")],
        [(1, mask, 12.5), (2, None, 3.0), (3, mask, 7.25)],
    ) == content(result.path)
    assert (3, ["id", "email", "amount"]) == (result.rows, result.columns)
    data = Path(result.path).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (result.bytes, result.sha256)
    assert ["data.parquet"] == [path.name for path in scratch.iterdir()]


def test_two_jobs_mask_one_value_differently(csv_file: Path, scratch: Path) -> None:
    """Releases cannot be joined by their masks."""
    csv_file.write_text("who\nzoe\n", encoding="utf-8")
    plan = plan_of(csv_file, drop=[], mask=["who"])

    first = content(transform(plan, scratch, salt="one").path)
    second = content(transform(plan, scratch, salt="two").path)

    assert first[0] == second[0]
    assert first[1] != second[1]


def test_a_column_both_dropped_and_masked_is_dropped(csv_file: Path, scratch: Path) -> None:
    """The stricter of the two holds."""
    csv_file.write_text(ORDERS, encoding="utf-8")

    assert ["id", "amount"] == transform(plan_of(csv_file, drop=["city", "email"], mask=["email"]), scratch).columns


def test_a_source_that_has_changed_is_not_transformed(csv_file: Path, scratch: Path) -> None:
    """What nobody has reviewed is not released."""
    csv_file.write_text(ORDERS, encoding="utf-8")
    plan = plan_of(csv_file)
    csv_file.write_text(ORDERS + "4,a,b,1\n", encoding="utf-8")

    assert "source_changed" == rejection(plan, scratch).type


def test_unknown_columns_are_named_with_the_closest_that_there_is(csv_file: Path, scratch: Path) -> None:
    """Names count exactly: another case is another name, but a near one."""
    csv_file.write_text(ORDERS, encoding="utf-8")

    rejected = rejection(plan_of(csv_file, drop=["City", "zzz"], mask=["e-mail"]), scratch)

    assert "unknown_columns" == rejected.type
    for said in ("'City' (closest: 'city')", "'e-mail' (closest: 'email')", "'zzz';", "'zzz'."):
        assert (said in rejected.message) is (said != "'zzz';")


def test_a_thousand_unknown_columns_are_not_all_listed(csv_file: Path, scratch: Path) -> None:
    """A message is for reading."""
    csv_file.write_text(ORDERS, encoding="utf-8")

    message = rejection(plan_of(csv_file, drop=[f"{'q' * 5_000}{n}" for n in range(1_000)]), scratch).message

    assert "and 980 more" in message
    assert len(message) < 4_000


def test_a_plan_that_leaves_nothing_is_rejected(csv_file: Path, scratch: Path) -> None:
    """Parquet has no file without columns, and a release without any serves nobody."""
    csv_file.write_text("a,b\n1,2\n", encoding="utf-8")

    assert "no_columns" == rejection(plan_of(csv_file, drop=["a", "b"], mask=[]), scratch).type


def test_a_missing_source_is_the_datasets_error(csv_file: Path, scratch: Path) -> None:
    """As when it was profiled."""
    csv_file.write_text(ORDERS, encoding="utf-8")
    plan = plan_of(csv_file)
    csv_file.unlink()

    with pytest.raises(DatasetError, match="There is no file"):
        transform(plan, scratch)


def test_a_header_alone_becomes_a_file_without_rows(csv_file: Path, scratch: Path) -> None:
    """With its columns."""
    csv_file.write_text("a,b\n", encoding="utf-8")

    result = transform(plan_of(csv_file, drop=[], mask=["b"]), scratch)

    assert ([("a", "VARCHAR"), ("b", "VARCHAR")], []) == content(result.path)


def test_hostile_names_and_values_come_through_unharmed(csv_file: Path, scratch: Path) -> None:
    """Quotes, semicolons, parameters and equal names are only text."""
    csv_file.write_text('"a"";DROP TABLE data--",$salt,A\'b,a\'B\n"\'; --",?,"x\ny",\n', encoding="utf-8")

    result = transform(plan_of(csv_file, drop=[], mask=[]), scratch)

    names, rows = content(result.path)
    assert ['a";DROP TABLE data--', "$salt", "A'b", "a'B_2"] == [name for name, _ in names] == result.columns
    assert [("'; --", "?", "x\ny", None)] == rows


def test_a_wide_source_is_transformed(csv_file: Path, scratch: Path) -> None:
    """Two thousand columns, one of them dropped and one masked."""
    csv_file.write_text(
        ",".join(f"c{n}" for n in range(2_000)) + "\n" + ",".join(str(n) for n in range(2_000)) + "\n", encoding="utf-8"
    )

    result = transform(plan_of(csv_file, drop=["c0"], mask=["c1999"]), scratch)

    assert (1, 1_999) == (result.rows, len(result.columns))


def test_a_source_in_another_encoding_becomes_utf8(csv_file: Path, scratch: Path) -> None:
    """Parquet knows nothing else."""
    csv_file.write_bytes("city;n\nZürich;1\n".encode("latin-1"))

    assert [("Zürich", 1)] == content(transform(plan_of(csv_file, drop=[], mask=[]), scratch).path)[1]


def test_a_repeated_transform_replaces_its_file(csv_file: Path, scratch: Path) -> None:
    """A job that died after writing is done again."""
    csv_file.write_text(ORDERS, encoding="utf-8")
    plan = plan_of(csv_file)

    assert transform(plan, scratch) == transform(plan, scratch)
