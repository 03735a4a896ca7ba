"""The efficiency page: its sentence, its tables and their links, CSV and JSON, in a fixed number of queries."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from harnesslab.actions.rollouts import trace_statistics as anatomies
from harnesslab.actions.rollouts.recorder import Recorder, RolloutEnding
from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.actions.rollouts.trace_statistics import prepare
from harnesslab.core.measuring.trace_statistics import TraceStatistics
from harnesslab.core.running.rollout import Outcome
from harnesslab.core.trace.events import ModelCall, Usage
from harnesslab.core.trace.trace import Trace
from harnesslab.store.models import Experiment, Project, Rollout
from harnesslab.store.text import thawed
from tests.recordings import recording

pytestmark = pytest.mark.django_db
HOSTILE = '=<script>alert("1")</script>\udc80\x00'


def measured(name: str, *runs: tuple[str, int, Outcome]) -> int:
    """Store an experiment with rollouts of so many steps; returns its id."""
    for case, steps, outcome in runs:
        commands = [f"command {number}" for number in range(steps)]
        store_recording(recording(commands, case=case, outcome=outcome, experiment=name), None)
    return Experiment.objects.order_by("pk").last().pk  # type: ignore[union-attr]


@pytest.fixture
def pair(db: None) -> tuple[int, int]:
    a = measured("before", ("one", 4, Outcome.SOLVED), ("two", 6, Outcome.STEP_CAP), ("three", 2, Outcome.CRASH))
    b = measured("after", ("one", 3, Outcome.SOLVED), ("two", 3, Outcome.SOLVED), ("three", 2, Outcome.CRASH))
    return a, b


def page(client: Client, query: str) -> str:
    answer = client.get(f"/efficiency/?{query}")
    assert answer.status_code == 200, answer.content[:500]
    return unescape(answer.content.decode())


def test_the_sentence_says_what_moved_tokens_per_solve(as_viewer: Client, pair: tuple[int, int]) -> None:
    a, b = pair
    text = page(as_viewer, f"e={a}&e={b}")
    assert "B used 67 % fewer output tokens per solve than A: fewer steps per solve (−67 %)." in text
    assert "Composition effect" in text
    same = page(as_viewer, f"e={a}&e={b}&cases=solved")
    assert "B used 25 % fewer output tokens per solve than A: fewer steps per solve (−25 %)." in same
    assert "Over the 1 case solved in every experiment" in same
    assert "120 output tokens per solve in 1 of 3 rollouts, 33 % of them in rollouts that solved." in page(
        as_viewer, f"e={a}"
    )


def test_what_is_undefined_says_why(as_viewer: Client, pair: tuple[int, int]) -> None:
    lost = measured("lost", ("one", 4, Outcome.STEP_CAP))
    text = page(as_viewer, f"e={pair[0]}&e={lost}")
    assert "can't be compared by output tokens per solve: B: none of 1 rollouts was solved." in text
    assert 'title="none of 1 rollouts was solved">undefined' in text


def test_cached_answers_are_warned_of_and_counted_where_asked_for(as_viewer: Client, pair: tuple[int, int]) -> None:
    made = recording(["ls"] * 3, case="one", experiment="cached")
    events = [
        replace(event, served_from_cache=event.step < 2) if isinstance(event, ModelCall) else event
        for event in made.trace.events
    ]
    trace = Trace(tuple(events), made.trace.payloads, made.trace.digests)
    store_recording(dataclasses.replace(made, trace=trace), None)
    cached = Experiment.objects.get(name="cached").pk
    text = page(as_viewer, f"e={pair[1]}&e={cached}")
    assert "B was billed 75 % fewer output tokens per solve than A" in text
    assert "Served, from a cache, a record or another rollout, and not billed: 2 of 3 answers of B." in text
    used = page(as_viewer, f"e={pair[1]}&e={cached}&answers=used")
    assert "B used 25 % fewer output tokens (served answers included) per solve than A" in used
    assert "not billed" not in used


def test_numbers_link_to_as_many_rollouts_as_they_say(as_viewer: Client, pair: tuple[int, int]) -> None:
    answer = as_viewer.get(f"/api/v1/efficiency?e={pair[0]}").json()
    sheets = {sheet["name"]: sheet for sheet in answer["sheets"]}
    checked = 0
    for name in ("spend", "failed-cases", "tools", "solves", "totals"):
        titles = [column["title"] for column in sheets[name]["columns"]]
        column = next(titles.index(title) for title in ("rollouts", "solved", "calls") if title in titles)
        for row in sheets[name]["rows"]:
            entry = row[column]
            if not entry["query"] or name == "tools":
                continue
            listed = as_viewer.get(f"/api/v1/rollouts?{entry['query']}").json()
            assert listed["count"] == entry["value"], (name, entry)
            checked += 1
    assert checked >= 6


def test_tables_download_as_csv_with_names_made_harmless(as_viewer: Client) -> None:
    number = measured(HOSTILE, (HOSTILE, 2, Outcome.STEP_CAP), ("two", 3, Outcome.SOLVED))
    text = as_viewer.get(f"/efficiency/?e={number}").content.decode()
    assert "<script>alert" not in text
    answer = as_viewer.get(f"/efficiency/?e={number}&format=csv&table=failed-cases")
    assert answer["Content-Disposition"] == 'attachment; filename="efficiency-failed-cases.csv"'
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert rows[1][1].startswith("'=<script>")
    assert rows[1][2:] == ["1", "20", "1.0", "20"]
    for name in re.findall(r"table=([a-z-]+)", text):
        assert as_viewer.get(f"/efficiency/?e={number}&format=csv&table={name}").status_code == 200
    assert as_viewer.get(f"/efficiency/?e={number}&format=csv&table=none").status_code == 404


def test_a_figure_that_draws_only_some_rollouts_says_of_how_many(as_viewer: Client) -> None:
    few = measured("few", ("one", 2, Outcome.SOLVED))
    many = measured("many", *((f"case-{n}", 2, Outcome.SOLVED) for n in range(21)))
    said = "Drawn are the 20 with the most model time, of 21."
    assert said in as_viewer.get(f"/efficiency/?e={many}").content.decode()
    assert "Drawn are" not in as_viewer.get(f"/efficiency/?e={few}").content.decode()


@pytest.mark.parametrize(
    "query", ["", "e=x", "e=1&e=", "e=1&kind=water", "e=1&cases=some", "&".join(f"e={n}" for n in range(1, 10))]
)
def test_what_can_not_be_asked_gets_a_sentence(as_viewer: Client, query: str) -> None:
    answer = as_viewer.get(f"/efficiency/?{query}")
    assert answer.status_code == 400
    assert as_viewer.get(f"/api/v1/efficiency?{query}").status_code == 400
    assert as_viewer.get("/efficiency/?e=999").status_code == 404


@pytest.mark.parametrize("query", ["ids=1.x", "ids=" + ".".join(["1"] * 201), "score=lucky"])
def test_the_list_refuses_what_is_no_selection(as_viewer: Client, query: str) -> None:
    assert as_viewer.get(f"/rollouts/?{query}").status_code == 400


def test_more_rollouts_take_no_more_queries(as_viewer: Client, pair: tuple[int, int]) -> None:
    address = f"/efficiency/?e={pair[0]}&e={pair[1]}"

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_viewer.get(address).status_code == 200
        return len(captured)

    few = queries()
    measured("before", *[(f"more {number}", 3, Outcome.SOLVED) for number in range(8)])
    assert queries() == few <= 8


def test_older_rollouts_are_counted_bit_by_bit(
    as_viewer: Client, pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {row.pk: bytes(row.anatomy) for row in Rollout.objects.all()}
    Rollout.objects.update(anatomy=b"", counted_by=1)
    monkeypatch.setattr(anatomies, "EVENTS", 20)
    text = page(as_viewer, f"e={pair[0]}")
    assert "2 rollouts are not counted yet and left out" in text
    assert len(prepare(kept)) == 4
    monkeypatch.undo()
    assert prepare(kept) == []
    assert {row.pk: bytes(row.anatomy) for row in Rollout.objects.all()} == kept


def test_a_recorded_rollout_is_counted_when_it_ends(db: None) -> None:
    recorder = Recorder(recording(experiment="live"))
    recorder.builder.model_call([], usage=Usage(5, 3))
    assert isinstance(recorder.builder.events[-1], ModelCall)
    row = recorder.finish(RolloutEnding(Outcome.SOLVED))
    found = TraceStatistics.from_json(thawed(row.anatomy))
    assert (found.calls, found.input, found.output, found.submitted) == (1, 5, 3, True)


def test_cost_is_given_where_the_project_has_prices(as_viewer: Client, pair: tuple[int, int]) -> None:
    Project.objects.update(prices={"m-1": {"input": 1.0, "cached": 0.0, "output": 10.0}})
    side = as_viewer.get(f"/api/v1/efficiency?e={pair[0]}").json()["sides"][0]
    fresh = side["split"]["uncached"] + 10 * side["split"]["output"]
    assert side["cost"]["amount"] == pytest.approx(fresh / 1_000_000)
