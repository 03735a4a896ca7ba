"""The list of experiments and one experiment."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse

from harnesslab.core.deciding.decision_words import decision_sentence, reason_words
from harnesslab.core.measuring.experiments import State
from harnesslab.core.natural import natural
from harnesslab.figures.outcomes import matrix_figure, transitions_figure
from harnesslab.pages.access import asks_for_part
from harnesslab.pages.experiments.efficiency import csv_of
from harnesslab.pages.render import render
from harnesslab.queries.experiments.filters import ExperimentFilter
from harnesslab.queries.experiments.listing import experiment_counts, experiment_page, experiment_view
from harnesslab.queries.experiments.outcome_matrix import ROWS, OutcomeMatrix, outcome_matrix
from harnesslab.queries.stories.experiment import Card, experiment_card
from harnesslab.queries.stories.outcome_sheets import outcome_sheets


def experiments(request: HttpRequest) -> HttpResponse:
    """The list, newest first; `after` pages on and answers with the further rows alone."""
    chosen = ExperimentFilter.of(request.GET)
    after = request.GET.get("after", "")
    context = {"page": experiment_page(chosen, after), "filter": chosen, "query": chosen.url()}
    if after and asks_for_part(request):
        return render(request, "experiments/_rows.html", context)
    counts = experiment_counts(chosen)
    context |= {
        "counts": counts,
        "chips": [(name, _chips(chosen, name, counts.by[name])) for name in ("project", *ExperimentFilter.choices())],
        "filtered": bool(chosen.url()),
    }
    return render(request, "experiments/list.html", context)


def _chips(chosen: ExperimentFilter, name: str, counts: dict[str, int]) -> list[tuple[str, int, bool, str]]:
    """Return the values of a filter, each with its count, whether it is on, and where a click on it leads."""
    on = getattr(chosen, name)
    return [
        (value, count, value == on, chosen.url(**{name: "" if value == on else value}))
        for value, count in counts.items()
    ]


def experiment(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """One experiment: its decision, its cases beside those of its baseline, and what its source states."""
    view = experiment_view(experiment_id)
    row, card = view.row, experiment_card(experiment_id)
    whole, start = request.GET.get("columns") == "all", natural(request.GET.get("from", "")) or 0
    if request.GET.get("format") == "csv":
        every = outcome_matrix(card.experiment, whole=whole, most=sys.maxsize)
        return csv_of(outcome_sheets(card, every), request.GET.get("table", ""), "experiment")
    matrix = outcome_matrix(card.experiment, whole=whole, start=start)
    sheets = outcome_sheets(card, matrix)
    cancelled = row.state == State.CANCELLED
    sentence = decision_sentence(row.kind, row.decision, row.reason, row.solved, row.total, cancelled=cancelled)
    documents = [
        ("The decision, verbatim", _written(view.decision), True),
        ("The certificates, verbatim", _written(view.certification), False),
        ("All that its source states", _written(view.facts), not view.cases),
    ]
    context = {
        "view": view,
        "card": card,
        "matrix": matrix,
        "whole": whole,
        "windows": [(at, min(at + ROWS, matrix.cases)) for at in range(0, matrix.cases, ROWS)],
        "cases": [(case, card.attributions.get(case.case, ())) for case in view.cases[start : start + ROWS]],
        "sheets": {sheet.name: sheet for sheet in sheets},
        "figures": _figures(card, matrix),
        "row": row,
        "sentence": sentence,
        "documents": documents,
        "certified": any(case.certificate for case in view.cases),
    }
    return render(request, "experiments/experiment.html", context)


def _figures(card: Card, matrix: OutcomeMatrix) -> dict[str, dict[str, Any]]:
    columns = [
        f"{column.role or reason_words(column.verdict)} {column.commit[:8] or column.name}".strip()
        for column in matrix.columns
    ]
    cells = [[None if cell is None else (cell.outcome, cell.rollout) for cell in row.cells] for row in matrix.rows]
    drawn = {
        "transitions": transitions_figure(card.transitions),
        "matrix": matrix_figure(columns, [row.case for row in matrix.rows], cells),
    }
    return {name: figure for name, figure in drawn.items() if figure["data"]}


def _written(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) if document else ""
