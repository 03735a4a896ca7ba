"""Outcomes and what they count as."""

from __future__ import annotations

from harnesslab.core.running.rollout import UNCOUNTED, UNSCORABLE, VERDICT_UNTRUSTED, Outcome


def test_an_error_is_never_a_failure() -> None:
    assert {Outcome.CRASH, Outcome.INFRA_ERROR, Outcome.INTERRUPTED} == UNSCORABLE
    assert {Outcome.VERIFY_TIMEOUT} == VERDICT_UNTRUSTED - UNSCORABLE


def test_failed_timed_out_and_refused_trials_are_samples() -> None:
    assert not UNCOUNTED & {
        Outcome.SOLVED,
        Outcome.FAILED_VERIFICATION,
        Outcome.TIMEOUT,
        Outcome.STEP_CAP,
        Outcome.REFUSED,
        Outcome.NO_VALID_ACTION,
        Outcome.VERIFY_TIMEOUT,
    }
    assert {Outcome.NOT_RUN, Outcome.UNKNOWN, Outcome.RUNNING} <= UNCOUNTED
