"""Matrices add up: skipped trials enter no rate, and what the runtime alone prevented is told apart."""

from __future__ import annotations

from harnesslab.core.measuring.matrix import MatrixTrial, markdown, percent, summarise, tally


def trial(cell: str = "a", scenario: str = "s", **more: object) -> MatrixTrial:
    return MatrixTrial(cell, scenario, **more)  # type: ignore[arg-type]


def test_a_skipped_trial_is_counted_and_enters_no_rate() -> None:
    found = tally([trial(one_shot=True, eventual=True), trial(skipped=True)])
    assert (found.trials, found.skipped, found.measured, found.rate(found.one_shot)) == (2, 1, 1, 1.0)


def test_where_nothing_ran_a_rate_is_undefined_and_not_zero() -> None:
    found = tally([trial(skipped=True)])
    assert (found.rate(found.one_shot), found.gap) == (None, None)
    assert percent(None) == "—"


def test_only_what_came_right_in_the_end_is_forgiven_a_failure_of_the_runtime() -> None:
    trials = [
        trial(one_shot=True, eventual=True, excused=True),
        trial(eventual=True, excused=True),
        trial(excused=True),
        trial(eventual=True),
    ]
    found = tally(trials)
    assert (found.one_shot, found.without_harness, found.eventual, found.gap) == (1, 2, 3, 0.5)


def test_the_commonest_failure_is_of_checks_and_codes_together() -> None:
    assert tally([trial(failures=("len", "renamed")), trial(failures=("renamed",))]).top_failure == "renamed"


def test_tables_name_cells_with_hard_fails_and_scenarios_that_were_never_run() -> None:
    trials = [trial(hard_fails=1, shape="no_action"), trial(scenario="t", skipped=True), trial(cell="b", scenario="t")]
    text = markdown(summarise(trials))
    assert "| a | 0/1! | SKIP | 0% | 0% | 0% | $0.00 |" in text
    assert "| b | – | 0/1 |" in text
    assert "| s | no_action | 1 |" in text


def test_a_name_with_a_bar_stays_in_its_column() -> None:
    assert "| a\\|b | 0/1 |" in markdown(summarise([trial(cell="a|b")]))
