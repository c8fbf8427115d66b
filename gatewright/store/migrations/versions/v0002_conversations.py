"""Sessions as ADK's clients see them: their state, and what was said outside any run."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("session_path", sa.Text, nullable=False),
        sa.Column("app", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("after", sa.BigInteger, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("session_path", name="pk_conversations"),
    )
    op.create_index("ix_conversations_app_user", "conversations", ["app", "user", "updated_at"])
    op.create_table(
        "remarks",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("session_path", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_remarks"),
    )
    op.create_index("ix_remarks_session_path", "remarks", ["session_path", "id"])
