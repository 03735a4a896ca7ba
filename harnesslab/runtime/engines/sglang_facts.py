"""SGLang's `/server_info` and `/model_info` as manifest conditions.

What the server says "auto" of is recorded as that word: it stands for a choice that it does not report.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.conditions.manifest import Condition, Known, Provenance, Unknown

_PLAIN = {
    "engine.version": "version",
    "engine.deterministic": "enable_deterministic_inference",
    "engine.storage_precision": "dtype",
    "engine.compute_precision": "dtype",
    "engine.kv_cache_precision": "kv_cache_dtype",
    "engine.state_precision": "mamba_ssm_dtype",
    "engine.max_running_requests": "max_running_requests",
}
_KERNELS = (
    *("sampling_backend", "grammar_backend", "moe_runner_backend", "disable_custom_all_reduce", "enable_symm_mem"),
    *("chunked_prefill_size", "page_size", "disable_overlap_schedule", "schedule_policy", "enable_tf32_matmul"),
)
_PARALLEL = ("tp_size", "pp_size", "dp_size", "ep_size")
READ = (
    *_PLAIN.values(),
    *_KERNELS,
    *_PARALLEL,
    *("model_path", "revision", "weight_version", "lora_paths", "quantization", "disable_radix_cache", "device"),
    *("attention_backend", "prefill_attention_backend", "decode_attention_backend", "speculative_algorithm"),
    *("cuda_graph_config", "disable_cuda_graph", "enable_torch_compile", "launch_command", "chat_template"),
)
"""Every key of `/server_info` that is read here."""
_PROCESS_OWN = ("--host", "--port", "--log-level")
"""Arguments that name a place: they would make two equal servers look different."""
_SECRET = re.compile(r"^--.*[-_](?:key|token|password|secret)$")
"""Arguments whose value must not be kept; a server tells them to whoever may ask."""
_REASONS = {
    "model.weights_digest": "SGLang reports no digest of the weights: hash the files beside the server",
    "model.tokenizer": "SGLang reports the tokenizer's path, no digest of it",
    "model.chat_template": "SGLang reports no text and no digest of the model's own chat template",
    "hardware.accelerators": "SGLang reports no accelerator model",
    "hardware.driver": "SGLang reports no driver",
    "hardware.cpu": "SGLang reports nothing of the processor",
    "hardware.instruction_set": "SGLang reports nothing of the processor",
}


def conditions(server: Mapping[str, JSON], model: Mapping[str, JSON], name: str) -> dict[str, Condition]:
    """Return the conditions that the server states, and why the others are unknown where more can be said."""
    known: dict[str, Condition] = {key: Unknown(reason) for key, reason in _REASONS.items()}
    known["model.name"] = Known(name, Provenance.CONFIGURED)
    facts: dict[str, JSON] = {condition: server.get(key) for condition, key in _PLAIN.items()}
    facts |= {
        "model.revision": _revision(server, model),
        "model.adapters": _adapters(server),
        "engine.name": "SGLang",
        "engine.attention_backend": _attention(server),
        "engine.kernels": _picked(server, _KERNELS),
        "engine.quantisation": server.get("quantization") or _none_if_stated(server, "quantization"),
        "engine.parallelism": _picked(server, _PARALLEL),
        "engine.prefix_cache": _opposite(server.get("disable_radix_cache")),
        "engine.speculative": server.get("speculative_algorithm") or _none_if_stated(server, "speculative_algorithm"),
        "engine.compile": _compile(server),
        "engine.launch_arguments": _arguments(server.get("launch_command")),
    }
    if server.get("device") == "cpu":
        facts |= {"hardware.accelerators": [], "hardware.driver": "none"}
    if server.get("chat_template"):
        facts["model.chat_template"] = server["chat_template"]
    return known | {key: Known(value, Provenance.SERVER) for key, value in facts.items() if value is not None}


def _revision(server: Mapping[str, JSON], model: Mapping[str, JSON]) -> JSON:
    """Name the weights: where they lie, their revision, and the version that updates of weights count up."""
    stated = {
        "path": model.get("model_path") or server.get("model_path"),
        "revision": server.get("revision"),
        "weight_version": model.get("weight_version") or server.get("weight_version"),
    }
    known = {key: value for key, value in stated.items() if value is not None}
    return known or None


def _adapters(server: Mapping[str, JSON]) -> JSON:
    if "lora_paths" not in server:
        return None
    return server["lora_paths"] or []


def _attention(server: Mapping[str, JSON]) -> JSON:
    """Return the backend, or those of prefill and decode where they were set apart."""
    both = server.get("attention_backend")
    apart = [server.get(f"{phase}_attention_backend") or both for phase in ("prefill", "decode")]
    return both if apart[0] == apart[1] == both else {"prefill": apart[0], "decode": apart[1]}


def _compile(server: Mapping[str, JSON]) -> JSON:
    graphs = server.get("cuda_graph_config")
    backends: dict[str, JSON] = {}
    for phase in ("decode", "prefill"):
        stated = graphs.get(phase) if isinstance(graphs, Mapping) else None
        if isinstance(stated, Mapping):
            backends[f"{phase}_cuda_graph"] = stated.get("backend")
    return {**backends, **_picked(server, ("disable_cuda_graph", "enable_torch_compile"))} or None


def _arguments(command: JSON) -> JSON:
    """Return the arguments as given, without those that only name this instance, keys cut out."""
    if not isinstance(command, str):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return [command]
    kept: list[JSON] = []
    before = ""
    for word in words:
        name, given, _ = word.partition("=")
        if before in _PROCESS_OWN or name in _PROCESS_OWN:
            pass
        elif _SECRET.search(before):
            kept.append("[key]")
        else:
            kept.append(f"{name}=[key]" if given and _SECRET.search(name) else word)
        before = name if name.startswith("--") and not given else ""
    return kept


def _picked(server: Mapping[str, JSON], names: tuple[str, ...]) -> dict[str, JSON]:
    return {name: server[name] for name in names if name in server}


def _opposite(value: JSON) -> JSON:
    return not value if isinstance(value, bool) else None


def _none_if_stated(server: Mapping[str, JSON], name: str) -> JSON:
    """Tell a server that says it uses none from one that says nothing."""
    return "none" if name in server else None
