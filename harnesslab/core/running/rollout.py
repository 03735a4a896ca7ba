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
"""Outcomes that are no sample of the case, a crash of the harness or workspace apart: see `is_sample`."""


class CrashOrigin(StrEnum):
    """What made a rollout crash."""

    HARNESS = "harness"
    """The program around the model ended itself, or did what none may."""
    WORKSPACE = "workspace"
    """What the agent left in its work folder kept it from being judged."""
    ENVIRONMENT = "environment"
    """The sandbox or the machine was lost."""
    UNKNOWN = "unknown"
    """The source doesn't say."""


OWN_CRASHES = frozenset({CrashOrigin.HARNESS, CrashOrigin.WORKSPACE})
"""Crashes of the agent's own making: failures, or an agent could choose to be left out of its rate."""
RATE_RULE = 2
"""Of what is a sample. By the first rule no crash was one."""


def crash_origin(outcome: Outcome, facts: Mapping[str, JSON]) -> CrashOrigin | None:
    """Return what the facts of a rollout say made it crash; None where it did not crash."""
    if outcome is not Outcome.CRASH:
        return None
    stated = facts.get(CRASH_ORIGIN)
    return CrashOrigin(stated) if isinstance(stated, str) and stated in set(CrashOrigin) else CrashOrigin.UNKNOWN


def is_sample(outcome: Outcome, origin: CrashOrigin | None) -> bool:
    """Say whether a rollout is a sample of its case; what is none enters no rate, and is counted beside it."""
    return outcome not in UNCOUNTED or origin in OWN_CRASHES


CRASH_ORIGIN = "crash_origin"
"""Key in a rollout's facts."""


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


UNBOUND = "harness: none is bound to it that a worker can run"
STATED = "replayability_stated"
"""Key in a rollout's facts: what its source would allow, where that is more than can be done here."""


def offered(claim: Replayability, missing: str, *, bound: bool) -> tuple[Replayability, str]:
    """Return what can be rerun here of a rollout, and what keeps it from more: the label, and what every door answers.

    A source may name all that a rerun needs; without a harness that is bound to the rollout, nothing runs.
    """
    if bound or claim is Replayability.VIEW_ONLY or missing.startswith(UNBOUND):
        return (claim, missing) if bound else (Replayability.VIEW_ONLY, missing)
    return Replayability.VIEW_ONLY, f"{UNBOUND}; {missing}" if missing else UNBOUND


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
