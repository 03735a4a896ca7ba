"""The same wrong value gets the same sentence from a form, the API and a command, each naming the field its own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils.text import capfirst

from harnesslab.accounts.models import User
from harnesslab.actions.reruns.lifecycle import make_regression
from harnesslab.cli.terminal import printable
from harnesslab.core.running.predicates import Predicate, What
from harnesslab.requests.engines import CeilingRequest, EngineRequest
from harnesslab.requests.experiments import ExperimentRequest
from harnesslab.requests.projects import BindingRequest
from harnesslab.requests.refusals import InvalidRequest
from harnesslab.requests.reruns import RegressionMeasurementRequest, RegressionRequest, RerunRequest
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.trainings import TrainingRequest
from tests import live, measuring
from tests.pages.conftest import logged_in
from tests.requests.doors import by_api, by_command, by_form

pytestmark = pytest.mark.django_db
LONG = "9" * 5000
WRONG: list[tuple[type[RequestSchema], str, str]] = [
    *((RerunRequest, "mode", word) for word in ("sideways", "a\x00b")),
    *((RerunRequest, "attempts", word) for word in ("0", "-1", "x", "1e3", LONG, "nan", "inf", "\x00")),
    *((RerunRequest, "from_step", word) for word in ("x", "²", LONG, "nan", "inf", "\x00")),
    *((RerunRequest, "seed", word) for word in ("moon", LONG, "a\x00b", "nan")),
    *((RerunRequest, "temperature", word) for word in ("hot", "nan", "inf", "-inf", "1e400", "11", LONG, "\x00")),
    *((RerunRequest, "max_tokens", word) for word in ("0", "x", LONG, "nan")),
    *((RerunRequest, name, "a\x00b") for name in ("engine", "revision")),
    (RerunRequest, "on_miss", "jump"),
    *((ExperimentRequest, "trials", word) for word in ("0", "101", "x", "", LONG, "nan", "inf", "\x00")),
    *((ExperimentRequest, "seed", word) for word in ("x", "", LONG, "-1", "nan", "\x00")),
    *((ExperimentRequest, "temperature", word) for word in ("hot", "nan", "inf", "-1", LONG, "\x00")),
    *((ExperimentRequest, "kind", word) for word in ("best", "\x00")),
    *((TrainingRequest, "epochs", word) for word in ("0", "1001", "many", LONG, "nan", "\x00")),
    *((TrainingRequest, "timeout", word) for word in ("0", "-1", "inf", "nan", "soon", LONG, "\x00")),
    *((TrainingRequest, "command", word) for word in ("'x", '"', "a\x00 'b", "a '\x00'", "''")),
    *((TrainingRequest, name, "a\x00b") for name in ("name", "effort")),
    *((TrainingRequest, "trials", word) for word in ("0", "x")),
    *((TrainingRequest, "seed", word) for word in ("x", LONG)),
    *((TrainingRequest, "temperature", word) for word in ("nan", "hot")),
    *((EngineRequest, "name", word) for word in ("<b>", "a\x00b", LONG)),
    *((EngineRequest, "kind", word) for word in ("magic", "\x00")),
    *((EngineRequest, "address", word) for word in ("box:80", "http://a\x00b", "http://" + LONG)),
    *((EngineRequest, "model", word) for word in ("a\x00b", LONG)),
    *((EngineRequest, "ceiling", word) for word in ("0", "4097", "many", LONG, "nan", "inf")),
    *((EngineRequest, "options", word) for word in ("{", "[1]", '{"a": NaN}', '{"a": "\\u0000"}', "[" * 5000, LONG)),
    *((EngineRequest, "api_key_env", word) for word in ("not a variable", "A\x00")),
    *((BindingRequest, "kind", word) for word in ("sideways", "\x00")),
    *((BindingRequest, "command", word) for word in ("'x", '"', "''", "a '\x00'")),
    *((BindingRequest, name, "a\x00b") for name in ("branch", "entry", "surface")),
    (BindingRequest, "repository", " "),
    *((CeilingRequest, "ceiling", word) for word in ("0", "x", LONG, "nan")),
    *((RegressionMeasurementRequest, "attempts", word) for word in ("0", "x", LONG, "nan")),
    *((RegressionMeasurementRequest, "seed", word) for word in ("moon", LONG)),
    *((RegressionMeasurementRequest, name, "a\x00b") for name in ("engine", "revision")),
    *((RegressionRequest, "from_step", word) for word in ("x", LONG, "nan", "\x00")),
    (RegressionRequest, "name", " "),
    *((RegressionRequest, "predicate.steps", word) for word in ("0", "x", LONG, "nan")),
    *((RegressionRequest, f"predicate.{name}", "a\x00b") for name in ("tool", "argument", "holds", "what")),
]
NEVER = {
    RerunRequest: {"switches", "self_test"},
    ExperimentRequest: {"project", "panel", "engine", "cases", "revision", "baseline"},
    TrainingRequest: {
        *("project", "panel", "engine", "cases", "patches", "criterion"),
        *("certify", "remeasure", "unchanged"),
    },
    RegressionRequest: {"predicate"},
}
"""Fields that no text makes wrong by itself: boxes, lists, and names, which actions look up."""
FORM_NAMES = {"from_step": "step"}
OPTIONS = {
    TrainingRequest: {"command": "--proposer-command", "epochs": "--iterations", "name": "--proposer-name"},
    BindingRequest: {"surface": "--editable"},
}


@pytest.fixture(autouse=True)
def no_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.queue.wake", lambda job_id, name: None)


def test_every_field_of_every_schema_is_asked_about() -> None:
    for schema in {schema for schema, _, _ in WRONG}:
        asked = {name.partition(".")[0] for each, name, _ in WRONG if each is schema}
        assert asked | NEVER.get(schema, set()) == set(schema.model_fields), schema


def placed(document: dict[str, Any], field: str, value: str) -> dict[str, Any]:
    """Return a document with one value changed, in an inner object where the field is one's."""
    outer, _, inner = field.partition(".")
    return {**document, outer: {**document[outer], inner: value} if inner else value}


