"""What ADK's own clients sent to `adk web` and `adk api_server`, sent to Gatewright's server, earns the same replies."""

import httpx
import pytest

from gatewright.server import create_app

from .comparing import compared
from .conftest import Serving
from .replaying import as_recorded, recorded, replay

RECORDINGS = {
    "adk_web": ["gated"],
    "adk_api_server": ["gated"],
    "adk_edge": ["par", "loop", "boom", "strict", "gated"],
}
"""The recordings, and the apps that were served."""


@pytest.mark.parametrize("name", RECORDINGS)
async def test_a_recorded_client_is_served_as_by_adk(name: str, serving: Serving) -> None:
    """Status, reply and every frame, in the order of the recording."""
    steps = recorded(name)

    async with serving(*RECORDINGS[name]) as gateway:
        transport = httpx.ASGITransport(create_app(gateway))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=60) as client:
            ours = await replay(steps, client)

    wrong = compared(name, as_recorded(steps), ours)
    assert not wrong, "\n".join(wrong)
