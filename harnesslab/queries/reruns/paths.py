"""How an attempt went beside its parent, from their paths: what a rerun's finding rests on."""

from __future__ import annotations

from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.comparators import first_difference
from harnesslab.core.contracts.contract import LADDER, Contract, Level
from harnesslab.core.errors import NotComparable
from harnesslab.core.running.record import altered
from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.core.running.rollout import UNCOUNTED
from harnesslab.core.trace.retries import tried_again
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout
from harnesslab.store.text import as_object, thawed

NEVER_LIVE = "nothing was live in it, so that it is equal to its parent by construction"


def same_as(parent: Rollout, rollout: Rollout, contract: Contract, *, diverged: bool) -> bool | None:
    """Say whether an attempt went as its parent; cut short from outside is no answer, but leaving the record is one."""
    if diverged or "went_live_after" in as_object(thawed(rollout.facts)):
        return False
    if rollout.outcome in UNCOUNTED and rollout.outcome != parent.outcome:
        return None
    try:
        paths = StoredTraceReader(parent).path(contract), StoredTraceReader(rollout).path(contract)
    except NotComparable:
        return None
    return first_difference(*paths) is None


def never_live(plan: RerunPlan, rollout: Rollout, *, diverged: bool, own_tools: bool) -> str:
    """Say why an attempt shows nothing: it asked and ran nothing itself, so that all of it was served; else nothing.

    An agent with `own_tools` runs them anew whatever is served.
    A fork runs commands to rebuild its environment, which are no live step; what drift stops there was never asked.
    """
    facts = as_object(thawed(rollout.facts))
    counts = as_object(facts.get("counts"))
    diverged = diverged or "went_live_after" in facts
    if plan.from_step:
        stopped = "drift stopped it before its first live request"
        return "" if counts.get("requests") else stopped if diverged else NEVER_LIVE
    if plan.mode is not Mode.HYBRID or diverged or own_tools or Switch.FAIL in plan.switches.values():
        return ""
    return "" if counts.get("requests") or counts.get("commands") else NEVER_LIVE


def unmoved(parent: Rollout, rollout: Rollout, contract: Contract) -> bool:
    """Say whether a self-test went on as its parent, the altered result apart: then the method is broken."""
    served = comparators.path(altered(StoredTraceReader(parent).trace()), contract)
    return first_difference(served, StoredTraceReader(rollout).path(contract)) is None


def parted_by_retry(parent: Rollout, rollout: Rollout, contract: Contract) -> bool:
    """Say whether two that part do so where infrastructure failed a request of one, which was tried again."""
    readers = StoredTraceReader(parent), StoredTraceReader(rollout)
    paths = [reader.path(contract) for reader in readers]
    place = first_difference(paths[0], paths[1])
    return place is not None and any(
        place < len(path) and tried_again(reader.trace().events, path.indices[place])
        for reader, path in zip(readers, paths, strict=True)
    )


def strictest(rollout: Rollout) -> Level:
    """Return the strictest level below log-probabilities that a rollout supports."""
    reader = StoredTraceReader(rollout)
    for level in LADDER[1:]:
        try:
            reader.path(Contract(level))
        except NotComparable:
            continue
        return level
    return Level.BEHAVIOUR
