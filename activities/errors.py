"""
What can go wrong in a step, and whether trying again can help.

    ApplicationError (Temporal's)
    ├── DatasetError      the file that was named cannot be released as it is        never retried
    ├── ModelRefused      the model's service will not serve this configuration      never retried
    ├── ModelSilent       the model answered without any text                        retried
    ├── JobConflict       one key, two different orders                              never retried
    ├── TransformRejected a transform's plan cannot be carried out on its source     never retried
    └── ReleaseUnclear    something stands where the release would, and is not it    retried, to be reconciled

A type's name is what Temporal's history records, so workflows can tell them apart.
"""

from temporalio.exceptions import ApplicationError


class DatasetError(ApplicationError):
    """The named file is not a CSV file that can be released; the message says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, type="DatasetError", non_retryable=True)


class ModelRefused(ApplicationError):  # noqa: N818 — named as histories name it
    """The model's service refused the call for good: a setting is wrong or missing, and the message names it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, type="ModelRefused", non_retryable=True)


class ModelSilent(ApplicationError):  # noqa: N818 — likewise
    """The model answered, but not with text. It is asked again: models are not deterministic."""

    def __init__(self, message: str) -> None:
        super().__init__(message, type="ModelSilent")


class JobConflict(ApplicationError):  # noqa: N818 — likewise
    """A job folder with this key holds another order; a key names one call for ever."""

    def __init__(self, message: str) -> None:
        super().__init__(message, type="JobConflict", non_retryable=True)


class TransformRejected(ApplicationError):  # noqa: N818 — likewise
    """A transform cannot be done as planned; `type` is the failure's name as the waiting run sees it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message, type=kind, non_retryable=True)


class ReleaseUnclear(ApplicationError):  # noqa: N818 — likewise
    """
    The release's folder exists but is not provably this release; a person must look.

    It may be retried: the next attempt reconciles first, cannot tell, and so the run learns that nobody knows.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, type="ReleaseUnclear")
