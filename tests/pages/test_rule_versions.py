"""A newer version of a scrub rule takes nothing from the older one: paths, links and findings stay with theirs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client

from harnesslab.accounts.models import User
from harnesslab.actions.comparisons import compare, override_cause
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.comparing.evidence import Cause
from harnesslab.core.contracts import comparators, scrub
from harnesslab.core.contracts.contract import Contract
from harnesslab.core.errors import InvalidValue
from harnesslab.queries.rollouts.trace_readers import StoredTraceReader
from harnesslab.store.models import Rollout, StoredPath
from tests.recordings import recording

pytestmark = pytest.mark.django_db
OLD, NEW = "durations@1", "durations@2"


@pytest.fixture
def pair() -> tuple[int, int]:
    """Two trials that part in a duration alone: rows on which nothing else differs."""
    said = [store_recording(recording(trial=n, results={1: f"3 passed in 0.1{n}s"}), None).pk for n in (0, 1)]
    return said[0], said[1]


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> scrub.Rule:
    """A throw-away second version of a rule that removes nothing that the first one does."""
    rule = replace(scrub.BY_KEY[OLD], version=2, pattern=re.compile(r"never (?P<x>this)"), hint="n")
    monkeypatch.setitem(scrub.BY_KEY, rule.key, rule)
    return rule


def kept(contract: Contract) -> list[bytes]:
    rows = StoredPath.objects.filter(contract=contract.key).order_by("rollout_id")
    return [bytes(row.path) for row in rows]


def test_a_path_under_an_older_version_is_kept_read_and_what_that_version_gives(
    pair: tuple[int, int], request: pytest.FixtureRequest
) -> None:
    by_first = Contract.parse()
    assert compare(*pair, by_first).comparison.identical
    before = kept(by_first)
    request.getfixturevalue("second")
    by_second = Contract.parse()
    assert (OLD in by_first.rules, NEW in by_second.rules, OLD in by_second.rules) == (True, True, False)
    assert not compare(*pair, by_second).comparison.identical
    named = Contract.parse(rules=",".join(by_first.rules))
    assert named == by_first == Contract.of_key(by_first.key)
    assert compare(*pair, named).comparison.identical
    assert kept(named) == before
    readers = [StoredTraceReader(Rollout.objects.get(pk=pk)) for pk in pair]
    assert [comparators.path(reader.trace(), named).path for reader in readers] == before
    assert kept(by_second) != before


def test_a_reviewer_s_finding_stays_with_the_rules_that_it_was_made_under(
    as_viewer: Client, operator: User, pair: tuple[int, int], request: pytest.FixtureRequest
) -> None:
    a, b = pair
    compare(a, b, Contract.parse())
    override_cause(a, b, Contract.parse(), Cause.TIMING.value, "a slow disk", operator)
    assert "a slow disk" in as_viewer.get(f"/compare/?a={a}&b={b}").content.decode()
    request.getfixturevalue("second")
    now = as_viewer.get(f"/compare/?a={a}&b={b}").content.decode()
    assert "under an earlier version of these rules: a slow disk" in now
    found = re.search(r'href="/compare/\?([^"]*)">Compare by that one', now)
    assert found is not None
    then = as_viewer.get(f"/compare/?{found[1].replace('&amp;', '&')}")
    text = then.content.decode()
    assert "found the cause to be" in text
    assert "under an earlier version" not in text
    assert (OLD in text, NEW in text) == (True, False)


def test_switching_another_rule_keeps_the_version_that_a_link_names(
    as_viewer: Client, pair: tuple[int, int], second: scrub.Rule
) -> None:
    a, b = pair
    text = as_viewer.get(f"/compare/?a={a}&b={b}&rules={OLD},pids@1").content.decode()
    found = re.search(r'href="/compare/\?([^"]*)" id="rule-pids"', text)
    assert found is not None
    assert "rules=durations%401" in found[1]
    assert second.key not in text


def test_two_versions_of_one_rule_are_no_contract(second: scrub.Rule) -> None:
    with pytest.raises(InvalidValue, match="two versions of one scrub rule"):
        Contract.parse(rules=f"{OLD},{second.key}")


@pytest.mark.parametrize("key", ["", "harnesslab.comparator/9|text|all|", "harnesslab.comparator/1|text|all|x@1"])
def test_a_key_that_this_version_does_not_compare_by_is_refused(key: str) -> None:
    with pytest.raises(InvalidValue):
        Contract.of_key(key)
