"""Measurements against peers: `python -m bench.answers`. What they show is in docs/bench.md."""
