"""Our pipelines: one workflow type per file, replayed, named for what it makes."""

from workflows.dataset_release import DatasetRelease

ALL = [DatasetRelease]
"""What the worker hosts."""

__all__ = ["ALL", "DatasetRelease"]
