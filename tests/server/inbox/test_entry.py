"""Who comes into the inbox how: by a token file, by a proxy, and what is said where nobody works."""

import hashlib

import httpx

from gatewright.adk import Gateway
from gatewright.server import Security, Settings, create_app
from gatewright.store import Store
from tests.server.inbox.conftest import SETTINGS, TOKENS, hidden_field
from tests.store.builders import RUN, gate_row

CAROL = "token-of-carol-0123456789"


def near(
    gateway: Gateway, security: Security, settings: Settings = SETTINGS, peer: str = "127.0.0.1"
) -> httpx.AsyncClient:
    """A client of an app with this security, without a network in between."""
    transport = httpx.ASGITransport(create_app(gateway, security=security, inbox=settings), client=(peer, 50000))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")


async def test_with_a_token_file_people_sign_in_with_their_own(gateway: Gateway, store: Store) -> None:
    """And with nobody else's, also not the one that a server without a file would print."""
    store.open_gate(gate_row())
    security = Security(tokens={hashlib.sha256(CAROL.encode()).digest(): "carol"})
    async with near(gateway, security) as client:
        asked = await client.get("/inbox")
        printed = await client.post("/inbox/sign-in", data={"token": TOKENS["ada"]})
        entered = await client.post("/inbox/sign-in", data={"token": f" {CAROL} ", "target": "/inbox?view=all"})
        page = await client.get("/inbox")
        left = await client.post("/inbox/sign-out", data={"seal": hidden_field(page.text, "seal")})
        after = await client.get("/inbox")
        bearer = await client.get("/inbox", headers={"Authorization": f"Bearer {CAROL}"})

    assert (401, True) == (asked.status_code, "token file" in asked.text)
    assert "www-authenticate" not in asked.headers
    assert (403, True) == (printed.status_code, "That is not a token" in printed.text)
    assert (303, "/inbox?view=all") == (entered.status_code, entered.headers["location"])
    assert "You answer as carol" in page.text
    assert (303, 401, 200) == (left.status_code, after.status_code, bearer.status_code)
    assert CAROL not in asked.text + printed.text + page.text


async def test_a_proxy_says_who_it_is_and_nobody_else_does(gateway: Gateway, store: Store) -> None:
    """No sign-in is shown, and a form of one server is taken by another that shares its secret."""
    store.open_gate(gate_row())
    security = Security(principal_header="X-User", trusted_proxies=("10.0.0.1",))
    dave = {"X-User": "dave"}
    one, other = (Settings(secret=secret) for secret in ("one secret of some length", "another secret of a length"))
    async with (
        near(gateway, security, one, "10.0.0.1") as first,
        near(gateway, security, one, "10.0.0.1") as second,
        near(gateway, security, other, "10.0.0.1") as stranger,
        near(gateway, security, one, "10.0.0.2") as outside,
    ):
        page = await first.get("/inbox", headers=dave)
        spoofed = await outside.get("/inbox", headers=dave)
        seal = {"seal": hidden_field((await first.get(f"/inbox/run?run={RUN}", headers=dave)).text, "seal")}
        same, strange, erins = [
            (await client.post(f"/inbox/run/end?run={RUN}", data=seal, headers={"X-User": name})).text
            for client, name in ((second, "dave"), (stranger, "dave"), (second, "erin"))
        ]

    assert "You answer as dave" in page.text
    assert "Sign out" not in page.text
    assert (401, True) == (spoofed.status_code, "come here through the proxy" in spoofed.text)
    assert "Say whether to cancel" in same
    assert "not made for you" in strange
    assert "not made for you" in erins


async def test_where_no_worker_lives_the_list_says_so(gateway: Gateway) -> None:
    """Its gates are there all the same."""
    gateway.client.store.open_gate(gate_row(message="Still to be read"))
    async with near(gateway, Security()) as client:
        await client.get("/inbox", params={"token": TOKENS["ada"]})
        page = (await client.get("/inbox")).text

    assert "No worker is running: an answer is kept" in page
    assert "Still to be read" in page
