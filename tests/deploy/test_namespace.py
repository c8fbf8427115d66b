"""The namespace and its search attributes are made once, and found made ever after."""

import asyncio
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from gatewright.temporal import SetupError
from gatewright.temporal.plugin import check_server
from tests.conftest import binary

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "deploy" / "namespace.sh")


def run(shell: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*shell, SCRIPT], check=False, capture_output=True, text=True, env=environment, timeout=90)


async def kept(client: Client) -> float:
    """For how many days the namespace keeps a run that is over."""
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
    return described.config.workflow_execution_retention_ttl.ToTimedelta().total_seconds() / 86400


async def test_a_namespace_is_made_with_all_that_the_worker_checks(
    shell: list[str], clean: dict[str, str], address: str
) -> None:
    """What the worker looks for at its start is missing before, there after, and still there after a second time."""
    namespace = f"made-{uuid4().hex[:8]}"
    settings = clean | {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": namespace}
    client = await Client.connect(address, namespace=namespace)
    with pytest.raises(SetupError):
        await check_server(client)

    first = await asyncio.to_thread(run, shell, settings)
    await check_server(client)
    assert (0, 30.0) == (first.returncode, await kept(client)), first.stderr

    again = await asyncio.to_thread(run, shell, settings | {"TEMPORAL_RETENTION": "90d"})
    await check_server(client)
    assert (0, 90.0) == (again.returncode, await kept(client)), again.stderr
    assert f"namespace {namespace} is ready" in again.stdout


async def test_an_attribute_of_another_type_is_named_and_left_alone(clean: dict[str, str], address: str) -> None:
    namespace = f"taken-{uuid4().hex[:8]}"
    settings = clean | {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": namespace}
    for words in (
        ["namespace", "create", "--retention", "3d"],
        ["search-attribute", "create", "--name", "GatewrightSession", "--type", "Int"],
    ):
        command = [binary("temporal"), "operator", *words, "--namespace", namespace]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, env=settings)

    said = await asyncio.to_thread(run, ["sh"], settings)

    assert 1 == said.returncode
    assert "search attribute GatewrightSession" in said.stderr
    assert "different type" in said.stderr


def test_a_server_that_does_not_answer_is_named(clean: dict[str, str]) -> None:
    """The container ends with an error, so that what waits for it is not started."""
    said = run(["sh"], clean | {"TEMPORAL_ADDRESS": "127.0.0.1:1", "TEMPORAL_ATTEMPTS": "1"})

    assert 1 == said.returncode
    assert "Temporal does not answer at 127.0.0.1:1" in said.stderr


def test_the_scripts_pass_shellcheck() -> None:
    scripts = sorted(map(str, (ROOT / "deploy").glob("*.sh")))

    checked = subprocess.run(
        [binary("shellcheck"), "--shell=sh", *scripts],
        check=False,
        capture_output=True,
        text=True,
    )

    assert len(scripts) == 2
    assert 0 == checked.returncode, checked.stdout
