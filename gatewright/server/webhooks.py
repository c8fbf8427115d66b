"""
Telling others of gates: signed posts to the operator's endpoints, by the Standard Webhooks specification.

One task reads what changed in the gate index and notes it in the store; one
task for each endpoint claims what is due there, posts it, and writes down what
came of it. What is to be told is the store's, so that a server that dies loses
nothing, and any number of them over one store tell it once.

Three things hold throughout:

1. Only a status of 2xx is a delivery. Redirects are not followed: the operator
   named the URL, and nobody else may name another one.
2. Endpoints do not wait for each other, and nobody who uses the server waits
   for any of them.
3. Whatever is away (the store, an endpoint) is tried again, for as long as the
   server lives; it is logged when it goes away and when it is back.
"""

import asyncio
import json
import logging
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final

import httpx

from gatewright.store import NOTICE_TYPES, GateRow, Notice, NoticeType, Store, StoreError

from .endpoints import Endpoint, Secrets, deep_link

logger = logging.getLogger(__name__)

MINUTE, HOUR = 60.0, 3600.0
SCHEDULE: Final = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
"""After how many seconds a post that failed is tried again; after the last of them it is given up."""

OVERLAP: Final = timedelta(minutes=1)
"""How far back each reading of the gate index goes: longer than a transaction of the store takes."""

FIRST_OVERLAP: Final = timedelta(hours=1)
"""How far back the first one goes, in case the store's clock was set back while no server lived."""

GRACE_SECONDS: Final = 5.0
"""How long posts that are under way may take once the server stops; they are told again by the next one otherwise."""

MAX_BODY: Final = 64 * 1024
"""How much of an endpoint's response is read, in bytes; nothing of it is kept."""

AT_ONCE: Final = 8
"""How many posts to one endpoint are under way at most."""

_LONGEST_WAIT = 24 * HOUR
_PAGE = 200


@dataclass(frozen=True)
class Pace:
    """How long everything takes, in seconds; tests are less patient."""

    poll: float = 1.0
    """Between two looks at the gate index, and at what is due."""
    timeout: float = 15.0
    """How long one post may take in all."""
    claim: float = 60.0
    """After how long others take over what a server was telling when it died; longer than a post takes."""
    schedule: tuple[float, ...] = SCHEDULE


@dataclass(frozen=True)
class _Missed:
    """An attempt that failed: why, and how many seconds the endpoint asked to be left alone."""

    error: str
    gone: bool = False
    wait: float = 0.0


