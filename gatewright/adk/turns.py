"""
One message of a user: it opens a run, or answers gates of one, or is rejected before anything happens.

The run judges every answer that can be brought before it, so that one admission
rules over all channels and its refusals are evidence. Only what no run can be
asked (ids of several runs, a message that is none) is rejected here.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from google.genai import types
from pydantic import ValidationError

from gatewright.protocol.admission import Admitted, Repeated
from gatewright.protocol.answer import MAX_MESSAGE_BYTES, Answer, EvidenceClass, Message
from gatewright.protocol.canonical import NotJson, canonical, digest, plain
from gatewright.protocol.entries import Refused
from gatewright.protocol.errors import IdentityError
from gatewright.protocol.identity import Occurrence
from gatewright.store import RUN_OPEN, Conversation, RefusalRow, RunRecord, StoreError
from gatewright.temporal import GateClient
from gatewright.temporal.errors import SessionBusyError
from gatewright.temporal.opening import OpeningWord
from gatewright.temporal.reading import now
from gatewright.temporal.views import Delivered

from .apps import App, text
from .messages import Reply, Text, read
from .names import invocation_id, is_alias, without_alias
from .rejection import MISSING_ID, MIXED, Rejection, refused, several_invocations, unknown_ids
from .sessions import Sessions
from .shapes import brief, open_gates, reported, session_key, state_of

MAX_KEY = 150
"""The longest idempotency key, in characters: it becomes part of an opening's or an answer's id."""


@dataclass(frozen=True)
class Turn:
    """
    One message of a user, as ADK's `/run` takes it.

    `principal` is who sends it, as far as the transport knows; without one it
    is the session's user. `key` names the message: sent again under the same
    key it does nothing anew.
    """

    app: str
    user: str
    session: str
    message: types.Content | None = None
    invocation_id: str | None = None
    event_id: str | None = None
    state_delta: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    principal: str | None = None
    authenticated: bool = False
    channel: str = "adk"
    key: str | None = None

    @property
    def who(self) -> str:
        """Who sends it."""
        return self.principal or self.user


@dataclass(frozen=True)
class Accepted:
    """
    A turn that counts.

    Its events begin at position `after` of the run's transcript; reading begins
    at `start`, where the message itself stands. `again` says that the message
    was sent before: its events are those that it had the first time.
    """

    workflow_id: str
    start: int
    after: int
    again: bool = False
    silent: bool = False
    """Nothing is to be shown: the run waits, and nothing was said to it (B10)."""

    @property
    def invocation(self) -> str:
        """ADK's name for the run."""
        return invocation_id(self.workflow_id)


