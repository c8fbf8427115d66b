"""
Where webhooks are sent, and how they are signed.

A URL may hold a password, or be a secret itself (those of chat services are),
so nothing but its scheme and host is ever shown.
"""

import binascii
import hashlib
import hmac
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httpx

from gatewright.store import NOTICE_TYPES, NoticeType

from .security import SecurityError, is_loopback

PREFIX = "whsec_"
MIN_SECRET, MAX_SECRET = 24, 64


@dataclass(frozen=True)
class Endpoint:
    """A URL that notices are posted to; `read_endpoint` makes one."""

    url: str = field(repr=False)
    """Without user and password."""
    auth: tuple[str, str] | None = field(repr=False)
    """User and password, where the URL names them."""
    digest: str
    """What the store knows it by: other credentials make it no other endpoint."""
    name: str
    """What people are shown: scheme, host, and the beginning of the digest."""
    local: bool
    """On this machine, so that no proxy lies in between."""


def read_endpoint(url: str, *, insecure: bool = False) -> Endpoint:
    """Read a URL; `SecurityError`, which does not repeat it, where nothing can or may be posted there."""
    parts = _split(url, "--webhook")
    assert parts.hostname is not None  # noqa: S101 - `_split` saw to it
    shown = f"{parts.scheme}://{_authority(parts)}"
    local = is_loopback(parts.hostname)
    if parts.scheme == "http" and not (local or insecure):
        raise SecurityError(
            f"--webhook {shown}: by plain http whoever is in between can read and change what is told; write https://, or "
            "allow it with --webhook-insecure"
        )
    plain = parts._replace(netloc=_authority(parts), fragment="").geturl()
    digest = hashlib.sha256(plain.encode()).hexdigest()[:32]
    named = parts.username is not None
    auth = (unquote(parts.username or ""), unquote(parts.password or "")) if named else None
    return Endpoint(plain, auth, digest, f"{shown} ({digest[:6]})", local)


def read_public_url(url: str) -> str:
    """A URL that deep links begin with, without a slash at its end; `SecurityError` for what cannot be one."""
    parts = _split(url, "--public-url")
    if parts.query or parts.fragment or parts.username is not None:
        raise SecurityError("--public-url is scheme, host and perhaps a path, as in https://gates.example.com")
    return url.rstrip("/")


def read_types(written: str) -> tuple[NoticeType, ...]:
    """Read `opened,answered,expired,blocked`, or some of them; `SecurityError` names what is none."""
    known = {type_.removeprefix("gate."): type_ for type_ in NOTICE_TYPES}
    named = {name.strip() for name in written.split(",") if name.strip()}
    if not named or not named <= set(known):
        raise SecurityError(f"--webhook-on takes {', '.join(known)}, with commas in between; not {written!r}")
    return tuple(type_ for name, type_ in known.items() if name in named)


def deep_link(public_url: str, run: str, interrupt_id: str) -> str:
    """Where a person finds the gate."""
    return f"{public_url}/inbox/gate?run={quote(run, safe='')}&id={quote(interrupt_id, safe='')}"


@dataclass(frozen=True)
class Secrets:
    """What webhooks are signed with; while one is being replaced, both."""

    keys: tuple[bytes, ...] = field(repr=False)

    def sign(self, id: str, timestamp: int, body: bytes) -> str:  # noqa: A002 - the specification's word
        """The header `webhook-signature` of the Standard Webhooks specification."""
        signed = f"{id}.{timestamp}.".encode() + body
        return " ".join(_signature(key, signed) for key in self.keys)


def read_secrets(path: Path) -> tuple[Secrets, str | None]:
    """
    Read a file of secrets, `whsec_` and 24 to 64 bytes in base64, one a line; and what to warn of.

    Empty lines and lines from `#` on are left out. `SecurityError` names the
    line that is wrong, and never what stands on it.
    """
    way_out = "make one with `python -c 'import base64, secrets; print(\"whsec_\" + base64.b64encode(secrets.token_bytes(32)).decode())'`"
    try:
        text = path.read_text("utf-8")
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as away:
        raise SecurityError(f"the webhook secret file {path} cannot be read: {away.strerror}") from away
    except UnicodeDecodeError:
        # Not chained: its text shows a part of what the file holds.
        raise SecurityError(f"the webhook secret file {path} is not UTF-8") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    keys = [_key(line, f"{path}, line {number}", way_out) for number, line in lines if line and line[0] != "#"]
    if not keys:
        raise SecurityError(f"the webhook secret file {path} holds no secret; {way_out}")
    warning = (
        f"others can read the webhook secret file {path} (mode {mode:03o}): chmod 600 it" if mode & 0o077 else None
    )
    return Secrets(tuple(keys)), warning


def unique(endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """Each of them once."""
    return tuple({endpoint.digest: endpoint for endpoint in endpoints}.values())


def _key(line: str, where: str, way_out: str) -> bytes:
    secret = line.removeprefix(PREFIX)
    if secret == line:
        raise SecurityError(f"{where}: a webhook secret begins with {PREFIX}; {way_out}")
    try:
        # Some write base64 without its padding.
        key = b64decode(secret + "=" * (-len(secret) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise SecurityError(f"{where}: what follows {PREFIX} is not base64; {way_out}") from None
    if not MIN_SECRET <= len(key) <= MAX_SECRET:
        raise SecurityError(f"{where}: a webhook secret has {MIN_SECRET} to {MAX_SECRET} bytes; {way_out}")
    return key


def _signature(key: bytes, signed: bytes) -> str:
    return f"v1,{b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


def _split(url: str, option: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise SecurityError(f"{option} is no URL that can be read; write https://host/path") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or url != "".join(url.split()):
        raise SecurityError(f"{option} takes an http or https URL with a host, as in https://host/path")
    return parts


def _authority(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]
