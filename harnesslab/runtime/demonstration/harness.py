"""The demonstration's harness: asks the model for a command, runs it, reminds it when it fails, verifies."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from harnesslab.core.canonical import JSON, canonical_bytes, digest
from harnesslab.core.conditions.manifest import Known, Manifest, Provenance
from harnesslab.core.running.rollout import Origin, Outcome, Recording, Replayability, Source
from harnesslab.core.seeds import derive
from harnesslab.core.trace.events import (
    Fidelity,
    HarnessAction,
    RolloutStarted,
    TestResult,
    ToolCall,
    ToolRequest,
    Usage,
    UserTurn,
    Verification,
)
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.runtime.demonstration.cases import SUBMIT, DemonstrationCase
from harnesslab.runtime.demonstration.model import KERNELS, NAME, Sampled, TableModel

ENGINE = "table-lm (in process)"
STEPS = 5
TIMEOUT = 10
TOOLS: JSON = [
    {"name": "run", "description": "Run a shell command.", "parameters": {"command": "string"}},
    {"name": "submit", "description": "End the task.", "parameters": {}},
]
SYSTEM = "You work in a folder with a shell. Answer with one command a turn, or submit."
REMINDER = "The last command failed. Only files on disk count; correct it before you submit."


@dataclass(frozen=True, slots=True)
class DemonstrationRevision:
    """A revision of the harness: its name and whether it reminds the model after a failure."""

    name: str
    reminds: bool


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a rollout is run under."""

    revision: DemonstrationRevision
    experiment: str
    trial: int
    temperature: float
    root_seed: int
    kernel: str = KERNELS[0]
    seed_trial: int | None = None
    """The trial whose seeds are used, where that is not its own."""

    def seed(self, case: str, call: int) -> int:
        """Return the sampling seed of one call."""
        trial = self.trial if self.seed_trial is None else self.seed_trial
        return derive(self.root_seed, "sampling", case, trial, call)


@dataclass(slots=True)
class DemonstrationEpisode:
    """The state of one rollout while it runs."""

    case: DemonstrationCase
    conditions: Conditions
    folder: Path
    builder: TraceBuilder
    messages: list[JSON] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    failed: bool = False

    def at(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began


def run(case: DemonstrationCase, model: TableModel, conditions: Conditions, source: Source) -> Recording:
    """Run one rollout for real and return what happened."""
    manifest = _manifest(case, conditions)
    started = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="demonstration-") as place:
        episode = DemonstrationEpisode(case, conditions, Path(place), TraceBuilder())
        for name, content in case.files.items():
            (episode.folder / name).write_text(content)
        episode.builder.add(RolloutStarted(manifest=manifest.digest, state=_state(episode.folder)))
        outcome = _play(episode, model)
        trace = episode.builder.close(outcome, state=_state(episode.folder))
    return Recording(
        manifest=manifest,
        trace=trace,
        outcome=outcome,
        case=case.name,
        source=source,
        project="demonstration",
        panel="shell",
        experiment=conditions.experiment,
        harness="demonstration",
        revision=conditions.revision.name,
        model=NAME,
        engine=ENGINE,
        trial=conditions.trial,
        trial_stated=True,
        tags=(conditions.experiment, f"kernel {conditions.kernel}"),
        reward=1.0 if outcome is Outcome.SOLVED else 0.0,
        origin=Origin.LIVE,
        replayability=Replayability.VIEW_ONLY,
        missing="harness: the demonstration's loop is not a harness that a worker can run again",
        started_at=started,
        ended_at=datetime.now(UTC),
        budgets={"steps": STEPS},
    )


def _play(episode: DemonstrationEpisode, model: TableModel) -> Outcome:
    case = episode.case
    episode.messages += [{"role": "system", "content": SYSTEM}, {"role": "user", "content": case.instruction}]
    episode.builder.add(UserTurn(content=case.instruction, simulated=False, at=episode.at()))
    for step in range(STEPS):
        command = _ask(episode, model, step)
        if command == SUBMIT:
            return _verify(episode, step)
        _execute(episode, command, step)
    _verify(episode, STEPS - 1)
    return Outcome.STEP_CAP


def _ask(episode: DemonstrationEpisode, model: TableModel, step: int) -> str:
    conditions = episode.conditions
    seed = conditions.seed(episode.case.name, step)
    before = time.perf_counter()
    answer = model.sample(
        _table(episode, step), temperature=conditions.temperature, seed=seed, kernel=conditions.kernel
    )
    request = _request(answer, step)
    settings: dict[str, JSON] = {"temperature": conditions.temperature, "seed": str(seed)}
    prompt = sum(len(str(message).split()) for message in episode.messages)
    episode.builder.model_call(
        episode.messages,
        tools=TOOLS,
        step=step,
        model=NAME,
        fidelity=Fidelity.RECORDED,
        settings=settings,
        text=answer.text,
        tool_calls=(request,),
        finish_reason="stop",
        usage=Usage(input=prompt, output=len(answer.token_ids)),
        seed_honoured=True,
        token_ids=answer.token_ids,
        logprobs=answer.logprobs,
        alternatives=tuple([[word, value] for word, value in options] for options in answer.alternatives),
        latency=time.perf_counter() - before,
        at=episode.at(),
    )
    call: dict[str, JSON] = {
        "id": request.id,
        "type": "function",
        "function": {"name": request.name, "arguments": request.raw},
    }
    episode.messages.append({"role": "assistant", "content": answer.text, "tool_calls": [call]})
    return answer.text


