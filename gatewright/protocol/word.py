"""The one base of every protocol value: frozen, compared by content, written in JSON either way round."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Word(BaseModel):
    """
    A value of the protocol.

    Frozen, so that a recorded fact cannot be edited. Unknown fields are
    refused: a misspelt field in an approval must not be dropped in silence.
    Fields are written in snake_case and read in snake_case or camelCase.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )
