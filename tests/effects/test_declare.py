"""Steps and effects are declared where they are written, and a wrong declaration is an error there."""

from datetime import timedelta

import pytest

from gatewright.effects import EffectKind, current_call, declaration_of, effect, heartbeat, step


def test_a_declared_function_stays_callable_as_it_is() -> None:
    """A unit test needs no Temporal."""

    @step(timeout=timedelta(minutes=3), attempts=2)
    def double(number: int) -> int:
        heartbeat("half way")
        return 2 * number

    assert double(4) == 8
    declaration = declaration_of(double)
    assert ("double", None, timedelta(minutes=3), 2) == (
        declaration.name,
        declaration.kind,
        declaration.timeout,
        declaration.attempts,
    )
    assert not declaration.effect


def test_an_effect_has_a_kind() -> None:
    """What may be done after a crash depends on it."""

    @effect(kind="keyed", name="send_mail")
    def send() -> None: ...

    assert declaration_of(send).kind is EffectKind.KEYED
    assert declaration_of(send).name == "send_mail"
    with pytest.raises(TypeError, match="keyed, reconcilable or opaque, not 'maybe'"):
        effect(kind="maybe")


def test_reconcilable_and_reconcile_go_together() -> None:
    """Neither without the other."""
    with pytest.raises(TypeError, match="reconcile="):
        effect(kind="reconcilable")
    with pytest.raises(TypeError, match="reconcile="):
        effect(kind="keyed", reconcile=lambda call: call)


def test_a_function_without_a_declaration_is_named() -> None:
    """With what to do."""

    def bare() -> None: ...

    with pytest.raises(TypeError, match=r"bare is neither a step nor an effect: decorate it with @step"):
        declaration_of(bare)


def test_there_is_no_call_outside_a_call() -> None:
    """Asking for it says what is missing."""
    with pytest.raises(LookupError, match=r"Frame\.perform"):
        current_call()
