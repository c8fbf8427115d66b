"""
Who may talk to the server, and as whom.

Four rules, in this order:

1. A page of another site cannot reach it: on loopback, and wherever nobody has
   to say who they are, the `Host` must be ours (DNS rebinding), and an `Origin`
   must be the one that the request itself went to. The texts are ADK's.
2. Where tokens or a proxy's header are set up, whoever brings neither is turned
   away (401), except at `/health`.
3. A proxy's header counts from the proxy's address only, and only once.
4. Where neither is set up, everybody is let in, and so the server listens on
   loopback unless it was told in so many words to do otherwise.
"""

import hashlib
import hmac
import ipaddress
import re
import stat
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

MIN_TOKEN = 16
MAX_PRINCIPAL = 400

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SecurityError(ValueError):
    """A setting that would leave the server open, or that cannot be what was meant; the message says what to do."""


@dataclass(frozen=True)
class Security:
    """
    What the server checks before anything else.

    `tokens` maps the SHA-256 of a token to its principal (`read_tokens`).
    `SecurityError` for settings that contradict each other, and for an address
    that others can reach without anybody having to say who they are.
    """

    host: str = "127.0.0.1"
    tokens: Mapping[bytes, str] | None = None
    principal_header: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    insecure: bool = False
    max_body: int = 1 << 20

    def __post_init__(self) -> None:
        """Refuse what would be a hole."""
        if bool(self.principal_header) != bool(self.trusted_proxies):
            raise SecurityError(
                "--principal-header and --trusted-proxy belong together: a name that anybody may write is no name"
            )
        if self.principal_header and not re.fullmatch(r"[A-Za-z0-9-]+", self.principal_header):
            raise SecurityError(f"--principal-header {self.principal_header!r} is no name of a header")
        for origin in self.allow_origins:
            if not re.fullmatch(r"https?://[^/?#@\s]+", origin):
                raise SecurityError(
                    f"--allow-origin {origin!r} is no origin: write scheme and host, as in https://gates.example.com"
                )
        for host in self.allow_hosts:
            if not re.fullmatch(r"[^/\s@]+", host):
                raise SecurityError(f"--allow-host {host!r} is no host name: write gates.example.com, without scheme")
        _ = self.proxies
        if self.open and not self.insecure:
            raise SecurityError(
                f"whoever reaches {self.host} could answer every gate under any name: say who may with --token-file FILE, or "
                "with --principal-header NAME and --trusted-proxy ADDRESS behind a proxy that signs people in; or listen on "
                "127.0.0.1; --insecure opens it all the same"
            )

    @property
    def authenticates(self) -> bool:
        """Whether callers have to say who they are."""
        return self.tokens is not None or self.principal_header is not None

    @property
    def open(self) -> bool:
        """Whether people on other machines are let in without saying who they are."""
        return not (self.authenticates or is_loopback(self.host))

    @property
    def described(self) -> str:
        """How it is known who asks, in one line."""
        if not self.authenticates:
            return "everybody on this machine, under the name they give" if not self.open else "everybody, unchecked"
        ways = [f"bearer tokens ({len(self.tokens)})"] if self.tokens is not None else []
        if self.principal_header is not None:
            ways.append(f"the header {self.principal_header} from {', '.join(self.trusted_proxies)}")
        return ", or ".join(ways)

    @property
    def proxies(self) -> tuple[Network, ...]:
        """The addresses that the principal's header is taken from."""
        try:
            return tuple(ipaddress.ip_network(proxy, strict=False) for proxy in self.trusted_proxies)
        except ValueError as wrong:
            raise SecurityError(f"--trusted-proxy: {wrong}; write an address or a network, as in 10.0.0.0/8") from wrong

    def foreign(self, scheme: str, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Why a request is not meant for us, or comes from another site's page; None if neither."""
        hosts = _all(headers, b"host")
        if len(hosts) > 1 or any("," in host for host in hosts):
            return "host not allowed"
        checked = is_loopback(self.host) or not self.authenticates or bool(self.allow_hosts)
        if checked and hosts and not self._ours(hosts[0]):
            return "host not allowed"
        origins = _all(headers, b"origin")
        own = f"{scheme}://{hosts[0]}" if hosts else None
        if any(origin != own and origin not in self.allow_origins for origin in origins):
            return "origin not allowed"
        return None

    def _ours(self, authority: str) -> bool:
        host = _host(authority)
        vouched = {urlsplit(origin).hostname for origin in self.allow_origins} | {h.lower() for h in self.allow_hosts}
        # A name can be pointed elsewhere; an address stays itself. On loopback nobody calls us by another one.
        by_address = not is_loopback(self.host) and _address(host) is not None
        return is_loopback(host) or by_address or host in vouched or authority.lower() in vouched

    def principal(self, client: str | None, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Who is asking, where that can be told: by the proxy's header first, by a token otherwise."""
        headers = list(headers)
        if self.principal_header and client is not None and self._is_proxy(client):
            named = _all(headers, self.principal_header.lower().encode())
            if len(named) == 1 and (name := _name(named[0])):
                return name
        if self.tokens is not None:
            given = _all(headers, b"authorization")
            if len(given) == 1 and (token := _token(given[0])):
                return self._holder(token)
        return None

    def _is_proxy(self, client: str) -> bool:
        address = _address(client)
        return address is not None and any(address in network for network in self.proxies)

    def _holder(self, token: str) -> str | None:
        asked = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, principal in (self.tokens or {}).items():
            # Every one is compared, so that the time tells nothing of which.
            if hmac.compare_digest(asked, known):
                found = principal
        return found

    def challenge(self) -> list[tuple[bytes, bytes]]:
        """The headers of a 401: a browser asks for the token as the password of any user name."""
        if self.tokens is None:
            return []
        return [
            (b"www-authenticate", b'Bearer realm="gatewright"'),
            (b"www-authenticate", b'Basic realm="gatewright", charset="UTF-8"'),
        ]


def read_tokens(path: Path) -> tuple[dict[bytes, str], str | None]:
    """
    Read a file of lines `TOKEN PRINCIPAL`: principals by hashed token, and what to warn of.

    Empty lines and lines from `#` on are left out. `SecurityError` names the
    line that is wrong, and never the token on it.
    """
    try:
        text = path.read_text("utf-8")
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as away:
        raise SecurityError(f"the token file {path} cannot be read: {away.strerror}") from away
    except UnicodeDecodeError as wrong:
        raise SecurityError(f"the token file {path} is not UTF-8") from wrong
    tokens: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        token, _, principal = words.partition(" ")
        where = f"{path}, line {number}"
        if not (name := _name(principal)):
            raise SecurityError(f"{where}: a line is TOKEN PRINCIPAL, as in `3f9c... alice`")
        if len(token) < MIN_TOKEN or not token.isascii():
            raise SecurityError(
                f"{where}: a token has at least {MIN_TOKEN} characters, ASCII only; make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(32))'`"
            )
        hashed = hashlib.sha256(token.encode()).digest()
        if hashed in tokens:
            raise SecurityError(f"{where}: this token stands there twice; who holds it?")
        tokens[hashed] = name
    if not tokens:
        raise SecurityError(f"the token file {path} holds no token: a line is TOKEN PRINCIPAL")
    warning = f"others can read the token file {path} (mode {mode:03o}): chmod 600 it" if mode & 0o077 else None
    return tokens, warning


def is_loopback(host: str) -> bool:
    """Whether a name or address, with or without a port, is this machine's own."""
    bare = _host(host)
    address = _address(bare)
    return bare == "localhost" or (address is not None and address.is_loopback)


def _host(authority: str) -> str:
    """The host of `host[:port]`, lower case; a malformed one comes back whole, so that it equals nothing."""
    host = authority.lower()
    if matched := re.fullmatch(r"\[([0-9a-f:.]+)\](?::\d*)?|([^:\[\]]+?)\.?(?::\d*)?", host):
        return matched[1] or matched[2]
    return host


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _all(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [_text(value) for key, value in headers if key.lower() == name]


def _text(value: bytes) -> str:
    """A header's value: UTF-8 where it is that, and Latin-1 otherwise, which everything is."""
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()


def _name(written: str) -> str | None:
    """A principal's name as it was written; None for one that is empty, too long or holds what nobody can see."""
    name = written.strip()
    return name if 0 < len(name) <= MAX_PRINCIPAL and name.isprintable() else None


def _token(authorization: str) -> str | None:
    scheme, _, rest = authorization.partition(" ")
    match scheme.lower():
        case "bearer":
            return rest.strip() or None
        case "basic":
            try:
                return b64decode(rest, validate=True).decode().partition(":")[2] or None
            except ValueError:
                return None
        case _:
            return None
