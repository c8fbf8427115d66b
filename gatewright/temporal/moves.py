"""
Whether the run goes on within the very workflow task that brings an update.

Has it gone on already? SDK 1.35 can bring updates to a run that it has just
replayed in an activation of their own, after whatever else came with the task;
on replay all of it comes in one activation, the updates first. What the run did
in between would then stand on the other side of them, and it could never be
replayed again. So such an update is turned away, which leaves nothing in
history, and is sent again.

May it yet go on? Mostly the updates do come first. Where a worker died in the
middle of a task, the task comes to the next worker together with the updates
that have arrived since, and these are looked at before what the dead worker had
seen: a gate that it had listed is not open yet. An answer that is early there
is turned away as well, once; what the run makes of it the second time counts.

Nothing else may depend on this: replays see other activations, and no
validators.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from threading import Lock

from temporalio import workflow
from temporalio.common import RawValue

TASK_EVENTS = 3
"""How many events lie at least between two workflow tasks: completed, scheduled, started."""

MAX_REMEMBERED = 1_000
"""How many early messages a worker remembers to have turned away."""


class _Remembered:
    """The last things that were remembered, in any thread."""

    def __init__(self) -> None:
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._lock = Lock()

    def first(self, key: bytes) -> bool:
        """Whether this one is new; it is remembered from now on."""
        with self._lock:
            new = key not in self._keys
            self._keys[key] = None
            if len(self._keys) > MAX_REMEMBERED:
                self._keys.popitem(last=False)
            return new


_TURNED_AWAY = _Remembered()
"""Of all runs of this worker: one that is not kept in its cache would not remember by itself."""


class Moves:
    """When the run last went on, in the terms that an activation is given."""

    def __init__(self) -> None:
        self._lived = False
        """Whether it was this worker, and no replay, in which it last went on."""
        self._length = -TASK_EVENTS
        self._time: datetime | None = None
        self._ahead = False
        """Whether it last went on with events that came before their task: at the time of the task before."""
        self._turned_away: int | None = None

    def note(self) -> bool:
        """Take note that the run goes on; False, always, so that it can be waited for and is asked in every activation."""
        length, time = workflow.info().get_current_history_length(), workflow.now()
        self._lived = not workflow.unsafe.is_replaying()
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

    def to_come(self, message: Sequence[RawValue]) -> bool:
        """
        Whether the run, which this worker has been given with this very task, may yet go on in it.

        True once for a message, whatever comes of it: nothing tells whether the
        task has brought anything else.
        """
        if self._lived:
            return False
        key = hashlib.sha256(workflow.info().run_id.encode())
        for part in message:
            key.update(part.payload.SerializeToString(deterministic=True))
        return _TURNED_AWAY.first(key.digest())
