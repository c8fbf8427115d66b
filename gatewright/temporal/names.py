"""
Names on the wire between workflow, worker and client, in one place so that the sides cannot diverge.

They are part of recorded histories: none of them is ever renamed.
"""

from typing import Final

from gatewright.effects import wire

ANSWER: Final = "answer"
"""The signal and the update that carry an answer."""

QUERY_GATES: Final = "gatewright_gates"
QUERY_TRANSCRIPT: Final = "gatewright_transcript"
QUERY_RECEIPTS: Final = "gatewright_receipts"
QUERY_REFUSALS: Final = "gatewright_refusals"
QUERY_BOOK: Final = "gatewright_book"
QUERY_JUDGE: Final = "gatewright_judge"
QUERY_VERDICT: Final = "gatewright_verdict"
QUERY_METADATA: Final = "__temporal_workflow_metadata"
"""Temporal's own, by which its UI knows what a workflow takes."""

OPEN_GATE: Final = "gatewright_open_gate"
SETTLE_GATE: Final = "gatewright_settle_gate"
CLOSE_RUN: Final = "gatewright_close_run"
LEARN_LEDGER: Final = "gatewright_learn_ledger"
PLAN_EFFECT: Final = wire.PLAN_EFFECT
RESOLVE_EFFECT: Final = "gatewright_resolve_effect"

ATTRIBUTE_PIPELINE: Final = "GatewrightPipeline"
ATTRIBUTE_SESSION: Final = "GatewrightSession"

EXTERN_TELL: Final = "gatewright_tell"
"""The function of the worker by which a frame tells the index at once, outside the run's history."""

PATCH_STEADY: Final = "gatewright-steady"
"""Runs that were opened since no command waits for a local activity (`listing.py`)."""

PATCH_EFFECTS: Final = "gatewright-effects"
"""Runs whose effects are planned in the ledger, and whose failures ask a person (`performing.py`)."""

PATCH_NO_CRON: Final = "gatewright-no-cron"
"""Runs under a cron schedule that are refused; those of an earlier release go on."""

PATCH_CANCELLED: Final = "gatewright-cancelled"
"""Runs that are cancelled while an effect fails, and end; those of an earlier release go on (`deciding.py`)."""

PATCH_ASKED_AGAIN: Final = "gatewright-asked-again"
"""Runs that ask once more where a word, or what is recorded, cannot be had; those of an earlier release fail (`deciding.py`)."""

PATCH_LOOKED: Final = "gatewright-looked"
"""Runs that look into the ledger before a last attempt that never reached it counts for all; those of an earlier release do not (`deciding.py`)."""

PATCH_HANDED_OVER: Final = "gatewright-handed-over"
"""Runs that do not continue as new while a call is not over; those of an earlier release do (`frame.py`, `asking.py`)."""

ERROR_BUSY: Final = "GatewrightBusy"
"""The ApplicationError type with which the validator asks for an answer to be sent again in a moment."""

ERROR_BY_SIGNAL: Final = "GatewrightBySignal"
"""The ApplicationError type with which the validator asks for an answer to be sent as a signal instead."""

ERROR_REFUSED: Final = "GatewrightRefused"
"""The ApplicationError type with which the validator turns an answer away; its detail is the verdict."""
