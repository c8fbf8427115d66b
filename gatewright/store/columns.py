"""
Column types that behave alike on SQLite and PostgreSQL.

Answers come from outside, so their text may hold what a database refuses. A
refusal must be recorded all the same, so such characters are replaced, not
rejected.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# PostgreSQL takes no NUL, and no UTF-8 database takes half a surrogate pair.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

Serial = BigInteger().with_variant(Integer, "sqlite")
"""A number that the database gives out; SQLite does so for the type INTEGER only."""


def storable(text: str) -> str:
    """The text as it is kept: NUL and unpaired surrogates become U+FFFD."""
    return _UNSTORABLE.sub("�", text)


class Line(TypeDecorator[str]):
    """Text, made storable."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        """To the database."""
        return None if value is None else storable(value)


class Json(TypeDecorator[Any]):
    """A JSON value as ASCII text: what escapes cannot express is not in it. `None` is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: Dialect) -> str | None:
        """To the database."""
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Any:
        """From the database."""
        return None if value is None else json.loads(value)


class Moment(TypeDecorator[datetime]):
    """A time as microseconds since 1970 in UTC: exact, and sorted alike everywhere."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> int | None:
        """To the database; `ValueError` for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone; pass an aware datetime")
        return (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, _dialect: Dialect) -> datetime | None:
        """From the database."""
        return None if value is None else _EPOCH + timedelta(microseconds=value)
