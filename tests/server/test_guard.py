"""What stands before every endpoint, seen from outside."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from gatewright.server import Security
from gatewright.server.guard import Guard
from tests.server.conftest import Served

TOKEN = "a-token-of-some-length"
TOKENS = {hashlib.sha256(TOKEN.encode()).digest(): "alice"}
Asking = Callable[..., httpx.AsyncClient]


async def test_another_sites_page_is_turned_away_in_words_of_adk(asking: Asking) -> None:
    """By its host and by its origin, on every path and method, `/health` and files included."""
    for method, path in (("GET", "/list-apps"), ("POST", "/run_sse"), ("GET", "/health"), ("GET", "/dev-ui/")):
        host = await asking().request(method, path, headers={"Host": "evil.example"})
        origin = await asking().request(method, path, headers={"Origin": "http://evil.example"})

        assert (403, "Forbidden: host not allowed", "text/plain") == (
            host.status_code,
            host.text,
            host.headers["content-type"],
        )
        assert (403, "Forbidden: origin not allowed") == (origin.status_code, origin.text)
        assert "access-control-allow-origin" not in origin.headers


async def test_whoever_brings_no_token_is_asked_for_one(asking: Asking) -> None:
    """401 as JSON, on every path but `/health` and the inbox's; a browser asks its user."""
    client = asking(Security(tokens=TOKENS))
    for path in ("/list-apps", "/dev-ui/", "/openapi.json", "/nowhere", "/health/", "/inboxes"):
        unknown = await client.get(path)
        assert (401, "unauthenticated") == (unknown.status_code, unknown.json()["code"])
        assert "Authorization: Bearer TOKEN" in unknown.json()["todo"]
        assert ["Bearer", "Basic"] == [way.split()[0] for way in unknown.headers.get_list("www-authenticate")]
    for path in ("/inbox%2f..%2flist-apps", "/inbox/..;/list-apps", "/inbox//list-apps"):
        assert 404 == (await client.get(path)).status_code
    assert {"status": "ok"} == (await client.get("/health")).json()
    assert 401 == (await client.get("/list-apps", headers={"Authorization": f"Bearer {TOKEN}x"})).status_code
    assert 200 == (await client.get("/list-apps", headers={"Authorization": f"Bearer {TOKEN}"})).status_code
    assert 200 == (await client.get("/list-apps", auth=("alice", TOKEN))).status_code


async def test_a_header_counts_only_from_the_proxy(asking: Asking) -> None:
    """From anywhere else its writer is nobody."""
    security = Security(principal_header="X-User", trusted_proxies=("10.0.0.1",))
    spoof = {"X-User": "alice", "X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1"}

    assert 401 == (await asking(security).get("/list-apps", headers=spoof)).status_code
    assert 200 == (await asking(security, peer="10.0.0.1").get("/list-apps", headers=spoof)).status_code


async def test_over_the_network_an_address_cannot_be_made_up(gateway: Any) -> None:
    """The server behind uvicorn believes no forwarding header either, though it comes from loopback."""
    from gatewright.server import create_app
    from tests.server.conftest import served

    security = Security(principal_header="X-User", trusted_proxies=("10.0.0.1",))
    async with served(create_app(gateway, security=security)) as running, httpx.AsyncClient() as client:
        spoof = {"X-User": "alice", "X-Forwarded-For": "10.0.0.1"}
        assert 401 == (await client.get(f"{running.url}/list-apps", headers=spoof)).status_code


async def endless(size: int = 1 << 16) -> AsyncIterator[bytes]:
    """A body without a length and without an end."""
    while True:
        yield b" " * size
        await asyncio.sleep(0)


async def test_a_body_that_is_too_large_is_refused_however_it_is_sent(asking: Asking) -> None:
    """413 as JSON: by its length, and in pieces that never end."""
    large = b'{"appName": "' + b"x" * (1 << 20) + b'"}'
    json_type = {"Content-Type": "application/json"}
    for content in (large, endless()):
        async with asyncio.timeout(10):
            refused = await asking().post("/run", content=content, headers=json_type)
        assert (413, "too_large") == (refused.status_code, refused.json()["code"])
        assert "1048576 bytes" in refused.json()["detail"]
    whole = b'{"appName": "' + b"x" * ((1 << 20) - 15) + b'"}'
    assert 1 << 20 == len(whole)
    assert 422 == (await asking().post("/run", content=whole, headers=json_type)).status_code


async def test_over_the_network_a_chunked_body_is_bounded_too(serving: Served) -> None:
    """Raw, so that no client library helps."""
    host, port = serving.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /run HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    try:
        for _ in range(40):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    async with asyncio.timeout(10):
        answered = await reader.read(4096)
    writer.close()

    assert answered.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too_large"' in answered


async def test_every_answer_carries_what_browsers_are_to_heed(asking: Asking) -> None:
    """Refusals and faults too."""
    client = asking()
    for path in ("/list-apps", "/nowhere", "/dev-ui/", "/openapi.json"):
        answered = await client.get(path)
        assert "nosniff" == answered.headers["x-content-type-options"]
        assert "DENY" == answered.headers["x-frame-options"]
        assert answered.headers["cache-control"] == ("no-cache" if path == "/dev-ui/" else "no-store")
    refused = await client.get("/list-apps", headers={"Host": "evil.example"})
    assert "nosniff" == refused.headers["x-content-type-options"]


async def test_a_fault_is_logged_and_told_under_a_number(caplog: pytest.LogCaptureFixture) -> None:
    """500 as JSON, and nothing of the inside; the log has all of it."""

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("the inside")

    transport = httpx.ASGITransport(Guard(broken, Security()))
    with caplog.at_level(logging.ERROR):
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            told = await client.get("/x")

    assert (500, "internal") == (told.status_code, told.json()["code"])
    assert "inside" not in told.text
    assert "Traceback" not in told.text
    assert told.json()["id"] in caplog.text
    assert "the inside" in caplog.text


@pytest.mark.parametrize(
    "path",
    [
        "/dev-ui/../../../../pyproject.toml",
        "/dev-ui/..%2f..%2f..%2fcli.py",
        "/dev-ui/%2e%2e/%2e%2e/cli.py",
        "/dev-ui/assets/%2e%2e/%2e%2e/cli.py",
        "/dev-ui//etc/passwd",
        "/dev-ui/..%5c..%5ccli.py",
        "/dev-ui/%00",
        "/dev-ui/" + "a" * 5000,
    ],
)
async def test_the_ui_is_a_folder_and_nothing_beside_it(serving: Served, path: str) -> None:
    """Raw paths, over the network."""
    host, port = serving.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(10):
        answered = await reader.read()
    writer.close()

    assert answered.startswith(b"HTTP/1.1 404 "), answered[:200]
    assert b'"detail"' in answered