class Webhooks:
    """
    What is told to these endpoints, signed with these secrets.

    `public_url` is what deep links begin with, `types` what is told. With
    `polls=False` it reads the gate index once, to catch up, and leaves the rest
    to whoever reads it anyway and hands the rows to `note`.
    """

    def __init__(
        self,
        store: Store,
        endpoints: Sequence[Endpoint],
        keys: Secrets,
        *,
        public_url: str,
        types: Collection[NoticeType] = NOTICE_TYPES,
        pace: Pace | None = None,
        polls: bool = True,
    ) -> None:
        self._store = store
        self._types = types
        self._pace = pace or Pace()
        self._polls = polls
        self._couriers = [_Courier(store, endpoint, keys, public_url, self._pace) for endpoint in endpoints]
        self._read_to: datetime | None = None
        self._caught_up = False
        self._seen: dict[tuple[str, str], datetime] = {}
        self._waiting: dict[tuple[str, str], tuple[datetime, GateRow]] = {}
        self._pruned = float("-inf")

    def note(self, rows: Iterable[tuple[datetime, GateRow]]) -> None:
        """Hand rows of `Store.changed_gates` over, in its order; those that were handed over before do no harm."""
        for touched, row in rows:
            key = row.workflow_id, row.interrupt_id
            if self._seen.get(key) != touched:
                self._seen[key] = touched
                # To the end: how far was read is written down with each row.
                self._waiting.pop(key, None)
                self._waiting[key] = touched, row

    async def run(self, stop: asyncio.Event) -> None:
        """Tell until `stop` is set; what is being posted then is posted to the end, for a few seconds."""

        async def end() -> None:
            await stop.wait()
            for courier in self._couriers:
                courier.wake.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(stop))
            tasks.create_task(end())
            for courier in self._couriers:
                tasks.create_task(courier.run(stop))

    @asynccontextmanager
    async def beside(self, stop: asyncio.Event) -> AsyncIterator[None]:
        """Tell while something else goes on, which a fault in here does not end; `stop` is set in the end."""
        telling = asyncio.create_task(self.run(stop))
        telling.add_done_callback(_report)
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait([telling])

    async def _follow(self, stop: asyncio.Event) -> None:
        """Read what changes and note it."""
        away = _Away("webhooks are not noted")
        while not stop.is_set():
            try:
                await self._turn()
            except Exception as failed:  # noqa: BLE001 - whatever it is, the next turn tries again
                away.because(failed)
            else:
                away.over()
            await _pause(stop, self._pace.poll)

    async def _turn(self) -> None:
        if self._read_to is None:
            begin = self._store.notices.begin
            endpoints = [courier.endpoint.digest for courier in self._couriers]
            begun = [await asyncio.to_thread(begin, endpoint, types=self._types) for endpoint in endpoints]
            self._read_to = min(begun)
        if self._polls or not self._caught_up:
            await self._catch_up(self._read_to)
        await self._write()
        if time.monotonic() > self._pruned + HOUR:
            self._pruned = time.monotonic()
            await asyncio.to_thread(self._store.notices.prune)

    async def _catch_up(self, read_to: datetime) -> None:
        now = await asyncio.to_thread(self._store.now)
        # The clock may have been set back since: then what is written now is older than what was read.
        since = min(read_to, now) - (OVERLAP if self._caught_up else FIRST_OVERLAP)
        limit, full = _PAGE, True
        while full:
            rows = await asyncio.to_thread(self._store.changed_gates, since, limit=limit)
            self.note(rows)
            await self._write()
            full = len(rows) == limit
            if full and rows[-1][0] == since:
                # More were written at one instant than fit on a page.
                limit *= 2
            since = rows[-1][0] if rows else since
        self._read_to, self._caught_up = now, True
        self._seen = {key: touched for key, touched in self._seen.items() if touched >= now - 2 * OVERLAP}

    async def _write(self) -> None:
        while self._waiting:
            some = dict(list(self._waiting.items())[:_PAGE])
            for courier in self._couriers:
                # One that is gone is told of it all where a later server finds it back.
                if not courier.gone:
                    digest, rows = courier.endpoint.digest, list(some.values())
                    if await asyncio.to_thread(self._store.notices.note, digest, rows, types=self._types):
                        courier.wake.set()
            # What was handed over again meanwhile is written again.
            self._waiting = {key: rest for key, rest in self._waiting.items() if some.get(key) is not rest}


