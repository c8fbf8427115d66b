"""The inbox: when a listed gate last changed, who is invited to it, and what its deadline does."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("gates") as table:
        table.add_column(sa.Column("invited", sa.Text, nullable=False, server_default="[]"))
        table.add_column(sa.Column("invitations", sa.Text, nullable=False, server_default=""))
        table.add_column(sa.Column("on_deadline", sa.Text, nullable=False, server_default="fail"))
        table.add_column(sa.Column("default_response", sa.Text, nullable=True))
        table.add_column(sa.Column("touched_at", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE gates SET touched_at = COALESCE(closed_at, opened_at)")
    op.create_index("ix_gates_touched_at", "gates", ["touched_at"])
