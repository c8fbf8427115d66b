"""The compose file keeps what the threat model says: closed ports, no secret of ours, nobody unwatched."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
COMPOSE: dict[str, Any] = YAML(typ="safe").load(FILE)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KEPT = {name: service for name, service in SERVICES.items() if service["restart"] == "unless-stopped"}
ONCE = {name: service for name, service in SERVICES.items() if name not in KEPT}
VARIABLE = re.compile(r"\$\{(\w+)(?:(:[?-])([^}]*))?\}")
SECRET = re.compile(r"PASSWORD|TOKEN|KEY|SECRET")


def validate(file: Path) -> subprocess.CompletedProcess[str]:
    """Judge a file by the schema of the Compose specification."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_it_follows_the_compose_specification() -> None:
    judged = validate(FILE)

    assert judged.returncode == 0, judged.stdout


def test_a_misspelt_key_would_be_found(tmp_path: Path) -> None:
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(FILE.read_text().replace("healthcheck:", "healtcheck:", 1))

    judged = validate(broken)

    assert judged.returncode != 0
    assert "healtcheck" in judged.stdout


def test_only_the_api_and_the_ui_are_published_and_only_to_this_machine() -> None:
    """Temporal's port is the right to answer every gate, PostgreSQL's the right to repeat an effect."""
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert {
        "serve": ["${GATEWRIGHT_PUBLISH:-127.0.0.1:8000}:8000"],
        "ui": ["${TEMPORAL_UI_PUBLISH:-127.0.0.1:8233}:8080"],
    } == published


def test_temporal_and_postgresql_are_on_a_network_without_a_way_in_or_out() -> None:
    assert COMPOSE["networks"]["inside"]["internal"] is True
    outside = {name for name, service in SERVICES.items() if "outside" in service["networks"]}

    assert {"ui", "worker", "serve"} == outside
    assert all("inside" in service["networks"] for service in SERVICES.values())
    assert not any("network_mode" in service for service in SERVICES.values())


def test_no_secret_has_a_default() -> None:
    """Each is either demanded by name, or handed through from the environment as it is."""
    secrets = {(name, how) for name, how, _ in VARIABLE.findall(FILE.read_text()) if SECRET.search(name)}

    assert {
        ("POSTGRES_PASSWORD", ":?"),
        ("TEMPORAL_DB_PASSWORD", ":?"),
        ("GATEWRIGHT_DB_PASSWORD", ":?"),
    } == secrets
    assert {"tokens": {"environment": "GATEWRIGHT_TOKENS"}} == COMPOSE["secrets"]
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if SECRET.search(variable) or variable.endswith("PWD"):
                assert value is None or value.startswith(("${", "/run/secrets/")), f"{name}: {variable}"


def test_the_example_environment_names_every_variable_and_tells_no_secret() -> None:
    """Whoever copies it sees all there is to set, and cannot start with somebody else's password."""
    read = {name for name, _, _ in VARIABLE.findall(FILE.read_text())} | {"GATEWRIGHT_TOKENS"}
    for service in SERVICES.values():
        read |= {name for name, value in service.get("environment", {}).items() if value is None}
    lines = re.findall(r"^#?([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)

    assert read == {name for name, _ in lines}
    assert {""} == {value.strip('"') for name, value in lines if SECRET.search(name)}


def test_what_the_example_environment_shows_as_a_default_is_the_default() -> None:
    example = (ROOT / ".env.example").read_text()
    defaults = {name: value for name, how, value in VARIABLE.findall(FILE.read_text()) if how == ":-"}

    assert len(defaults) >= 6
    for name, value in defaults.items():
        assert f"\n#{name}={value}\n" in example


def test_everything_that_stays_has_a_health_check_and_is_started_again() -> None:
    assert {"postgresql", "temporal", "ui", "worker", "serve"} == set(KEPT)
    for name, service in KEPT.items():
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert service["healthcheck"]["start_period"], name


def test_everything_that_runs_once_is_waited_for_to_its_good_end() -> None:
    """`docker compose up --wait` also needs this, or would take its end for a failure."""
    waits = [wait for service in SERVICES.values() for wait in service.get("depends_on", {}).items()]

    assert {"databases", "schema", "namespace", "store"} == set(ONCE)
    assert set(ONCE) <= {name for name, _ in waits}
    for name, wait in waits:
        assert {"condition": "service_completed_successfully" if name in ONCE else "service_healthy"} == wait


def test_images_of_others_are_pinned_to_a_release() -> None:
    images = {service["image"] for service in SERVICES.values()} - {"${GATEWRIGHT_IMAGE:-gatewright:local}"}

    assert len(images) == 4
    assert all(re.fullmatch(r"[a-z/-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?", image) for image in images), images


def test_the_server_and_the_tools_that_make_its_schema_are_of_one_release() -> None:
    releases = {
        service["image"].partition(":")[2]
        for name, service in SERVICES.items()
        if name in {"temporal", "schema", "namespace"}
    }

    assert {"1.32.0"} == releases


def test_temporal_is_set_up_for_good_and_its_ui_only_shows() -> None:
    """The number of shards can never be changed."""
    assert "512" == SERVICES["temporal"]["environment"]["NUM_HISTORY_SHARDS"]
    assert "true" == SERVICES["ui"]["environment"]["TEMPORAL_DISABLE_WRITE_ACTIONS"]


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there(name: str) -> None:
    """Docker would make a folder in the place of a file that is missing."""
    for volume in SERVICES[name].get("volumes", []):
        source, target, *mode = volume.split(":")
        if not source.startswith("."):
            assert source in COMPOSE["volumes"]
            continue
        assert (ROOT / source).exists(), source
        assert ["ro"] == mode
        entry = SERVICES[name].get("entrypoint", [])
        assert (ROOT / source).is_dir() or any(target in word for word in entry), target


def test_the_dynamic_configuration_is_where_the_server_looks() -> None:
    temporal = SERVICES["temporal"]
    folder, inside, _ = temporal["volumes"][0].split(":")
    file = Path(temporal["environment"]["DYNAMIC_CONFIG_FILE_PATH"])

    assert inside == str(file.parent)
    assert (ROOT / folder / file.name).is_file()


def test_no_container_may_gain_privileges() -> None:
    for name, service in SERVICES.items():
        assert ["no-new-privileges:true"] == service["security_opt"], name
        assert name == "postgresql" or ["ALL"] == service["cap_drop"], name
        assert "privileged" not in service
