"""What goes wrong with a database is said in the store's own words."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from gatewright.store import Ledger, Notices, Store, StoreError, StoreUnavailable
from tests.store.builders import NOON, PLAN, RUN, SESSION, allocate, attempt, gate_row, planned, refusal_row, run_record
from tests.store.conftest import Server

CALLS = {
    "allocate_run": allocate,
    "run_started": lambda store: store.run_started(RUN, first_execution_run_id="e1", at=NOON),
    "register_run": lambda store: store.register_run(run_record()),
    "run": lambda store: store.run(RUN),
    "runs": lambda store: store.runs(session=SESSION),
    "close_run": lambda store: store.close_run(RUN, standing="completed", at=NOON),
    "archive": lambda store: store.archive(RUN),
    "open_gate": lambda store: store.open_gate(gate_row()),
    "settle_gate": lambda store: store.settle_gate(RUN, "review", state="answered", at=NOON),
    "gate": lambda store: store.gate(RUN, "review"),
    "gates": lambda store: store.gates(search="x"),
    "count_gates": lambda store: store.count_gates(),
    "pipelines": lambda store: store.pipelines(),
    "changed_gates": lambda store: store.changed_gates(NOON),
    "touched_gates": lambda store: store.touched_gates(NOON),
    "now": lambda store: store.now(),
    "replace_index": lambda store: store.replace_index(RUN, [gate_row()]),
    "create_conversation": lambda store: store.create_conversation(SESSION, state={}, at=NOON),
    "conversation": lambda store: store.conversation(SESSION),
    "conversations": lambda store: store.conversations("datasets", "ada"),
    "remark": lambda store: store.remark(SESSION, {}, at=NOON),
    "remarks": lambda store: store.remarks(SESSION),
    "touch_conversation": lambda store: store.touch_conversation(SESSION, at=NOON),
    "delete_conversation": lambda store: store.delete_conversation(SESSION, at=NOON),
    "record_refusal": lambda store: store.record_refusal(refusal_row()),
    "refusals": lambda store: store.refusals(),
    "renew_ledger_id": lambda store: store.renew_ledger_id(),
    "ledger.plan": lambda store: store.ledger.plan(**planned()),
    "ledger.begin": lambda store: store.ledger.begin("k1", **attempt(new=PLAN)),
    "ledger.busy": lambda store: store.ledger.busy("k1"),
    "ledger.renew": lambda store: store.ledger.renew("k1", "h1", lease=1),
    "ledger.release": lambda store: store.ledger.release("k1", "h1"),
    "ledger.performed": lambda store: store.ledger.performed("k1", result=1, receipt=None),
    "ledger.failed": lambda store: store.ledger.failed("k1", error="no"),
    "ledger.unknown": lambda store: store.ledger.unknown("k1", error="?"),
    "ledger.resolve": lambda store: store.ledger.resolve("k1", by="ada", happened=True, new=PLAN),
    "ledger.entry": lambda store: store.ledger.entry("k1"),
    "ledger.entries": lambda store: store.ledger.entries(),
    "ledger.prune": lambda store: store.ledger.prune(before=NOON),
    "notices.begin": lambda store: store.notices.begin("e1"),
    "notices.note": lambda store: store.notices.note("e1", [(NOON, gate_row())]),
    "notices.claim": lambda store: store.notices.claim("e1", holder="h1", seconds=1),
    "notices.delivered": lambda store: store.notices.delivered("e1", "msg_1"),
    "notices.missed": lambda store: store.notices.missed("e1", "msg_1", holder="h1", error="no", again=1),
    "notices.list": lambda store: store.notices.list(),
    "notices.prune": lambda store: store.notices.prune(),
}


def test_every_public_method_is_tried_below() -> None:
    """A new one must be added to the table, or this fails."""
    public = {name for name in dir(Store) if not name.startswith("_")} - {"open", "close"}
    rooms = {"ledger": Ledger, "notices": Notices}
    inner = {f"{room}.{name}" for room, kind in rooms.items() for name in dir(kind) if not name.startswith("_")}

    assert public | inner == set(CALLS)


def test_a_server_that_goes_away_makes_every_call_unavailable_until_it_is_back(server: Server) -> None:
    """The same store goes on working; nothing has to be opened again."""
    with Store.open(server.fresh_database()) as store:
        allocate(store)
        server.stop()
        try:
            said = {name: _said(call, store) for name, call in CALLS.items()}
        finally:
            server.start()

        assert dict.fromkeys(CALLS, StoreUnavailable) == said
        assert store.run(RUN) is not None


def test_a_server_that_was_restarted_meanwhile_is_not_noticed(server: Server) -> None:
    """Connections that died in between are replaced before they are used."""
    with Store.open(server.fresh_database()) as store:
        allocate(store)
        server.stop()
        server.start()

        assert store.run(RUN) is not None


def _said(call: object, store: Store) -> type[BaseException] | None:
    assert callable(call)
    try:
        call(store)
    except Exception as error:
        return type(error)
    return None


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be used now"):
        Store.open(f"postgresql://ada:secret@/gates?host={tmp_path}")


def test_a_password_is_not_repeated_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        Store.open(f"postgresql://ada:secret@/gates?host={tmp_path}")

    assert "secret" not in str(caught.value)


def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="unable to open"):
        Store.open(str(tmp_path))


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreUnavailable, match="cannot be made"):
        Store.open(str(tmp_path / "file" / "store.db"))


def test_a_lock_that_is_not_given_up_makes_a_writer_unavailable(address: str) -> None:
    """A reader does not wait for it."""
    sqlite = address.startswith("sqlite")
    impatient = address + ("?timeout=0.05" if sqlite else "&options=-c%20lock_timeout%3D50ms")
    with Store.open(address) as holder, Store.open(impatient) as store:
        allocate(store)
        with holder._database.write(SESSION.path):
            with pytest.raises(StoreUnavailable, match="lock"):
                allocate(store, opening_id="o2")
            seen = store.run(RUN)

        assert seen is not None
        assert allocate(store, opening_id="o2")[1]


def test_on_postgresql_sessions_do_not_wait_for_each_other(server: Server) -> None:
    address = server.fresh_database()
    with (
        Store.open(address) as holder,
        Store.open(address + "&options=-c%20lock_timeout%3D50ms") as store,
        holder._database.write("another/session/altogether"),
    ):
        assert allocate(store)[1]


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()

    with pytest.raises(StoreError, match="open it again"):
        store.run(RUN)


def test_a_time_without_a_zone_is_refused_and_nothing_is_kept(store: Store) -> None:
    naive = NOON.replace(tzinfo=None)
    with pytest.raises(StoreError, match=r"timezone|time zone"):
        allocate(store, at=naive)
    with pytest.raises(StoreError, match=r"timezone|time zone"):
        store.close_run(RUN, standing="completed", at=naive)
    with pytest.raises(StoreError, match=r"timezone|time zone"):
        store.ledger.prune(before=naive)
    with pytest.raises(ValidationError, match="timezone"):
        gate_row(opened_at=naive)

    assert [] == store.runs()


def test_a_value_that_json_has_no_form_for_is_refused(store: Store) -> None:
    store.ledger.plan(**planned())

    with pytest.raises(StoreError, match=r"not (a )?valid|not JSON serializable"):
        store.ledger.performed("k1", result=object(), receipt=None)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"not (a )?valid|not JSON serializable"):
        store.ledger.begin("k1", **attempt(arguments=object()))
    assert ["planned"] == [entry.state for entry in store.ledger.entries()]


def test_text_that_no_database_takes_is_kept_with_a_replacement(store: Store) -> None:
    """Refused answers come from outside, and their refusal must be recorded whatever they hold."""
    store.record_refusal(
        refusal_row(workflow_id="odd\0", interrupt_id="\0", reason="a\0b\ud800c", detail={"raw": "\0\ud800"})
    )

    kept = store.refusals(run="odd\0")

    assert ["a\ufffdb\ufffdc"] == [row.reason for row in kept]
    assert [{"raw": "\0\ud800"}] == [row.detail for row in kept]