def doors(schema: type[RequestSchema], field: str, folder: Path) -> tuple[str, str, list[str], dict[str, Any]]:
    """Return the form's address, the API's, the command, and a document that is right; empty where there is none."""
    if schema is RerunRequest:
        rollout = live.rerunnable().pk
        plan = {"mode": "hybrid" if field == "on_miss" else "live"}
        return f"/rollouts/{rollout}/rerun/", f"/api/v1/rollouts/{rollout}/reruns", ["rerun", str(rollout)], plan
    if schema in (RegressionRequest, RegressionMeasurementRequest):
        rollout = live.rerunnable().pk
        right: dict[str, Any] = {"name": "n", "from_step": "1", "predicate": {"what": "tool call", "tool": "run"}}
        if schema is RegressionRequest:
            return f"/rollouts/{rollout}/regression/", f"/api/v1/rollouts/{rollout}/regressions", [], right
        made = make_regression(rollout, "n", 1, Predicate(What.TOOL_CALL, tool="run"), None).pk
        return f"/regressions/{made}/measure/", f"/api/v1/regressions/{made}/measure", [], {}
    project = measuring.project(folder)
    measuring.panel()
    asked = measuring.asked()
    if schema is ExperimentRequest:
        return "/experiments/new/?project=measured", "/api/v1/experiments", ["experiment", "run"], asked
    if schema is TrainingRequest:
        del asked["revision"]
        asked |= {"epochs": "1", "command": "true"}
        return "/trainings/new/?project=measured", "/api/v1/trainings", ["train"], asked
    if schema is EngineRequest:
        return "/engines/new/", "", ["engine-add"], {"name": "N", "kind": "openai", "address": "http://127.0.0.1:9"}
    if schema is CeilingRequest:
        return f"/engines/{live.engine().pk}/ceiling/", "", [], {}
    return f"/projects/{project.pk}/binding/", "", ["project-bind", "other"], {"repository": str(folder)}


def sent_by_form(schema: type[RequestSchema], document: dict[str, Any]) -> dict[str, Any]:
    """Return a document as a form sends it: flat, with the names of its fields, and steps counted from 1."""
    flat = {**document, **document.get("predicate", {})}
    flat.pop("predicate", None)
    sent = {FORM_NAMES.get(name, name): value for name, value in flat.items()}
    return {**sent, "by": "command"} if schema is TrainingRequest else sent


def typed(schema: type[RequestSchema], command: list[str], document: dict[str, Any]) -> list[str]:
    """Return a document as a command line."""
    words = list(command)
    for name, value in document.items():
        if schema is EngineRequest and name == "name":
            words.append(value)
            continue
        option = OPTIONS.get(schema, {}).get(name)
        words.append(f"{option or '--' + name.replace('_', '-')}={value}")
    return words


@pytest.mark.parametrize(("schema", "field", "value"), WRONG)
def test_every_door_says_the_same_of_a_wrong_value(
    admin: User, tmp_path: Path, schema: type[RequestSchema], field: str, value: str
) -> None:
    form, api, command, right = doors(schema, field, tmp_path)
    wrong = placed(right, field, value)
    with pytest.raises(InvalidRequest) as error:
        schema.model_validate(wrong)
    sentence = next(each.sentence for each in error.value.errors if each.field == field)
    client: Client = logged_in(admin)
    inner = field.rpartition(".")[2]
    assert by_form(client, form, sent_by_form(schema, wrong), FORM_NAMES.get(inner, inner)) in (
        sentence,
        capfirst(sentence),
    )
    if api:
        assert f"{field}: {sentence}" in by_api(client, api, wrong)
    if command:
        option = OPTIONS.get(schema, {}).get(field)
        name = "name" if (schema, field) == (EngineRequest, "name") else option or f"--{field.replace('_', '-')}"
        assert printable(f"{name}: {sentence}") in by_command(*typed(schema, command, wrong))
