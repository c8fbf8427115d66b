"""The ways by which a message reaches a run, and what its sender is told by each of them."""

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from gatewright.protocol import Admitted, Message, Refused, Repeated
from gatewright.temporal import Delivered, GateClient
from tests.storm.arms import BY_TEMPORAL, OVER, Shot

DELIVERED = "delivered"
"""The sender knows that it arrived, and not what was ruled."""

WITH_NO_WORKER = timedelta(seconds=0.3)
"""How long a client waits for a verdict that is known not to come."""


@dataclass(frozen=True)
class Told:
    """What a sender was told: a verdict or refusal by name, the receipt, and whether the run left it out of its record."""

    name: str
    receipt: str | None = None
    turned_away: bool = False
    words: str = ""


class Channels:
    """Every way into the runs behind one Temporal address."""

    def __init__(self, gates: GateClient, binary: str, address: str) -> None:
        self._gates = gates
        self._binary = binary
        self._address = address

    async def send(self, shot: Shot, workflow_id: str, channel: str, *, worker: bool = True) -> Told:
        """Send one message; `worker` says whether one lives that could judge it."""
        match channel:
            case "raw signal":
                return await self._raw_signal(shot, workflow_id)
            case "raw update":
                return await self._raw_update(shot, workflow_id)
            case "client signal" | "client update":
                impatient = not worker or (shot.nameless and channel == "client signal")
                return await self._client(shot, workflow_id, channel, WITH_NO_WORKER if impatient else None)
            case "command signal":
                return await self._command(shot, workflow_id, "signal")
            case "command update":
                return await self._command(shot, workflow_id, "update", "execute")
            case _:
                raise ValueError(channel)

    async def _raw_signal(self, shot: Shot, workflow_id: str) -> Told:
        handle = self._gates.client.get_workflow_handle(workflow_id)
        try:
            await handle.signal(shot.signal, args=shot.payloads)
        except RPCError as failed:
            return _by_temporal(failed)
        return Told(DELIVERED)

    async def _raw_update(self, shot: Shot, workflow_id: str) -> Told:
        handle = self._gates.client.get_workflow_handle(workflow_id)
        try:
            return _verdict(await handle.execute_update(shot.signal, args=shot.payloads, id=uuid4().hex))
        except WorkflowUpdateFailedError as failed:
            kind = failed.cause.type if isinstance(failed.cause, ApplicationError) else None
            if kind == "GatewrightBusy":
                # "Send it again", it says.
                return await self._raw_update(shot, workflow_id)
            if kind != "GatewrightRefused" or not isinstance(failed.cause, ApplicationError):
                return Told(f"failed: {failed.cause}")
            return _verdict(failed.cause.details[0], turned_away=True)
        except RPCError as failed:
            return _by_temporal(failed)

    async def _client(self, shot: Shot, workflow_id: str, channel: str, patience: timedelta | None) -> Told:
        message = Message.model_validate(shot.args[0])
        ruling = await self._gates.answer(workflow_id, message, signal=channel == "client signal", patience=patience)
        match ruling:
            case Refused():
                return Told(ruling.refusal.value, words=ruling.reason)
            case Admitted() | Repeated():
                return Told(ruling.verdict, ruling.receipts[0].digest)
            case Delivered():
                return Told(DELIVERED, words=ruling.reason)
            case _:
                raise AssertionError(ruling)

    async def _command(self, shot: Shot, workflow_id: str, *verb: str) -> Told:
        command = [self._binary, "workflow", *verb, "-w", workflow_id, "--name", shot.signal]
        for payload in (each.payload for each in shot.payloads):
            command += ["--input", payload.data.decode()]
            encoding = payload.metadata["encoding"].decode()
            command += [] if encoding == "json/plain" else ["--input-meta", f"encoding={encoding}"]
        command += ["--address", self._address, "--output", "json", "--disable-config-file"]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            printed, complained = (text.decode() for text in await process.communicate())
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode and "GatewrightBusy" in complained:
            return await self._command(shot, workflow_id, *verb)
        if process.returncode:
            return _complaint(complained)
        return Told(DELIVERED) if verb == ("signal",) else _verdict(json.loads(printed)["result"])


def _verdict(raw: dict[str, Any], *, turned_away: bool = False) -> Told:
    if raw["verdict"] == "refused":
        first = raw["objections"][0]
        return Told(first["refusal"], turned_away=turned_away, words=first["reason"])
    return Told(raw["verdict"], raw["receipts"][0]["digest"], turned_away)


def _by_temporal(failed: RPCError) -> Told:
    if failed.status is RPCStatusCode.NOT_FOUND:
        return Told(OVER, words=failed.message)
    return Told(BY_TEMPORAL, words=failed.message)


def _complaint(complained: str) -> Told:
    """What the command says when an update was turned away before it could be recorded, or Temporal took nothing."""
    if "not found" in complained or "already completed" in complained:
        return Told(OVER, words=complained)
    _, marked, rest = complained.partition("unable to update workflow: ")
    name = rest.partition(":")[0].strip() if marked else complained
    return Told(name, turned_away=True, words=complained)
