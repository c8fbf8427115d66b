"""Who may talk to the server, and as whom: the rules, without a server."""

import base64
import hashlib
from pathlib import Path

import pytest

from gatewright.server import Security, SecurityError, read_tokens
from gatewright.server.security import is_loopback

TOKEN = "a-token-of-some-length"
TOKENS = {hashlib.sha256(TOKEN.encode()).digest(): "alice", hashlib.sha256(b"another-token-indeed").digest(): "bob"}

Headers = list[tuple[bytes, bytes]]


def headers(**given: str) -> Headers:
    """Headers as ASGI has them."""
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]


LOCAL = Security()
BEHIND = Security(host="0.0.0.0", principal_header="X-User", trusted_proxies=("10.0.0.0/8", "::1"))  # noqa: S104
OPEN = Security(host="0.0.0.0", insecure=True)  # noqa: S104
VOUCHED = Security(allow_origins=("https://gates.example.com",), allow_hosts=("gates.internal:8443",))


@pytest.mark.parametrize(
    ("security", "host"),
    [
        *(
            (LOCAL, ours)
            for ours in ("127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST.:80", "[::1]:8000", "127.9.9.9")
        ),
        *((OPEN, ours) for ours in ("localhost:8000", "192.168.1.7:8000", "[fe80::1]:8000")),
        *((VOUCHED, ours) for ours in ("gates.example.com", "gates.internal:8443", "localhost")),
        (BEHIND, "whatever.example.com"),
    ],
)
def test_a_host_that_is_ours_is_let_through(security: Security, host: str) -> None:
    """Loopback, what is vouched for, and any where callers say who they are."""
    assert security.foreign("http", headers(host=host)) is None


@pytest.mark.parametrize(
    ("security", "host"),
    [
        *(
            (LOCAL, foreign)
            for foreign in (
                "evil.example",
                "evil.example:8000",
                "127.0.0.1:8000.evil.example",
                "127.0.0.1.evil.example",
                "localhost.evil.example",
                "localhost@evil.example",
                "[::1].evil.example",
                "192.168.1.7",
                "127.0.0.1, evil.example",
                "",
            )
        ),
        (OPEN, "evil.example:8000"),
        (VOUCHED, "example.com"),
        (VOUCHED, "gates.internal:1"),
        (VOUCHED, "gates.example.com.evil.example"),
    ],
)
def test_a_host_that_is_not_ours_is_refused(security: Security, host: str) -> None:
    """A page whose name was pointed at us reads nothing."""
    assert "host not allowed" == security.foreign("http", headers(host=host))


def test_two_hosts_are_none() -> None:
    """Smuggling, not a client."""
    assert "host not allowed" == LOCAL.foreign("http", [(b"host", b"localhost"), (b"host", b"localhost")])


@pytest.mark.parametrize(
    ("security", "host", "origin", "reason"),
    [
        (LOCAL, "localhost:8000", "http://localhost:8000", None),
        (LOCAL, "localhost:8000", "http://localhost:3000", "origin not allowed"),
        (LOCAL, "localhost:8000", "https://localhost:8000", "origin not allowed"),
        (LOCAL, "localhost:8000", "http://evil.example", "origin not allowed"),
        (LOCAL, "localhost:8000", "null", "origin not allowed"),
        (LOCAL, "localhost:8000", "", "origin not allowed"),
        (BEHIND, "gates.example.com", "https://gates.example.com", "origin not allowed"),
        (VOUCHED, "gates.example.com", "https://gates.example.com", None),
        (VOUCHED, "gates.example.com", "http://evil.example", "origin not allowed"),
        (BEHIND, "a.example", "http://b.example", "origin not allowed"),
    ],
)
def test_a_page_may_call_only_where_it_came_from(
    security: Security, host: str, origin: str, reason: str | None
) -> None:
    """Same origin, or one that was allowed by name."""
    assert reason == security.foreign("http", headers(host=host, origin=origin))


