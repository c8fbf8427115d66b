"""
For the tests of pipelines that have gates: somebody who answers by a script, and books built in a line.

    person = ScriptedPerson(gates, {"review": [{"approved": False}, {"approved": True}]}, principal="alice")
    await person.play(workflow_id)
    assert await handle.result() == "published"

Both fail loudly: a script that runs dry, or an answer that is refused, is the
test's failure and not its silence.
"""

from gatewright.testing.books import NOON, BookBuilder
from gatewright.testing.person import AnswerRefusedError, ScriptedPerson, ScriptError

__all__ = ["NOON", "AnswerRefusedError", "BookBuilder", "ScriptError", "ScriptedPerson"]
