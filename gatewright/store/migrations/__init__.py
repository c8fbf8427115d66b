"""The schema's history, one file per revision; applied by `gatewright.store.migrate`."""
