"""Whose a crash is: an agent can't choose to be left out of its rate by what it leaves in its work folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnesslab.core.running.cases import CaseDefinition, Verifier
from harnesslab.core.running.rollout import CrashOrigin, Outcome
from tests.runtime.driver.rig import Rig, case, model

TESTED = CaseDefinition(
    "case", "do it", {}, (), Verifier({"there": "sh .verifier/check"}, files={"check": "[ -f wanted ]"}), case().budgets
)


@pytest.mark.parametrize(
    "left",
    [
        "echo > .verifier",
        "ln -s /nowhere .verifier",
        "mkdir -p .verifier/check/a",
        "dd if=/dev/zero of=big bs=1M count=127; dd if=/dev/zero of=more bs=1M count=127; dd if=/dev/zero of=x bs=1M",
    ],
    ids=["a file", "a link", "a folder in place of a file", "a full disk"],
)
def test_what_an_agent_leaves_that_keeps_it_from_being_judged_is_no_excuse(tmp_path: Path, left: str) -> None:
    rig = Rig(tmp_path, case=TESTED)
    with model(left, "submit") as served:
        rollout = rig.go(served)
    result = rollout.done.result
    failed = result.outcome is Outcome.FAILED_VERIFICATION
    assert failed or (result.outcome, result.origin) == (Outcome.CRASH, CrashOrigin.WORKSPACE), result
