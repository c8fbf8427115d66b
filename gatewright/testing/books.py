"""A book built entry by entry, with sensible facts where a test does not care."""

from datetime import UTC, datetime, timedelta
from typing import Any, Self

from gatewright.protocol.admission import Admission, Admitted, admit
from gatewright.protocol.answer import Answer, Evidence, Message
from gatewright.protocol.book import Book
from gatewright.protocol.call import Call
from gatewright.protocol.entries import Asked, Closed, Expired, Opened, Performed, Refused, Said, Superseded
from gatewright.protocol.gate import Gate
from gatewright.protocol.identity import BranchPath, FrameIdentity, Standing

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""When a built book begins; every entry is a second later than the one before."""


class BookBuilder:
    """Writes a book the way a run does; `book` is what has been written."""

    def __init__(self, *, run: int = 1, declared: tuple[str, ...] = (), pipeline: str = "Pipeline") -> None:
        identity = FrameIdentity(
            namespace="default", workflow_id=f"app/user/session/{run}", first_execution_run_id="run-0"
        )
        self.book = Book(identity, run=run, declared=declared)
        self.at = NOON
        self.root = BranchPath().child(pipeline, 1)
        self._pipeline = pipeline

    def _tick(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at

    def opened(self, *, text: str | None = None, given: Any = None) -> Self:
        """The run was opened."""
        self.book.write(Opened(at=self._tick(), pipeline=self._pipeline, text=text, input=given))
        return self

    def asked(self, gate: Gate[Any] | str = "review") -> Self:
        """A gate opened; a name stands for a gate that takes any JSON."""
        asked = Gate[Any](gate) if isinstance(gate, str) else gate
        occurrence = self.book.reserve(asked.name)
        at = self._tick()
        branch = self.root.child(occurrence.gate, occurrence.visit)
        self.book.write(Asked(at=at, occurrence=occurrence, branch=branch, gate=asked.pin(opened_at=at)))
        return self

    def said_to(self, interrupt_id: str = "review", response: Any = None, **fields: Any) -> Admission:
        """Somebody answers; the ruling is written as a run writes it, and returned."""
        answer = Answer(interrupt_id=interrupt_id, response=response, **fields)
        message = Message.of(answer)
        size = len(message.model_dump_json())
        ruling = admit(self.book, message, Evidence(size=size, door="update"), at=self._tick())
        if isinstance(ruling, Admitted):
            self.book.write(*ruling.entries)
        elif isinstance(ruling, Refused):
            self.book.write(ruling)
        return ruling

    def answered(self, interrupt_id: str = "review", response: Any = None, **fields: Any) -> Self:
        """An answer was admitted; `AssertionError` with the refusal where it was not."""
        ruling = self.said_to(interrupt_id, response, **fields)
        if not isinstance(ruling, Admitted):
            raise AssertionError(ruling)  # noqa: TRY004 - the test's own assertion
        return self

    def expired(self, interrupt_id: str = "review") -> Self:
        """A gate's deadline passed, and it had no default."""
        occurrence = self.book.gates[interrupt_id].occurrence
        self.book.write(Expired(at=self._tick(), occurrence=occurrence, outcome="fail"))
        return self

    def superseded(self, interrupt_id: str = "review", reason: str = "the pipeline went another way") -> Self:
        """The pipeline stopped waiting at a gate."""
        occurrence = self.book.gates[interrupt_id].occurrence
        self.book.write(Superseded(at=self._tick(), occurrence=occurrence, reason=reason))
        return self

    def performed(self, name: str = "profile", output: Any = None) -> Self:
        """A step was performed."""
        call = Call.at(self.book.identity, self.root, name, self.book.reserve_call(name), effect=False)
        self.book.write(Performed(at=self._tick(), call=call, output=output))
        return self

    def said(self, text: str) -> Self:
        """The pipeline said something."""
        self.book.write(Said(at=self._tick(), text=text, branch=self.root))
        return self

    def closed(self, standing: Standing = Standing.COMPLETED) -> Self:
        """The run ended."""
        self.book.write(Closed(at=self._tick(), standing=standing))
        return self
