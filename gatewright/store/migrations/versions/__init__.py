"""The revisions; a new one is also named in `gatewright.store.migrate.REVISIONS`."""
