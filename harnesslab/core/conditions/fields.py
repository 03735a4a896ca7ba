"""The explicit list of conditions that a manifest/1 states, and which of them make up the measurement identity.

The list is frozen, since all that was stored under it is digested by it: a further condition is a further version in
`schemas.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One condition a manifest can state."""

    section: str
    key: str
    title: str
    help: str
    identity: bool = False
    """Whether it is part of the measurement identity of an experiment."""

    @property
    def name(self) -> str:
        """The dotted name, such as `sampling.temperature`."""
        return f"{self.section}.{self.key}"


def _section(section: str, *rows: tuple[str, str, str, bool]) -> list[Field]:
    return [Field(section, key, title, text, identity) for key, title, text, identity in rows]


FIELDS: tuple[Field, ...] = (
    *_section(
        "harness",
        ("name", "Harness", "Name of the program around the model.", False),
        ("revision", "Revision", "Commit or version of the harness; a candidate may change it.", False),
        ("files_digest", "Files digest", "Digest over the harness's files.", False),
        ("protocol", "Policy protocol", "Version of the protocol between harness and worker.", True),
        ("mechanisms", "Mechanisms", "Named rules of the harness that were active.", False),
    ),
    *_section(
        "panel",
        ("name", "Panel", "The set of cases.", True),
        ("revision", "Panel revision", "Revision or digest of the set.", True),
        ("order", "Case order", "Order in which cases ran.", False),
        ("case", "Case", "Stable id of the case.", False),
        ("case_digest", "Case digest", "Digest of the case's content.", False),
    ),
    *_section(
        "budgets",
        ("steps", "Step budget", "Most steps an episode may take.", True),
        ("wall", "Time budget", "Most seconds an episode may take.", True),
        ("context", "Context budget", "Most tokens of context.", True),
        ("reasoning", "Reasoning budget", "Most reasoning tokens a call.", True),
        ("output", "Output budget", "Most output tokens a call.", True),
        ("cost", "Cost budget", "Most money an episode may cost.", True),
    ),
    *_section(
        "model",
        ("name", "Model", "Name the model was asked for by.", True),
        ("provider", "Provider", "Who served it.", True),
        ("revision", "Weights revision", "Revision of the weights.", True),
        ("weights_digest", "Weights digest", "Digest of the weights.", True),
        ("tokenizer", "Tokenizer", "Revision or digest of the tokenizer.", True),
        ("chat_template", "Chat template", "Revision or digest of the chat template.", True),
        ("adapters", "Adapters", "Adapters loaded over the weights.", True),
    ),
    *_section(
        "engine",
        ("name", "Engine", "The model server.", True),
        ("version", "Engine version", "Its version.", True),
        ("attention_backend", "Attention backend", "Attention implementation.", True),
        ("kernels", "Kernels", "Other kernel choices.", True),
        ("deterministic", "Deterministic mode", "Whether batch-invariant kernels were on.", True),
        ("storage_precision", "Storage precision", "Precision the weights are stored in.", True),
        ("compute_precision", "Compute precision", "Precision of arithmetic.", True),
        ("kv_cache_precision", "KV-cache precision", "Precision of the key-value cache.", True),
        ("state_precision", "State precision", "Precision of recurrent state.", True),
        ("quantisation", "Quantisation", "Quantisation method.", True),
        ("parallelism", "Parallelism", "Tensor, pipeline and data parallelism.", True),
        ("max_running_requests", "Max running requests", "Ceiling of concurrent requests.", True),
        ("prefix_cache", "Prefix cache", "Whether prompt prefixes were cached.", True),
        ("speculative", "Speculative decoding", "Draft model or method.", True),
        ("compile", "Compilation", "Compiled graphs and CUDA graphs.", True),
        ("launch_arguments", "Launch arguments", "The server's arguments as given.", True),
    ),
    *_section(
        "hardware",
        ("accelerators", "Accelerators", "Accelerator models and count.", True),
        ("driver", "Driver", "Driver and runtime versions.", True),
        ("cpu", "CPU", "Processor model.", False),
        ("instruction_set", "Instruction set", "Vector extensions in use.", False),
    ),
    *_section(
        "sampling",
        ("temperature", "Temperature", "Sampling temperature.", True),
        ("top_p", "Top-p", "Nucleus sampling bound.", True),
        ("top_k", "Top-k", "Number of candidates sampled from.", True),
        ("max_tokens", "Max tokens", "Output limit of one call.", True),
        ("stop", "Stop rules", "Stop sequences.", True),
        ("reasoning_effort", "Reasoning effort", "Declared effort level.", True),
        ("other", "Other settings", "Remaining request settings.", True),
    ),
    *_section(
        "seeds",
        ("generator", "Generator", "How seeds are derived.", True),
        ("root", "Root seed", "The seed all streams derive from.", True),
        ("policy", "Policy", "One seed per rollout or per call.", True),
        ("seed", "Seed", "Seed sent with this rollout's requests.", False),
        ("honoured", "Honoured", "Whether the engine was shown to honour it.", True),
    ),
    *_section(
        "environment",
        ("image", "Image", "Digest of the container image.", True),
        ("pins", "Pins", "Sources of nondeterminism held fixed.", True),
        ("network", "Network", "What could be reached.", True),
        ("platform", "Platform", "Operating system and working folder.", False),
    ),
    *_section(
        "tools",
        ("schemas", "Tool schemas", "Digest of the schemas offered.", False),
        ("side_effects", "Side effects", "Read-only, sandboxed or external, per tool.", False),
    ),
    *_section("retrieval", ("snapshots", "Snapshots", "Revisions of the indexes queried.", True)),
    *_section(
        "processing",
        ("preprocessing", "Preprocessing", "Rules applied to the input.", False),
        ("observation", "Observation rules", "Rules applied to tool results before the model sees them.", False),
    ),
    *_section(
        "evaluator",
        ("name", "Evaluator", "What gave the verdict.", True),
        ("revision", "Evaluator revision", "Its revision or digest.", True),
        ("repeatability", "Repeatability", "How often it repeats its own verdict.", False),
    ),
    *_section(
        "serving",
        ("mode", "Serving mode", "Alone, shared or batch.", True),
        ("concurrency", "Declared concurrency", "Rollouts run at once.", True),
        ("load", "Observed load", "Requests seen running at the same time.", False),
    ),
)
BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}
SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(field.section for field in FIELDS))
