"""
The protocol: what a gate is, what an answer is, and whether it counts.

Pure: the same input gives the same output for ever, in a workflow's replay, in
a client's dry run and in a test. No clock, no I/O, no Temporal.
"""

from gatewright.protocol.admission import Admission, Admitted, Pending, Repeated, Verdict, admit
from gatewright.protocol.answer import MAX_MESSAGE_BYTES, Answer, Evidence, EvidenceClass, Failure, Message
from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.canonical import NotJson, canonical, check_json, digest, plain
from gatewright.protocol.decision import Blocked, Continue, Decision, EffectKnowledge, Pause, ReplayCalls, decide
from gatewright.protocol.decoding import Decoded, Fault, Undecodable, decode
from gatewright.protocol.entries import Entry, Objection, Refusal, Refused
from gatewright.protocol.errors import BookError, GateError, GatewrightError, IdentityError
from gatewright.protocol.gate import Default, Gate, GateKind, PinnedGate, Policy
from gatewright.protocol.identity import BranchPath, FrameIdentity, FrameState, Occurrence, Standing
from gatewright.protocol.receipt import Anchor, Broken, EffectFact, EffectState, Receipt, Verified, verify
from gatewright.protocol.record import GateRecord

__all__ = [
    "MAX_MESSAGE_BYTES",
    "Admission",
    "Admitted",
    "Anchor",
    "Answer",
    "Blocked",
    "Book",
    "BookError",
    "BranchPath",
    "Broken",
    "Call",
    "Continue",
    "Decision",
    "Decoded",
    "Default",
    "EffectFact",
    "EffectKnowledge",
    "EffectState",
    "Entry",
    "Evidence",
    "EvidenceClass",
    "Failure",
    "Fault",
    "FrameIdentity",
    "FrameState",
    "Gate",
    "GateError",
    "GateKind",
    "GateRecord",
    "GatewrightError",
    "IdentityError",
    "Message",
    "NotJson",
    "Objection",
    "Occurrence",
    "Pause",
    "Pending",
    "PinnedGate",
    "Policy",
    "Receipt",
    "Refusal",
    "Refused",
    "Repeated",
    "ReplayCalls",
    "Standing",
    "Undecodable",
    "Verdict",
    "Verified",
    "admit",
    "canonical",
    "check_json",
    "decide",
    "decode",
    "digest",
    "plain",
    "verify",
]