class Turns(Sessions):
    """Takes users' messages."""

    def __init__(
        self, client: GateClient, apps: Iterable[App], *, on_text: Literal["refuse", "open"] = "refuse"
    ) -> None:
        super().__init__(client, apps)
        self.on_text = on_text

    async def submit(self, turn: Turn) -> Accepted:
        """
        Open a run, or answer its gates: what `/run` does before it shows anything.

        `Rejection` for everything that does not count; then nothing has changed
        but the record of refusals. It must not be cancelled half-way: a server
        shields it from a client that goes away.
        """
        app = self.app(turn.app)
        talk = await self._conversation(turn.app, turn.user, turn.session, named=True)
        try:
            async with reported():
                return await self._submit(app, talk, turn)
        except Rejection as rejection:
            if not rejection.recorded and 400 <= rejection.status < 500:
                await self._record(talk, turn, rejection)
            raise

    async def _submit(self, app: App, talk: Conversation, turn: Turn) -> Accepted:
        if turn.key is not None and not 1 <= len(turn.key) <= MAX_KEY:
            message = f"An idempotency key has 1 to {MAX_KEY} characters, not {len(turn.key)}."
            raise Rejection("bad_name", message, todo="Send a shorter one.")
        if turn.message is None:
            return await self._poked(talk, turn)
        said = read(turn.message)
        accepted = await (
            self._replied(talk, turn, said) if isinstance(said, Reply) else self._opened(app, talk, turn, said)
        )
        with suppress(StoreError):
            # The turn counts, whether or not the listing learns of it.
            await asyncio.to_thread(self.store.touch_conversation, talk.session, at=now())
        return accepted

    # Opening

    async def _opened(self, app: App, talk: Conversation, turn: Turn, said: Text) -> Accepted:
        if turn.invocation_id:
            message = f"Text opens a run of its own, so it cannot belong to invocation {turn.invocation_id}."
            raise Rejection("text_with_invocation", message)
        note = _note(turn, content=said.content)
        if (size := len(canonical(note))) > MAX_MESSAGE_BYTES:
            message = f"The message has {size:,} bytes, at most {MAX_MESSAGE_BYTES:,} are read."
            raise Rejection("too_large", message, todo="Put large parts elsewhere and send a reference to them.")
        if self.on_text == "refuse" and turn.key is None and (busy := await self._open_run(talk)):
            # Said before the text is looked at: "yes" at a gate is no bad opening, it is no opening.
            raise await self._busy(busy.workflow_id, "text would open another beside it")
        state = {} if app.opens is text else (await self._session(talk, await self._runs(talk)))["state"]
        try:
            given = app.opens(said.words, state | (turn.state_delta or {}))
        except ValueError as wrong:
            message = f"{app.name} cannot be opened with this text: {brief(wrong)}"
            raise Rejection("bad_opening", message, todo="Mend the text and send it again.") from wrong
        try:
            started = await self.client.start(
                app.pipeline,
                given,
                session=talk.session,
                # A session that was deleted and made anew knows nothing of the keys before.
                opening_id=f"{talk.after}:{turn.key}" if turn.key and talk.after else turn.key,
                on_text=self.on_text,
                task_queue=app.task_queue,
                word=OpeningWord(text=said.words, note=note),
            )
        except SessionBusyError as busy:
            raise await self._busy(busy.workflow_id, "text would open another beside it") from busy
        return Accepted(started.workflow_id, start=0, after=1, again=not started.created)

    async def _open_run(self, talk: Conversation) -> RunRecord | None:
        """The session's run that is open now, if one is."""
        for run in await asyncio.to_thread(self.store.runs, session=talk.session, standing=RUN_OPEN):
            if await self.client.still_open(run):
                return run
        return None

    # Answering

    async def _replied(self, talk: Conversation, turn: Turn, said: Reply) -> Accepted:
        ids = [await self._meant(talk, response.id or "") for response in said.responses]
        workflow_id = await self._addressed(talk, said, ids)
        try:
            answers = tuple(
                Answer(
                    answer_id=_answer_id(turn, response, interrupt_id, position),
                    interrupt_id=interrupt_id,
                    response=response.response,
                    principal=turn.who,
                    channel=turn.channel,
                    evidence=EvidenceClass.AUTHENTICATED if turn.authenticated else EvidenceClass.ASSERTED,
                )
                for position, (response, interrupt_id) in enumerate(zip(said.responses, ids, strict=True))
            )
            note = _note(turn, beside=[list(each) for each in said.beside] or None)
            message = Message(answers=answers, text=said.text or None, note=note or None)
        except ValidationError as wrong:
            raise Rejection("unreadable", brief(wrong), todo="Mend the message.", workflow_id=workflow_id) from wrong
        ruling = await self.client.answer(workflow_id, message)
        match ruling:
            case Admitted(cursor=int(after)):
                return Accepted(workflow_id, start=after - len(answers), after=after)
            case Admitted() | Repeated():
                again = isinstance(ruling, Repeated)
                found = await self._cursor_of(workflow_id, {answer.name for answer in answers})
                if found is None:
                    # Admitted so long ago that the run's transcript no longer tells of it.
                    return Accepted(workflow_id, start=0, after=0, again=again, silent=True)
                return Accepted(workflow_id, start=found - 1, after=found, again=again)
            case Refused():
                rows = await asyncio.to_thread(self.store.gates, run=workflow_id, states={"open"})
                raise refused(ruling, workflow_id=workflow_id, open=open_gates(rows))
            case Delivered(reason=reason):
                message_text = f"The answer has no verdict yet: {reason}."
            case _:
                message_text = "The answer counts towards a quorum that is not complete."
        raise Rejection("delivered", message_text, workflow_id=workflow_id)

    async def _meant(self, talk: Conversation, named: str) -> str:
        """The interrupt id that a functionResponse names, perhaps by the alias of a form that was shown again."""
        if not is_alias(named):
            return named
        number = _run_of(named)
        workflow_id = talk.session.workflow_id(number) if number else None
        rows = [] if workflow_id is None else await asyncio.to_thread(self.store.gates, run=workflow_id, limit=10_000)
        # An author may have named a gate like an alias.
        return named if any(row.interrupt_id == named for row in rows) else without_alias(named)

    async def _addressed(self, talk: Conversation, said: Reply, ids: list[str]) -> str:
        """The workflow id of the run that a reply is for; `Rejection` where none asked (B04), or several did (B06)."""
        runs: dict[str, set[str]] = {}
        unknown = set()
        for interrupt_id in filter(None, ids):
            number = _run_of(interrupt_id)
            run = await self._run(talk, number) if number else None
            if run is None:
                unknown.add(interrupt_id)
            else:
                runs.setdefault(run.workflow_id, set()).add(interrupt_id)
        listed = await self._runs(talk, limit=1)
        newest = listed[0].workflow_id if listed else None
        if said.text:
            # Whichever run it is brought before refuses it for the text beside the answers (B02), and records that.
            if runs or newest:
                return next(iter(runs), newest or "")
            raise Rejection("mixed_message", MIXED)
        if len(runs) > 1:
            for workflow_id, meant in runs.items():
                rows = await asyncio.to_thread(self.store.gates, run=workflow_id, limit=10_000)
                unknown |= meant - {row.interrupt_id for row in rows}
            if not unknown:
                message = several_invocations({invocation_id(each) for each in runs})
                raise Rejection("several_runs", message, workflow_id=newest)
        if unknown:
            rows = [] if newest is None else await asyncio.to_thread(self.store.gates, run=newest, states={"open"})
            raise Rejection("unknown_gate", unknown_ids(unknown), open=open_gates(rows), workflow_id=newest)
        if runs:
            return next(iter(runs))
        if newest is None:
            raise Rejection("missing_id", MISSING_ID)
        return newest

    async def _cursor_of(self, workflow_id: str, answer_ids: set[str]) -> int | None:
        """Where the transcript goes on after the answers of these ids; None where it no longer tells of them."""
        after, cursor = None, 0
        while after is None:
            page = await self.client.transcript(workflow_id, cursor)
            if not page.entries:
                return None
            for position, line in enumerate(page.entries, start=page.next - len(page.entries)):
                if line["kind"] == "answered" and line["answer"]["answer_id"] in answer_ids:
                    after = position + 1
            cursor = page.next
        return after

    # Neither

    async def _poked(self, talk: Conversation, turn: Turn) -> Accepted:
        """No message: with an invocation that is known, its events that are still to come (B10, B11)."""
        if not turn.invocation_id:
            raise Rejection("no_message", "There is no new_message, so there is nothing to do.")
        for run in await self._runs(talk):
            if invocation_id(run.workflow_id) != turn.invocation_id:
                continue
            if turn.state_delta:
                await self._remark(talk.session, turn.state_delta)
            page = await self.client.told(run)
            while page.entries and not page.closed:
                after = page.next
                page = await self.client.told(run, after)
            silent = page.closed or page.waiting
            return Accepted(run.workflow_id, start=page.next, after=page.next, silent=silent)
        raise Rejection("unknown_invocation", f"This session has no invocation {turn.invocation_id}.")

    async def _record(self, talk: Conversation, turn: Turn, rejection: Rejection) -> None:
        """Keep, in the store, what no run could record."""
        row = RefusalRow(
            workflow_id=rejection.workflow_id or talk.session.workflow_id(1),
            interrupt_id=None,
            answer_id=turn.key,
            refusal=rejection.code,
            reason=rejection.message[:2000],
            principal=turn.who,
            channel=turn.channel,
            at=now(),
            recorded_by="client",
            detail=rejection.body(),
        )
        with suppress(StoreError):
            # What is told is the refusal, also where nobody can note it.
            await asyncio.to_thread(self.store.record_refusal, row)


def _answer_id(turn: Turn, response: types.FunctionResponse, interrupt_id: str, position: int) -> str:
    """The client's own key, or what makes the same click twice one answer."""
    if turn.key:
        return turn.key if position == 0 else f"{turn.key}#{position}"
    said = [turn.app, turn.user, turn.session, interrupt_id, turn.event_id, turn.who]
    try:
        return "adk-" + digest([*said, digest(plain(response.response))]).removeprefix("sha256:")[:40]
    except NotJson:
        return ""  # the run refuses it, and says why


def _note(turn: Turn, **more: Any) -> dict[str, Any]:
    """What is kept with the message, for the transcript: ADK's customMetadata and stateDelta, and its other parts."""
    note = {"custom_metadata": turn.metadata or None, "state_delta": state_of(turn.state_delta or {}) or None, **more}
    return state_of({name: value for name, value in note.items() if value is not None})


def _run_of(interrupt_id: str) -> int | None:
    try:
        return Occurrence.parse(interrupt_id).run
    except IdentityError:
        return None


__all__ = ["Accepted", "Turn", "Turns", "session_key"]
