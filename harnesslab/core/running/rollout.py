"""A rollout: one recorded episode of one case, with its outcome, origin and what can be rerun of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from harnesslab.core.canonical import JSON, Digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import Trace


class Outcome(StrEnum):
    """How a rollout ended; a missing reward is `unknown`, never 0, and an error is never a failure."""

    SOLVED = "solved"
    FAILED_VERIFICATION = "failed_verification"
    STEP_CAP = "step_cap"
    TIMEOUT = "timeout"
    VERIFY_TIMEOUT = "verify_timeout"
    NO_VALID_ACTION = "no_valid_action"
    REFUSED = "refused"
    CRASH = "crash"
    INFRA_ERROR = "infra_error"
    INTERRUPTED = "interrupted"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"
    """The source states no verdict."""
    RUNNING = "running"
    """Still being recorded."""


UNSCORABLE = frozenset({Outcome.CRASH, Outcome.INFRA_ERROR, Outcome.INTERRUPTED})
VERDICT_UNTRUSTED = UNSCORABLE | {Outcome.VERIFY_TIMEOUT}
UNCOUNTED = UNSCORABLE | {Outcome.NOT_RUN, Outcome.UNKNOWN, Outcome.RUNNING}
"""Outcomes that are no sample of the case: they enter no rate, and are counted beside it."""


class Origin(StrEnum):
    """Where a rollout came from."""

    LIVE = "live"
    RECORDED = "recorded"
    HYBRID = "hybrid"
    IMPORTED = "imported"


class Replayability(StrEnum):
    """What can be rerun of a rollout."""

    RECORDED = "recorded-rerunnable"
    LIVE = "live-rerunnable"
    VIEW_ONLY = "view-only"


@dataclass(frozen=True, slots=True)
class Source:
    """The file a recording was read from."""

    name: str
    """File name without its folder."""
    digest: Digest
    """SHA-256 of the original bytes."""
    format: str
    position: int = 0
    """Zero-based position among the file's rollouts, in the order of its own trial or epoch numbers."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything known of one rollout, as an importer or a worker hands it to the store."""

    manifest: Manifest
    trace: Trace
    outcome: Outcome
    case: str
    source: Source
    project: str = "imported"
    panel: str = ""
    experiment: str = ""
    """The measured pass it belongs to, by the source's own name."""
    harness: str = ""
    """Name of the agent or harness."""
    revision: str = ""
    """Commit or version of the harness."""
    model: str = ""
    engine: str = ""
    trial: int = 0
    trial_stated: bool = False
    """Whether the source numbers its trials; else they count in file order."""
    tags: Sequence[str] = ()
    reward: float | None = None
    origin: Origin = Origin.IMPORTED
    replayability: Replayability = Replayability.VIEW_ONLY
    missing: str = ""
    """The boundary that keeps the replayability from being higher, and why."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    budgets: Mapping[str, float] = field(default_factory=dict)
    """Declared limits: steps, wall (seconds), context, reasoning, output (tokens)."""
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """What else the source states of the rollout as a whole."""
    totals: Totals | None = None
    """Its totals, which the trace is balanced against."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a source that could not be imported."""

    where: str
    why: str
