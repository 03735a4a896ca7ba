"""Fills a home with hostile texts in every field: `python -m tests.browser.hostile_lab FOLDER` in its environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django

from tests.hostile import ASK, TAKEOVER, TEXTS

NAMED = ("case", "project", "panel", "experiment", "harness", "revision", "model", "engine", "missing")


def takeover_lines() -> str:
    """Return a trace whose second call sends the first one's system prompt again, so that it is folded away there."""
    asked = [{"role": "system", "content": f"Be brief.{TAKEOVER}"}, {"role": "user", "content": "Mend it."}]
    lines: list[dict[str, Any]] = [
        {"rollout": {"schema": "harnesslab.trace/1", "case": "takeover", "outcome": "solved"}}
    ]
    lines += [{"kind": "model_call", "step": step, "messages": asked, "text": f"ok {step}"} for step in range(2)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def events(text: str, other: str) -> list[dict[str, Any]]:
    """Return one event of each kind with a text in every field; `other` is what differs in a second trial."""
    call = {"name": text, "arguments": {text: text, "x": other}, "id": text}
    message = {"role": "system", "content": text}
    return [
        {"kind": "user_turn", "content": text, "agent": text},
        {"kind": "model_call", "step": 0, "messages": [message, {"role": text, "content": text}], "text": other,
         "model": text, "reasoning": text, "settings": {text: text}, "tool_calls": [call], "finish_reason": text,
         "response_id": text, "fingerprint": text, "usage": {"input": 3, "output": 2}, "latency": 0.5},
        {"kind": "tool_call", "step": 0, **call, "result": other, "error": text},
        {"kind": "harness_action", "step": 0, "name": text, "mechanism": text, "detail": {text: text}},
        {"kind": "model_call", "step": 1, "messages": [message, {"role": "user", "content": other}], "text": text,
         "error": text, "model": text},
        {"kind": "verification", "step": 1, "passed": False, "error": text, "output": text, "scores": {text: 1.0},
         "tests": [{"name": text, "passed": False, "detail": other}]},
    ]  # fmt: skip


def lines_of(place: int, text: str) -> str:
    """Return two trials of a case that a text names, the second with another text in places, and a broken line."""
    header: dict[str, Any] = dict.fromkeys(NAMED, text)
    header |= {"tags": [text], "facts": {text: text}, "budgets": {text: 1.0}, "conditions": {"sampling.other": text}}
    written: list[dict[str, Any]] = []
    for trial, other in enumerate((text, TEXTS[place - 1])):
        outcome = ("solved", "crash")[trial]
        opening = {"schema": "harnesslab.trace/1", **header, "trial": trial, "outcome": outcome}
        written += [{"rollout": opening}, *events(text, other)]
    return "".join(json.dumps(line) + "\n" for line in written) + json.dumps({"kind": text}) + "\n"


def imported(name: str, lines: str) -> list[int]:
    """Import a file of lines under a name and return the ids of its rollouts."""
    from harnesslab.actions.imports.importing import import_unit
    from harnesslab.formats.reading.inputs import InputFile, Unit

    result = import_unit(Unit(name, {name: InputFile.of_bytes(name, lines.encode())}))
    assert result.rollouts, (name, result.reason)
    return list(result.rollouts)


def annotate(place: int, text: str, ids: list[int]) -> None:
    """Put a text into what users write: notes, views, findings, tokens; and into a job's sentences."""
    from harnesslab.accounts.models import User
    from harnesslab.actions.accounts.users import issue_token
    from harnesslab.actions.annotations import add_note, save_view
    from harnesslab.actions.comparisons import override_cause
    from harnesslab.core.comparing.evidence import Cause
    from harnesslab.core.contracts.contract import Contract
    from harnesslab.store.models import Job, JobState
    from harnesslab.store.text import storable

    admin = User.objects.get(username="admin")
    add_note(admin, ids[0], text, 0)
    save_view(admin, text, "q=x")
    issue_token(admin, text, "viewer")
    override_cause(ids[0], ids[1], Contract.parse(), Cause.UNKNOWN.value, text, admin)
    said = storable(text, 300)
    result = {"results": [{"file": said, "status": said, "format": said, "reason": said}]}
    state = (JobState.DONE, JobState.FAILED)[place % 2]
    Job.objects.create(kind="import", state=state, message=said, result=result, payload={"name": said, "project": said})


def panel_and_story(folder: Path) -> dict[str, int]:
    """Keep a panel, and a project with a repository, experiments, their figures, diffs and memos, of all texts."""
    from harnesslab.actions.projects.bindings import bind
    from harnesslab.actions.projects.memos import keep_memo
    from harnesslab.actions.projects.panels import store_panel
    from harnesslab.core.measuring.experiments import Binding, ExperimentKind, Verdict
    from harnesslab.core.running.cases import CaseDefinition, Verifier
    from harnesslab.core.running.panels import PanelDefinition
    from harnesslab.core.running.recipe import HarnessSource
    from tests.pages.experiments import FAILED, SOLVED, measured
    from tests.runtime.training.repositories import make_repository, run_git

    repository = make_repository(folder / "harness")
    commits = [run_git(repository.place, "rev-parse", "HEAD")]
    (repository.place / "<img evil src=x>.py").write_bytes("\n".join(TEXTS).encode("utf-8", "replace"))
    run_git(repository.place, "add", ".")
    run_git(repository.place, "commit", "-qm", f"<img evil src={ASK}>")
    commits.append(run_git(repository.place, "rev-parse", "HEAD"))
    printable = [text for text in TEXTS if text.isprintable() and len(text) <= 200]
    project = bind(TAKEOVER[:150], Binding(HarnessSource(TEXTS[0], str(repository.place))))
    stated: dict[str, Any] = {"project": project.name, "metrics": dict.fromkeys(TEXTS, 1.0)}
    base = measured(
        "base", dict.fromkeys(printable, FAILED), kind=ExperimentKind.BASELINE, revision=commits[0], **stated
    )
    ids = {"base": base.pk, "project": base.project_id}
    for place, text in enumerate(TEXTS):
        row = measured(
            text, {printable[0]: SOLVED, printable[1]: FAILED}, kind=ExperimentKind.CANDIDATE, revision=commits[1],
            parent_revision=commits[0], baseline="base", verdict=(Verdict.REJECTED, Verdict.PROMOTED)[place % 2],
            reason=text, mechanism=text, decision={"regressions": [text], text: text}, facts={text: text},
            certification={printable[0]: {"verdict": "forked", "note": text}}, memo=text, **stated,
        )  # fmt: skip
        ids["candidate"] = row.pk
    for count in (len(TEXTS) // 2, len(TEXTS)):
        keep_memo(base.project, "\n\n".join(TEXTS[:count]))
    cases = [
        CaseDefinition(name, text, {"a.txt": text}, setup=(text,), verifier=Verifier({"t": text}, {"v.txt": text}))
        for name, text in zip(printable, TEXTS, strict=False)
    ]
    ids["panel"] = store_panel(project.name, TEXTS[3], PanelDefinition(cases)).pk
    return ids


def fill(folder: Path) -> dict[str, Any]:
    """Fill this home and return the ids of what a test opens by itself."""
    ids: dict[str, Any] = {"takeover": imported("takeover.jsonl", takeover_lines())[0], "pairs": []}
    for place, text in enumerate(TEXTS):
        rollouts = imported(f"{text}.jsonl", lines_of(place, text))
        annotate(place, text, rollouts)
        ids["pairs"].append(rollouts)
    many = [event for text in TEXTS for event in events(text, text)]
    header = {"schema": "harnesslab.trace/1", "case": "all", "outcome": "solved", "tags": list(TEXTS)}
    ids["all"] = imported("all.jsonl", "".join(json.dumps(line) + "\n" for line in ({"rollout": header}, *many)))[0]
    return ids | panel_and_story(folder)


if __name__ == "__main__":
    django.setup()
    sys.stdout.write(json.dumps(fill(Path(sys.argv[1]))))
