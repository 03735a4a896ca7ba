"""SGLang's facts and native bodies, where no recording reaches."""

from __future__ import annotations

import json

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Known, Provenance, Unknown
from harnesslab.core.running.ports import Answer, Failure, FailureKind, ModelRequest
from harnesslab.runtime.engines import sglang_facts, sglang_native
from tests.runtime.engines.loopback import Record, replaying
from tests.runtime.engines.sglang_subjects import RECORDED, subject_of


def facts(**server: JSON) -> dict[str, JSON]:
    """Return what a server that states this is known by."""
    stated = sglang_facts.conditions(server, {}, "m")
    return {name: condition.value for name, condition in stated.items() if isinstance(condition, Known)}


def test_what_a_server_does_not_say_is_unknown() -> None:
    stated = sglang_facts.conditions({}, {}, "m")
    assert stated["model.name"] == Known("m", Provenance.CONFIGURED)
    assert isinstance(stated["model.weights_digest"], Unknown)
    assert "engine.quantisation" not in stated
    assert "engine.speculative" not in stated


def test_using_none_is_told_from_saying_nothing() -> None:
    said = facts(quantization=None, speculative_algorithm=None, lora_paths=None, disable_radix_cache=True)
    assert said["engine.quantisation"] == "none"
    assert said["engine.speculative"] == "none"
    assert said["model.adapters"] == []
    assert said["engine.prefix_cache"] is False
    assert facts(quantization="fp8", speculative_algorithm="EAGLE")["engine.quantisation"] == "fp8"


def test_backends_set_apart_for_prefill_and_decode() -> None:
    assert facts(attention_backend="fa3", prefill_attention_backend=None)["engine.attention_backend"] == "fa3"
    apart = facts(attention_backend="fa3", decode_attention_backend="flashinfer")
    assert apart["engine.attention_backend"] == {"prefill": "fa3", "decode": "flashinfer"}


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("--tp 2 --host 0.0.0.0 --port 1 --dtype auto", ["--tp", "2", "--dtype", "auto"]),
        ("--port=1 --enable-metrics --random-seed 7", ["--enable-metrics", "--random-seed", "7"]),
        ("--api-key sk-1 --tp 2", ["--api-key", "[key]", "--tp", "2"]),
        ("--admin-api-key=sk-2 --tokenizer-path /t", ["--admin-api-key=[key]", "--tokenizer-path", "/t"]),
        ("--model-path '/a b'", ["--model-path", "/a b"]),
        ("--broken 'quote", ["--broken 'quote"]),
    ],
)
def test_launch_arguments_without_places_and_keys(command: str, kept: list[str]) -> None:
    assert facts(launch_command=command)["engine.launch_arguments"] == kept


def test_a_setting_without_a_native_name_is_refused() -> None:
    made = sglang_native.body_of({"rid": "r", "reasoning_effort": "low"}, [1], alternatives=0)
    assert isinstance(made, Failure)
    assert made.kind is FailureKind.REFUSED
    assert "reasoning_effort" in made.sentence


def test_a_native_body() -> None:
    chat: dict[str, JSON] = {"rid": "r", "messages": [], "model": "m", "max_tokens": 3, "seed": 2**62, "stop": ["x"]}
    assert sglang_native.body_of(chat, [1, 2], alternatives=2) == {
        "rid": "r",
        "input_ids": [1, 2],
        "sampling_params": {"max_new_tokens": 3, "sampling_seed": 2**62, "stop": ["x"]},
        "return_logprob": True,
        "return_text_in_logprobs": True,
        "top_logprobs_num": 2,
    }


def test_an_aborted_generation_is_no_answer() -> None:
    reason: JSON = {"type": "abort", "message": "the pool is full", "status_code": 503}
    read = sglang_native.answer_of({"text": "", "meta_info": {"finish_reason": reason}})
    assert isinstance(read, Failure)
    assert (read.kind, read.sentence) == (FailureKind.OVERLOADED, "the server broke off: the pool is full")


@pytest.mark.parametrize("broken", [{}, {"text": 1, "meta_info": {}}, {"text": "x"}, [], "x", None])
def test_what_is_no_generation_is_malformed(broken: JSON) -> None:
    read = sglang_native.answer_of(broken)
    assert isinstance(read, Failure)
    assert read.kind is FailureKind.MALFORMED


def test_log_probabilities_that_are_odd_cost_no_answer() -> None:
    meta: JSON = {"finish_reason": None, "output_token_logprobs": [[None, 5, "x"], "y"], "output_top_logprobs": [None]}
    read = sglang_native.answer_of({"text": "x", "output_ids": [5], "meta_info": meta})
    assert isinstance(read, Answer)
    assert (read.token_ids, read.logprobs, read.alternatives) == ((5,), None, None)


@pytest.mark.parametrize("endpoint", ["chat", "generate"])
def test_settings_are_the_same_whichever_endpoint_was_asked(endpoint: str) -> None:
    with replaying(Record.read(RECORDED / f"sglang-deterministic-{endpoint}.json")) as address:
        engine = subject_of(f"deterministic-{endpoint}", address).engine
        request = ModelRequest(
            [{"role": "user", "content": "Name three animals."}],
            {"temperature": 1, "max_tokens": 16, "seed": 2**62 + 3},
        )
        got = engine.ask(request, timeout=10)
    assert got.answer is not None, got.failure
    wanted: dict[str, JSON] = {"temperature": 1, "max_tokens": 16, "seed": str(2**62 + 3)}
    assert got.settings == {**wanted, "logprobs": True, "top_logprobs": 2}
    assert json.loads(got.raw_request)["rid"]
