"""
Which call of which step or effect: the key names it for ever.

The key is a digest of what survives retry, continue-as-new, workflow retry and
reset (design: *key*). A run id, an activity's number or a random id survives
none of these, so none of them is in it. Only a decision about one call raises
that call's generation.
"""

from pydantic import Field

from .canonical import digest
from .identity import Branch, BranchPath, FrameIdentity, Name
from .word import Word


class Call(Word):
    """One call of one step or effect, as the run knows it and as the activity side receives it."""

    identity: FrameIdentity
    name: Name
    effect: bool = Field(description="whether something is done to the world")
    branch: Branch
    visit: int = Field(ge=1)
    generation: int = Field(default=0, ge=0)
    key: str
    authorised_by: str | None = Field(default=None, description="interrupt id of the answer that authorises it")
    ledger_id: str | None = Field(default=None, description="the ledger that the run relies on")

    @property
    def id(self) -> str:
        """The readable id that the activity carries in Temporal: `publish_release#1`, `#1.2` after a re-run."""
        return f"{self.name}#{self.visit}" + (f".{self.generation}" if self.generation else "")

    def again(self, *, generation: int, ledger_id: str | None = None) -> "Call":
        """This very call under the key of another generation: only a decision about the call raises it."""
        key = call_key(self.identity, self.branch, self.visit, self.name, generation)
        update = {"generation": generation, "key": key, "ledger_id": ledger_id or self.ledger_id}
        return self.model_copy(update=update)

    @classmethod
    def at(
        cls,
        identity: FrameIdentity,
        root: BranchPath,
        name: str,
        visit: int,
        *,
        effect: bool,
        generation: int = 0,
        authorised_by: str | None = None,
        ledger_id: str | None = None,
    ) -> "Call":
        """The `visit`-th call of `name` below `root`, with its key."""
        branch = root.child(name, visit)
        return cls(
            identity=identity,
            name=name,
            effect=effect,
            branch=branch,
            visit=visit,
            generation=generation,
            key=call_key(identity, branch, visit, name, generation),
            authorised_by=authorised_by,
            ledger_id=ledger_id,
        )


def call_key(identity: FrameIdentity, branch: BranchPath, visit: int, name: str, generation: int) -> str:
    """`gw1-` and 64 hex digits: safe as an `Idempotency-Key`, a file name and an activity id."""
    parts = [
        identity.namespace,
        identity.workflow_id,
        identity.first_execution_run_id,
        str(branch),
        visit,
        name,
        generation,
    ]
    return "gw1-" + digest(parts).removeprefix("sha256:")
