"""A chain of receipts that was touched is found out, and the first broken link is named."""

from typing import Any

import pytest

from gatewright.protocol.identity import BranchPath, FrameState, Standing
from gatewright.protocol.receipt import Anchor, Broken, EffectState, Receipt, Verified, verify
from tests.protocol.builders import IDENTITY, chain, later, sealed

ALTERED: dict[str, Any] = {
    # The five facts...
    "frame": lambda _: FrameState(identity=IDENTITY, standing=Standing.SUPERSEDED),
    "occurrence": lambda it: it.occurrence.model_copy(update={"visit": 2}),
    "branch": lambda _: BranchPath.parse("release@1/review@2"),
    "responder": lambda it: it.responder.model_copy(update={"principal": "eve"}),
    "effect": lambda it: it.effect.model_copy(update={"state": EffectState.UNKNOWN}),
    # ...and what places them.
    "at": lambda _: later(59),
    "kind": lambda _: "effect",
}


def altered(receipt: Receipt, fact: str) -> Receipt:
    """Forge one fact and leave the rest."""
    return receipt.model_copy(update={fact: ALTERED[fact](receipt)})


def resealed(receipt: Receipt) -> Receipt:
    """Give a forged receipt the digest of its new facts."""
    return receipt.model_copy(update={"digest": receipt.facts_digest()})


class TestVerify:
    def test_an_untouched_chain_holds(self) -> None:
        """The head tells which chain it is."""
        receipts = chain(4)

        assert Verified(4, receipts[-1].digest) == verify(receipts)
        assert Verified(0, None) == verify([])

    def test_a_chain_holds_after_json(self) -> None:
        """It is verified offline, from what was exported."""
        read = [Receipt.model_validate_json(receipt.model_dump_json()) for receipt in chain(4)]

        assert Verified(4, chain(4)[-1].digest) == verify(read)

    @pytest.mark.parametrize("fact", ALTERED)
    @pytest.mark.parametrize("position", [1, 3, 5])
    def test_an_altered_fact_is_found_where_it_is(self, fact: str, position: int) -> None:
        """Each of the five facts, the time and the kind; at the beginning, inside and at the end."""
        receipts = chain(5)
        receipts[position - 1] = altered(receipts[position - 1], fact)

        assert Broken(position, "its facts do not have the digest that it states: it was altered") == verify(receipts)

    def test_every_fact_has_a_forgery(self) -> None:
        """A fact that is added to receipts and left out of the digest would fail here."""
        assert set(ALTERED) | {"number", "previous", "digest"} == set(Receipt.model_fields)

    @pytest.mark.parametrize("fact", ALTERED)
    def test_a_receipt_that_was_altered_and_sealed_anew_breaks_the_next_link(self, fact: str) -> None:
        """Whoever forges one must forge all that follow."""
        receipts = chain(5)
        receipts[2] = resealed(altered(receipts[2], fact))
        broken = verify(receipts)

        assert isinstance(broken, Broken)
        assert 4 == broken.number
        assert receipts[2].digest in broken.reason

    @pytest.mark.parametrize(("position", "found"), [(1, 1), (3, 3), (4, 4)])
    def test_a_dropped_receipt_is_missed(self, position: int, found: int) -> None:
        """By its number."""
        receipts = chain(5)
        del receipts[position - 1]

        assert Broken(found, f"number {found} is missing: number {found + 1} stands in its place") == verify(receipts)

    def test_a_chain_that_was_cut_at_the_end_has_another_head(self) -> None:
        """No chain can tell by itself that it went on: compare the count and the head with the run's own."""
        receipts = chain(5)

        assert Verified(4, receipts[3].digest) == verify(receipts[:4])
        assert verify(receipts) != verify(receipts[:4])

    def test_an_inserted_receipt_is_found(self) -> None:
        """Sealed after its neighbour, it takes the number of the one that follows."""
        receipts = chain(5)
        receipts.insert(2, sealed(receipts[1], at=later(30)))

        assert Broken(4, "number 4 is missing: number 3 stands in its place") == verify(receipts)

    def test_an_inserted_receipt_is_found_although_all_were_numbered_anew(self) -> None:
        """Its neighbour names another one as the one before it."""
        receipts = chain(4)
        inserted = sealed(receipts[1], at=later(30))
        moved = [resealed(each.model_copy(update={"number": each.number + 1})) for each in receipts[2:]]
        broken = verify([*receipts[:2], inserted, *moved])

        assert isinstance(broken, Broken)
        assert 4 == broken.number
        assert "the receipt before it is" in broken.reason

    @pytest.mark.parametrize("first", [1, 2, 4])
    def test_swapped_receipts_are_found_at_the_first_of_them(self, first: int) -> None:
        """Order is part of what happened."""
        receipts = chain(5)
        receipts[first - 1], receipts[first] = receipts[first], receipts[first - 1]

        assert Broken(first, f"number {first} is missing: number {first + 1} stands in its place") == verify(receipts)

    @pytest.mark.parametrize("position", [1, 3, 5])
    def test_a_duplicated_receipt_is_found(self, position: int) -> None:
        """One continuation does not count twice."""
        receipts = chain(5)
        receipts.insert(position, receipts[position - 1])
        broken = verify(receipts)

        assert isinstance(broken, Broken)
        assert position + 1 == broken.number


class TestAnchor:
    def test_a_chain_goes_on_from_its_anchor(self) -> None:
        """The receipts before it are in the archive."""
        receipts = chain(5)
        anchor = Anchor(number=2, digest=receipts[1].digest)

        assert Verified(3, receipts[-1].digest) == verify(receipts[2:], anchor)
        assert Verified(0, receipts[1].digest) == verify([], anchor)
        assert receipts[2] == sealed(anchor, at=later(2))

    @pytest.mark.parametrize(("number", "digest"), [(2, "sha256:0"), (2, None), (1, "right"), (3, "right"), (0, None)])
    def test_a_chain_does_not_go_on_from_another_anchor(self, number: int, digest: str | None) -> None:
        """Neither by number nor by digest; the first receipt at hand is then the broken link."""
        receipts = chain(5)
        anchor = Anchor(number=number, digest=receipts[1].digest if digest == "right" else digest)
        broken = verify(receipts[2:], anchor)

        assert isinstance(broken, Broken)
        assert number + 1 == broken.number


class TestGolden:
    def test_a_receipt_has_the_same_digest_for_ever(self) -> None:
        """Receipts written today are verified in years; a change here breaks every chain."""
        first, second = chain(2)

        assert (1, None) == (first.number, first.previous)
        assert (2, first.digest) == (second.number, second.previous)
        assert "sha256:7c31d74305592785f94511859b07b6bdda366b49a2b9978bf9c02b9b8c5603a1" == second.digest
