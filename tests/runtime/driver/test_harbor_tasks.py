"""A Harbor task's own tests judge in a sandbox of this machine as they would in its container."""

from __future__ import annotations

import pytest

from harnesslab.core.running.cases import CaseDefinition
from harnesslab.core.running.ports import Place
from harnesslab.formats.harbor.tasks import TaskFolder, case_of
from harnesslab.runtime.driver.verifier import run_tests
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap

TASK = {"environment": {"docker_image": f"x@sha256:{'0' * 64}"}}
TEXT = "grep -q done /work/a.txt && echo 1.0 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
OBJECT = "grep -q done /work/a.txt && cp /tests/right.json /logs/verifier/reward.json\n"


def case(test: str) -> CaseDefinition:
    tests = {"test.sh": f"#!/bin/bash\ncd /\n{test}", "right.json": '{"reward": 1, "other": 0.5}'}
    return case_of(TASK, TaskFolder("t", "Do it.", {}, tests), "t/task.toml")


@pytest.mark.parametrize(
    ("test", "work", "passed"),
    [
        (TEXT, "done\n", True),
        (TEXT, "no\n", False),
        (OBJECT, "done\n", True),
        (OBJECT, "no\n", False),
        ("exit 1\n", "done\n", False),
    ],
)
def test_its_reward_is_the_verdict_and_one_left_by_the_agent_is_none(test: str, work: str, passed: bool) -> None:
    sandbox = Bubblewrap().open(Place())
    try:
        sandbox.write({"a.txt": work.encode(), ".verifier/logs/reward.txt": b"1\n"})
        results, timed_out = run_tests(sandbox, case(test), lambda: False)
    finally:
        sandbox.close()
    assert ([result.passed for result in results], timed_out) == ([passed], False)
