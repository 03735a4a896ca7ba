"""Certificates as read models: what was found of each case, and where an environment did something else."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models.fields.json import KT

from harnesslab.core.canonical import JSON
from harnesslab.core.comparing.line_changes import ChangedLine, changed_lines
from harnesslab.core.trace.events import ToolCall
from harnesslab.queries.jobs.groups import audits_group
from harnesslab.queries.read_model import ReadModel
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Experiment, Job, Rollout
from harnesslab.store.text import as_object, storable, thawed

FORKS = 8
"""So many forks of an imported experiment are looked up."""
CASE = 400
"""Characters of a case's name that are stored."""
_ORDER = {"forked": 0, "no_chain": 1, "deterministic": 3}


class ForkRow(ReadModel):
    """Where a case's environment did something else when it was run again."""

    command: str
    what: str
    place: int
    """Zero-based position among its commands."""
    changes: list[ChangedLine]
    """What was recorded, against what it gave when it was run again."""
    rollout: int | None


class CertificateRow(ReadModel):
    """The audit of one case."""

    case: str
    verdict: str
    why: str
    commands: int | None
    inherited: str
    """The experiment it was taken from; empty for one of its own."""
    fork: ForkRow | None


def documents_by_case(certification: bytes | memoryview) -> dict[str, dict[str, JSON]]:
    """Return what a certification says of each case, by the name that the case is stored under."""
    return {storable(case, CASE): as_object(said) for case, said in as_object(thawed(certification)).items()}


def certificates(experiment: Experiment) -> list[CertificateRow]:
    """Return the certificates that an experiment's document holds: exclusions first."""
    found = documents_by_case(experiment.certification)
    forked = [case for case, said in found.items() if said.get("verdict") == "forked"]
    lacking = [case for case in forked if "fork" not in found[case]][:FORKS]
    imported = _imported_forks(experiment, lacking) if lacking else {}
    rows = [_row(case, said, imported.get(case)) for case, said in found.items()]
    return sorted(rows, key=lambda row: (_ORDER.get(row.verdict, 2), row.case))


def audits(experiment_id: int) -> dict[str, str]:
    """Return the state of each audit of an experiment, by case."""
    jobs = Job.objects.filter(group=audits_group(experiment_id)).annotate(case=KT("payload__case")).order_by("pk")
    return dict(jobs.values_list("case", "state"))


def _row(case: str, said: Mapping[str, JSON], imported: ForkRow | None) -> CertificateRow:
    commands, fork = said.get("commands"), as_object(said.get("fork"))
    return CertificateRow(
        case=case,
        verdict=_text(said.get("verdict")),
        why=_text(said.get("why")),
        commands=commands if isinstance(commands, int) else None,
        inherited=_text(said.get("inherited")),
        fork=_fork(fork) if fork else imported,
    )


def _fork(fork: Mapping[str, JSON]) -> ForkRow:
    place = fork.get("place")
    return ForkRow(
        command=_text(fork.get("command")),
        what=_text(fork.get("what")),
        place=place if isinstance(place, int) else 0,
        changes=changed_lines(_text(fork.get("recorded")), _text(fork.get("live"))),
        rollout=None,
    )


def _imported_forks(experiment: Experiment, cases: list[str]) -> dict[str, ForkRow]:
    """Return forks from the facts of rollouts: of this experiment, else of the last one before whose fork it took."""
    rows = Rollout.objects.filter(project=experiment.project_id, case__name__in=cases, mode="").exclude(facts=b"")
    found: dict[str, tuple[bool, int, ForkRow]] = {}
    for row in rows.select_related("case").order_by("pk"):
        fork = as_object(as_object(as_object(thawed(row.facts)).get("rollout")).get("determinism_fork"))
        if not fork:
            continue
        rank = (row.experiment_id == experiment.pk, row.pk)
        if row.case.name not in found or rank > found[row.case.name][:2]:
            found[row.case.name] = (*rank, _read(row, fork))
    return {case: fork for case, (_, _, fork) in found.items()}


def _read(row: Rollout, fork: Mapping[str, JSON]) -> ForkRow:
    place = fork.get("action_index")
    at = place if isinstance(place, int) and not isinstance(place, bool) else 0
    live = as_object(as_object(fork.get("live")).get("raw_env_output"))
    return ForkRow(
        command=_text(as_object(fork.get("action")).get("command")),
        what="output",
        place=at,
        changes=changed_lines(_recorded(row, at), _text(live.get("stdout")) + _text(live.get("stderr"))),
        rollout=row.pk,
    )


def _recorded(row: Rollout, place: int) -> str:
    """Return what the recorded command gave, from the rollout's trace."""
    reader = StoredTraceReader(row)
    calls = [index for index, kind in enumerate(reader.kinds) if kind == "tool_call"]
    if not 0 <= place < len(calls):
        return ""
    event = reader.event(calls[place])
    result = event.result if isinstance(event, ToolCall) else None
    if isinstance(result, Mapping):
        return _text(result.get("stdout")) + _text(result.get("stderr"))
    return _text(result)


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
