"""The wheel is the folder gatewright/ and nothing else; slow, so only `make wheel` builds it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_wheel_has_one_import_name(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """`workflows`, `activities` and `worker` are this repository's application, never part of the library."""
    if not request.config.getoption("--build-wheel"):
        pytest.skip("builds the wheel: run `make wheel`")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    assert {"gatewright"} == {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert {"gatewright/py.typed", "gatewright/store/migrations/env.py"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
