"""`gatewright gates`, `reindex` and `store`: what the store lists, and bringing it up to date."""

from collections import Counter

from gatewright.store import RUN_CLOSED, RUN_OPEN, Store, default_url
from gatewright.temporal import names

from .connect import gate_client, open_store, store_name
from .exits import AWAY, OK, Stop
from .out import Out
from .render import gate_rows, moment

PAGE = 1000


def gates(out: Out, *, run: str | None, state: str, search: str | None, limit: int) -> int:
    """List gates from the index; no server is needed."""
    with open_store() as store:
        states = None if state == "all" else {state}
        rows = store.gates(run=run, states=states, search=search, limit=limit + 1)
        if not rows and run is not None and store.run(run) is None:
            raise Stop(AWAY, f"the store lists no run {run}", kind="unknown_run")
    more, rows = len(rows) > limit, rows[:limit]
    if rows:
        heads = ("run", "interrupt id", "pipeline", "state", "message", "age", "deadline")
        out.table(heads, gate_rows(rows, moment()))
    else:
        out.note(f"no gate is {state}" if state != "all" else "no gates")
    if more:
        out.note(f"there are more than {limit}: --limit {limit * 10}")
    out.data([row.model_dump(mode="json") for row in rows])
    return OK


async def reindex(out: Out, query: str | None) -> int:
    """Read every run from Temporal and list it anew."""
    async with gate_client(make_store=True) as client:
        wanted = query or f"{names.ATTRIBUTE_PIPELINE} IS NOT NULL"
        found = (await client.client.count_workflows(wanted)).count
        with out.busy(f"reading {found} runs from Temporal"):
            count = await client.reindex(query)
    out.say(f"{count} runs were read, and their gates are listed anew")
    out.data({"runs": count})
    return OK


def migrate(out: Out) -> int:
    """Make the store, or bring it to the schema of this release."""
    with open_store(make=True) as store:
        ledger_id = store.ledger_id
    name = store_name(default_url())
    out.say(f"{name} is up to date (ledger {ledger_id})")
    out.data({"url": name, "ledger_id": ledger_id})
    return OK


def info(out: Out) -> int:
    """Where the store is, which ledger it holds, and how much is in it."""
    with open_store() as store:
        runs, found = _standings(store), store.count_gates()
        ledger_id = store.ledger_id
    name = store_name(default_url())
    out.say(f"store   {name}")
    out.say(f"ledger  {ledger_id}")
    for title, counts in (("runs", runs), ("gates", found)):
        said = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        out.say(f"{title:<7} {said or 'none'}")
    out.data({"url": name, "ledger_id": ledger_id, "runs": dict(runs), "gates": found})
    return OK


def _standings(store: Store) -> Counter[str]:
    counts: Counter[str] = Counter()
    before = None
    while page := store.runs(standing=RUN_OPEN | RUN_CLOSED, limit=PAGE, before=before):
        counts.update(run.standing for run in page)
        before = page[-1].cursor
    return counts
