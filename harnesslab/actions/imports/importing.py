"""Importing: a unit becomes rollouts, each in its own transaction; nothing is ever doubled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote

from django.db import DatabaseError, transaction

from harnesslab.actions.experiments.sources import refresh, store_record
from harnesslab.actions.imports.homes import ProjectChoice
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.measuring.experiments import ExperimentRecord
from harnesslab.core.running.rollout import Recording, Skipped
from harnesslab.core.trace import seals
from harnesslab.formats import bundle
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.registry import Recognised, experiments, recognise, recordings
from harnesslab.store.locks import held
from harnesslab.store.models import Experiment, Rollout, SourceFile
from harnesslab.store.text import storable

REFUSED = "refused"
log = logging.getLogger(__name__)
Progress = Callable[[int], None]
"""Told the number of rollouts stored so far."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of one unit: `imported`, `duplicate`, `partial` or `refused`."""

    file: str
    status: str
    format: str = ""
    rollouts: list[int] = field(default_factory=list)
    reason: str = ""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    experiments: int = 0
    """How many experiments the unit states as wholes."""
    remarks: list[tuple[str, str]] = field(default_factory=list)
    """What is to be known of what was imported, such as damaged bytes; nothing is left out for it."""
    balance: list[dict[str, JSON]] = field(default_factory=list)
    """The source's totals of each rollout that it states any of, against what is stored."""
    within: str = ""
    """The folder that the unit lies in."""


def import_units(
    units: Iterable[Unit], *, project: str | None = "", progress: Progress | None = None
) -> Iterator[ImportResult]:
    """Import units one after the other; a refused one never stops the rest."""
    for unit in units:
        yield import_unit(unit, project=project, progress=progress)


def import_unit(unit: Unit, *, project: str | None = "", progress: Progress | None = None) -> ImportResult:
    """Import one unit, or say why not; `project` overrides the one that the format names.

    None: where nothing names one, it is refused, since it must be said.
    """
    return replace(_imported(unit, project, progress), within=unit.within)


def _imported(unit: Unit, project: str | None, progress: Progress | None) -> ImportResult:
    try:
        return _import(unit, project, progress)
    except HarnessLabError as error:
        return ImportResult(unit.name, REFUSED, reason=error.sentence)
    except (DatabaseError, InterruptedError):  # says nothing of the file: the job is tried again, or was stopped
        raise
    except Exception as error:  # of an importer, which must not end the import of a thousand other files
        log.exception("the importer failed at %r", unit.name)
        reason = f"{unit.name}: the importer failed with {type(error).__name__} (please report it with the file)"
        return ImportResult(unit.name, REFUSED, reason=reason)


def _import(unit: Unit, project: str | None, progress: Progress | None) -> ImportResult:
    unit = unit.in_memory()  # read once: what is stored of a file that changes meanwhile is what the digest is of
    digest = unit.digest()
    with held(f"import {digest}"):
        known = SourceFile.objects.filter(digest=digest).first()
        if known is not None and known.complete:
            ids = list(known.rollouts.order_by("position").values_list("pk", flat=True))
            stated = _store_again(recognise(unit), known, ProjectChoice(unit, project))
            reason = f"already imported as {known.name}" if known.name != unit.name else "already imported"
            reason += _elsewhere(known, project)
            return ImportResult(unit.name, "duplicate", known.format, ids, reason, experiments=stated)
        return _read(unit, digest, known, project, progress)


def _elsewhere(known: SourceFile, project: str | None) -> str:
    """Offer the move of what is already here in another project than is asked for."""
    first = known.rollouts.order_by("position").values_list("pk", "project__name").first()
    if not project or first is None or first[1] == storable(project, 200):
        return ""
    return f" into {first[1]}; to move it: harnesslab move --file --project {quote(project)} {first[0]}"


def _read(
    unit: Unit, digest: str, known: SourceFile | None, project: str | None, progress: Progress | None
) -> ImportResult:
    found, report = recognise(unit), Report()
    importer = found.importer
    home, source, ids, places = ProjectChoice(unit, project), known, [], {}
    # an import that was killed left whole rollouts, each with its position in the file: those aren't stored again
    stored = dict(known.rollouts.values_list("position", "pk")) if known is not None else {}
    records = _records(found, report)
    if records:
        source = source or _open_source(unit, digest, importer.NAME)
        _store_records(records, home)
    for recording in _until_fault(recordings(found, report), report, alone=bool(records)):
        there = _same_bundle(recording)
        if there is not None:
            return ImportResult(unit.name, "duplicate", importer.NAME, [there], "this rollout is already here")
        homed = replace(recording, project=home.of(recording.project, recording.workspace))
        source = source or _open_source(unit, digest, importer.NAME)
        try:
            ids.append(stored.get(recording.source.position) or store_recording(homed, source).pk)
            places[recording.source.position] = ids[-1]
        except HarnessLabError as error:
            report.skip(f"rollout {recording.source.position}", error.sentence)
        if progress is not None:
            progress(len(ids))
    skipped = [(item.where, item.why) for item in (*report.skipped, *report.shortfalls)]
    if source is None:
        return ImportResult(unit.name, REFUSED, importer.NAME, [], _nothing(unit, importer.NAME, skipped), skipped)
    _close_source(source, skipped)
    return ImportResult(
        unit.name,
        "partial" if skipped else "imported",
        importer.NAME,
        ids,
        _summary(report),
        skipped,
        len(records),
        [(item.where, item.why) for item in report.remarks],
        _balances(report, places),
    )


