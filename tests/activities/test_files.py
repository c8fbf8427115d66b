"""Files are there completely or not at all."""

import hashlib
from pathlib import Path

import pytest

from activities.files import digest_of, replace_durably, write_durably


def test_a_digest_is_of_all_bytes(tmp_path: Path) -> None:
    """Also of those beyond the first chunk."""
    content = b"x" * 3_000_000 + b"y"
    (tmp_path / "file").write_bytes(content)

    assert hashlib.sha256(content).hexdigest() == digest_of(tmp_path / "file")


def test_a_replaced_file_has_the_new_content_and_nothing_beside_it(tmp_path: Path) -> None:
    """The partial file is gone."""
    write_durably(tmp_path / "file", "old")
    replace_durably(tmp_path / "file", "Łódź")

    assert "Łódź" == (tmp_path / "file").read_text("utf-8")
    assert ["file"] == [path.name for path in tmp_path.iterdir()]


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path) -> None:
    """What cannot be encoded is found out before the old content is given up."""
    write_durably(tmp_path / "file", "old")

    with pytest.raises(UnicodeEncodeError):
        replace_durably(tmp_path / "file", "\ud800")

    assert "old" == (tmp_path / "file").read_text("utf-8")
