"""Notices: what is told of gates to whoever listens, to whom, and how far the gate index was read for each."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "endpoints",
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("begun_at", sa.BigInteger, nullable=False),
        sa.Column("read_to", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("endpoint", name="pk_endpoints"),
    )
    op.create_table(
        "notices",
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("workflow_id", sa.Text, nullable=False),
        sa.Column("interrupt_id", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=True),
        sa.Column("claimed_until", sa.BigInteger, nullable=True),
        sa.Column("error", sa.Text, nullable=True),
        sa.Column("noted_at", sa.BigInteger, nullable=False),
        sa.Column("settled_at", sa.BigInteger, nullable=True),
        sa.PrimaryKeyConstraint("endpoint", "id", name="pk_notices"),
    )
    op.create_index("ix_notices_endpoint_state_next_at", "notices", ["endpoint", "state", "next_at"])
    op.create_index("ix_notices_workflow_id_interrupt_id", "notices", ["workflow_id", "interrupt_id"])
    meta = sa.table("meta", sa.column("name", sa.Text), sa.column("value", sa.Text))
    op.bulk_insert(meta, [{"name": "notices_id", "value": secrets.token_hex(16)}])