class _Courier:
    """What is told to one endpoint."""

    def __init__(self, store: Store, endpoint: Endpoint, keys: Secrets, public_url: str, pace: Pace) -> None:
        self.endpoint = endpoint
        self.wake = asyncio.Event()
        """Set where there may be something to do before the next look."""
        self.gone = False
        self._notices = store.notices
        self._keys = keys
        self._public_url = public_url
        self._pace = pace
        self._holder = secrets.token_hex(8)
        self._quiet_until = 0.0
        self._away = _Away(f"webhook {endpoint.name} is not delivered")

    async def run(self, stop: asyncio.Event) -> None:
        """Claim and post until `stop` is set or the endpoint is gone."""
        under_way: set[asyncio.Task[None]] = set()
        local = self.endpoint.local
        # To an endpoint of its own: another one's slow posts must not take its connections.
        async with httpx.AsyncClient(
            auth=self.endpoint.auth,
            follow_redirects=False,
            timeout=self._pace.timeout,
            trust_env=not local,
            limits=httpx.Limits(max_connections=AT_ONCE),
            headers={"user-agent": "gatewright", "accept-encoding": "identity"},
        ) as http:
            while not (stop.is_set() or self.gone):
                self.wake.clear()
                for notice in await self._claimed(AT_ONCE - len(under_way)):
                    task = asyncio.create_task(self._tell(http, notice, stop))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                    task.add_done_callback(lambda _: self.wake.set())
                if not stop.is_set():
                    await _pause(self.wake, self._pace.poll)
            if under_way:
                _, late = await asyncio.wait(under_way, timeout=GRACE_SECONDS)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)

    async def _claimed(self, room: int) -> list[Notice]:
        if room < 1 or time.monotonic() < self._quiet_until:
            return []
        claim = self._notices.claim
        with suppress(StoreError):  # whoever reads the gates says that the store is away
            return await asyncio.to_thread(
                claim, self.endpoint.digest, holder=self._holder, seconds=self._pace.claim, limit=room
            )
        return []

    async def _tell(self, http: httpx.AsyncClient, notice: Notice, stop: asyncio.Event) -> None:
        missed = await self._post(http, notice)
        endpoint, notices = self.endpoint.digest, self._notices
        if missed is None:
            self._away.over()
            await self._written(stop, lambda: notices.delivered(endpoint, notice.id))
            return
        again = self._again(notice.attempts, missed.wait)
        if missed.gone and not self.gone:
            self.gone = True
            logger.error(
                "webhook %s says that it is gone: nothing more is posted there before a restart", self.endpoint.name
            )
        elif again is None:
            logger.error("webhook %s: %s is given up: %s", self.endpoint.name, notice.id, missed.error)
        else:
            self._away.because(missed.error)
        await self._written(
            stop,
            lambda: notices.missed(endpoint, notice.id, holder=self._holder, error=missed.error, again=again),
        )

    def _again(self, attempts: int, wait: float) -> float | None:
        """After how many seconds it is tried again; None where it is given up."""
        if wait:
            self._quiet_until = max(self._quiet_until, time.monotonic() + wait)
        if attempts >= len(self._pace.schedule):
            return None
        # Spread out, so that what failed together does not come back together.
        return max(wait, self._pace.schedule[attempts] * random.uniform(0.9, 1.1))  # noqa: S311 - nobody's secret

    async def _post(self, http: httpx.AsyncClient, notice: Notice) -> _Missed | None:
        """Post it once; None where it was taken."""
        body = body_of(notice, self._public_url)
        now = int(time.time())
        headers = {
            "content-type": "application/json",
            "webhook-id": notice.id,
            "webhook-timestamp": str(now),
            "webhook-signature": self._keys.sign(notice.id, now, body),
        }
        status, said = 0, httpx.Headers()
        try:
            async with (
                asyncio.timeout(self._pace.timeout),
                http.stream("POST", self.endpoint.url, content=body, headers=headers) as response,
            ):
                status, said = response.status_code, response.headers
                await _drain(response)
        except Exception as failed:  # noqa: BLE001 - whatever it is, nothing was taken
            # Once there is a status it counts, whatever becomes of the rest.
            if not status:
                return _Missed(self._hidden(failed))
        if status // 100 == 2:
            return None
        waits = status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
        wait = seconds_of(said.get("retry-after", "")) if waits else 0.0
        return _Missed(f"it answered with status {status}", gone=status == HTTPStatus.GONE, wait=wait)

    def _hidden(self, failed: Exception) -> str:
        if isinstance(failed, TimeoutError | httpx.TimeoutException):
            return f"it did not answer within {self._pace.timeout:g} s"
        return f"{type(failed).__name__}: {failed}".replace(self.endpoint.url, self.endpoint.name)[:500]

    async def _written(self, stop: asyncio.Event, write: Callable[[], None]) -> None:
        """Write down what came of it; where the store stays away, it is told again after its claim."""
        give_up = time.monotonic() + self._pace.claim
        while time.monotonic() < give_up:
            try:
                await asyncio.to_thread(write)
            except StoreError:
                if stop.is_set():
                    return
                await _pause(stop, self._pace.poll)
            else:
                return


class _Away:
    """Says once that something is away, and once that it is back."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._is = False

    def because(self, why: Exception | str) -> None:
        if not self._is:
            logger.warning("%s, and tried again: %s", self._what, why)
        self._is = True

    def over(self) -> None:
        if self._is:
            logger.warning("%s: that is over", self._what)
        self._is = False


def body_of(notice: Notice, public_url: str) -> bytes:
    """What is posted: the same at every attempt, as long as the public URL is."""
    url = deep_link(public_url, notice.workflow_id, notice.interrupt_id)
    at = notice.at.isoformat().replace("+00:00", "Z")
    document: dict[str, Any] = {"type": notice.type, "timestamp": at, "data": notice.data | {"url": url}}
    return json.dumps(document, separators=(",", ":")).encode()


def seconds_of(retry_after: str) -> float:
    """What a header `Retry-After` asks for, in seconds from now: at most a day, and 0 where it says nothing."""
    try:
        wait = float(retry_after) if retry_after.strip().isdecimal() else _until(retry_after)
    except (ValueError, OverflowError):
        return 0.0
    return min(max(wait, 0.0), _LONGEST_WAIT)


def _until(date: str) -> float:
    moment = parsedate_to_datetime(date)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() - time.time()


async def _drain(response: httpx.Response) -> None:
    """Read what little an endpoint says, so that its connection can be used again; of more, the beginning."""
    read = 0
    async with aclosing(response.aiter_raw()) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            read += len(chunk)
            if read >= MAX_BODY:
                return


async def _pause(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _report(telling: "asyncio.Task[None]") -> None:
    if not telling.cancelled() and (failed := telling.exception()) is not None:
        logger.error("webhooks are not told any more; restart the server", exc_info=failed)
