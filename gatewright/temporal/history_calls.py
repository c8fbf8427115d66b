"""
One receipt of an effect, held against the activities that were scheduled under its key and what came of them.

Authorised: the answer stands in the chain before it, and the call is that
call. Performed: an activity of the key was completed with that result. Not
performed: nothing in the history says otherwise, and something says so.
"""

from collections.abc import Sequence
from typing import Any

from gatewright.protocol.call import Call, call_key
from gatewright.protocol.receipt import EffectState, Receipt
from gatewright.protocol.recovery import BLOCKED, system_name

from .history_answers import INEXACT, Saying, confirmed, contradicted, not_covered, together
from .history_facts import Facts, Made

MAX_GENERATION = 100
"""How many generations of a call are tried to find out whether a key that no activity has is the call's at all."""

MACHINES = {"attempt", "ledger", "reconcile"}
"""Who says of an effect what is known of it; anybody else is a person."""

Earlier = Sequence[tuple[Receipt, Saying]]
"""The receipts before this one, with what the history says of them."""


def authorisation_in(facts: Facts, receipt: Receipt, earlier: Earlier, *, compacted: bool) -> Saying:
    """What the history says of a receipt of what an answer authorised."""
    if receipt.responder is None or receipt.effect.key is None:
        return contradicted("it authorises something, and names no answer or no call")
    if receipt.effect.state is not EffectState.NOT_ATTEMPTED:
        return contradicted(f"what was only authorised is not {receipt.effect.state.value}")
    return together([*_authorised(receipt, earlier, compacted=compacted), _scheduled(facts, receipt)])


def effect_in(facts: Facts, receipt: Receipt, earlier: Earlier, *, compacted: bool) -> Saying:
    """What the history says of a receipt of an effect."""
    if receipt.effect.key is None:
        return contradicted("it is of an effect, and names no key")
    authorised = _authorised(receipt, earlier, compacted=compacted)
    for before, _ in earlier:
        if before.kind == "effect" and (before.effect.key, before.effect.state) == (
            receipt.effect.key,
            EffectState.PERFORMED,
        ):
            authorised.append(contradicted(f"it was performed already, as receipt {before.number} says"))
    made = facts.made.get(receipt.effect.key, [])
    if made and (wrong := _other_call(made[0].call, receipt)):
        return together([*authorised, contradicted(f"{made[0].where} has {wrong}")])
    if not made and not _key_is_of(receipt):
        return together([*authorised, _no_such_key(receipt)])
    if receipt.effect.state is EffectState.PERFORMED:
        return together([*authorised, _performed(facts, receipt, made, earlier)])
    return together([*authorised, _not_performed(facts, receipt, made)])


def key_of(call: Call) -> str:
    """The key that a call must have."""
    return call_key(call.identity, call.branch, call.visit, call.name, call.generation)


# The call


def _authorised(receipt: Receipt, earlier: Earlier, *, compacted: bool) -> list[Saying]:
    """The answer that a receipt names, among the receipts before it; nothing where it names none."""
    who = receipt.responder
    if who is None:
        return []
    for before, said in earlier:
        if before.kind == "continuation" and before.responder == who and before.occurrence == receipt.occurrence:
            if said.outcome == "confirmed":
                return [confirmed(f"authorised by receipt {before.number}")]
            return [not_covered(f"authorised by receipt {before.number}, which is {said.outcome.replace('_', ' ')}")]
    if compacted:
        return [not_covered("the answer that authorised it is among the receipts that are kept elsewhere")]
    return [contradicted(f"no receipt before it is of the answer {who.answer_id} that it says authorised it")]


def _scheduled(facts: Facts, receipt: Receipt) -> Saying:
    made = facts.made.get(receipt.effect.key or "", [])
    if made:
        wrong = _other_call(made[0].call, receipt)
        return contradicted(f"{made[0].where} has {wrong}") if wrong else confirmed(f"{made[0].where} scheduled it")
    if not _key_is_of(receipt):
        return _no_such_key(receipt)
    return not_covered("its call was never scheduled: the run ended first, or has not come to it")


def _other_call(call: Call, receipt: Receipt) -> str | None:
    """In what the call of an activity is another than the receipt says."""
    occurrence = receipt.occurrence.interrupt_id if receipt.occurrence else None
    for what, made, stated in (
        ("name", call.name, receipt.effect.name),
        ("branch", str(call.branch), str(receipt.branch)),
        ("authorising answer", call.authorised_by, occurrence),
        ("namespace", call.identity.namespace, receipt.frame.identity.namespace),
    ):
        if made != stated:
            return f"the {what} {made!r}, and the receipt {stated!r}"
    return None


