"""Gates for durable pipelines on Temporal."""
