"""
Who sits before the page: signing in with a token, the cookie that remembers it, and the seal on every form.

1. Where the server knows its callers by itself (a proxy's header, or a bearer
   token), that is who they are, and no cookie is looked at.
2. Otherwise a token is exchanged for a cookie: one of the token file, or the
   one that the server printed when it started. A cookie holds the name and which
   token it was got with; it is worth nothing once that token is no longer one.
3. Every form carries a seal made for the one who was shown it. A page of
   another site can neither read it nor make one.

Cookies and seals are signed with a key that is derived from the tokens, so they
outlive the process that gave them, and are good at each of several servers with
the same tokens. Behind a proxy that knows people there are no tokens: give the
servers one secret, or a form that was shown by one comes back from the others
to be sent again.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer

COOKIE_SECONDS = 7 * 24 * 3600
"""How long a cookie is good, and a form that was shown may be sent, in seconds."""


@dataclass(frozen=True)
class Visitor:
    """
    Who is looking at a page.

    `seat` is what their forms are sealed for, and is secret to them where they
    have a cookie; `by_cookie` says whether there is something to sign out of.
    """

    principal: str
    seat: str
    by_cookie: bool = False


class Door:
    """
    Knows visitors, and seals forms for them.

    `tokens` maps the SHA-256 of each token that signs somebody in to its
    principal; empty where only a proxy knows people. `shared` is a secret of all
    servers that answer under one address.
    """

    def __init__(self, tokens: Mapping[bytes, str], shared: str = "") -> None:
        self._tokens = dict(tokens)
        known = [*sorted(tokens), *([shared.encode()] if shared else [])]
        secret = hashlib.sha256(b"gatewright inbox\n" + b"\n".join(known or [secrets.token_bytes(32)])).digest()
        self._cookies = URLSafeTimedSerializer(secret, salt="cookie")
        self._seals = URLSafeTimedSerializer(secret, salt="seal")
        # A browser keeps cookies by host and not by port: two servers of one machine must not overwrite each other's.
        self.cookie = "gatewright_" + hashlib.sha256(b"name of\n" + secret).hexdigest()[:8]
        """The name of the cookie."""

    @property
    def takes_tokens(self) -> bool:
        """Whether somebody can sign in with a token."""
        return bool(self._tokens)

    def visitor(self, request: Request) -> Visitor | None:
        """Who this is, or None."""
        known: str | None = request.scope.get("state", {}).get("principal")
        if known is not None:
            return Visitor(known, f"known:{known}")
        try:
            said = self._cookies.loads(request.cookies.get(self.cookie, ""), max_age=COOKIE_SECONDS)
        except BadSignature:
            return None
        match said:
            case {"by": str(by), "seat": str(seat)} if (principal := self._holder(by)) is not None:
                return Visitor(principal, f"cookie:{seat}", by_cookie=True)
        return None

    def admits(self, token: str) -> bytes | None:
        """The digest of a token that signs somebody in; None for any other."""
        asked = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found = None
        for known in self._tokens:
            # Every one is compared, so that the time tells nothing of which.
            if hmac.compare_digest(asked, known):
                found = known
        return found

    def sign_in(self, response: Response, digest: bytes, *, secure: bool) -> None:
        """Give the cookie for a token that `admits` took; `secure` where the page came by https."""
        value = self._cookies.dumps({"by": _mark(digest), "seat": secrets.token_urlsafe(12)})
        # Lax, not strict: a link from a chat or a mail is to find its reader signed in. Forms have their seal.
        response.set_cookie(
            self.cookie, str(value), max_age=COOKIE_SECONDS, path="/inbox", httponly=True, samesite="lax", secure=secure
        )

    def sign_out(self, response: Response) -> None:
        """Take the cookie back."""
        response.delete_cookie(self.cookie, path="/inbox", httponly=True, samesite="lax")

    def seal(self, visitor: Visitor) -> str:
        """What a form that is shown to them carries."""
        return str(self._seals.dumps(_hidden(visitor.seat)))

    def sealed(self, visitor: Visitor, seal: str) -> bool:
        """Whether a form was shown to them by us, and not too long ago."""
        try:
            return bool(self._seals.loads(seal, max_age=COOKIE_SECONDS) == _hidden(visitor.seat))
        except BadSignature:
            return False

    def _holder(self, mark: str) -> str | None:
        return next((principal for known, principal in self._tokens.items() if _mark(known) == mark), None)


def _mark(digest: bytes) -> str:
    """What of a token may stand in a cookie, which its holder can read."""
    return hashlib.sha256(b"mark of\n" + digest).hexdigest()[:32]


def _hidden(seat: str) -> str:
    """A seal is readable; who was signed in does not belong in it."""
    return hashlib.sha256(seat.encode()).hexdigest()
