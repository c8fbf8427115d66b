"""The guide's settings are settings, and its files are what they are said to be."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from temporalio.envconfig import ClientConfigProfile

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "deploy.md").read_text()
SETTINGS = dict(re.findall(r"^(TEMPORAL_\w+)=(.*)$", GUIDE, re.MULTILINE))


def blocks(language: str) -> list[str]:
    """The guide's code of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_of_temporal_is_one_that_the_sdk_reads(name: str) -> None:
    """A misspelt one would be passed over in silence."""
    read = ClientConfigProfile.load(disable_file=True, override_env_vars={name: SETTINGS[name]})

    assert ClientConfigProfile.load(disable_file=True, override_env_vars={}) != read


def test_the_guide_shows_how_to_reach_temporal_by_key_and_by_certificate() -> None:
    assert {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_CERT_PATH"} <= set(
        SETTINGS
    )


def test_an_api_key_turns_tls_on() -> None:
    chosen = {name: SETTINGS[name] for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_API_KEY")}

    connect = ClientConfigProfile.load(disable_file=True, override_env_vars=chosen).to_client_connect_config()

    assert connect["tls"]
    assert SETTINGS["TEMPORAL_ADDRESS"] == connect["target_host"]


@pytest.mark.parametrize("number", range(2))
def test_what_is_to_be_added_to_the_compose_file_fits_it(number: int, tmp_path: Path) -> None:
    """By the schema, and by the names of services and networks."""
    addition = tmp_path / "docker-compose.override.yml"
    addition.write_text(blocks("yaml")[number])
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(addition)]
    judged = subprocess.run(command, check=False, capture_output=True, text=True)
    assert 0 == judged.returncode, judged.stdout

    base, added = YAML(typ="safe").load(ROOT / "docker-compose.yml"), YAML(typ="safe").load(addition)
    networks = set(base["networks"]) | set(added.get("networks", {}))
    assert set(added["services"]) & set(base["services"])
    for service in added["services"].values():
        assert set(service.get("networks", ())) <= networks
        for name in service.get("environment", {}):
            assert name in base["services"]["serve"]["environment"]


def test_every_service_is_explained() -> None:
    services = set(YAML(typ="safe").load(ROOT / "docker-compose.yml")["services"])
    table = GUIDE.split("## The pieces")[1].split("##")[0]

    assert services == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
