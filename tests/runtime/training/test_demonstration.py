"""The small training that comes with the lab, for real: three cases, two candidates, the embedded model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from django.conf import settings

from harnesslab.actions.demonstration import train_demonstration
from harnesslab.actions.engines.registration import ensure_embedded
from harnesslab.core.deciding.promotion import CRITERIA, judge
from harnesslab.core.measuring.certification import CertificateVerdict
from harnesslab.queries.experiments.measurements import certificates_of, measured
from harnesslab.queries.trainings.training import iterations_of, latest_memo
from harnesslab.runtime.demonstration.repository import PATCHES
from harnesslab.runtime.demonstration.shell_cases import FORKING, TRAINING_CASES
from harnesslab.runtime.engines.hosting import hosted
from harnesslab.store.models import Job, Rollout
from harnesslab.store.text import as_object, thawed
from tests.runtime.training.rules import drain

pytestmark = [pytest.mark.serial, pytest.mark.django_db]
CASES = tuple(case for case in TRAINING_CASES if case.name in ("make-folder", "rename-file", FORKING.name))


def test_three_cases_and_two_candidates_are_trained_for_real(tmp_path: Path) -> None:
    for name in ("01-files.patch", "02-wording.patch"):
        shutil.copy(PATCHES / name, tmp_path / name)
    home: Path = settings.CONFIG.home
    with hosted(home):
        ensure_embedded()
        drain()  # the probes: what they find is a condition of the measurement
        training = train_demonstration(CASES, tmp_path)
        drain()
    training.refresh_from_db()
    assert (training.state, training.sentence) == ("done", "all 2 iterations are over")
    assert not Job.objects.exclude(state="done").exists()
    files, wording = iterations_of(training)
    assert files.baseline is not None
    forked = certificates_of(files.baseline)[FORKING.name]
    assert (forked.verdict, forked.fork is not None) == (CertificateVerdict.FORKED, True)
    for iteration in (files, wording):
        assert iteration.baseline is not None
        assert iteration.candidate is not None
        # whatever the model did: the decision is what the stored rollouts say
        before, after = (measured(each.pk, anatomies=True) for each in (iteration.baseline, iteration.candidate))
        told = judge(CRITERIA["strict_pareto"], before.cases, after.cases)
        kept, expected = as_object(thawed(iteration.candidate.decision)), json.loads(json.dumps(told.to_json()))
        assert {name: kept[name] for name in expected} == expected
        assert set(after.cases) == {"make-folder", "rename-file"}
        assert iteration.mechanism in latest_memo(training.project)
    assert wording.state == "rejected"  # a comment's wording can't change a path of an engine that repeats itself
    spoke = Rollout.objects.filter(experiment__training=training)
    assert {row.model for row in spoke} == {"SmolLM2-135M-Instruct"}
    assert all((row.output_tokens or 0) > 0 for row in spoke)


def test_it_is_begun_once() -> None:
    ensure_embedded()
    first = train_demonstration(CASES)
    assert train_demonstration(CASES).pk == first.pk
