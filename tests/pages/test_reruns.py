"""Asking for a rerun on its form, and the page that says what it found."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harnesslab.actions.rollouts.recorder import Placement, Recorder
from harnesslab.core.running.recipe import SideEffects
from harnesslab.core.running.rerun import Mode, RerunPlan
from harnesslab.core.running.rollout import Origin, Outcome
from harnesslab.core.trace.events import RolloutStarted, UserTurn
from harnesslab.store.models import Job, Rerun, Rollout
from tests import live
from tests.recordings import recording

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
PART = {"HX-Request": "true"}


def text(client: Client, address: str, **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code in (200, 286), answer.content[:400]
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", answer.content.decode())))


def form(rollout: Rollout) -> str:
    return f"/rollouts/{rollout.pk}/rerun/"


def preview(client: Client, rollout: Rollout, query: str) -> str:
    return text(client, f"{form(rollout)}?{query}", **PART)


def test_the_form_explains_each_mode_and_offers_the_boundaries_of_this_recording(as_operator: Client) -> None:
    page = text(as_operator, form(live.rerunnable()))
    assert "costs nothing and shows only that the record is complete" in page
    for boundary in ("model", "tool:run", "user"):
        assert boundary in page
    assert "Every step up to 3 can be forked at" in page


def test_the_preview_says_what_it_costs_in_one_sentence(as_operator: Client) -> None:
    rollout = live.rerunnable()
    said = preview(as_operator, rollout, "mode=live&attempts=3")
    assert "3 attempts: about 9 model calls, 909 prompt tokens, 90 output tokens" in said
    assert "9 commands are executed anew" in said
    assert "grows with the square of the steps" in said
    recorded = preview(as_operator, rollout, "mode=recorded&attempts=3")
    assert "It makes no model call; no command is executed" in recorded
    assert "square" not in recorded


def test_a_fork_behind_a_command_that_timed_out_is_refused_with_the_nearest_safe_step(as_operator: Client) -> None:
    rollout = live.timed_out(1)
    answer = as_operator.get(f"{form(rollout)}?mode=live&step=3", headers=PART).content.decode()
    assert "timed out" in answer
    assert "step=2" in answer
    assert "Fork at step 2 instead" in answer
    assert "disabled" in answer
    assert "disabled" not in as_operator.get(f"{form(rollout)}?mode=live&step=2", headers=PART).content.decode()


def test_an_external_tool_is_never_offered_live_and_the_preview_says_so(as_operator: Client) -> None:
    rollout = live.rerunnable(effects=SideEffects.EXTERNAL)
    page = as_operator.get(form(rollout)).content.decode()
    assert 'aria-label="tool:run recorded"' in page
    assert 'aria-label="tool:run live"' not in page
    assert "Not executed again, since it is declared external: run" in preview(as_operator, rollout, "mode=live")


def test_a_rollout_that_nobody_can_run_says_why(as_operator: Client) -> None:
    rollout = live.rerunnable()
    Rollout.objects.filter(pk=rollout.pk).update(recipe=b"", missing="the harness is not known")
    answer = as_operator.get(form(rollout)).content.decode()
    assert "be executed again: the harness is not known" in html.unescape(answer)
    assert "disabled" in answer


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("mode=live&attempts=0", "0 attempts"),
        ("mode=live&engine=gone", "no engine is registered as 'gone'"),
        ("mode=live&step=0", "steps count from 1"),
        ("mode=live&attempts=x", "no whole number"),
        ("mode=live&temperature=hot", "no number"),
        ("mode=live&seed=number", "which seed"),
        ("mode=live&seed=number&seed_number=9999999999999999999", "no seed"),
        ("mode=sideways", "one of"),
        ("mode=live&step=40", "it has 3 steps"),
    ],
)
def test_what_is_wrong_is_said_before_it_is_sent(as_operator: Client, query: str, said: str) -> None:
    rollout = live.rerunnable()
    assert said in preview(as_operator, rollout, query).lower()


def test_sending_the_form_twice_makes_one_rerun(as_operator: Client) -> None:
    rollout = live.rerunnable()
    key = re.search(r'name="key" value="([^"]+)"', as_operator.get(form(rollout)).content.decode())
    assert key is not None
    sent = {"mode": "live", "attempts": "2", "seed": "same", "key": key.group(1)}
    first, second = as_operator.post(form(rollout), sent), as_operator.post(form(rollout), sent)
    assert first.headers["Location"] == second.headers["Location"] == f"/reruns/{Rerun.objects.get().pk}/"
    assert Job.objects.count() == 2


def test_the_form_becomes_the_plan_with_steps_from_zero(as_operator: Client) -> None:
    rollout = live.rerunnable()
    sent = {
        "mode": "hybrid",
        "attempts": "2",
        "step": "2",
        "seed": "number",
        "seed_number": "7",
        "switch-model": "live",
        "switch-tool:run": "recorded",
        "on_miss": "live",
        "temperature": "0.5",
        "max_tokens": "64",
        "revision": "abc",
        "key": "k",
    }
    as_operator.post(form(rollout), sent)
    plan = Rerun.objects.get().plan
    assert plan["from_step"] == 1
    assert plan["switches"] == {"model": "live"}
    assert (plan["on_miss"], plan["seed"], plan["temperature"], plan["max_tokens"]) == ("live", "7", 0.5, 64)


def test_a_refused_form_keeps_what_was_typed(as_operator: Client) -> None:
    rollout = live.rerunnable()
    answer = as_operator.post(form(rollout), {"mode": "live", "engine": "gone", "attempts": "4", "key": "k"})
    assert answer.status_code == 404
    page = html.unescape(answer.content.decode())
    assert "No engine is registered as 'gone'" in page
    assert 'value="4"' in page
    assert not Rerun.objects.exists()


def test_several_rollouts_share_a_form_and_get_a_rerun_each(as_operator: Client) -> None:
    one, two = live.rerunnable(), live.rerunnable(trial=1)
    address = f"/reruns/new/?ids={one.pk},{two.pk}"
    assert "2 rollouts" in text(as_operator, address)
    assert "Over 2 rollouts: about 6 model calls" in text(as_operator, f"{address}&mode=live", **PART)
    answer = as_operator.post(address, {"mode": "live", "attempts": "1", "key": "k"})
    again = as_operator.post(address, {"mode": "live", "attempts": "1", "key": "k"})
    assert answer.headers["Location"] == again.headers["Location"]
    assert sorted(Rerun.objects.values_list("parent_id", flat=True)) == [one.pk, two.pk]
    assert "2 reruns, those just asked for" in text(as_operator, answer.headers["Location"])


def test_of_several_those_that_can_not_run_are_named_and_the_others_run(as_operator: Client) -> None:
    long, short = live.rerunnable(), live.rerunnable(["ls"], trial=1)
    address = f"/reruns/new/?ids={long.pk},{short.pk}"
    said = text(as_operator, f"{address}&mode=live&step=2", **PART)
    assert "case-1 #2: it has 1 step," in said
    assert "Rerun 1 of 2 rollouts" in said
    page = as_operator.post(address, {"mode": "live", "step": "2", "key": "k"}, follow=True).content.decode()
    assert f"Rollout {short.pk} is not rerun" in page
    assert Rerun.objects.get().parent_id == long.pk


def test_only_operators_ask_and_cancel(as_viewer: Client) -> None:
    rerun = live.asked(live.rerunnable())
    assert as_viewer.get(form(rerun.parent)).status_code == 403
    assert as_viewer.post(form(rerun.parent), {"mode": "live"}).status_code == 403
    assert as_viewer.post(f"/reruns/{rerun.pk}/cancel/").status_code == 403
    page = as_viewer.get(f"/reruns/{rerun.pk}/").content.decode()
    assert "Cancel all" not in page
    assert "Rerun</a>" not in as_viewer.get(f"/rollouts/{rerun.parent_id}/").content.decode()


def test_the_page_begins_with_the_finding_and_never_shows_a_rate_without_its_n(as_viewer: Client) -> None:
    rerun = live.asked(live.rerunnable())
    live.attempted(rerun, 0, same=True)
    live.attempted(rerun, 1, same=False, outcome=Outcome.FAILED_VERIFICATION)
    live.attempted(rerun, 2, same=None, outcome=Outcome.INFRA_ERROR)
    page = text(as_viewer, f"/reruns/{rerun.pk}/")
    assert "Intermittent, 1/2 (95 % CI 9–91 %), live, level" in page
    assert "fixed seed" in page
    assert "solved 1/2" in page
    assert "not counted: 1 infra error" in page
    assert "3 attempts; everything executed anew; the recorded seed." in page
    for word in ("= the same", "≠ parts", "· can't be said"):
        assert word in page


def test_a_running_rerun_refreshes_itself_and_an_ended_one_stops(as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE, attempts=2))
    live.running(rerun, 0)
    page = as_operator.get(f"/reruns/{rerun.pk}/").content.decode()
    assert 'hx-trigger="every 1s"' in page
    assert "step 2: 20 tokens, 9.5 tokens/s" in page
    assert "Cancel all attempts" in page
    assert as_operator.get(f"/reruns/{rerun.pk}/", headers=PART).status_code == 200
    for attempt in (0, 1):
        live.attempted(rerun, attempt, same=True)
    assert as_operator.get(f"/reruns/{rerun.pk}/", headers=PART).status_code == 286
    assert "every 1s" not in as_operator.get(f"/reruns/{rerun.pk}/").content.decode()


def test_cancelling_asks_every_attempt(as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable())
    live.running(rerun, 0)
    page = as_operator.post(f"/reruns/{rerun.pk}/cancel/", follow=True).content.decode()
    assert "3 attempts were asked to stop" in page
    assert sorted(Job.objects.values_list("state", "cancel_requested")) == [
        ("cancelled", False),
        ("cancelled", False),
        ("running", True),
    ]


def test_a_rollout_lists_its_reruns_and_one_that_a_rerun_made_says_so(as_viewer: Client) -> None:
    rerun = live.asked(live.rerunnable())
    made = live.attempted(rerun, 1, same=True)
    parent = text(as_viewer, f"/rollouts/{rerun.parent_id}/")
    assert "1 rerun of it" in parent
    assert "Went as the parent, 1/1" in parent
    child = text(as_viewer, f"/rollouts/{made.pk}/")
    assert f"Attempt 2 of rerun {rerun.pk} of rollout {rerun.parent_id}, live" in child


def test_reruns_stay_out_of_a_cases_rate_and_are_counted_beside(as_viewer: Client) -> None:
    rerun = live.asked(live.rerunnable())
    for attempt in range(3):
        live.attempted(rerun, attempt, same=False, outcome=Outcome.FAILED_VERIFICATION)
    page = text(as_viewer, "/rollouts/?by=case")
    assert "1/1" in page
    assert "1 distinct path over 1 trial · 3 rollouts of reruns beside, not counted" in page
    assert "1/1" in text(as_viewer, "/")
    assert "<b>3</b> rollouts" in as_viewer.get("/rollouts/?mode=live").content.decode()


@pytest.mark.parametrize("address", ["/reruns/", "/reruns/{rerun}/", "/rollouts/{rollout}/"])
def test_more_attempts_and_reruns_take_no_more_queries(as_viewer: Client, address: str) -> None:
    rerun = live.asked(live.rerunnable(), RerunPlan(mode=Mode.LIVE, attempts=6))
    live.attempted(rerun, 0, same=True)
    place = address.format(rerun=rerun.pk, rollout=rerun.parent_id)

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_viewer.get(place).status_code == 200
        return len(captured)

    few = count()
    for attempt in range(1, 6):
        live.attempted(rerun, attempt, same=True)
    for _ in range(4):
        live.attempted(live.asked(rerun.parent), 0, same=False)
    assert count() == few
    assert few <= 20


def test_the_consistency_check_says_what_it_verified(as_viewer: Client) -> None:
    rollout = live.rerunnable()
    address = f"/rollouts/{rollout.pk}/consistency/"
    said = as_viewer.post(address, headers=PART).content.decode()
    assert f"Consistent: all {rollout.events} events match their seals" in said
    Rollout.objects.filter(pk=rollout.pk).update(path=b"0" * 16)
    assert (
        "Not consistent: the path computed anew is not the one"
        in as_viewer.post(address, headers=PART).content.decode()
    )
    Rollout.objects.filter(pk=rollout.pk).update(head=b"0" * 32)
    assert "the last seal is not the head" in as_viewer.post(address, follow=True).content.decode()
    Rollout.objects.filter(pk=rollout.pk).update(head=None)
    assert as_viewer.post(address).status_code == 409


def test_a_rollout_that_still_runs_opens_from_its_first_moment_and_offers_no_rerun(as_operator: Client) -> None:
    rerun = live.asked(live.rerunnable())
    recorder = Recorder(
        replace(recording(origin=Origin.LIVE), outcome=Outcome.RUNNING), Placement(rerun=rerun.pk, mode="live")
    )
    live.running(rerun, 0)
    place = f"/rollouts/{recorder.rollout.pk}/"
    assert as_operator.get(place).status_code == 200
    assert as_operator.get(f"/reruns/{rerun.pk}/").status_code == 200
    recorder.builder.add(RolloutStarted(manifest=""))
    recorder.builder.add(UserTurn(content="Do it."))
    recorder.flush()
    page = as_operator.get(place).content.decode()
    assert "rerun-this" not in page
    assert "Do it." in text(as_operator, f"/reruns/{rerun.pk}/", **PART)
    assert as_operator.get(f"{place}rerun/?mode=live").status_code == 200
