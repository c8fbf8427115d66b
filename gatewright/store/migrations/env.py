"""Alembic's entry: runs the revisions on the connection, and in the transaction, of the caller."""

from alembic import context

from gatewright.store.migrate import VERSION_TABLE
from gatewright.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