def _table(episode: DemonstrationEpisode, step: int) -> dict[str, Sequence[float]]:
    """Return the rows that hold in this situation."""
    case = episode.case
    if step == 0:
        return dict(case.first)
    if episode.failed:
        reminded = episode.conditions.revision.reminds
        return {**case.repair, SUBMIT: (-1.0 if reminded else 1.5,)}
    return {SUBMIT: (1.5,), **({case.look: (0.5,)} if case.look and step == 1 else {})}


def _request(answer: Sampled, step: int) -> ToolRequest:
    if answer.text == SUBMIT:
        return ToolRequest(name="submit", arguments={}, raw="{}", id=f"call-{step}")
    arguments: dict[str, JSON] = {"command": answer.text}
    return ToolRequest(name="run", arguments=arguments, raw=canonical_bytes(arguments).decode(), id=f"call-{step}")


def _execute(episode: DemonstrationEpisode, command: str, step: int) -> None:
    before = time.perf_counter()
    done = subprocess.run(  # noqa: S602 - the commands are the table's own, in a folder of their own
        command,
        shell=True,
        cwd=episode.folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(episode.folder.parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    episode.failed = done.returncode != 0
    episode.builder.add(
        ToolCall(
            name="run",
            arguments={"command": command},
            id=f"call-{step}",
            step=step,
            result=output,
            exit_code=done.returncode,
            latency=time.perf_counter() - before,
            at=episode.at(),
        )
    )
    _remove_scratch(output)
    shown = f"exit {done.returncode}\n{output}"
    episode.messages.append({"role": "tool", "tool_call_id": f"call-{step}", "content": shown})
    if episode.failed and episode.conditions.revision.reminds:
        episode.builder.add(
            HarnessAction(name="reminder", mechanism="remind-after-failure", detail=REMINDER, step=step)
        )
        episode.messages.append({"role": "user", "content": REMINDER})


def _remove_scratch(output: str) -> None:
    """Remove the file that `mktemp` made, which lies outside the episode's folder."""
    made = Path(output.split("\n", 1)[0])
    if made.parent == Path(tempfile.gettempdir()) and made.name.startswith("tmp."):
        made.unlink(missing_ok=True)


def _verify(episode: DemonstrationEpisode, step: int) -> Outcome:
    tests = tuple(_test(episode.folder, name, content) for name, content in sorted(episode.case.expected.items()))
    passed = all(test.passed for test in tests)
    episode.builder.add(
        Verification(step=step, passed=passed, reward=1.0 if passed else 0.0, tests=tests, at=episode.at())
    )
    return Outcome.SOLVED if passed else Outcome.FAILED_VERIFICATION


def _test(folder: Path, name: str, content: str) -> TestResult:
    file = folder / name
    if not file.is_file():
        return TestResult(name=name, passed=False, detail="not there")
    found = file.read_text(errors="replace")
    return TestResult(name=name, passed=found == content, detail="" if found == content else f"holds {found[:200]!r}")


def _state(folder: Path) -> str:
    """Return the digest of a folder's files by name and content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest({str(path.relative_to(folder)): path.read_text(errors="replace") for path in files})


def _manifest(case: DemonstrationCase, conditions: Conditions) -> Manifest:
    configured: dict[str, JSON] = {
        "harness.name": "demonstration",
        "harness.revision": conditions.revision.name,
        "harness.mechanisms": ["remind-after-failure"] if conditions.revision.reminds else [],
        "panel.name": "shell",
        "panel.case": case.name,
        "panel.case_digest": digest({"instruction": case.instruction, "files": dict(case.files)}),
        "budgets.steps": STEPS,
        "model.name": NAME,
        "engine.name": ENGINE,
        "engine.kernels": f"float32 sums, {conditions.kernel}",
        "engine.compute_precision": "float32",
        "engine.max_running_requests": 1,
        "engine.prefix_cache": False,
        "sampling.temperature": conditions.temperature,
        "seeds.generator": "harnesslab.seed/1",
        "seeds.root": str(conditions.root_seed),
        "seeds.policy": "one per call",
        "seeds.seed": str(conditions.seed(case.name, 0)),
        "environment.network": "not used",
        "tools.schemas": digest(TOOLS),
        "tools.side_effects": {"run": "a folder of its own", "submit": "none"},
        "evaluator.name": "files equal",
        "serving.mode": "alone",
        "serving.concurrency": 1,
    }
    probed: dict[str, JSON] = {"seeds.honoured": True}
    known = {name: Known(value, Provenance.CONFIGURED) for name, value in configured.items()}
    known |= {name: Known(value, Provenance.PROBED) for name, value in probed.items()}
    return Manifest.from_conditions(known, unknown="the demonstration has none, or did not record it")
