"""
Whether the run has gone on within the very workflow task that brings an update.

SDK 1.35 brings updates to a run that it has just replayed in an activation of
their own, after whatever else came with the task; on replay all of it comes in
one activation, the updates first. What the run did in between would then stand
on the other side of them, and it could never be replayed again. So such an
update is turned away, which leaves nothing in history, and is sent again.

Nothing else may depend on this: replays see other activations, and no
validators.
"""

from datetime import datetime

from temporalio import workflow

TASK_EVENTS = 3
"""How many events lie at least between two workflow tasks: completed, scheduled, started."""


class Moves:
    """When the run last went on, in the terms that an activation is given."""

    def __init__(self) -> None:
        self._length = -TASK_EVENTS
        self._time: datetime | None = None
        self._ahead = False
        """Whether it last went on with events that came before their task: at the time of the task before."""
        self._turned_away: int | None = None

    def note(self) -> bool:
        """Take note that the run goes on; False, always, so that it can be waited for and is asked in every activation."""
        length, time = workflow.info().get_current_history_length(), workflow.now()
        if length != self._length:
            self._ahead, self._turned_away = time == self._time, None
        self._length, self._time = length, time
        return False

    def here(self) -> bool:
        """Whether it went on in the task whose updates are looked at now."""
        length = workflow.info().get_current_history_length()
        if length - self._length < TASK_EVENTS:
            return True
        if self._ahead and self._turned_away in {None, length}:
            # Once more than needed, perhaps: which task it was is known only from the first update after it.
            self._turned_away = length
            return True
        return False
