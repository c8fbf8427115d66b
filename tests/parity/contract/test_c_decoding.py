"""C. How what was answered becomes the value that the pipeline sees."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="the extra gatewright[adk] is not installed")

from tests.parity.contract.saying import Saying, response

Begin = Callable[..., Awaitable[Saying]]


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"result": {"result": "deep"}}, {"result": "deep"}),
        ({"result": 1, "x": 2}, {"result": 1, "x": 2}),
        ({"response": "y"}, {"response": "y"}),
        ({}, {}),
    ],
)
async def test_c01_one_result_is_unwrapped(paused: Begin, given: dict[str, Any], value: Any) -> None:
    """
    C01, mirrored.

    ADK: A response with the one key `result` is unwrapped, once; any other object is delivered as it is.
    """
    session = await paused("bare")

    await session.say(response("g", given))

    assert session.took() == [("d", value)]


READ = {"true": True, "42": 42, "[1]": [1], "null": None, " 7 ": 7, '"q"': "q", "yes": "yes", "007": "007", "": ""}


async def test_c02_text_is_read_as_json(paused: Begin) -> None:
    """
    C02, differs.

    ADK: Text under `result` is read as JSON if it can be: `'true'` becomes true, `'42'` 42, `'NaN'` NaN, `'1e999'` infinity; other text is kept.

    Gatewright: Without a schema the same, but NaN and infinities are refused; where the schema asks for text, text stays text (D06).
    """
    for given, value in READ.items():
        session = await paused("bare")
        await session.say(response("g", given))
        assert session.took() == [("d", value)]
    for given in ("NaN", "1e999"):
        assert "is not JSON; send a finite number" in str(await (await paused("bare")).refused(response("g", given)))


@pytest.mark.parametrize("given", [None, {"result": None}, {"result": "null"}], ids=["nothing", "null", "text"])
async def test_c03_null_is_an_answer(paused: Begin, given: Any) -> None:
    """
    C03, mirrored.

    ADK: No response, null and `'null'` all deliver null; the gate is answered and what follows runs.
    """
    session = await paused("bare")

    await session.say(response("g", given))

    assert session.took() == [("d", None)]
