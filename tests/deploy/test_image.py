"""The image holds what it runs, at the versions that are tested, and nothing else."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COPIED = [
    source
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
    for source in re.sub(r"--\S+ ", "", line).split()[:-1]
]
EXTRAS = ("postgres", "cli", "server", "app")


def pins(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """What a lock says: version (with its marker) and hashes by name."""
    found = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
        if entry.startswith("#") or not entry.strip():
            continue
        distribution, _, rest = entry.partition("==")
        version = rest.partition(" \\")[0].partition(" ;")[0].strip()
        found[distribution] = (version, frozenset(re.findall(r"sha256:\w+", rest)))
    return found


def plain(requirement: str) -> str:
    """A requirement's distribution, spelt as locks spell it."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def test_what_is_copied_is_there_and_is_let_through() -> None:
    """`.dockerignore` leaves everything out and names what is let in."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}

    assert "*" == rules[0]
    assert set(COPIED) == let_in
    for source in COPIED:
        assert (ROOT / source).exists(), source


def test_nothing_secret_or_local_is_let_in() -> None:
    let_in = set(COPIED)

    for name in (".env", ".git", "data", "tests", ".venv", "docker-compose.yml", "deploy"):
        assert not any(fnmatch(name, pattern) for pattern in let_in), name


def test_every_room_that_the_processes_import_is_copied() -> None:
    assert {"gatewright", "workflows", "activities", "worker"} <= set(COPIED)


def test_the_lock_of_the_image_is_a_part_of_the_lock_that_is_tested() -> None:
    """`make lock` makes both; the smaller one may not run ahead of the other or stay behind it."""
    tested, run = pins("requirements.lock"), pins("requirements-run.lock")

    assert 40 <= len(run) < len(tested)
    for name, (version, hashes) in run.items():
        assert name in tested, name
        assert (version, hashes) == tested[name], f"{name}: run `make lock`"
        assert hashes, name


def test_the_lock_of_the_image_holds_what_the_project_asks_for_and_no_tools() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    asked = {
        plain(line) for line in [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]
    }
    tools = {plain(line) for line in optional["dev"]} - asked - {"httpx", "hatchling"}
    run = pins("requirements-run.lock").keys()

    assert asked <= run
    # hatchling builds the project's own wheel in the image, from files that are there.
    assert "hatchling" in run
    assert not {tool for tool in tools if tool in run}


def test_the_image_installs_by_hash_and_runs_as_nobody_in_particular() -> None:
    user = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)

    assert "pip install --require-hashes --no-deps --only-binary :all: -r requirements-run.lock" in DOCKERFILE
    assert ["gatewright"] == user
    assert "useradd --uid 10001 --gid 10001" in DOCKERFILE
    assert 'CMD ["python", "-m", "worker"]' in DOCKERFILE


def test_python_is_pinned_and_is_one_that_the_project_runs_on() -> None:
    image = re.search(r"^ARG PYTHON_IMAGE=python:(\d+\.\d+)\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)

    assert image is not None
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"] == f">={image[1]}"
