"""The first schema: sessions and runs, archives, gate index, refusals, ledger."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _line(name: str, *, nullable: bool = False) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, nullable=nullable)


def _moment(name: str, *, nullable: bool = False) -> "sa.Column[int]":
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _integer(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer, nullable=False)


def upgrade() -> None:
    meta = op.create_table("meta", _line("name"), _line("value"), sa.PrimaryKeyConstraint("name", name="pk_meta"))
    op.bulk_insert(meta, [{"name": "ledger_id", "value": secrets.token_hex(16)}])
    op.create_table(
        "sessions",
        _line("session_path"),
        sa.Column("last_number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("session_path", name="pk_sessions"),
    )
    op.create_table(
        "runs",
        _line("workflow_id"),
        _line("session_path"),
        _line("app"),
        sa.Column("number", sa.BigInteger, nullable=False),
        _line("opening_id"),
        _line("pipeline"),
        _line("task_queue"),
        _line("input_digest", nullable=True),
        _line("standing"),
        _line("first_execution_run_id", nullable=True),
        _moment("opened_at"),
        _moment("closed_at", nullable=True),
        _line("reason", nullable=True),
        sa.PrimaryKeyConstraint("workflow_id", name="pk_runs"),
    )
    op.create_index("ix_runs_session_path_number", "runs", ["session_path", "number"])
    op.create_index("ix_runs_opened_at", "runs", ["opened_at"])
    op.create_table(
        "archives",
        _line("workflow_id"),
        _line("archive"),
        sa.PrimaryKeyConstraint("workflow_id", name="pk_archives"),
    )
    _gates()
    op.create_table(
        "refusals",
        sa.Column("id", SERIAL, nullable=False),
        _line("workflow_id"),
        _line("interrupt_id", nullable=True),
        _line("answer_id", nullable=True),
        _line("refusal"),
        _line("reason"),
        _line("principal", nullable=True),
        _line("channel"),
        _moment("at"),
        _line("recorded_by"),
        _line("detail"),
        sa.PrimaryKeyConstraint("id", name="pk_refusals"),
    )
    op.create_index("ix_refusals_workflow_id_id", "refusals", ["workflow_id", "id"])
    op.create_table(
        "ledger",
        _line("key"),
        _line("effect"),
        _line("workflow_id"),
        _line("branch"),
        _integer("visit"),
        _integer("generation"),
        _line("arguments_digest"),
        _line("state"),
        _integer("attempts"),
        _line("result", nullable=True),
        _line("receipt", nullable=True),
        _line("error", nullable=True),
        _moment("intended_at"),
        _moment("settled_at", nullable=True),
        sa.PrimaryKeyConstraint("key", name="pk_ledger"),
    )
    op.create_index("ix_ledger_workflow_id", "ledger", ["workflow_id"])


def _gates() -> None:
    op.create_table(
        "gates",
        _line("workflow_id"),
        _line("interrupt_id"),
        _line("session_path"),
        _line("app"),
        _line("gate"),
        _integer("visit"),
        _line("kind"),
        _line("state"),
        _line("pipeline"),
        _line("branch"),
        _line("message"),
        _line("payload", nullable=True),
        _line("response_schema", nullable=True),
        _line("digest"),
        sa.Column("dangerous", sa.Boolean, nullable=False),
        _moment("opened_at"),
        _moment("deadline", nullable=True),
        _moment("closed_at", nullable=True),
        _line("answer_id", nullable=True),
        _line("principal", nullable=True),
        _line("channel", nullable=True),
        _line("response", nullable=True),
        _line("receipt_digest", nullable=True),
        _integer("refusals"),
        _line("haystack"),
        sa.PrimaryKeyConstraint("workflow_id", "interrupt_id", name="pk_gates"),
    )
    op.create_index("ix_gates_session_path", "gates", ["session_path"])
    op.create_index("ix_gates_state_opened_at", "gates", ["state", "opened_at"])
