"""A workload of agent runs as HarnessLab's JSON lines, from any generator that offers `iter_runs(runs, steps)`.

    python benchmarks/workload.py GENERATOR.py OUT.jsonl [--runs 100] [--steps 30]

A run is {"manifest": {...}, "steps": [{"model_call": {...}, "tool_call": {...}}]} with messages as sent.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

OUTCOMES = {"success": "solved", "failed": "failed_verification", "error": "crash"}


def generator(path: Path) -> ModuleType:
    """Load the generator's module."""
    spec = importlib.util.spec_from_file_location("workload_generator", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one run as lines."""
    manifest, params = run["manifest"], run["manifest"]["params"]
    yield {
        "rollout": {
            "schema": "harnesslab.trace/1",
            "case": manifest["task"],
            "project": "benchmark",
            "trial": manifest["group_member"],
            "outcome": OUTCOMES[manifest["status"]],
            "model": params["model"],
            "revision": params["harness"],
            "tags": list(manifest["tags"].values()),
            "conditions": {
                "sampling.temperature": params["temperature"],
                "seeds.seed": str(params["seed"]),
                "budgets.steps": params["max_steps"],
            },
        }
    }
    for step in run["steps"]:
        yield from step_lines(step, params["model"])


def step_lines(step: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    """Yield a step's model call, messages as sent, and its tool call."""
    call, tool = step["model_call"], step["tool_call"]
    asked = call["tool_call"]
    yield {
        "kind": "model_call",
        "step": step["index"],
        "model": model,
        "fidelity": "recorded",
        "messages": call["messages"],
        "text": call["response"],
        "tool_calls": [{"name": asked["name"], "arguments": asked["arguments"], "id": asked["id"]}],
        "usage": {"input": call["usage"]["input_tokens"], "output": call["usage"]["output_tokens"]},
        "latency": (call["end_ns"] - call["start_ns"]) / 1e9,
    }
    yield {
        "kind": "tool_call",
        "step": step["index"],
        "name": tool["name"],
        "arguments": tool["args"],
        "id": tool["id"],
        "result": tool["result"],
        "error": tool["error"],
        "latency": (tool["end_ns"] - tool["start_ns"]) / 1e9,
    }


def write(source: Path, out: Path, runs: int, steps: int) -> dict[str, int]:
    """Write a workload and return its sizes as the generator counts them."""
    module = generator(source)
    with out.open("w") as file:
        for run in module.iter_runs(runs, steps):
            for line in lines(run):
                file.write(json.dumps(line) + "\n")
    sizes: dict[str, int] = module.sizes(runs, steps)
    return sizes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("generator", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30)
    given = parser.parse_args()
    print(json.dumps(write(given.generator, given.out, given.runs, given.steps)))
