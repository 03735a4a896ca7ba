"""What a request's schema refuses by itself: all wrong fields at once, and fields that contradict each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.running.rerun import Mode, RerunPlan, Switch
from harnesslab.requests.engines import CeilingRequest, EngineRequest
from harnesslab.requests.experiments import ExperimentRequest
from harnesslab.requests.projects import BindingRequest
from harnesslab.requests.refusals import InvalidRequest
from harnesslab.requests.reruns import RegressionMeasurementRequest, RegressionRequest, RerunRequest
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.trainings import TrainingRequest

SCHEMAS: list[tuple[type[RequestSchema], dict[str, Any]]] = [
    (RerunRequest, {}),
    (RegressionRequest, {"name": "n", "from_step": 1, "predicate": {"what": "failure"}}),
    (RegressionMeasurementRequest, {}),
    (ExperimentRequest, {"project": "p", "panel": "q", "engine": "e", "revision": "main"}),
    (TrainingRequest, {"project": "p", "panel": "q", "engine": "e", "epochs": 1, "patches": "/p"}),
    (EngineRequest, {"name": "n", "kind": "openai", "address": "http://127.0.0.1:9"}),
    (CeilingRequest, {"ceiling": 1}),
    (BindingRequest, {"repository": "/p"}),
]
FIELDS = [(schema, right, name) for schema, right in SCHEMAS for name in schema.model_fields]
CONTRADICTED = {"command": "patches", "kind": "baseline"}
HOSTILE: list[Any] = [
    "a\x00b",
    "\ud800",
    "9" * 5000,
    10**5000,
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    [],
    {},
    {"\ud800": "\x00"},
    ["\ud800", 3],
    "[" * 5000,
    b"bytes",
]


def refused(schema: type[RequestSchema], document: object) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as error:
        schema.model_validate(document)
    return {each.field: each.what for each in error.value.errors}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"attempts": 0}, "attempts"),
        ({"attempts": 1001}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"mode": "recorded", "attempts": 2}, "attempts"),
        ({"seed": "x"}, "seed"),
        ({"seed": str(2**63)}, "seed"),
        ({"seed": "9" * 5000}, "seed"),
        ({"seed": ""}, "seed"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"from_step": -1}, "from_step"),
        ({"mode": "recorded", "from_step": 2}, "from_step"),
        ({"switches": {"model": "live"}}, "switches"),
        ({"mode": "hybrid", "switches": {"moon": "live"}}, "switches"),
        ({"mode": "hybrid", "switches": {"model": "half"}}, "switches"),
        ({"mode": "hybrid", "switches": {"tool:\x00": "live"}}, "switches"),
        ({"self_test": True}, "self_test"),
        ({"engine": "\ud800"}, "engine"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused_by_field(document: dict[str, Any], field: str) -> None:
    assert list(refused(RerunRequest, document)) == [field]


@pytest.mark.parametrize(
    ("predicate", "field"),
    [
        ({"what": "tool call"}, "predicate.tool"),
        ({"what": "argument"}, "predicate.holds"),
        ({"what": "answer"}, "predicate.holds"),
        ({"what": "failure", "steps": 0}, "predicate.steps"),
        ({"what": "failure", "steps": 10**30}, "predicate.steps"),
        ({"what": "failure", "argument": "\x00"}, "predicate.argument"),
        ({"what": "answer", "holds": "a\ud800"}, "predicate.holds"),
        ({"what": "weather"}, "predicate.what"),
        ({"what": "failure", "colour": "blue"}, "predicate.colour"),
    ],
)
def test_a_predicate_that_says_too_little_or_too_much_is_refused(predicate: dict[str, Any], field: str) -> None:
    assert list(refused(RegressionRequest, {"name": "n", "from_step": 1, "predicate": predicate})) == [field]


@pytest.mark.parametrize(
    ("schema", "document", "field"),
    [
        (ExperimentRequest, {**SCHEMAS[3][1], "kind": "candidate"}, "baseline"),
        (ExperimentRequest, {**SCHEMAS[3][1], "cases": []}, "cases"),
        (TrainingRequest, {**SCHEMAS[4][1], "command": ["true"]}, "patches"),
        (TrainingRequest, {**SCHEMAS[4][1], "patches": ""}, "patches"),
        (EngineRequest, {"name": "n", "kind": "openai"}, "address"),
        (EngineRequest, {**SCHEMAS[5][1], "options": {"api_key_env": 3}}, "api_key_env"),
        (BindingRequest, {"repository": "/p", "kind": "command"}, "command"),
    ],
)
def test_fields_that_contradict_each_other_name_the_one_to_change(
    schema: type[RequestSchema], document: dict[str, Any], field: str
) -> None:
    assert list(refused(schema, document)) == [field]


def test_all_wrong_fields_are_said_in_one_sentence() -> None:
    found = refused(RerunRequest, {"attempts": "x", "seed": "y", "temperature": "hot"})
    assert found == {"attempts": "'x' is no whole number", "seed": "no seed: 'y'", "temperature": "'hot' is no number"}


@pytest.mark.parametrize(("schema", "right", "name"), FIELDS)
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:12] if not isinstance(value, int) else "int")
def test_a_hostile_value_is_taken_or_refused_in_one_sentence_that_can_be_written_anywhere(
    schema: type[RequestSchema], right: dict[str, Any], name: str, value: object
) -> None:
    errors: list[InvalidRequest] = []
    try:
        schema.model_validate({**right, name: value})
    except InvalidRequest as error:
        errors = [error]
    for refusal in errors:
        assert {each.field.partition(".")[0] for each in refusal.errors} <= {name, CONTRADICTED.get(name)}
        assert len(refusal.sentence) < 400
        assert refusal.sentence.isprintable()
        assert refusal.sentence.encode()


@pytest.mark.parametrize("document", [None, [], "x", 3, {"\ud800": 1}])
@pytest.mark.parametrize("schema", [schema for schema, _ in SCHEMAS])
def test_what_is_no_object_is_refused(schema: type[RequestSchema], document: object) -> None:
    assert refused(schema, document)


@pytest.mark.parametrize(("schema", "right"), SCHEMAS)
def test_a_schema_is_written_for_the_openapi_document_and_takes_what_is_right(
    schema: type[RequestSchema], right: dict[str, Any]
) -> None:
    written = schema.model_json_schema()
    json.dumps(written, allow_nan=False)
    assert set(written["properties"]) == set(schema.model_fields)
    assert schema.model_validate(right) == schema.model_validate({**right})


def test_a_plan_is_made_of_the_request() -> None:
    stated = {"mode": "hybrid", "switches": {"tool:run": "live"}, "on_miss": "live", "from_step": 3, "temperature": "0"}
    plan = RerunRequest.model_validate(stated).to_plan()
    assert plan == RerunPlan(
        mode=Mode.HYBRID, switches={"tool:run": Switch.LIVE}, on_miss=plan.on_miss, from_step=3, temperature=0.0
    )
    assert plan.on_miss == "live"


ENGINE = {"name": "N", "kind": "openai", "address": "http://127.0.0.1:9"}


def test_an_escape_in_an_option_is_text_and_a_nul_is_refused() -> None:
    stop = {"stop": "\\u0000"}  # six characters, as a stop sequence may be
    assert EngineRequest.model_validate({**ENGINE, "options": stop}).options == stop
    for wrong in ("\x00", "\ud800"):
        with pytest.raises(InvalidRequest, match="a text with NUL or half a character"):
            EngineRequest.model_validate({**ENGINE, "options": {"a": [{wrong: 1}]}})


@pytest.mark.parametrize("command", ["''", ["", "x"], [" "]])
def test_a_command_without_a_program_is_refused(command: object) -> None:
    with pytest.raises(InvalidRequest, match="which program"):
        BindingRequest.model_validate({"repository": "/r", "command": command})
