"""Whatever is wrong inside a file of a known format ends in recordings or in a refusal, never in an accident."""

from __future__ import annotations

import contextlib
import copy
import math
import random
from typing import Any

import pytest

from harnesslab.core.canonical import canonical_bytes
from harnesslab.core.errors import FormatRefused
from harnesslab.core.trace import seals
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.registry import recognise
from tests.formats.atif.test_atif import USER, asks, observed, step, trajectory
from tests.formats.harbor.test_harbor import nemo_row, result
from tests.formats.harness_training.test_harness_training import CHAIN, EPISODE, experiment
from tests.formats.harness_training.test_harness_training import result as task_result
from tests.formats.inspect.test_inspect import event, header, model, sample
from tests.formats.making import file_unit, folder_unit, lines

WRONG: list[Any] = [None, True, -1, 2**70, math.nan, math.inf, "", "\udcb2\x00", [], [[]], [None], [{}], {}, {"": None}]


def damaged(value: Any, chance: random.Random) -> Any:
    """Return a copy in which one place, found by a random walk, is removed or replaced by something wrong."""
    whole = copy.deepcopy(value)
    node, depth = whole, chance.randint(1, 8)
    while isinstance(node, dict | list) and node:
        key: Any = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
        depth -= 1
        if depth <= 0 or not isinstance(node[key], dict | list) or not node[key]:
            if chance.random() < 0.2:
                del node[key]
            else:
                node[key] = copy.deepcopy(chance.choice(WRONG))
            break
        node = node[key]
    return whole


def inspect_log(chance: random.Random) -> Unit:
    call = {"request": {"messages": [{"role": "user", "content": "x"}]}, "response": {"id": "r"}}
    events = [
        model(call=call),
        model(calls=[{"id": "c", "function": "bash", "arguments": {}}], input_refs=[[0, 1]]),
        event("tool", id="c", function="bash", arguments={}, result="ok", events=[model()]),
        event("span_begin", id="1", name="a", type="agent", parent_id=None),
        event("store", changes=[{"op": "add", "path": "/a", "value": 1}]),
        event("score", score={"value": "C"}),
    ]
    log = {**header(), "samples": [sample(*events, events_data={"messages": [{"role": "user"}]}), sample(id="b")]}
    return file_unit("log.json", damaged(log, chance))


def atif_file(chance: random.Random) -> Unit:
    observation = observed(
        {"source_call_id": "c1", "content": "ok", "subagent_trajectory_ref": [{"trajectory_id": "s"}]}
    )
    acted = step(2, "agent", "hi", tool_calls=[asks("run")], observation=observation, metrics={"prompt_tokens": 1})
    child = {"trajectory_id": "s", "agent": {"name": "n"}, "steps": [USER]}
    return file_unit("t.json", damaged(trajectory(USER, acted, subagent_trajectories=[child]), chance))


def harbor_folder(chance: random.Random) -> Unit:
    files = {"result.json": result(0.0, "AgentTimeoutError"), "agent/trajectory.json": trajectory(USER)}
    name = chance.choice(list(files))
    return folder_unit("t__a", {**files, name: damaged(files[name], chance)})


def harbor_rows(chance: random.Random) -> Unit:
    return file_unit("rows.jsonl", lines(damaged([nemo_row("a", 1.0), nemo_row("b", 0.0)], chance)))


def training_run(chance: random.Random) -> Unit:
    files: dict[str, Any] = {
        "tasks/t/agent/steps.jsonl": lines(damaged(EPISODE, chance)),
        "tasks/t/infra/determinism_chain.jsonl": lines(damaged(CHAIN, chance)),
        "experiment.json": damaged(experiment({"t": task_result("solved"), "u": None}), chance),
    }
    return folder_unit("run", files)


@pytest.mark.parametrize("make", [inspect_log, atif_file, harbor_folder, harbor_rows, training_run])
@pytest.mark.parametrize("seed", range(4))
def test_damage_is_imported_or_refused(make: Any, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        unit = make(chance)
        with contextlib.suppress(FormatRefused):
            for recording in recognise(unit).importer.read(unit, Report()):
                seals.verify(recording.trace, seals.seals(recording.trace))
                canonical_bytes(recording.facts)
                assert recording.reward is None or math.isfinite(recording.reward)
