"""The SGLang servers of the suite, live and recorded."""

from __future__ import annotations

from pathlib import Path

from harnesslab.core.canonical import JSON
from harnesslab.runtime.engines.sglang import SGLangEngine, SGLangSettings
from harnesslab.runtime.engines.sglang_facts import READ
from tests.runtime.engines.conformance import Subject

RECORDED = Path(__file__).with_name("recorded")
NAMES = ("default-chat", "default-generate", "deterministic-chat", "deterministic-generate")
CONTEXT = 2048
KEPT_FACTS = (*READ, "random_seed", "startup_time", "weight_version")


def subject_of(name: str, address: str) -> Subject:
    """Return the engine of a server and what is expected of it."""
    variant, _, endpoint = name.partition("-")
    deterministic = variant == "deterministic"
    facts: dict[str, JSON] = {
        "engine.name": "SGLang",
        "engine.version": "0.5.23",
        "engine.attention_backend": "torch_native",
        "engine.deterministic": deterministic,
        "engine.storage_precision": "auto",
        "engine.kv_cache_precision": "auto",
        "engine.quantisation": "none",
        "engine.speculative": "none",
        "engine.max_running_requests": 8,
        "engine.prefix_cache": not deterministic,
        "engine.parallelism": {"tp_size": 1, "pp_size": 1, "dp_size": 1, "ep_size": 1},
        "hardware.accelerators": [],
        "model.name": "smollm2",
        "model.adapters": [],
    }
    engine = SGLangEngine(address, "smollm2", SGLangSettings(native=endpoint == "generate"))
    return Subject(engine, name, seeds=deterministic, tools=True, context=CONTEXT, facts=facts)
