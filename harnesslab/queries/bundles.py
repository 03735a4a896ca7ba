"""What a bundle of a rollout holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.errors import Conflict
from harnesslab.core.running.rollout import STATED, Origin, Outcome, Replayability
from harnesslab.formats import bundle
from harnesslab.formats.accounting import times_of
from harnesslab.formats.native import importer as native
from harnesslab.queries.comparisons.comparison import compared, readers_of
from harnesslab.queries.rollouts.listing import facts_of, get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout
from harnesslab.store.text import as_object


def bundle_of(rollout_id: int, signer: bundle.Signer, others: Sequence[int] = ()) -> bytes:
    """Return a rollout as a bundle, with its comparisons with some others.

    Raises `NotFound`, `NotComparable`, and `Conflict` where it still runs.
    """
    rollout = get_rollout(rollout_id)
    if rollout.head is None:
        raise Conflict("it still runs, and only an ended trace is sealed", where=f"rollout {rollout_id}")
    reader = StoredTraceReader(rollout)
    reports = {f"comparison-{rollout_id}-{other}.json": _report(rollout_id, other) for other in others}
    trace = reader.trace()
    header = replace(header_of(rollout), **times_of(trace.events[0]))
    return bundle.write(header, reader.manifest, trace, reader.seals(), signer, reports)


def _report(a: int, b: int) -> JSON:
    report: JSON = parse(compared(readers_of(a, b), Contract.parse()).result.model_dump_json())
    return report


def header_of(rollout: Rollout) -> native.Header:
    """Return a rollout's facts as the native format's opening."""
    facts = facts_of(rollout)
    stated = as_object(facts).get(STATED)
    return native.Header(
        schema=native.SCHEMA,
        case=rollout.case.name,
        outcome=Outcome(rollout.outcome),
        project=rollout.project.name,
        panel=rollout.case.panel.name,
        experiment=rollout.experiment.name if rollout.experiment is not None else "",
        harness=rollout.harness,
        revision=rollout.revision,
        model=rollout.model,
        engine=rollout.engine,
        trial=rollout.trial,
        tags=list(rollout.tags),
        reward=rollout.reward,
        origin=Origin(rollout.origin),
        grade=Replayability(stated if stated in set(Replayability) else rollout.grade),
        missing=rollout.missing,
        started_at=rollout.started_at,
        ended_at=rollout.ended_at,
        budgets=dict(rollout.budgets),
        facts=dict(facts) if isinstance(facts, Mapping) else {},
    )
