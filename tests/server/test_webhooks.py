"""What happens at gates is posted to whoever listens: signed, once for each event, and again until it is taken."""

import asyncio
import json
import logging
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update
from standardwebhooks import Webhook, WebhookVerificationError

from gatewright.server import Pace, SecurityError, Webhooks, read_endpoint, read_secrets
from gatewright.server.endpoints import Secrets, deep_link, read_public_url, read_types
from gatewright.server.webhooks import SCHEDULE, seconds_of
from gatewright.store import GateRow, Store, schema
from tests.cli.conftest import ROOT
from tests.server.receiver import SECRET, Receiver, Reply
from tests.server.talk import Talk, answer, text
from tests.server.test_serve import APPS, environment, gatewright, greeting, process
from tests.store.builders import RUN, gate_row

__all__ = ["environment", "gatewright"]  # fixtures of the command's own tests

PACE = Pace(poll=0.02, timeout=5, claim=30, schedule=(0.02,) * 200)
OPENED, ANSWERED = ("review", "gate.opened"), ("review", "gate.answered")

VICTIM = """
import asyncio, sys
from pathlib import Path
from gatewright.server import Pace, Webhooks, read_endpoint, read_secrets
from gatewright.store import Store
address, secret, url = sys.argv[1:]
pace = Pace(poll=0.02, timeout=60, claim=1.5)
with Store.open(address) as store:
    hooks = Webhooks(store, [read_endpoint(url)], read_secrets(Path(secret))[0], public_url="http://x", pace=pace)
    asyncio.run(hooks.run(asyncio.Event()))
"""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """The file of the secret."""
    file = tmp_path / "secret"
    file.write_text(f"# made for these tests\n{SECRET}\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def keys(secret: Path) -> Secrets:
    """What is signed with."""
    return read_secrets(secret)[0]


@pytest.fixture
def telling(store: Store, keys: Secrets) -> Callable[..., Any]:
    """`async with telling(url, ...)`: a server tells these URLs, and has begun."""

    @asynccontextmanager
    async def tell(*urls: str, **options: Any) -> AsyncIterator[Webhooks]:
        fields: dict[str, Any] = {"public_url": "https://gates.example.com", "pace": PACE, "keys": keys} | options
        endpoints = [read_endpoint(url) for url in urls]
        hooks = Webhooks(fields.pop("store", store), endpoints, fields.pop("keys"), **fields)
        async with hooks.beside(asyncio.Event()):
            await until(lambda: hooks._caught_up)
            yield hooks

    return tell


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who takes everything."""
    with Receiver() as listening:
        yield listening


def fresh(**changes: object) -> GateRow:
    """Describe a gate that was opened just now."""
    return gate_row(**{"opened_at": datetime.now(UTC), "deadline": None, **changes})


def settle(store: Store, interrupt_id: str = "review", **changes: Any) -> None:
    """Answer it just now."""
    fields: dict[str, Any] = {"state": "answered", "at": datetime.now(UTC), "principal": "bob", "channel": "http"}
    store.settle_gate(RUN, interrupt_id, **fields | changes)


async def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def kept(store: Store, state: str) -> int:
    """How many notices are in this state."""
    return len(store.notices.list(state=state))


async def test_what_happens_at_a_gate_is_posted_and_signed(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    """And says neither what the gate shows nor what was answered."""
    async with telling(receiver.url):
        store.open_gate(fresh(payload={"salary": "sesame"}))
        await until(lambda: receiver.told == [OPENED])
        settle(store, response={"comment": "sesame"})
        await until(lambda: kept(store, "delivered") == 2)

    opened, answered = receiver.got
    assert [OPENED, ANSWERED] == receiver.told
    said = answered.verified()
    row = store.gate(RUN, "review")
    assert row is not None
    assert (
        row.closed_at == datetime.fromisoformat(said["timestamp"]) == datetime.fromisoformat(said["data"]["closed_at"])
    )
    assert {
        "run": RUN,
        "interrupt_id": "review",
        "gate": "review",
        "visit": 1,
        "pipeline": "DatasetRelease",
        "app": "datasets",
        "message": "Which columns shall be dropped?",
        "dangerous": True,
        "deadline": None,
        "state": "answered",
        "principal": "bob",
        "channel": "http",
        "url": "https://gates.example.com/inbox/gate?run=datasets%2Fada%2Fs1%2F1&id=review",
    } == {name: value for name, value in said["data"].items() if name not in {"opened_at", "closed_at"}}
    assert ("open", None) == (opened.verified()["data"]["state"], opened.verified()["data"]["closed_at"])
    assert opened.id != answered.id
    assert b"sesame" not in opened.body + answered.body
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(answered.body.replace(b"bob", b"eve"), answered.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(answered.body, answered.headers | {"webhook-id": opened.id})


async def test_while_a_secret_is_being_replaced_both_verify(
    store: Store, receiver: Receiver, secret: Path, telling: Callable[..., Any]
) -> None:
    other = "whsec_bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldw=="
    secret.write_text(f"{other}\n{SECRET}\n")
    async with telling(receiver.url, keys=read_secrets(secret)[0]):
        store.open_gate(fresh())
        await until(lambda: receiver.got)

    assert receiver.got[0].verified(SECRET) == receiver.got[0].verified(other)


async def test_what_is_posted_is_verified_as_the_documentation_says(
    telling: Callable[..., Any], store: Store, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its example of a body has the fields of a real one."""
    document = (ROOT / "docs" / "notifications.md").read_text()
    [code], [body] = (re.findall(rf"```{kind}\n(.*?)```", document, re.DOTALL) for kind in ("python", "json"))
    async with telling(receiver.url):
        store.open_gate(fresh())
        await until(lambda: receiver.got)
    names: dict[str, Any] = {"SECRET": SECRET}
    exec(code, names)  # noqa: S102 - our own example
    names["received"](receiver.got[0].body, receiver.got[0].headers)

    assert capsys.readouterr().out.startswith("gate.opened Which columns shall be dropped? https://gates.example.com/")
    assert set(json.loads(body)["data"]) == set(receiver.got[0].verified()["data"])


async def test_only_what_is_wanted_is_posted(telling: Callable[..., Any], store: Store, receiver: Receiver) -> None:
    """A gate that asks about an effect is blocked, and not opened besides."""
    async with telling(receiver.url, types=read_types("blocked,expired")):
        store.open_gate(fresh())
        store.open_gate(fresh(interrupt_id="blocked:publish", gate="blocked:publish"))
        settle(store, state="expired")
        await until(lambda: kept(store, "delivered") == 2)

    assert {("blocked:publish", "gate.blocked"), ("review", "gate.expired")} == set(receiver.told)


async def test_what_nobody_took_is_posted_again_under_its_id(telling: Callable[..., Any], store: Store) -> None:
    """Nobody listens, then somebody who has a fault, then it is taken: in the order in which it happened."""
    receiver = Receiver(lambda n: Reply(500 if n <= 2 else 200))
    with receiver:
        pass
    async with telling(receiver.url):
        store.open_gate(fresh())
        await until(lambda: any(notice.attempts for notice in store.notices.list()))
        with receiver:
            await until(lambda: kept(store, "delivered"))
            settle(store)
            await until(lambda: kept(store, "delivered") == 2)

    assert [OPENED] * 3 + [ANSWERED] == receiver.told
    assert 1 == len({post.id for post in receiver.got[:3]})
    assert receiver.got[0].body == receiver.got[2].body


async def test_what_is_never_taken_is_given_up_after_the_last_attempt(
    telling: Callable[..., Any], store: Store
) -> None:
    with Receiver(lambda _: Reply(404)) as receiver:
        async with telling(receiver.url, pace=Pace(poll=0.02, schedule=(0.01, 0.01))):
            store.open_gate(fresh())
            await until(lambda: kept(store, "failed"))

    [failed] = store.notices.list()
    assert (3, 3, "it answered with status 404") == (len(receiver.got), failed.attempts, failed.error)


async def test_an_endpoint_that_is_gone_is_left_alone_until_a_restart(
    telling: Callable[..., Any], store: Store, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Others are told all the same, and what happened meanwhile is told after it."""
    with Receiver(lambda n: Reply(410 if n == 1 else 200)) as gone:
        async with telling(gone.url, receiver.url):
            store.open_gate(fresh())
            await until(lambda: gone.got and receiver.got)
            settle(store)
            await until(lambda: receiver.told == [OPENED, ANSWERED])
            await asyncio.sleep(0.2)
            assert 1 == len(gone.got)
        async with telling(gone.url):
            await until(lambda: len(gone.got) == 3)

    assert [OPENED, OPENED, ANSWERED] == gone.told
    assert "is gone" in caplog.text


async def test_a_redirect_is_not_followed(telling: Callable[..., Any], store: Store, receiver: Receiver) -> None:
    with Receiver(lambda _: Reply(307, {"location": receiver.url})) as elsewhere:
        async with telling(elsewhere.url):
            store.open_gate(fresh())
            await until(lambda: len(elsewhere.got) > 2)

    assert [] == receiver.got
    assert "it answered with status 307" == store.notices.list()[0].error


async def test_an_endpoint_that_asks_for_time_gets_it(telling: Callable[..., Any], store: Store) -> None:
    """And nothing else is posted there meanwhile."""
    arrived: list[float] = []

    def reply(n: int) -> Reply:
        arrived.append(time.monotonic())
        return Reply(429, {"retry-after": "1"}) if n == 1 else Reply()

    with Receiver(reply) as receiver:
        async with telling(receiver.url):
            store.open_gate(fresh())
            await until(lambda: kept(store, "pending") and store.notices.list()[0].attempts)
            store.open_gate(fresh(interrupt_id="review~2"))
            await until(lambda: kept(store, "delivered") == 2)

    assert 3 == len(arrived)
    assert arrived[1] - arrived[0] >= 0.95


async def test_two_servers_over_one_store_tell_everything_once(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    expected = []
    with Store.open(store._database.name) as second:
        async with telling(receiver.url), telling(receiver.url, store=second):
            for number in range(1, 26):
                store.open_gate(fresh(interrupt_id=f"review~{number}"))
                settle(store, f"review~{number}")
                expected += [(f"review~{number}", "gate.opened"), (f"review~{number}", "gate.answered")]
            await until(lambda: kept(store, "delivered") == 50)
            await asyncio.sleep(0.2)

    assert sorted(expected) == sorted(receiver.told)
    for number in range(1, 26):
        assert ["gate.opened", "gate.answered"] == [
            type_ for gate, type_ in receiver.told if gate == f"review~{number}"
        ]


async def test_what_a_server_was_telling_when_it_was_killed_is_told_by_another(
    telling: Callable[..., Any], store: Store, secret: Path
) -> None:
    """After its claim, under the same id."""
    held = threading.Event()

    def reply(n: int) -> Reply:
        if n == 1:
            held.wait(60)
        return Reply()

    store.open_gate(fresh())
    with Receiver(reply) as receiver:
        victim = await asyncio.create_subprocess_exec(
            sys.executable, "-c", VICTIM, store._database.name, str(secret), receiver.url
        )
        try:
            await until(lambda: receiver.got)
        finally:
            victim.kill()
            await victim.wait()
        [claimed] = store.notices.list(state="pending")
        async with telling(receiver.url):
            await until(lambda: kept(store, "delivered"))
        held.set()

    assert claimed.holder is not None
    assert [claimed.id] * 2 == [post.id for post in receiver.got]


async def test_what_happens_while_no_server_lives_is_told_by_the_next(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    """In order, and what was told before is not told again."""
    async with telling(receiver.url):
        store.open_gate(fresh())
        await until(lambda: kept(store, "delivered") == 1)
    settle(store)
    store.replace_index(RUN, [*store.gates(), *(fresh(interrupt_id=f"late~{n}", gate="late") for n in range(1, 500))])
    settle(store, "late~7")
    async with telling(receiver.url):
        await until(lambda: len(receiver.got) >= 502)
        await asyncio.sleep(0.2)

    assert 502 == len(receiver.got) == len({post.id for post in receiver.got})
    assert ["gate.opened", "gate.answered"] == [type_ for gate, type_ in receiver.told if gate == "late~7"]
    assert [OPENED, ANSWERED] == [one for one in receiver.told if one[0] == "review"]


async def test_no_proxy_lies_between_the_server_and_its_own_machine(
    telling: Callable[..., Any], store: Store, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the environment says of other machines."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with telling(receiver.url):
        store.open_gate(fresh())
        await until(lambda: kept(store, "delivered"))

    assert [OPENED] == receiver.told


async def test_what_was_written_at_one_instant_is_told_however_much_it_is(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    """More than the server reads at once."""
    async with telling(receiver.url):
        pass
    with store._database.write("test") as connection:
        for number in range(450):
            store._put(connection, fresh(interrupt_id=f"review~{number}"), None)
        connection.execute(update(schema.gates).values(touched_at=datetime.now(UTC)))
    async with telling(receiver.url):
        await until(lambda: len(receiver.got) >= 450)

    assert 450 == len({post.id for post in receiver.got})


async def test_what_is_seen_late_because_its_transaction_took_long_is_told(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    async with telling(receiver.url):
        store.open_gate(fresh())
        await until(lambda: receiver.told == [OPENED])
        with store._database.write("test") as connection:
            store._put(connection, fresh(interrupt_id="late"), None)
            ago = datetime.now(UTC) - timedelta(seconds=30)
            connection.execute(update(schema.gates).where(schema.gates.c.interrupt_id == "late").values(touched_at=ago))
        await until(lambda: receiver.told == [OPENED, ("late", "gate.opened")])


async def test_an_endpoint_that_is_slow_does_not_hold_up_another(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    """Nor does it hold up the server's end by more than a few seconds."""
    held = threading.Event()

    def reply(_: int) -> Reply:
        held.wait(60)
        return Reply()

    with Receiver(reply) as slow:
        async with telling(slow.url, receiver.url, pace=Pace(poll=0.02, timeout=60)):
            for number in range(1, 21):
                store.open_gate(fresh(interrupt_id=f"review~{number}"))
            await until(lambda: len(receiver.got) == 20 and len(slow.got) == 8)
            began = time.monotonic()
        held.set()

    assert time.monotonic() - began < 8
    assert 20 == kept(store, "pending")


async def test_what_is_being_posted_when_the_server_stops_is_posted_to_the_end(
    telling: Callable[..., Any], store: Store
) -> None:
    def reply(_: int) -> Reply:
        time.sleep(0.5)
        return Reply()

    with Receiver(reply) as receiver:
        async with telling(receiver.url):
            store.open_gate(fresh())
            await until(lambda: receiver.got)

    assert (1, 1) == (len(receiver.got), kept(store, "delivered"))


async def test_an_endpoint_that_never_answers_is_given_its_time(telling: Callable[..., Any], store: Store) -> None:
    held = threading.Event()

    def reply(n: int) -> Reply:
        if n == 1:
            held.wait(60)
        return Reply()

    with Receiver(reply) as receiver:
        async with telling(receiver.url, pace=Pace(poll=0.02, timeout=0.2, schedule=(0.02,))):
            store.open_gate(fresh())
            await until(lambda: store.notices.list() and store.notices.list()[0].attempts)
            assert "it did not answer within 0.2 s" == store.notices.list()[0].error
            await until(lambda: kept(store, "delivered"))
        held.set()


@pytest.mark.parametrize("body", [b"x" * 10_000_000, b""], ids=["endless", "broken off"])
async def test_what_an_endpoint_says_besides_its_status_does_not_matter(
    telling: Callable[..., Any], store: Store, body: bytes
) -> None:
    """However much it is, and even if less comes than was promised."""
    with Receiver(lambda _: Reply(200, {"content-length": "1000000000"}, body)) as receiver:
        async with telling(receiver.url, pace=Pace(poll=0.02, timeout=0.5)):
            store.open_gate(fresh())
            await until(lambda: kept(store, "delivered"))

    assert 1 == len(receiver.got)


async def test_a_store_that_is_away_for_a_while_loses_nothing(
    telling: Callable[..., Any], store: Store, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with Store.open(f"{store._database.name}?timeout=0.05") as impatient:
        async with telling(receiver.url, store=impatient):
            store.open_gate(fresh())
            with store._database.write("somebody else"):
                await until(lambda: "not noted, and tried again" in caplog.text)
            await until(lambda: receiver.told == [OPENED])
            await until(lambda: "that is over" in caplog.text)

    assert 1 == kept(store, "delivered")


async def test_whoever_reads_the_index_anyway_may_hand_rows_over(
    telling: Callable[..., Any], store: Store, receiver: Receiver
) -> None:
    """Any number of times."""
    async with telling(receiver.url, polls=False) as hooks:
        store.open_gate(fresh())
        await asyncio.sleep(0.2)
        assert [] == receiver.got
        for _ in range(3):
            hooks.note(store.changed_gates(datetime.now(UTC) - timedelta(minutes=1)))
        await until(lambda: kept(store, "delivered"))

    assert [OPENED] == receiver.told


async def test_neither_secret_nor_password_nor_path_is_ever_shown(
    telling: Callable[..., Any], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gatewright")
    with Receiver(lambda n: Reply([500, 410][min(n, 2) - 1])) as receiver:
        url = receiver.url.replace("http://", "http://bob:sesame@") + "/T0/B1/hush"
        async with telling(url):
            store.open_gate(fresh())
            await until(lambda: "is gone" in caplog.text)

    shown = caplog.text + repr(store.notices.list()) + repr(read_endpoint(url)) + repr(Secrets((b"sesame",)))
    for word in ("sesame", "hush", SECRET):
        assert word not in shown
    assert receiver.got[0].headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://hooks.example.com/sesame", "--webhook-insecure"),
        ("http://bob:sesame@hooks.example.com/", "--webhook http://hooks.example.com: by plain http"),
        ("ftp://hooks.example.com/sesame", "takes an http or https URL"),
        ("https:///sesame", "takes an http or https URL"),
        ("sesame", "takes an http or https URL"),
        ("https://hooks.example.com:sesame/", "no URL that can be read"),
        ("https://[sesame/", "no URL that can be read"),
        ("https://hooks.example.com/ses ame", "takes an http or https URL"),
    ],
)
def test_where_nothing_may_be_posted_is_refused_without_repeating_it(url: str, said: str) -> None:
    with pytest.raises(SecurityError) as refused:
        read_endpoint(url)

    assert said in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_where_something_may_be_posted() -> None:
    allowed = read_endpoint("http://hooks.example.com/x", insecure=True)
    secured = read_endpoint("https://bob:sesame@hooks.example.com:8443/x?y=1")

    assert ("http://hooks.example.com/x", False) == (allowed.url, allowed.local)
    assert ("https://hooks.example.com:8443/x?y=1", ("bob", "sesame")) == (secured.url, secured.auth)
    assert read_endpoint("https://hooks.example.com:8443/x?y=1").digest == secured.digest
    assert secured.name.startswith("https://hooks.example.com:8443 (")
    for local in ("http://localhost/x", "http://127.0.0.1:1/x", "http://[::1]:1/x"):
        assert read_endpoint(local).local


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "holds no secret"),
        (b"# sesame\n", "holds no secret"),
        (b"sesame", "line 1: a webhook secret begins with whsec_"),
        (b"\nwhsec_sesame!", "line 2: what follows whsec_ is not base64"),
        (b"whsec_sesame", "line 1: a webhook secret has 24 to 64 bytes"),
        (b"whsec_" + b"sesame" * 20, "line 1: a webhook secret has 24 to 64 bytes"),
        (b"whsec_sesame\xff", "is not UTF-8"),
    ],
)
def test_a_secret_that_is_none_is_refused_without_repeating_it(tmp_path: Path, written: bytes, said: str) -> None:
    (tmp_path / "secret").write_bytes(written)
    with pytest.raises(SecurityError) as refused:
        read_secrets(tmp_path / "secret")

    assert said in str(refused.value)
    assert "sesame" not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_a_secret_that_others_can_read_is_warned_of(secret: Path) -> None:
    assert read_secrets(secret)[1] is None
    secret.chmod(0o644)
    warning = read_secrets(secret)[1]
    assert warning is not None
    assert "chmod 600" in warning
    assert 0o644 == stat.S_IMODE(secret.stat().st_mode)