def _key_is_of(receipt: Receipt) -> bool:
    """Whether the key is derived from what the receipt says of the call, under some generation."""
    if not receipt.branch or receipt.branch[-1].name != receipt.effect.name:
        return False
    visit, name, identity = receipt.branch[-1].visit, receipt.branch[-1].name, receipt.frame.identity
    return any(
        call_key(identity, receipt.branch, visit, name, generation) == receipt.effect.key
        for generation in range(MAX_GENERATION)
    )


def _no_such_key(receipt: Receipt) -> Saying:
    return contradicted(f"{receipt.effect.key} is not a key of {receipt.effect.name} at {receipt.branch}")


# What came of it


def _performed(facts: Facts, receipt: Receipt, made: Sequence[Made], earlier: Earlier) -> Saying:
    if not made:
        if facts.veiled.get("calls"):
            return not_covered("no readable activity is of this key, and the calls of others are encrypted")
        return contradicted(f"no activity of {receipt.effect.key} was ever scheduled")
    proof = receipt.effect.receipt
    stated = proof.get("result_digest") if isinstance(proof, dict) else None
    if not isinstance(proof, dict) or not isinstance(stated, str):
        return not_covered(f"it states no digest of its result, which {made[-1].where} may have")
    done = [each for each in made if each.performed and each.at is not None]
    in_time = [each for each in done if each.at is not None and each.at <= receipt.at + INEXACT]
    told: list[str] = []
    for each in in_time:
        if each.veiled:
            continue
        if each.result_digest != stated:
            told.append(f"{each.where} came back with a result of the digest {each.result_digest}, and not {stated}")
        elif wrong := _misquoted(each, proof):
            told.append(f"{each.where} came back with {wrong}")
        else:
            return _by_whom(proof, receipt, earlier, f"{each.where} came back with this result")
    if any(each.veiled and each.ended == "completed" for each in made):
        return not_covered("its result cannot be read (encrypted, or not JSON)")
    if told:
        return contradicted(told[-1])
    if done:
        return contradicted(f"{done[0].where} came back only after the receipt says so")
    return contradicted(f"no activity of this key came back: {made[-1].where} {_ended(made[-1])}")


def _misquoted(made: Made, proof: dict[str, Any]) -> str | None:
    """In what the receipt says otherwise than the activity side what is known, by whom, after how many attempts."""
    if made.finding is None:
        return None if "source" not in proof else "nothing said about who knows it"
    for what, said in (
        ("source", made.finding.source),
        ("attempts", made.finding.attempts),
        ("outside", made.finding.receipt),
    ):
        if what in proof and proof[what] != said:
            return f"{what} {said!r}, and the receipt {proof[what]!r}"
    return None


def _by_whom(proof: dict[str, Any], receipt: Receipt, earlier: Earlier, words: str) -> Saying:
    """Where a person said that it happened, everything rests on their answer."""
    source = proof.get("source", "attempt")
    gate = system_name(BLOCKED, receipt.effect.name or "")
    for before, said in earlier:
        asked = before.occurrence is not None and before.occurrence.gate == gate
        if before.kind == "continuation" and asked and before.responder and before.responder.principal == source:
            rests = f"{words}; it rests on the word of {source} in receipt {before.number}"
            return confirmed(rests) if said.outcome == "confirmed" else not_covered(rests)
    if source in MACHINES:
        return confirmed(words)
    return not_covered(f"{words}; it rests on the word of {source}")


def _not_performed(facts: Facts, receipt: Receipt, made: Sequence[Made]) -> Saying:
    """Of an effect that the receipt says is not known to have happened, or known not to have."""
    state, limit = receipt.effect.state, receipt.at + INEXACT
    for each in made:
        if each.performed and each.at is not None and each.at <= limit:
            return contradicted(f"{each.where} had come back, and the receipt says {state.value}")
    for heard in facts.heard:
        if heard.key == receipt.effect.key and heard.state is state and heard.at <= limit:
            return confirmed(f"{heard.where} came back with {state.value}")
    ended = [
        each for each in made if each.ended not in {None, "completed"} and each.at is not None and each.at <= limit
    ]
    if state is EffectState.FAILED:
        if facts.veiled:
            return not_covered("what proved that it did not happen cannot be read")
        return contradicted("nothing in the history proves that it did not happen")
    if ended:
        return confirmed(f"{ended[-1].where} {_ended(ended[-1])}")
    if state is EffectState.NOT_ATTEMPTED and not made:
        return confirmed("no activity of it was ever scheduled")
    return not_covered(f"nothing in the history says that it is {state.value}")


def _ended(made: Made) -> str:
    return "has not ended" if made.ended is None else (made.ended.replace("_", " ") + ", and nothing else came of it")


__all__ = ["Earlier", "authorisation_in", "effect_in", "key_of"]
