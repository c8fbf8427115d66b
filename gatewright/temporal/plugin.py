"""
What a Temporal application is given to host gates: one plugin for client, worker and replayer.

    client = await Client.connect("localhost:7233", plugins=[GatewrightPlugin(Store.open(url))])
    worker = Worker(client, task_queue="releases", workflows=[DatasetRelease], activities=[...])
"""

import dataclasses
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError
from temporalio.worker import ReplayerConfig, Worker, WorkerConfig

from gatewright.effects.interceptor import EffectsInterceptor
from gatewright.store import Store

from . import names
from .errors import SetupError
from .index import IndexActivities, IndexTeller
from .interceptor import FrameInterceptor
from .planning import LedgerActivities
from .sandbox import lightened, passing_through

STICKY_TIMEOUT = timedelta(seconds=1)
"""
How long the next answer waits for a worker that died (Temporal's default is 10 s).

A crash is felt by whoever answers next, and a worker that lives answers in
milliseconds.
"""


class GatewrightPlugin(SimplePlugin):
    """
    Converter, sandbox pass-through, interceptors, local activities and start-up checks.

    `store` holds the gate index and the ledger; without one gates work, nothing
    is listed, and effects are refused. `check=False` leaves the start-up checks
    out, for a server whose operator API this worker may not call.
    """

    def __init__(self, store: Store | None = None, *, check: bool = True) -> None:
        self.store = store
        self._check = check
        teller = IndexTeller(store)
        super().__init__(
            "gatewright",
            data_converter=_converter,
            interceptors=[FrameInterceptor(teller.tell)],
            activities=[*IndexActivities(store, teller).all, *LedgerActivities(store).all],
            workflow_runner=passing_through,
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See base class; also an executor for sync steps and a short sticky time-out, where the application set none."""
        config = super().configure_worker(config)
        if config.get("activity_executor") is None:
            # One for each worker, and ended with it by the garbage collector: this plugin may serve several workers.
            config["activity_executor"] = ThreadPoolExecutor(max_workers=20, thread_name_prefix="gatewright-step")
            config["max_concurrent_activities"] = config.get("max_concurrent_activities") or 20
        if config.get("sticky_queue_schedule_to_start_timeout") in (None, timedelta(seconds=10)):
            config["sticky_queue_schedule_to_start_timeout"] = STICKY_TIMEOUT
        # Each worker has its own, because an effect has Temporal write something down by the worker's client.
        effects = EffectsInterceptor(self.store, config["client"])
        config["interceptors"] = [*(config.get("interceptors") or []), effects]
        _lighten(config, config["client"].data_converter)
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """See base class; and the sandbox as it is enough for the converter."""
        config = super().configure_replayer(config)
        _lighten(config, config.get("data_converter"))
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Check what the worker needs, naming each thing that is missing, and run it."""
        if self._check:
            await check_server(worker.client)
        await super().run_worker(worker, next)


async def check_server(client: Client) -> None:
    """
    Whether the server has what runs are started with.

    `SetupError` names every search attribute that is missing, with the command
    that makes it; without them a start is refused by the server, or a run's
    task fails for ever.
    """
    try:
        listed = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace)
        )
    except RPCError as refused:
        msg = (
            f"the search attributes of namespace {client.namespace!r} cannot be listed ({refused.message}). "
            "Check the address and the namespace, or pass GatewrightPlugin(check=False) where the operator API is closed."
        )
        raise SetupError(msg) from refused
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    missing = []
    for name in (names.ATTRIBUTE_PIPELINE, names.ATTRIBUTE_SESSION):
        found = listed.custom_attributes.get(name)
        if found is None:
            missing.append(
                f"search attribute {name} is not registered: "
                f"temporal operator search-attribute create --namespace {client.namespace} --name {name} --type Keyword"
            )
        elif found != keyword:
            missing.append(f"search attribute {name} is registered with another type than Keyword")
    if missing:
        raise SetupError("\n".join(missing))


def _lighten(config: WorkerConfig | ReplayerConfig, converter: DataConverter | None) -> None:
    if runner := lightened(config.get("workflow_runner"), converter):
        config["workflow_runner"] = runner


def _converter(existing: DataConverter | None) -> DataConverter:
    """Pydantic's converter, but only in the place of the default one: an application's own is left alone."""
    if existing is None or existing is DataConverter.default:
        return dataclasses.replace(DataConverter.default, payload_converter_class=PydanticPayloadConverter)
    if existing.payload_converter_class is DefaultPayloadConverter:
        return dataclasses.replace(existing, payload_converter_class=PydanticPayloadConverter)
    return existing


__all__ = ["STICKY_TIMEOUT", "GatewrightPlugin", "check_server"]
