"""The embedded engine for real: llama.cpp and the small model that comes with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Known
from harnesslab.core.running.ports import ModelRequest
from harnesslab.runtime.engines.catalogue import engine
from harnesslab.runtime.engines.hosting import Host
from harnesslab.runtime.engines.probes import probe
from tests.runtime.engines.conformance import ANIMALS, CHECKS, LIVE_CHECKS, Subject

STORY: list[JSON] = [{"role": "user", "content": "Tell me a story about a lighthouse."}]


@pytest.fixture
def subject(host: Host, engine_home: Path) -> Subject:
    """The embedded engine with a small context."""
    made = engine("embedded", "", "", {"context": 2048}, engine_home)
    facts: dict[str, JSON] = {
        "engine.name": "llama.cpp",
        "engine.attention_backend": "flash attention off",
        "engine.prefix_cache": False,
        "engine.max_running_requests": 1,
        "engine.storage_precision": "Q4_1",
        "engine.kv_cache_precision": "f16",
        "model.name": "SmolLM2-135M-Instruct.Q4_1",
        "model.weights_digest": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    }
    return Subject(made, "embedded", seeds=True, tools=False, context=2048, facts=facts)


@pytest.mark.parametrize("check", [*CHECKS, *LIVE_CHECKS], ids=lambda check: str(check.__name__))
def test_it_conforms(subject: Subject, check: Callable[[Subject], None]) -> None:
    check(subject)


def test_the_rendered_prompt_and_the_settings_are_as_sent(subject: Subject) -> None:
    request = ModelRequest(ANIMALS, {"temperature": 0, "max_tokens": 2, "seed": 2**62 + 3})
    got = subject.engine.ask(request, timeout=60)
    assert got.answer is not None
    assert got.answer.prompt is not None
    assert got.answer.prompt.endswith("Name three animals.<|im_end|>\n<|im_start|>assistant\n")
    assert got.settings["seed"] == str((2**62 + 3) % (2**32 - 1))
    assert got.settings["cache_prompt"] is False
    assert got.answer.seed_honoured is True
    assert f'"seed":{(2**62 + 3) % (2**32 - 1)}'.encode() in got.raw_request


def test_a_probe_finds_what_it_does(subject: Subject) -> None:
    found = probe(subject.engine)
    assert found.seed_honoured is True
    assert found.varies_unseeded is True
    assert found.repeats is True
    assert (found.token_ids, found.prompt_token_ids, found.logprobs, found.streams) == (True, True, True, True)
    assert len(found.exchanges) == 8
    assert found.sentences[0] == "one seed gave the same answer twice and another seed another: it honours the seed"


def test_flash_attention_changes_answers_and_says_so(subject: Subject, engine_home: Path) -> None:
    """The cheapest example of why kernels belong in the manifest."""
    other = engine("embedded", "", "", {"context": 2048, "flash_attention": True}, engine_home)
    request = ModelRequest(STORY, {"temperature": 1, "max_tokens": 64, "seed": 11})
    off, on = (made.ask(request, timeout=60).answer for made in (subject.engine, other))
    assert off is not None
    assert on is not None
    assert off.token_ids != on.token_ids
    stated = other.conditions()["engine.attention_backend"]
    assert isinstance(stated, Known)
    assert stated.value == "flash attention on"


def test_neighbours_in_a_batch_change_nothing(host: Host, engine_home: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    made = engine("embedded", "", "", {"context": 512, "slots": 4}, engine_home)

    def ask(number: int) -> tuple[int, ...] | None:
        prompt: list[JSON] = [{"role": "user", "content": f"Tell me about the number {number}."}]
        got = made.ask(ModelRequest(prompt, {"temperature": 1, "max_tokens": 24, "seed": 7}), timeout=60)
        assert got.answer is not None, got.failure
        return got.answer.token_ids

    alone = [ask(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(ask, range(4)))
    assert together == alone
