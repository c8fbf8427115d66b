"""
The tables, as the code of today reads and writes them.

What a database has is made by the migrations; a test holds the two together.
`session_path` and `app` repeat what the workflow id says, so that they can be
filtered by; `invitations` repeats `invited`, a name to a line; `haystack` is the
text that a search looks in, case already folded, because the databases do not
agree on how to fold it. `touched_at` is when the row was last written, by the
store's clock. `read_to` is up to which of these times the gates were read for an
endpoint, and `rank` says which of a gate's notices goes first.
"""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, Table

from .columns import Json, Line, Moment, Serial

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"},
)

meta = Table(
    "meta",
    metadata,
    Column("name", Line, primary_key=True),
    Column("value", Line, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("session_path", Line, primary_key=True),
    Column("last_number", BigInteger, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("workflow_id", Line, primary_key=True),
    Column("session_path", Line, nullable=False),
    Column("app", Line, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("opening_id", Line, nullable=False),
    Column("pipeline", Line, nullable=False),
    Column("task_queue", Line, nullable=False),
    Column("input_digest", Line),
    Column("standing", Line, nullable=False),
    Column("first_execution_run_id", Line),
    Column("opened_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("reason", Line),
    Index(None, "session_path", "number"),
    Index(None, "opened_at"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("session_path", Line, primary_key=True),
    Column("app", Line, nullable=False),
    Column("user", Line, nullable=False),
    Column("state", Json, nullable=False),
    Column("after", BigInteger, nullable=False),
    Column("deleted", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index("ix_conversations_app_user", "app", "user", "updated_at"),
)

remarks = Table(
    "remarks",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("session_path", Line, nullable=False),
    Column("at", Moment, nullable=False),
    Column("event", Json, nullable=False),
    Index("ix_remarks_session_path", "session_path", "id"),
)

archives = Table(
    "archives",
    metadata,
    Column("workflow_id", Line, primary_key=True),
    Column("archive", Json, nullable=False),
)

gates = Table(
    "gates",
    metadata,
    Column("workflow_id", Line, primary_key=True),
    Column("interrupt_id", Line, primary_key=True),
    Column("session_path", Line, nullable=False),
    Column("app", Line, nullable=False),
    Column("gate", Line, nullable=False),
    Column("visit", Integer, nullable=False),
    Column("kind", Line, nullable=False),
    Column("state", Line, nullable=False),
    Column("pipeline", Line, nullable=False),
    Column("branch", Line, nullable=False),
    Column("message", Line, nullable=False),
    Column("payload", Json),
    Column("response_schema", Json),
    Column("digest", Line, nullable=False),
    Column("dangerous", Boolean, nullable=False),
    Column("invited", Json, nullable=False),
    Column("invitations", Line, nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("deadline", Moment),
    Column("on_deadline", Line, nullable=False),
    Column("default_response", Json),
    Column("closed_at", Moment),
    Column("answer_id", Line),
    Column("principal", Line),
    Column("channel", Line),
    Column("response", Json),
    Column("receipt_digest", Line),
    Column("refusals", Integer, nullable=False),
    Column("haystack", Line, nullable=False),
    Column("touched_at", Moment, nullable=False),
    Index(None, "session_path"),
    Index(None, "state", "opened_at"),
    Index(None, "touched_at"),
)

refusals = Table(
    "refusals",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("workflow_id", Line, nullable=False),
    Column("interrupt_id", Line),
    Column("answer_id", Line),
    Column("refusal", Line, nullable=False),
    Column("reason", Line, nullable=False),
    Column("principal", Line),
    Column("channel", Line, nullable=False),
    Column("at", Moment, nullable=False),
    Column("recorded_by", Line, nullable=False),
    Column("detail", Json, nullable=False),
    Index(None, "workflow_id", "id"),
)

ledger = Table(
    "ledger",
    metadata,
    Column("key", Line, primary_key=True),
    Column("effect", Line, nullable=False),
    Column("workflow_id", Line, nullable=False),
    Column("branch", Line, nullable=False),
    Column("visit", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("arguments_digest", Line),
    Column("state", Line, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("result", Json),
    Column("receipt", Json),
    Column("error", Line),
    Column("intended_at", Moment),
    Column("settled_at", Moment),
    Column("kind", Line),
    Column("arguments", Json),
    Column("holder", Line),
    Column("lease_until", Moment),
    Column("call_seconds", Float, nullable=False),
    Column("resolved_by", Line),
    Column("resolution", Line),
    Column("resolved_at", Moment),
    Column("successor", Line),
    Column("contradicted", Boolean, nullable=False),
    Column("planned_at", Moment, nullable=False),
    Index(None, "workflow_id"),
    Index(None, "state", "planned_at"),
)

endpoints = Table(
    "endpoints",
    metadata,
    Column("endpoint", Line, primary_key=True),
    Column("begun_at", Moment, nullable=False),
    Column("read_to", Moment, nullable=False),
)

notices = Table(
    "notices",
    metadata,
    Column("endpoint", Line, primary_key=True),
    Column("id", Line, primary_key=True),
    Column("workflow_id", Line, nullable=False),
    Column("interrupt_id", Line, nullable=False),
    Column("type", Line, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("at", Moment, nullable=False),
    Column("data", Json, nullable=False),
    Column("state", Line, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Moment, nullable=False),
    Column("holder", Line),
    Column("claimed_until", Moment),
    Column("error", Line),
    Column("noted_at", Moment, nullable=False),
    Column("settled_at", Moment),
    Index("ix_notices_endpoint_state_next_at", "endpoint", "state", "next_at"),
    Index("ix_notices_workflow_id_interrupt_id", "workflow_id", "interrupt_id"),
)
