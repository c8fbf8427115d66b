"""The environment is read when a step runs, and blanks are nothing."""

from pathlib import Path

import pytest

from activities.settings import data_dir, model


def test_the_data_folder_is_data_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the working directory, and absolute."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATEWRIGHT_DATA_DIR", raising=False)
    assert tmp_path / "data" == data_dir()

    monkeypatch.setenv("GATEWRIGHT_DATA_DIR", "elsewhere")
    assert tmp_path / "elsewhere" == data_dir()


@pytest.mark.parametrize(("value", "expected"), [("", None), ("  ", None), (" gemini-x ", "gemini-x")])
def test_a_blank_model_is_none(monkeypatch: pytest.MonkeyPatch, value: str, expected: str | None) -> None:
    """Compose files set variables to nothing."""
    monkeypatch.setenv("GATEWRIGHT_MODEL", value)

    assert expected == model()
