"""Effects: plans, leases, people's words, and the generation that follows a call."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("ledger") as table:
        table.add_column(sa.Column("kind", sa.Text, nullable=True))
        table.add_column(sa.Column("arguments", sa.Text, nullable=True))
        table.add_column(sa.Column("holder", sa.Text, nullable=True))
        table.add_column(sa.Column("lease_until", sa.BigInteger, nullable=True))
        table.add_column(sa.Column("call_seconds", sa.Float, nullable=False, server_default="0"))
        table.add_column(sa.Column("resolved_by", sa.Text, nullable=True))
        table.add_column(sa.Column("resolution", sa.Text, nullable=True))
        table.add_column(sa.Column("resolved_at", sa.BigInteger, nullable=True))
        table.add_column(sa.Column("successor", sa.Text, nullable=True))
        table.add_column(sa.Column("contradicted", sa.Boolean, nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("planned_at", sa.BigInteger, nullable=False, server_default="0"))
        table.alter_column("arguments_digest", existing_type=sa.Text, nullable=True)
        table.alter_column("intended_at", existing_type=sa.BigInteger, nullable=True)
    op.execute("UPDATE ledger SET planned_at = intended_at")
    op.create_index("ix_ledger_state_planned_at", "ledger", ["state", "planned_at"])
