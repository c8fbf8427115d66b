"""What a request to a page brings: the form that was sent, and whoever sends it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from fastapi import Request, Response

from gatewright.store import StoreError
from gatewright.temporal.errors import ServerUnavailableError, UnknownRunError

from .signin import Visitor
from .site import Site

MAX_FIELDS = 10_000

Page = Callable[[Request, Visitor], Awaitable[Response]]


@dataclass(frozen=True)
class Sent:
    """A form as it was sent: its pairs in their order; `wrong` says why it cannot be read."""

    pairs: tuple[tuple[str, str], ...] = ()
    wrong: str = ""

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field."""
        return next((value for key, value in self.pairs if key == name), default)


async def sent(request: Request) -> Sent:
    """The form in a request's body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return Sent(wrong=f"a form is sent as application/x-www-form-urlencoded, not as {kind or 'nothing'}")
    try:
        body = (await request.body()).decode("ascii")
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        return Sent(wrong=f"the form cannot be read: it is not UTF-8, or has more than {MAX_FIELDS} fields")
    return Sent(tuple(pairs))


def known(site: Site, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """The page for those who are signed in; everybody else is asked to, and what is down is said on a page."""

    async def visited(request: Request) -> Response:
        visitor = site.door.visitor(request)
        if visitor is None:
            return sign_in_page(site, request, 401)
        try:
            return await page(request, visitor)
        except StoreError as away:
            todo = "Nothing is lost. Look again in a moment; if it lasts, the store's server or file needs a look."
            return site.said(request, visitor, 503, "The gate index is away", str(away), todo=todo)
        except ServerUnavailableError as away:
            todo = "Nothing is lost, and nothing was sent. Look again in a moment."
            return site.said(request, visitor, 503, "Temporal does not answer", str(away), todo=todo)
        except UnknownRunError as unknown:
            return site.said(request, visitor, 404, "There is no such run", str(unknown))

    visited.__doc__ = page.__doc__
    return visited


def sign_in_page(site: Site, request: Request, status: int, *, wrong: str = "") -> Response:
    """Where a token is asked for; `wrong` says what was wrong with the one that was given."""
    resend = request.method == "POST" and not request.url.path.endswith("/sign-in")
    return site.page(
        request,
        None,
        "sign_in.html",
        status=status,
        wrong=wrong,
        resend=resend,
        takes_tokens=site.door.takes_tokens,
        by_file=site.security.tokens is not None,
        target=safe_target(request),
    )


def safe_target(request: Request, asked: str | None = None) -> str:
    """Where to go after signing in: a page of the inbox and nowhere else."""
    if asked is None:
        asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    own = asked == "/inbox" or asked.startswith(("/inbox?", "/inbox/"))
    if not own or "\\" in asked or not asked.isprintable() or asked.startswith("/inbox/sign"):
        return "/inbox"
    return asked
