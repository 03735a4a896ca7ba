"""What the demonstration runs: a baseline, a candidate with one more mechanism, and the same under another kernel."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.core.canonical import Digest, bytes_digest
from harnesslab.core.running.rollout import Recording, Source
from harnesslab.runtime.demonstration.cases import CASES, SUBMIT
from harnesslab.runtime.demonstration.harness import Conditions, DemonstrationRevision, run
from harnesslab.runtime.demonstration.model import KERNELS, TableModel

BASELINE = DemonstrationRevision("r1", reminds=False)
CANDIDATE = DemonstrationRevision("r2", reminds=True)
TRIALS = 3
ROOT_SEED = 20261129


def recordings() -> Iterator[Recording]:
    """Run the whole demonstration and yield its rollouts as they end."""
    commands = [command for case in CASES for command in (*case.first, *case.repair, case.look, SUBMIT)]
    model = TableModel(commands)
    position = 0
    for conditions in _plan():
        for case in CASES:
            yield run(case, model, conditions, _source(position))
            position += 1


def _plan() -> Iterator[Conditions]:
    for trial in range(TRIALS):
        yield Conditions(BASELINE, "baseline-r1", trial, 1.0, ROOT_SEED)
    for trial in range(TRIALS):
        yield Conditions(CANDIDATE, "candidate-r2", trial, 1.0, ROOT_SEED)
    for trial, kernel in enumerate(KERNELS):
        yield Conditions(BASELINE, "greedy", trial, 0.0, ROOT_SEED, kernel, seed_trial=0)


def _source(position: int) -> Source:
    digest: Digest = bytes_digest(b"harnesslab demonstration")
    return Source("demonstration", digest, "demonstration", position)
