"""The list of conditions."""

from __future__ import annotations

from harnesslab.core.conditions.fields import BY_NAME, FIELDS, SECTIONS


def test_every_condition_has_one_name_a_title_and_a_sentence() -> None:
    assert len(BY_NAME) == len(FIELDS)
    assert all(field.title and field.help.endswith(".") for field in FIELDS)
    assert {field.section for field in FIELDS} == set(SECTIONS)


def test_the_conditions_that_decide_whether_runs_can_be_compared_are_there() -> None:
    assert {
        "model.weights_digest",
        "model.tokenizer",
        "model.chat_template",
        "engine.kernels",
        "engine.kv_cache_precision",
        "engine.max_running_requests",
        "hardware.driver",
        "sampling.temperature",
        "seeds.root",
        "environment.image",
        "evaluator.revision",
        "serving.concurrency",
    } <= {field.name for field in FIELDS if field.identity}
