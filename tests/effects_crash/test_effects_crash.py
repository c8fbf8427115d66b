"""Wherever an effect is stopped, it is done once, or a person is asked: each kind at each point, and each trouble a few times."""

from pathlib import Path

import pytest

from gatewright.effects import EffectKind
from tests.effects_crash.harness import databases, harness
from tests.effects_crash.points import KINDS, Point, Trouble
from tests.effects_crash.tally import Case, Outcome, Tally

KEYED, ASKED, OPAQUE = KINDS

A_FEW: dict[Trouble, tuple[tuple[EffectKind, Point], ...]] = {
    Trouble.KILL: tuple((kind, point) for kind in KINDS for point in Point),
    Trouble.SHORT_STOP: ((ASKED, Point.BEFORE_OUTSIDE), (OPAQUE, Point.BEFORE_FENCE)),
    Trouble.LONG_STOP: ((KEYED, Point.BEFORE_OUTSIDE), (ASKED, Point.BEFORE_FENCE), (OPAQUE, Point.BEFORE_RECEIPT)),
    Trouble.EMPTIED: ((KEYED, Point.COMMITTED),),
    Trouble.EMPTIED_UNDER: ((OPAQUE, Point.BEFORE_RECEIPT),),
    Trouble.RESTORED: ((ASKED, Point.AFTER_INTENT), (ASKED, Point.AFTER_RECEIPT)),
    Trouble.RESTORED_AGAIN: ((OPAQUE, Point.COMMITTED),),
    Trouble.OTHER: ((KEYED, Point.BEFORE_REPORT),),
    Trouble.RESET: ((OPAQUE, Point.COMMITTED), (ASKED, Point.BEFORE_RECEIPT)),
    Trouble.RESET_STOPPED: ((ASKED, Point.COMMITTED),),
    Trouble.EMPTIED_RESET: ((ASKED, Point.COMMITTED),),
    Trouble.RESTORED_RESET: ((ASKED, Point.COMMITTED),),
    Trouble.CONTINUED: ((OPAQUE, Point.COMMITTED), (KEYED, Point.BEFORE_RECEIPT)),
}
"""What `make test` has time for; `make crash` tries everything, a hundred times."""

MISDECLARED = Case(Trouble.KILL, KEYED, Point.COMMITTED, honoured=False)

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
async def tally(address: str, tmp_path_factory: pytest.TempPathFactory) -> Tally:
    """All of them, at once."""
    folder: Path = tmp_path_factory.mktemp("crash")
    cases = [Case(trouble, kind, point) for trouble, places in A_FEW.items() for kind, point in places]
    tally = Tally()
    with databases("sqlite", folder) as urls:
        async with harness(address, urls, folder) as made:
            await made.run(dict(enumerate([*cases, MISDECLARED])), tally, seed=7, at_once=12)
    return tally


@pytest.mark.parametrize("trouble", Trouble)
def test_an_effect_is_done_once_or_a_person_is_asked(trouble: Trouble, tally: Tally) -> None:
    """No call too many, none lost, and BLOCKED where it must be and nowhere else."""
    outcomes = [outcome for outcome in tally.outcomes if outcome.case.trouble is trouble and outcome.case.honoured]

    assert len(A_FEW[trouble]) == len(outcomes)
    assert [] == [words for words in tally.broken() if words.startswith(f"{trouble}: ")]


def test_an_outside_that_ignores_its_key_is_seen_to_do_it_twice(tally: Tally) -> None:
    """Otherwise the trials would prove nothing: a promise that the pipeline's author made wrongly is found out."""
    [outcome] = [outcome for outcome in tally.outcomes if not outcome.case.honoured]

    assert 2 == outcome.calls


def test_what_is_broken_is_named() -> None:
    """A duplicate, a loss, a person asked for nothing, and one who should have been asked."""
    opaque = Case(Trouble.KILL, OPAQUE, Point.COMMITTED)
    keyed = Case(Trouble.KILL, KEYED, Point.COMMITTED)

    assert [] == Outcome(opaque, "1", calls=1, ended=True, asked=["blocked:opaque"]).broken()
    assert ["2 calls of the outside"] == Outcome(opaque, "1", calls=2, ended=True, asked=["blocked:opaque"]).broken()
    assert ["lost: the outside has no call"] == Outcome(keyed, "1", ended=True).broken()
    assert ["lost: the run did not end"] == Outcome(keyed, "1", calls=1).broken()
    assert ["asked at no gate, which is not what must be"] == Outcome(opaque, "1", calls=1, ended=True).broken()
    asked = Outcome(keyed, "1", calls=1, ended=True, asked=["blocked:keyed"]).broken()
    assert ["asked at ['blocked:keyed'], which is not what must be"] == asked


def test_what_no_fence_can_stop_is_told_apart() -> None:
    """A second call after a stop between fence and outside is shown, and breaks no promise; anywhere else it does."""
    beyond = Case(Trouble.LONG_STOP, ASKED, Point.BEFORE_OUTSIDE)
    before = Case(Trouble.LONG_STOP, ASKED, Point.BEFORE_FENCE)

    assert Outcome(beyond, "1", calls=2, ended=True).duplicate
    assert [] == Outcome(beyond, "1", calls=2, ended=True).broken()
    assert ["2 calls of the outside"] == Outcome(before, "1", calls=2, ended=True).broken()


@pytest.mark.parametrize("honoured", [True, False])
def test_a_duplicate_counts_although_the_trial_was_disturbed(honoured: bool) -> None:
    """Unless the outside was made to ignore the key: there it promises nothing."""
    tally = Tally()
    case = Case(Trouble.KILL, KEYED, Point.COMMITTED, honoured=honoured)
    tally.note(Outcome(case, "1", calls=2, ended=True, disturbed="the machine was busy"), last=False)

    assert honoured == bool(tally.broken())
