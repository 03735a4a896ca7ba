"""`harnesslab experiments`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from harnesslab.actions.tables import ready_tables
from harnesslab.cli.terminal import printable
from harnesslab.core.deciding.decision_words import reason_words
from harnesslab.core.measuring.experiments import ExperimentKind, State
from harnesslab.core.measuring.matrix import MatrixSummary, TrialTally, markdown
from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.queries.experiments.listing import ExperimentRow, all_experiments
from harnesslab.queries.experiments.matrices import matrices

HEADINGS = ("experiment", "kind", "cases solved", "Δ", "decision", "commit", "what changed")
WIDEST = 48
"""Characters of a column before it is cut; JSON holds all."""


@click.command("experiments")
@click.option("--project", default="", help="Those of one project.")
@click.option("--kind", type=click.Choice([kind.value for kind in ExperimentKind]), default=None)
@click.option("--decision", type=click.Choice(list(ExperimentFilter.choices()["decision"])), default=None)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON, with the certificate of each case.")
@click.option("--matrix", is_flag=True, help="Add imported matrices of agents and scenarios up, as Markdown or JSON.")
def experiments(project: str, kind: str | None, decision: str | None, *, as_json: bool, matrix: bool) -> None:
    """List the experiments in the order in which they were measured."""
    ready_tables()
    if matrix:
        _print_matrices(matrices(project), as_json=as_json)
        return
    rows = all_experiments(ExperimentFilter.of({"project": project, "kind": kind or "", "decision": decision or ""}))
    if as_json:
        click.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        return
    if not rows:
        click.echo("there is no such experiment; harnesslab import brings them from files")
        return
    lines = [HEADINGS, *map(_columns, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    for line in lines:
        click.echo("  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip())


def _columns(row: ExperimentRow) -> tuple[str, ...]:
    solved = "–" if row.solved is None or row.total is None else f"{row.solved}/{row.total}"
    decision = " · ".join(filter(None, (row.decision or "", reason_words(row.reason))))
    if row.left_out:
        decision = row.left_out
    elif row.state == State.CANCELLED:
        decision = "cancelled"
    delta = "" if row.delta is None else f"{row.delta:+d}"
    parts = (row.external_id, row.kind or "–", solved, delta, decision or "–", (row.commit or "–")[:8], row.mechanism)
    return tuple(_cut(printable(part)) for part in parts)


def _cut(part: str) -> str:
    return part if len(part) <= WIDEST else part[: WIDEST - 1] + "…"


def _print_matrices(found: dict[str, MatrixSummary], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({run: _document(summary) for run, summary in found.items()}, indent=2))
        return
    if not found:
        click.echo("there is no matrix; harnesslab import brings its results from files")
    for run, summary in found.items():
        text = f"# {run}\n\n{markdown(summary)}\n"
        click.echo("\n".join(map(printable, text.split("\n"))))


def _document(summary: MatrixSummary) -> dict[str, Any]:
    return {
        "total": _tally(summary.total),
        "cells": {name: _tally(found) for name, found in summary.cells.items()},
        "scenarios": {
            name: {"class": summary.groups[name], **_tally(found)} for name, found in summary.scenarios.items()
        },
        "pairs": {
            cell: {name: _tally(found) for name, found in pairs.items()} for cell, pairs in summary.pairs.items()
        },
        "shapes": [
            {"scenario": name, "shape": shape, "trials": count} for (name, shape), count in summary.shapes.items()
        ],
    }


def _tally(found: TrialTally) -> dict[str, Any]:
    rates = {
        "one_shot_rate": found.rate(found.one_shot),
        "without_harness_rate": found.rate(found.without_harness),
        "eventual_rate": found.rate(found.eventual),
        "gap": found.gap,
    }
    return {**asdict(found), "measured": found.measured, **rates}
