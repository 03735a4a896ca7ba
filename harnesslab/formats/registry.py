"""Which importer reads a unit: decided by the shape of the content, never by the file name alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harnesslab.core.errors import FormatRefused
from harnesslab.core.measuring.experiments import ExperimentRecord
from harnesslab.core.running.rollout import Recording
from harnesslab.formats import (
    bundle,
    candidate_ledger,
    openhands,
    swe_agent,
    tau2_bench,
    tau_bench,
    unsupported,
)
from harnesslab.formats.accounting import accounted, in_utc
from harnesslab.formats.atif import trajectory as atif
from harnesslab.formats.claude_code import importer as claude_code
from harnesslab.formats.codex import importer as codex
from harnesslab.formats.coding_sessions import importer as coding_sessions
from harnesslab.formats.harbor import importer as harbor
from harnesslab.formats.harbor import viewer as harbor_viewer
from harnesslab.formats.harness_matrix import importer as harness_matrix
from harnesslab.formats.harness_training import importer as harness_training
from harnesslab.formats.inspect import importer as inspect
from harnesslab.formats.mini_swe_agent import importer as mini_swe_agent
from harnesslab.formats.mlflow import trace as mlflow_trace
from harnesslab.formats.native import importer as native
from harnesslab.formats.openai import chat_log, responses_log
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.sniff import Shape, shape_of


class Importer(Protocol):
    """What each format module offers.

    `NAME` is the format's short name, shown and stored. `recognises` looks at a shape only, cheaply. `read`
    yields recordings, one in memory at a time, in the order of the source's own trial numbers where it has
    them; it notes in the report what it leaves out, and raises `FormatRefused` where nothing can be read.
    """

    NAME: str
    """Short name of the format, such as `inspect`."""

    def recognises(self, shape: Shape) -> bool:
        """Say whether the unit has this format's shape."""

    def read(self, unit: Unit, report: Report) -> Iterator[Recording]:
        """Yield the unit's recordings."""


@runtime_checkable
class StatesExperiments(Protocol):
    """What a format module offers besides, where its files state measured passes as wholes."""

    def experiments(self, unit: Unit, report: Report) -> Iterator[ExperimentRecord]:
        """Yield what the unit states of experiments, in its own order; also where it holds no rollout."""


IMPORTERS: tuple[Importer, ...] = (
    bundle,
    native,
    harness_training,
    harness_matrix,
    candidate_ledger,
    inspect,
    atif,
    harbor,
    harbor_viewer,
    tau2_bench,
    tau_bench,
    swe_agent,
    mini_swe_agent,
    mlflow_trace,
    claude_code,
    codex,
    coding_sessions,
    openhands,
    responses_log,
    chat_log,
)
"""In order of asking: the most specific shapes first."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """A unit with the importer that reads it."""

    unit: Unit
    importer: Importer


def experiments(recognised: Recognised, report: Report) -> Iterator[ExperimentRecord]:
    """Yield the experiments that a unit states; most formats state none."""
    if isinstance(recognised.importer, StatesExperiments):
        yield from recognised.importer.experiments(recognised.unit, report)


def recordings(recognised: Recognised, report: Report) -> Iterator[Recording]:
    """Yield a unit's recordings as they are stored: marked, balanced, times in UTC; a bundle's as it was sealed."""
    found = recognised.importer.read(recognised.unit, report)
    yield from map(in_utc, found) if recognised.importer is bundle else accounted(found, recognised.unit, report)


def recognise(unit: Unit) -> Recognised:
    """Find the importer of a unit; raises `FormatRefused` with what the content looks like instead."""
    shape = shape_of(unit)
    for importer in IMPORTERS:
        if importer.recognises(shape):
            return Recognised(unit, importer)
    if refusal := unsupported.refusal(shape):
        raise refusal
    raise FormatRefused(
        f"no known trace format: {shape.describe()}",
        where=unit.name,
        hint="docs/formats.md lists what can be imported",
    )


def supported() -> list[str]:
    """Return the names of all formats that can be imported, sorted."""
    return sorted(importer.NAME for importer in IMPORTERS)
