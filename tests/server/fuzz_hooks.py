"""What schemathesis is told, so that what it makes up reaches a gate instead of ending at an unknown app."""

from typing import Any

import schemathesis

APP, USER, SESSION, GATE = "planned", "fuzz", "fuzz", "review"


@schemathesis.hook
def map_path_parameters(_context: Any, path_parameters: Any) -> Any:
    """The app is there, and in every other case the session too."""
    if isinstance(path_parameters, dict) and "app_name" in path_parameters:
        known = {"app_name": APP, "user_id": USER}
        path_parameters.update({name: value for name, value in known.items() if name in path_parameters})
        if len(str(path_parameters.get("session_id", ""))) % 2:
            path_parameters["session_id"] = SESSION
    return path_parameters


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """A turn is one of the session's, and every other answer is one to its gate."""
    if not (isinstance(body, dict) and {"userId", "sessionId"} & body.keys()):
        return body
    body.update(appName=APP, userId=USER, sessionId=SESSION)
    message = body.get("newMessage")
    parts = message.get("parts") if isinstance(message, dict) else None
    for number, part in enumerate(parts if isinstance(parts, list) else ()):
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(response, dict) and number % 2 == 0:
            response["id"] = GATE
    return body


@schemathesis.check
def no_bare_error(_context: Any, response: Any, _case: Any) -> None:
    """Whatever goes wrong is told as JSON, and tells nothing of the inside."""
    if response.status_code >= 400:
        assert response.headers["content-type"][0] == "application/json", response.text
        assert "detail" in response.json()
    assert "Traceback" not in response.text
