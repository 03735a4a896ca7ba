"""One number of tokens spent: in the list, on the rollout's page, over the API, on the efficiency page, on MLflow."""

from __future__ import annotations

from html import unescape

import pytest
from django.db import connection
from django.test import Client

from harnesslab.actions.rollouts.storing import store_recording
from harnesslab.core.measuring.trace_statistics import VERSION
from harnesslab.formats.mlflow.spans import USAGE, walk
from harnesslab.queries.mirrors import trace_document
from harnesslab.store.append_only import create_triggers, drop_triggers
from harnesslab.store.models import Chunk, Rollout
from tests.recordings import changed, recording, served

pytestmark = pytest.mark.django_db


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_served_answers_are_in_no_count_of_tokens_spent(as_viewer: Client) -> None:
    row = store_recording(served(recording(experiment="fork")), None)
    spent, cached = {"input": 102, "output": 10}, 50
    assert (row.input_tokens, row.output_tokens, row.cached_tokens) == (102, 10, cached)
    listed = as_viewer.get("/api/v1/rollouts").json()["rows"][0]
    assert {name: listed[f"{name}_tokens"] for name in spent} == spent
    assert as_viewer.get(f"/api/v1/rollouts/{row.pk}").json()["output_tokens"] == 10
    assert '<td class="n">102<td class="n">10<td' in text_of(as_viewer, "/rollouts/")
    page = text_of(as_viewer, f"/rollouts/{row.pk}/")
    assert "tokens <b>102</b> in (50 cached) · <b>10</b> out" in page
    assert "2 of 3 answers were served, not spent" in page
    split = as_viewer.get(f"/api/v1/efficiency?e={row.experiment_id}").json()["sides"][0]["split"]
    assert (split["uncached"] + split["cached"], split["output"], split["served_output"]) == (102, 10, 20)
    usages = [span.attributes.get(USAGE) for span in walk([trace_document(row.pk, "").root])]
    stated = [usage for usage in usages if isinstance(usage, dict)]
    assert [(usage["input_tokens"], usage["output_tokens"]) for usage in stated] == [(102, 10)]


def test_where_all_was_served_nothing_was_spent_and_where_nothing_is_stated_it_is_unknown(as_viewer: Client) -> None:
    free = store_recording(served(recording(), below=9), None)
    assert as_viewer.get(f"/api/v1/rollouts/{free.pk}").json()["output_tokens"] == 0
    silent = store_recording(changed(recording(trial=1), 9, usage=None), None)
    said = as_viewer.get(f"/api/v1/rollouts/{silent.pk}").json()
    assert (said["input_tokens"], said["output_tokens"], said["cached_tokens"]) == (None, None, None)
    page = text_of(as_viewer, f"/rollouts/{silent.pk}/")
    assert "tokens <b>–</b> in · <b>–</b> out" in page
    assert "3 of 3 calls state no tokens" in page


def test_a_page_says_by_which_version_a_row_was_counted(as_viewer: Client) -> None:
    row = store_recording(recording(experiment="old"), None)
    assert "counted by version" not in text_of(as_viewer, "/rollouts/")
    Rollout.objects.update(counted_by=1)
    assert "counted by version 1, not yet by the current one" in text_of(as_viewer, "/rollouts/")
    assert f"counted by version 1, not yet by {VERSION}" in text_of(as_viewer, f"/rollouts/{row.pk}/")
    assert as_viewer.get(f"/api/v1/rollouts/{row.pk}").json()["counted_by"] == 1


def test_the_efficiency_page_opens_where_a_trace_is_damaged_and_counts_it_as_it_was(as_viewer: Client) -> None:
    rows = [store_recording(recording(experiment="old", trial=trial), None) for trial in range(2)]
    Rollout.objects.update(counted_by=1)
    drop_triggers(connection)
    Chunk.objects.filter(key__gte=rows[0].pk << 20, key__lt=(rows[0].pk + 1) << 20).update(data=b"\x00damaged")
    create_triggers(connection)
    for _ in range(2):
        text = text_of(as_viewer, f"/efficiency/?e={rows[0].experiment_id}")
        assert f"1 rollout was counted by an older version than {VERSION}." in text
    assert as_viewer.get(f"/api/v1/efficiency?e={rows[0].experiment_id}").json()["older"] == 1


def test_the_efficiency_page_says_how_many_an_older_version_counted(
    as_viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [store_recording(recording(experiment="old", trial=trial), None) for trial in range(3)]
    Rollout.objects.update(counted_by=1)
    monkeypatch.setattr("harnesslab.actions.rollouts.trace_statistics.EVENTS", 1)
    text = text_of(as_viewer, f"/efficiency/?e={rows[0].experiment_id}")
    assert f"2 rollouts were counted by an older version than {VERSION}." in text
    assert "not counted yet and left out" not in text
