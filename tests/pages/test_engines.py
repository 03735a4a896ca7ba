"""Engines: what is registered, how it stands, and who changes it."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from harnesslab.actions.engines.registration import note_health, note_probe
from harnesslab.actions.engines.slots import slots
from harnesslab.core.conditions.manifest import Condition, Known, Provenance, Unknown
from harnesslab.core.running.ports import Health
from harnesslab.store.models import AuditEntry, Engine, Job
from tests import live
from tests.pages.reading import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_wake_up")]
NEW = {"name": "Box", "kind": "openai", "address": "http://127.0.0.1:9", "model": "m", "ceiling": "4"}


def test_without_an_engine_it_says_what_to_do(as_viewer: Client) -> None:
    page = text(as_viewer, "/engines/")
    assert "No engine is registered." in page
    assert "serve --demo" in page


def test_the_table_tells_apart_what_answers_is_away_and_was_never_asked(as_viewer: Client) -> None:
    for name, up in (("One", True), ("Two", False), ("Three", None)):
        made = live.engine(name)
        if up is not None:
            note_health(made.pk, Health(up, "said so"))
    page = text(as_viewer, "/engines/")
    assert "1 of 3 engines answered when last asked." in page
    for word in ("● answers", "✕ away", "– not asked yet", "not probed"):
        assert word in page


def test_what_runs_and_waits_now_is_counted(as_viewer: Client) -> None:
    made = live.engine()
    kept = slots()
    kept.ask(made.pk, 1, "first")
    kept.ask(made.pk, 1, "second")
    try:
        assert re.search(r"now 1 running, 1 waiting", text(as_viewer, f"/engines/{made.pk}/"))
    finally:
        for holder in ("first", "second"):
            kept.give_back(made.pk, holder)


def test_an_engine_shows_its_facts_with_their_provenance_and_its_gaps_as_gaps(as_viewer: Client) -> None:
    made = live.engine()
    facts: dict[str, Condition] = {
        "engine.name": Known("llama.cpp", Provenance.SERVER),
        "engine.slots": Known({"n": 1}, Provenance.PROBED),
        "engine.kernels": Unknown("it states none"),
    }
    note_health(made.pk, Health(up=True, sentence="it answers"), facts)
    note_probe(made.pk, {"sentences": ["it honours the seed"]}, seed_honoured=True)
    page = text(as_viewer, f"/engines/{made.pk}/")
    assert "engine.name llama.cpp server-reported" in page
    assert 'engine.slots {"n":1} probed' in page
    assert "unknown: it states none" in page
    assert "It honours the seed." in page


def test_an_admin_registers_one_and_its_probe_is_queued(as_admin: Client) -> None:
    answer = as_admin.post("/engines/new/", {**NEW, "options": "{}", "api_key_env": "MY_KEY"})
    made = Engine.objects.get()
    assert answer.headers["Location"] == f"/engines/{made.pk}/"
    assert made.options == {"api_key_env": "MY_KEY"}
    assert Job.objects.get().group == f"engine {made.pk}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ""}, "not a name"),
        ({"name": "<b>"}, "not a name"),
        ({"kind": "magic"}, "no kind of engine"),
        ({"address": "box:80"}, "no address"),
        ({"model": ""}, "no name"),
        ({"ceiling": "0"}, "0 requests at a time"),
        ({"ceiling": "many"}, "no whole number"),
        ({"options": "[1]"}, "not an object"),
        ({"options": "{"}, "not JSON"),
        ({"options": '{"nonsense": 1}'}, "nonsense"),
        ({"options": '{"extra": {"a": NaN}}'}, "numbers that are none"),
        ({"options": '{"extra": {"a": "\\u0000"}}'}, "NUL or half a character"),
        ({"options": '{"extra": {"a": "\\ud800"}}'}, "NUL or half a character"),
        ({"options": '{"extra": ' + "[" * 50_000 + "]" * 50_000 + "}"}, "not JSON"),
        ({"options": '{"extra": {"a": "' + "x" * 70_000 + '"}}'}, "65,536 characters"),
        ({"address": "http://" + "a" * 600}, "at most 500 characters"),
        ({"model": "m" * 201}, "at most 200 characters"),
        ({"options": '{"api_key": "sk-secret"}'}, "a key is never kept"),
        ({"api_key_env": "not a variable"}, "not the name of an environment variable"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_lost(as_admin: Client, change: dict[str, str], said: str) -> None:
    answer = as_admin.post("/engines/new/", {**NEW, **change})
    assert answer.status_code == 400
    page = html.unescape(answer.content.decode())
    assert said.lower() in page.lower()
    assert f'value="{({**NEW, **change})["address"]}"' in page
    assert not Engine.objects.exists()


def test_a_taken_name_is_a_conflict(as_admin: Client) -> None:
    live.engine("Box")
    assert as_admin.post("/engines/new/", NEW).status_code == 409


def test_roles(as_viewer: Client, as_operator: Client, as_admin: Client) -> None:
    made = live.engine()
    place = f"/engines/{made.pk}/"
    for client, registers, checks, changes in (
        (as_viewer, 403, 403, 403),
        (as_operator, 403, 302, 403),
        (as_admin, 400, 302, 302),
    ):
        assert client.post("/engines/new/", {"name": ""}).status_code == registers
        assert client.post(f"{place}check/").status_code == checks
        assert client.post(f"{place}ceiling/", {"ceiling": "2"}).status_code == changes
    assert Job.objects.count() == 1
    assert as_operator.post(f"{place}retire/").status_code == 403
    as_admin.post(f"{place}retire/")
    assert "is retired" in text(as_viewer, place)
    assert "No engine is registered" in text(as_viewer, "/engines/")
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"set ceiling", "retire engine"}


def test_more_engines_take_no_more_queries(as_viewer: Client) -> None:
    live.engine()

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert as_viewer.get("/engines/").status_code == 200
        return len(captured)

    few = count()
    for number in range(6):
        live.engine(f"More {number}")
    assert count() == few <= 5
