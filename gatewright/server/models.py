"""The bodies of requests, as ADK reads them: camelCase or snake_case, unknown fields left out."""

from typing import Annotated, Any

from google.genai import types
from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Body(BaseModel):
    """What all bodies have in common."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


def _content(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        raise
    except Exception as broken:
        # google-genai's enums stumble over what is no text, with errors that pydantic does not know.
        raise PydanticCustomError("unreadable", "Input should be a valid Content") from broken


class RunRequest(Body):
    """A turn of a conversation (`/run`, `/run_sse`); `streaming` changes nothing, there is no model in between."""

    app_name: str | None = None
    user_id: str
    session_id: str
    new_message: Annotated[types.Content | None, WrapValidator(_content)] = None
    streaming: bool = False
    state_delta: dict[str, Any] | None = None
    function_call_event_id: str | None = None
    invocation_id: str | None = None
    custom_metadata: dict[str, Any] | None = None


class CreateSessionRequest(Body):
    """A new session; all of it may be left out."""

    session_id: str | None = None
    state: dict[str, Any] | None = None
    events: list[dict[str, Any]] | None = None
    options: dict[str, Any] | None = None


class UpdateSessionRequest(Body):
    """A change of a session's state."""

    state_delta: dict[str, Any]
