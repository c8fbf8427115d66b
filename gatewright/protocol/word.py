"""The two bases of protocol values: frozen, compared by content, read from JSON either way round."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Word(BaseModel):
    """
    A value that decides something: an answer, a gate, an entry of a book.

    Frozen, so that a recorded fact cannot be edited. Unknown fields are
    refused: a misspelt field in an approval must not be dropped in silence, nor
    a rule that a later release wrote and this one would not keep. Fields are
    written in snake_case and read in snake_case or camelCase.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Told(Word):
    """
    A value that tells somebody something: a verdict, a receipt, a view.

    What this release does not know is left out: whoever asks and whoever
    answers may be of different releases.
    """

    model_config = ConfigDict(extra="ignore")
