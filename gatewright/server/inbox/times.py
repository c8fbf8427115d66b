"""Times and lengths of time in words."""

from datetime import UTC, datetime, timedelta


def now() -> datetime:
    """The server's own clock."""
    return datetime.now(UTC)  # noqa: TID251 - a page tells how long ago


def stamp(at: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def span(length: timedelta) -> str:
    """A length of time in its largest unit; hours and days with what is left of them."""
    seconds = max(int(length.total_seconds()), 0)
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    at = next((number for number, (size, _) in enumerate(units) if seconds >= size), 3)
    size, name = units[at]
    smaller, rest = units[min(at + 1, 3)], seconds % size
    more = f" {rest // smaller[0]} {smaller[1]}" if size >= 3600 and rest >= smaller[0] else ""
    return f"{seconds // size} {name}{more}"


def ago(at: datetime) -> str:
    """How long ago a time is, or in how long it comes."""
    length = now() - at
    return f"{span(length)} ago" if length >= timedelta(0) else f"in {span(-length)}"
