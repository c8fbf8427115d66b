"""How a job's process gives its one answer to the gate that waits for it: through the same admission as everybody."""

from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from activities.models import Callback
from gatewright.protocol import Answer, Failure, Refusal, Refused
from gatewright.store import Store, default_url
from gatewright.temporal import Delivered, GateClient, GatewrightPlugin

PRINCIPAL = "system:transform"
"""As whom the job answers; its gate invites nobody else."""


class NotRuledYetError(Exception):
    """Nobody has ruled on the answer yet, or its gate is about to open: try again."""


async def call_back(callback: Callback, *, response: dict[str, Any] | None, failure: dict[str, Any] | None) -> None:
    """
    Answer a system gate: with `response` (a `TransformResult` as JSON) or with `failure` (a `JobFailure` as JSON).

    Returns once the run has ruled on the answer, a final refusal included: the answer id makes a repeat harmless.
    Whatever is raised is taken for a hindrance that may pass (no server, no worker), and the caller tries again.
    """
    config = ClientConfig.load_client_connect_config()
    config["target_host"] = callback.address or config.get("target_host") or "localhost:7233"
    config["namespace"] = callback.namespace
    with Store.open(default_url()) as store:
        client = await Client.connect(**config, plugins=[GatewrightPlugin(store)])
        answer = Answer(
            answer_id=callback.answer_id,
            interrupt_id=callback.interrupt_id,
            response=response,
            failure=None if failure is None else Failure.model_validate(failure),
            principal=PRINCIPAL,
            channel="job",
        )
        ruling = await GateClient(client, store).answer(callback.workflow_id, answer)
    if isinstance(ruling, Delivered):
        raise NotRuledYetError(ruling.reason)
    if isinstance(ruling, Refused) and ruling.refusal is Refusal.NOT_OPEN_YET:
        raise NotRuledYetError(ruling.reason)
    print(f"{callback.interrupt_id}: {ruling.verdict}", flush=True)  # noqa: T201 - the job's log