@pytest.mark.parametrize("written", ["", ",", "opened,closed", "gate.opened"])
def test_an_event_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(SecurityError, match="--webhook-on takes opened, blocked, expired, answered"):
        read_types(written)


def test_a_public_url_is_what_links_begin_with() -> None:
    assert "https://x/y" == read_public_url("https://x/y/")
    assert "https://x/y/inbox/gate?run=a%2Fb%26c%2Fd%2F1&id=r~2" == deep_link("https://x/y", "a/b&c/d/1", "r~2")
    for wrong in ("gates.example.com", "https://x/?y", "https://bob@x/"):
        with pytest.raises(SecurityError, match="--public-url"):
            read_public_url(wrong)


def test_how_long_is_waited() -> None:
    """Four days in all; and an endpoint may ask for more time, in either form, but not for more than a day."""
    assert timedelta(days=3) < timedelta(seconds=sum(SCHEDULE)) < timedelta(days=4)
    assert [0, 7, 86400, 0, 0] == [seconds_of(said) for said in ("", "7", "99999999", "-1", "soon")]
    assert 86400 == seconds_of("Fri, 31 Dec 2100 23:59:59 GMT")
    assert 0 == seconds_of("Fri, 31 Dec 1999 23:59:59 GMT")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--webhook", "https://x/"), "--webhook needs --webhook-secret-file"),
        (("--webhook", "http://x.example.com/hush", "--webhook-secret-file", "SECRET"), "--webhook-insecure"),
        (("--webhook", "https://x/", "--webhook-secret-file", "none"), "the webhook secret file none cannot be read"),
        (("--webhook", "https://x/", "--webhook-secret-file", "SECRET", "--webhook-on", "x"), "--webhook-on takes"),
        (("--public-url", "x"), "--public-url takes"),
    ],
)
async def test_what_is_wrong_with_webhooks_is_said_in_one_line(
    gatewright: Callable[..., Any], secret: Path, arguments: tuple[str, ...], said: str
) -> None:
    given = [str(secret) if argument == "SECRET" else argument for argument in arguments]
    ended = await gatewright("serve", "--port", "0", *APPS, *given)

    assert (2, True) == (ended.code, said in ended.err), ended.err
    assert "Traceback" not in ended.err
    assert "hush" not in ended.err


