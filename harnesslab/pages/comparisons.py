"""The comparison of two rollouts: where they part, and why."""

from __future__ import annotations

from collections.abc import Sequence, Set
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from harnesslab.actions.comparisons import align, compare, override_cause
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.conditions.manifest import Difference
from harnesslab.core.contracts.contract import Contract, Level
from harnesslab.core.contracts.scrub import Rule, newest, offered
from harnesslab.core.errors import InvalidValue
from harnesslab.core.natural import natural
from harnesslab.core.running.rollout import Replayability
from harnesslab.figures.strip import strip_figure
from harnesslab.pages.access import needs, user_of
from harnesslab.pages.render import render
from harnesslab.queries.comparisons.comparison import (
    ComparedRollouts,
    first_difference_row,
    level_titles,
    overrides_of,
    row_window,
)
from harnesslab.queries.comparisons.result import ComparisonResult
from harnesslab.queries.comparisons.rows import row_detail
from harnesslab.queries.comparisons.strip import strip
from harnesslab.queries.rollouts.listing import siblings


def contract_of(request: HttpRequest) -> Contract:
    """Read the contract from the URL: level, rules (`none`, or names; all by default) and scope."""
    return Contract.parse(*(request.GET.get(name, "") for name in ("level", "rules", "only")))


def comparison(request: HttpRequest) -> HttpResponse:
    """The whole page."""
    compared = _compared(request)
    contract = compared.comparison.contract
    override, earlier = overrides_of(compared.row_a.id, compared.row_b.id, contract)
    first = first_difference_row(compared.comparison.rows)
    selected = _row(request, first or 0, len(compared.comparison.rows))
    only = request.GET.get("differences") == "1"
    context = {
        "a": compared.row_a,
        "b": compared.row_b,
        "result": compared.result,
        "contract": contract,
        "levels": [(name, title, _query(request, level=name, row="")) for name, title in level_titles()],
        "scope_url": _query(request, only="" if request.GET.get("only") else "tool-calls", level="", row=""),
        "rules": _rules(request, contract),
        "removed": _removed(compared),
        "window": row_window(compared, max(0, selected - 40), only_differences=only),
        "detail": row_detail(compared, selected) if compared.comparison.rows else None,
        "first": first,
        "selected": selected,
        "by_token": _by_token(contract),
        "differences": only,
        "figure": strip_figure(strip(compared)),
        "conditions": compared.comparison.declared,
        "gaps": [pair for pair in compared.comparison.conditions if pair.difference is Difference.NOT_SHOWN],
        "total_conditions": len(compared.comparison.conditions),
        "equal_conditions": sum(pair.difference is Difference.EQUAL for pair in compared.comparison.conditions),
        "siblings": siblings(compared.a.rollout),
        "override": override,
        "earlier": [(each, _query(request, **Contract.of_key(each.contract).query(), row="")) for each in earlier],
        "causes": [cause.value for cause in Cause],
        "query": _query(request, row=""),
        "rerun_both": _rerun_both(compared, compared.result),
        "swap": _query(request, a=str(compared.row_b.id), b=str(compared.row_a.id), row=""),
    }
    return render(request, "comparisons/compare.html", context)


def comparison_rows(request: HttpRequest) -> HttpResponse:
    """A further window of aligned rows."""
    compared = align(*_ids(request), contract_of(request))
    only = request.GET.get("differences") == "1"
    start = _row(request, 0, len(compared.rows))
    window = row_window(compared, start, only_differences=only, until=natural(request.GET.get("until", "")))
    return render(
        request, "comparisons/_rows.html", {"window": window, "query": _query(request, row=""), "selected": -1}
    )


def comparison_row(request: HttpRequest) -> HttpResponse:
    """One aligned row in full."""
    contract = contract_of(request)
    compared = align(*_ids(request), contract)
    detail = row_detail(compared, _row(request, 0, len(compared.rows)))
    return render(
        request,
        "comparisons/_detail.html",
        {"detail": detail, "a": compared.row_a, "b": compared.row_b, "by_token": _by_token(contract)},
    )


def comparison_report(request: HttpRequest) -> JsonResponse:
    """The comparison as a JSON report to keep."""
    report = _compared(request).result
    answer = JsonResponse(report.model_dump(mode="json"), json_dumps_params={"indent": 2})
    answer["Content-Disposition"] = f'attachment; filename="comparison-{report.a}-{report.b}.json"'
    return answer


@require_POST
@needs("operator")
def comparison_override(request: HttpRequest) -> HttpResponse:
    """Record a reviewer's own finding of the cause."""
    a, b = _ids(request)
    contract = contract_of(request)
    override_cause(a, b, contract, request.POST.get("cause", ""), request.POST.get("reason", ""), user_of(request))
    return redirect(f"{reverse('compare')}?{_query(request)}")


def _compared(request: HttpRequest) -> ComparedRollouts:
    return compare(*_ids(request), contract_of(request))


def _ids(request: HttpRequest) -> tuple[int, int]:
    a, b = natural(request.GET.get("a", "")), natural(request.GET.get("b", ""))
    if a is None or b is None:
        raise InvalidValue("two rollouts are needed to compare", where="a and b", hint="tick two in the list")
    return a, b


def _rerun_both(compared: ComparedRollouts, summary: ComparisonResult) -> str:
    """Return the query of a rerun of both from the step where they part; empty where one can't be rerun here."""
    if Replayability.VIEW_ONLY in (compared.row_a.grade, compared.row_b.grade):
        return ""
    parts = summary.first_divergence or summary.first_raw_difference
    ids = f"ids={compared.row_a.id},{compared.row_b.id}"
    return f"{ids}&step={parts.step + 1}" if parts is not None and parts.step > 0 else ids


def _row(request: HttpRequest, default: int, total: int) -> int:
    value = natural(request.GET.get("row", ""))
    return default if value is None else max(0, min(value, total - 1))


def _removed(compared: ComparedRollouts) -> list[tuple[str, int, int, list[str]]]:
    """Return (rule, removals in A, in B, examples) of the rules that removed something."""
    one, two = compared.comparison.removed
    return [
        (rule, one.counts.get(rule, 0), two.counts.get(rule, 0), one.examples.get(rule, two.examples.get(rule, [])))
        for rule in compared.comparison.contract.rules
        if one.counts.get(rule) or two.counts.get(rule)
    ]


def _query(request: HttpRequest, **changes: str) -> str:
    """Return the page's query string with changes; empty values are left out."""
    names = ("a", "b", "level", "rules", "only", "differences", "row")
    values = {name: request.GET.get(name, "") for name in names} | changes
    return urlencode({name: value for name, value in values.items() if value})


def _by_token(contract: Contract) -> bool:
    return contract.level in (Level.TOKEN_IDS, Level.LOGPROBS)


def _rules(request: HttpRequest, contract: Contract) -> list[tuple[Rule, bool, str]]:
    """Return (rule, whether it is on, the query that switches it) of each rule."""
    rules = offered(contract.rules)
    on = {rule.key for rule in rules} & set(contract.rules)
    return [(rule, rule.key in on, _query(request, rules=_named(rules, on ^ {rule.key}), row="")) for rule in rules]


def _named(rules: Sequence[Rule], on: Set[str]) -> str:
    """Name the rules that are on as the query does: not at all where they are what is taken without a word."""
    keys = [rule.key for rule in rules if rule.key in on]
    return "" if keys == [rule.key for rule in newest()] else ",".join(keys) or "none"
