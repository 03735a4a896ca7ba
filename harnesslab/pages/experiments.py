"""The list of experiments and one experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from harnesslab.core.decision_words import decision_sentence
from harnesslab.pages.access import asks_for_part
from harnesslab.pages.render import render
from harnesslab.queries.experiment_filters import CHOICES, ExperimentFilter
from harnesslab.queries.experiments import experiment_counts, experiment_page, experiment_view


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
        "chips": [(name, _chips(chosen, name, counts.by[name])) for name in ("project", *CHOICES)],
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
    row = view.row
    sentence = decision_sentence(row.kind, row.decision, row.reason, row.solved, row.total)
    documents = [
        ("The decision, verbatim", _written(view.decision), True),
        ("The certificates, verbatim", _written(view.certification), False),
        ("All that its source states", _written(view.facts), not view.cases),
    ]
    context = {
        "view": view,
        "row": row,
        "sentence": sentence,
        "documents": documents,
        "certified": any(case.certificate for case in view.cases),
    }
    return render(request, "experiments/experiment.html", context)


def _written(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) if document else ""
