"""
A result as the ledger keeps it and as Temporal carries it: what is returned the first time and what a retry finds is the same.

A result that the application's converter writes as JSON is kept as that JSON;
any other as its payload, in base64.
"""

import base64
import json
from typing import Any

from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import PayloadConverter

from gatewright.protocol.finding import Finding

from .wire import FINDING_METADATA

_PAYLOAD = "gatewright_payload"


def carried(converter: PayloadConverter, result: Any) -> Payload:
    """The result as the application's converter writes it; what the converter raises."""
    return converter.to_payloads([result])[0]


def recorded(payload: Payload) -> JsonValue:
    """What the ledger keeps of a result."""
    match payload.metadata.get("encoding"):
        case b"binary/null":
            return None
        case b"json/plain":
            kept: JsonValue = json.loads(payload.data)
            return kept
        case _:
            metadata: JsonValue = {name: base64.b64encode(value).decode() for name, value in payload.metadata.items()}
            return {_PAYLOAD: {"metadata": metadata, "data": base64.b64encode(payload.data).decode()}}


def restored(converter: PayloadConverter, kept: JsonValue) -> Payload:
    """The payload of a result that the ledger kept."""
    if isinstance(kept, dict) and isinstance(raw := kept.get(_PAYLOAD), dict) and len(kept) == 1:
        metadata = raw["metadata"]
        assert isinstance(metadata, dict)  # noqa: S101 - `recorded` wrote it
        return Payload(
            metadata={name: base64.b64decode(str(value)) for name, value in metadata.items()},
            data=base64.b64decode(str(raw["data"])),
        )
    return carried(converter, kept)


def with_finding(payload: Payload, finding: Finding) -> RawValue:
    """The result with what is known of the effect beside it."""
    told = Payload()
    told.CopyFrom(payload)
    told.metadata[FINDING_METADATA] = finding.model_dump_json().encode()
    return RawValue(told)


def finding_of(payload: Payload) -> Finding | None:
    """What is known of the effect whose result this is; None where nothing was said."""
    told = payload.metadata.get(FINDING_METADATA)
    return None if told is None else Finding.model_validate_json(told)