def _close_source(source: SourceFile, skipped: list[tuple[str, str]]) -> None:
    refresh(_experiments_of(source))
    source.skipped = [[storable(where), storable(why)] for where, why in skipped]
    source.complete = True  # last, since whoever finds it takes the import for done
    source.save(update_fields=["skipped", "complete"])


def _records(found: Recognised, report: Report) -> list[ExperimentRecord]:
    """Read what a unit states of experiments; that it can't be read keeps no rollout from being imported."""
    try:
        return list(experiments(found, report))
    except HarnessLabError as error:
        report.skip("experiment", error.sentence)
        return []


def _store_records(records: Iterable[ExperimentRecord], home: ProjectChoice) -> list[int]:
    return [store_record(replace(record, project=home.of(record.project))).pk for record in records]


def _store_again(found: Recognised, known: SourceFile, home: ProjectChoice) -> int:
    """Store what a known file states of experiments where they are, and return how many.

    The file may be from before these were kept.
    """
    records = _records(found, Report())
    names = [storable(record.external_id, 200) for record in records]
    there = Experiment.objects.filter(rollouts__source=known).first()
    there = there or Experiment.objects.filter(name__in=names[:1]).order_by("pk").first()
    stored = _store_records(records, home if there is None else ProjectChoice(Unit("", {}), there.project.name))
    refresh({*stored, *_experiments_of(known)})
    return len(records)


def _experiments_of(source: SourceFile) -> set[int]:
    found = source.rollouts.exclude(experiment=None).order_by().values_list("experiment_id", flat=True).distinct()
    return {pk for pk in found if pk is not None}


def _until_fault(recordings: Iterator[Recording], report: Report, *, alone: bool = False) -> Iterator[Recording]:
    """Yield recordings; a refusal after the first of them, or where experiments stand `alone`, is only noted."""
    count = 0
    try:
        for recording in recordings:
            count += 1
            yield recording
    except HarnessLabError as error:
        if not count and not alone:
            raise
        report.skip(f"what follows rollout {count - 1}" if count else "rollouts", error.sentence)


def _same_bundle(recording: Recording) -> int | None:
    """Return the rollout that a bundle was exported from, if this instance has it: same manifest, same last seal."""
    if recording.source.format != bundle.NAME:
        return None
    head = seals.seals(recording.trace)[-1]
    return (
        Rollout.objects.filter(manifest_id=recording.manifest.digest, head=head, trial=recording.trial)
        .values_list("pk", flat=True)
        .first()
    )


def _open_source(unit: Unit, digest: str, name: str) -> SourceFile:
    size = sum(file.size for file in unit.files.values())
    with transaction.atomic():
        source, _ = SourceFile.objects.get_or_create(
            digest=digest, defaults={"name": storable(unit.name, 400), "format": name, "size": size}
        )
    return source


def _nothing(unit: Unit, name: str, skipped: list[tuple[str, str]]) -> str:
    first = f"; {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
    return f"{unit.name}: recognised as {name}, but it holds no rollout{first}"


def _summary(report: Report) -> str:
    """Say what was left out, and what is to be known of the rest: of each the first, and how many more there are."""
    said = [("not imported: ", report.skipped), ("short of its own totals: ", report.shortfalls), ("", report.remarks)]
    return "; ".join(prefix + _first(noted) for prefix, noted in said if noted)


def _first(noted: list[Skipped]) -> str:
    more = f", and {len(noted) - 1} more" if len(noted) > 1 else ""
    return f"{noted[0].where}: {noted[0].why}{more}"


def _balances(report: Report, ids: Mapping[int, int]) -> list[dict[str, JSON]]:
    """Return the lines of each balance with the rollout that it is of."""
    return [
        {"rollout": ids[position], **line.to_json(), "short": line.short, "said": str(line)}
        for position, lines in sorted(report.balances.items())
        if position in ids
        for line in lines
    ]