async def test_serve_tells_of_a_real_run(
    environment: dict[str, str], tmp_path: Path, worker: None, receiver: Receiver, secret: Path
) -> None:
    """From the opening of its gate to the answer; settings come from the environment."""
    settings = {
        "GATEWRIGHT_WEBHOOK": receiver.url,
        "GATEWRIGHT_WEBHOOK_SECRET_FILE": str(secret),
        "GATEWRIGHT_PUBLIC_URL": "https://gates.example.com/",
    }
    arguments = ("serve", "--port", "0", *APPS, "-o", "json")
    async with process(*arguments, env=environment | settings, cwd=tmp_path) as running:
        greeted = await greeting(running)
        async with httpx.AsyncClient(base_url=greeted["url"], timeout=60) as client:
            talk = Talk(client, session="hooked")
            await talk.begin()
            await talk.run(text(f"hooks {tmp_path}"))
            await until(lambda: receiver.told == [OPENED])
            await talk.run(answer("review", approved=True))
            await until(lambda: len(receiver.got) == 2)
        running.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            _, err = await running.communicate()

    assert [OPENED, ANSWERED] == receiver.told
    said = receiver.got[1].verified()["data"]
    assert ("planned", "Planned", "answered") == (said["app"], said["pipeline"], said["state"])
    assert "https://gates.example.com/inbox/gate?run=planned%2Falice%2Fhooked%2F1&id=review" == said["url"]
    assert 0 == running.returncode, err.decode()
    assert SECRET.encode() not in err
