"""Comparing stored rollouts, keeping the paths that it takes for the next time; and reviewers' findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from harnesslab.accounts.models import User
from harnesslab.actions.rollouts.storing import store_path, store_unsupported
from harnesslab.core.comparing.diagnosis import Divergence
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.contracts import scrub
from harnesslab.core.contracts.comparators import Path, PathBuilder
from harnesslab.core.contracts.contract import LADDER, Contract, Level
from harnesslab.core.errors import InvalidValue, NotComparable
from harnesslab.queries.comparisons import comparison
from harnesslab.queries.comparisons.comparison import Aligned, ComparedRollouts, Pair
from harnesslab.queries.rollouts.listing import get_rollout
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import AuditEntry, CauseOverride
from harnesslab.store.text import storable


def compare(a_id: int, b_id: int, contract: Contract) -> ComparedRollouts:
    """Compare two stored rollouts; raises `NotFound` and `NotComparable`."""
    return comparison.compared(_with_paths(a_id, b_id, contract, _ladder(contract)), contract)


def align(a_id: int, b_id: int, contract: Contract) -> Aligned:
    """Align two stored rollouts without looking for causes; raises `NotFound` and `NotComparable`."""
    return comparison.aligned(_with_paths(a_id, b_id, contract, [contract, _bare(contract)]), contract)


def first_divergence(a_id: int, b_id: int, contract: Contract) -> Divergence | None:
    """Say where two stored rollouts part, and why; raises `NotFound` and `NotComparable`."""
    return comparison.first_divergence(_with_paths(a_id, b_id, contract, [contract]), contract)


def _with_paths(a_id: int, b_id: int, contract: Contract, wanted: Sequence[Contract]) -> Pair:
    """Return the trace readers of two rollouts, which hold the paths that are wanted of a contract's ladder."""
    pair = comparison.readers_of(a_id, b_id)
    for reader in pair:
        if reader.read_paths(wanted):
            keep_paths([reader], contract)
    return pair


def keep_paths(readers: Iterable[StoredTraceReader], contract: Contract) -> None:
    """Compute and keep the missing paths of rollouts for a contract and its ladder; the readers hold them all then.

    They are derived from what is sealed, so that losing them costs time alone; each trace is read once, whole.
    """
    for reader in readers:
        missing = reader.read_paths(_ladder(contract))
        if missing:
            _keep(reader, missing)
            reader.read_paths(missing)


def _keep(reader: StoredTraceReader, missing: Sequence[Contract]) -> None:
    paths, unsupported = _computed(reader, missing)
    with transaction.atomic():
        for path in paths:
            store_path(reader.rollout.pk, path)
        for item in unsupported:
            store_unsupported(reader.rollout.pk, item)


def _computed(reader: StoredTraceReader, contracts: Sequence[Contract]) -> tuple[list[Path], list[Contract]]:
    """Compute paths in one pass over a trace, a chunk at a time; returns them and the contracts it can't support."""
    scrubbers = {item.rules: scrub.Scrubber(scrub.rules(item.rules)) for item in contracts}
    builders = [PathBuilder(item, reader.payloads, scrubbers[item.rules]) for item in contracts]
    unsupported: list[Contract] = []
    for index in range(reader.rollout.events):
        event = reader.event(index)
        for builder in list(builders):
            try:
                builder.add(event)
            except NotComparable:
                builders.remove(builder)
                unsupported.append(builder.contract)
    paths = []
    for builder in builders:
        try:
            paths.append(builder.path())
        except NotComparable:
            unsupported.append(builder.contract)
    return paths, unsupported


def _ladder(contract: Contract) -> list[Contract]:
    """Return the contracts by whose paths two traces are compared as a whole."""
    levels = [Contract(level, contract.rules, contract.scope) for level in LADDER]
    # token ids under equal words are looked for whatever is compared
    whole = [Contract(Level.TOKEN_IDS, contract.rules), Contract(Level.TEXT, contract.rules)]
    return [*levels, _bare(contract), Contract(Level.TEXT, (), contract.scope), *whole]


def _bare(contract: Contract) -> Contract:
    return Contract(contract.level, (), contract.scope)


@transaction.atomic
def override_cause(a_id: int, b_id: int, contract: Contract, cause: str, reason: str, author: User) -> CauseOverride:
    """Record a reviewer's own finding; raises `InvalidValue` for an unknown cause or an empty reason."""
    if cause not in tuple(Cause):
        raise InvalidValue(f"no such cause: {cause}", hint=f"one of {', '.join(Cause)}")
    if not reason.strip():
        raise InvalidValue("a reason is needed", where="reason")
    a, b = get_rollout(a_id), get_rollout(b_id)
    AuditEntry.objects.create(user=author, action="override cause", subject=f"{a.pk}/{b.pk}", detail={"cause": cause})
    return CauseOverride.objects.create(
        a=a, b=b, contract=contract.key, cause=cause, reason=storable(reason.strip(), 20_000), author=author
    )