def basic(user: str, password: str) -> str:
    """What a browser sends once somebody has typed it."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic("", TOKEN), basic("whoever", TOKEN)])
def test_a_token_names_its_holder(given: str) -> None:
    """As a bearer token, or as a password, which browsers can ask for."""
    assert "alice" == Security(tokens=TOKENS).principal("203.0.113.9", headers(authorization=given))


@pytest.mark.parametrize(
    "given",
    [
        *(f"Bearer {wrong}" for wrong in (TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "", "*", "ö" * 20)),
        TOKEN,
        "Bearer",
        "Basic !!!",
        basic(TOKEN, ""),
        basic("alice", "guess"),
        f"Digest {TOKEN}",
    ],
)
def test_another_token_names_nobody(given: str) -> None:
    """However near it comes."""
    assert Security(tokens=TOKENS).principal("127.0.0.1", headers(authorization=given)) is None


def test_two_tokens_are_none() -> None:
    """It is not ours to choose."""
    twice = [*headers(authorization=f"Bearer {TOKEN}"), *headers(authorization=f"Bearer {TOKEN}")]

    assert Security(tokens=TOKENS).principal("127.0.0.1", twice) is None


@pytest.mark.parametrize(
    ("peer", "given", "principal"),
    [
        ("10.1.2.3", headers(x_user="alice@example.com"), "alice@example.com"),
        ("::ffff:10.1.2.3", headers(x_user="alice"), "alice"),
        ("::1", headers(x_user="Zoë"), "Zoë"),
        ("192.168.0.1", headers(x_user="mallory"), None),
        ("127.0.0.1", headers(x_user="mallory"), None),
        ("127.0.0.1", headers(x_user="mallory", x_forwarded_for="10.1.2.3"), None),
        (None, headers(x_user="mallory"), None),
        ("unix", headers(x_user="mallory"), None),
        ("10.1.2.3", [], None),
        ("10.1.2.3", headers(x_user="  "), None),
        ("10.1.2.3", headers(x_user="al\tice"), None),
        ("10.1.2.3", headers(x_user="a" * 401), None),
        ("10.1.2.3", [*headers(x_user="alice"), *headers(x_user="mallory")], None),
    ],
)
def test_a_header_names_somebody_only_from_the_proxy(peer: str | None, given: Headers, principal: str | None) -> None:
    """Whoever else writes it is nobody."""
    assert principal == BEHIND.principal(peer, given)


def test_whoever_others_can_reach_must_ask_who_they_are() -> None:
    """The refusal names every way out."""
    with pytest.raises(SecurityError, match=r"--token-file.*--trusted-proxy.*127\.0\.0\.1.*--insecure"):
        Security(host="0.0.0.0")  # noqa: S104
    with pytest.raises(SecurityError, match=r"whoever reaches gates\.example\.com"):
        Security(host="gates.example.com")
    assert Security(host="0.0.0.0", tokens=TOKENS).authenticates  # noqa: S104
    assert OPEN.open
    assert not LOCAL.open


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"principal_header": "X-User"}, "belong together"),
        ({"trusted_proxies": ("10.0.0.1",)}, "belong together"),
        ({"principal_header": "X User", "trusted_proxies": ("10.0.0.1",)}, "no name of a header"),
        ({"principal_header": "X-User", "trusted_proxies": ("proxy",)}, "--trusted-proxy"),
        ({"allow_origins": ("gates.example.com",)}, "scheme and host"),
        ({"allow_origins": ("https://gates.example.com/",)}, "scheme and host"),
        ({"allow_hosts": ("https://gates.example.com",)}, "without scheme"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(settings: dict[str, object], said: str) -> None:
    """When the server starts, not when it is attacked."""
    with pytest.raises(SecurityError, match=said):
        Security(**settings)  # type: ignore[arg-type]


def test_a_token_file_is_read(tmp_path: Path) -> None:
    """Comments and empty lines are left out; a file that others can read is warned about."""
    file = tmp_path / "tokens"
    file.write_text(f"# who may call\n\n{TOKEN} alice\n  another-token-indeed   Bob the builder \n")
    file.chmod(0o644)
    tokens, warning = read_tokens(file)
    file.chmod(0o600)

    assert {"alice", "Bob the builder"} == set(tokens.values())
    assert warning is not None
    assert "mode 644" in warning
    assert read_tokens(file)[1] is None
    assert TOKEN not in repr(Security(tokens=tokens))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no token"),
        (b"# nobody yet\n", "holds no token"),
        (b"a-token-without-a-name\n", "line 1: a line is TOKEN PRINCIPAL"),
        (b"# first\nshort alice\n", "line 2: a token has at least 16"),
        (b"a-token-of-some-length alice\na-token-of-some-length bob\n", "line 2: this token stands there twice"),
        (b"\xff\xfe\n", "not UTF-8"),
    ],
)
def test_a_token_file_that_is_wrong_is_refused_by_line(tmp_path: Path, content: bytes, said: str) -> None:
    """And the token itself is never printed."""
    file = tmp_path / "tokens"
    file.write_bytes(content)

    with pytest.raises(SecurityError, match=said) as refused:
        read_tokens(file)
    assert "a-token-of" not in str(refused.value)


def test_a_token_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(SecurityError, match="nowhere cannot be read"):
        read_tokens(tmp_path / "nowhere")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "[::1]:80", "127.1.2.3", "::ffff:127.0.0.1"])
def test_loopback_is_known(host: str) -> None:
    """By every name of it."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "example.com", "128.0.0.1", "localhost.example.com"])  # noqa: S104
def test_what_is_not_loopback_is_known(host: str) -> None:
    """All addresses are not loopback."""
    assert not is_loopback(host)
