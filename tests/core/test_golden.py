"""Digest schemes never change by accident: everything stored and exported rests on them.

The expected values are in `tests/golden/`. A deliberate change bumps the scheme's version in core and then
rewrites them with `python -m tests.core.test_golden`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from harnesslab.core import seeds
from harnesslab.core.canonical import JSON, bytes_digest, canonical_bytes, digest, parse
from harnesslab.core.conditions.identity import identity_digest
from harnesslab.core.conditions.manifest import Manifest, Provenance
from harnesslab.core.conditions.schemas import MANIFESTS
from harnesslab.core.contracts import comparators
from harnesslab.core.contracts.contract import COMPARATOR, Contract
from harnesslab.core.contracts.requests import RequestDigests
from harnesslab.core.trace import packing, seals
from harnesslab.core.trace.events import Fidelity, ModelCall, ToolCall, ToolRequest, Usage, UserTurn, Verification
from harnesslab.core.trace.trace import Trace, TraceBuilder

GOLDEN = Path(__file__).parents[1] / "golden"
VALUES = (
    "null",
    "[true,false,1,-1,0.5,1e-7,1e21,-0.0]",
    "[9007199254740991,9007199254740993,100000000000000000000,123456789012345678901234567890]",
    "[NaN,Infinity,-Infinity]",
    '{"b":1,"a":{"d":[],"c":{}}}',
    '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}',
    '"\\u0000\\u001f\\b\\t\\n\\f\\r\\"\\\\/\\u007f"',
    '"\\udcb2 ok \\ud83d"',
    '"\\u00e9 \\u4e2d \\ud83d\\ude00"',
    '{"$number":"NaN"}',
    "[333333333.3333333,4.5,0.002,1e-27,5e-324,1.7976931348623157e308]",
    '[[[["deep"]]]]',
)


def small_trace() -> Trace:
    """Return a trace with retries, ids, tokens, tools and a clipped transcript."""
    builder = TraceBuilder()
    tools = [{"name": "bash", "parameters": {"type": "object"}}]
    messages: list[Any] = [{"role": "system", "content": "You fix bugs."}, {"role": "user", "content": "fix it"}]
    builder.add(UserTurn(content="fix it", simulated=False))
    call = ToolRequest("bash", {"command": "run"}, '{"command": "run"}', "call_0123456789ab")
    settings = {"temperature": 0, "seed": 7}
    common: dict[str, Any] = {"tools": tools, "model": "m", "settings": settings, "fidelity": Fidelity.RECORDED}
    builder.model_call(messages, **common, error="overloaded", token_ids=(), logprobs=())
    answer: dict[str, Any] = {"text": "On it.", "tool_calls": (call,), "usage": Usage(20, 5, cache_read=10)}
    builder.model_call(messages, **common, **answer, attempt=1, token_ids=(5, 6), logprobs=(-0.5, -0.25))
    result = "3 passed in 0.12s\n"
    builder.add(ToolCall(name="bash", arguments=call.arguments, raw=call.raw, id=call.id, result=result, exit_code=0))
    messages += [
        {"role": "assistant", "content": "On it.", "tool_calls": [{"id": call.id, "function": {"name": "bash"}}]},
        {"role": "tool", "tool_call_id": call.id, "content": result},
    ]
    builder.model_call(messages, **common, step=1, text="Done.", token_ids=(7,), logprobs=(-0.125,))
    builder.model_call(messages[1:], agent="check/1", step=1, text="Fine.", token_ids=(8,), logprobs=(-1.0,))
    builder.add(Verification(step=1, passed=True, reward=1.0))
    return builder.close("solved", diff="--- a\n+++ b\n")


def small_manifest() -> Manifest:
    known: dict[str, JSON] = {"model.name": "m", "sampling.temperature": 0, "seeds.root": "18446744073709551615"}
    return Manifest.of(known, unknown="not recorded", provenance=Provenance.CONFIGURED)


def canonical_values() -> Any:
    return [
        {"json": text, "canonical": canonical_bytes(parse(text)).decode(), "digest": digest(parse(text))}
        for text in VALUES
    ]


def trace_digests() -> Any:
    trace = small_trace()
    reader = RequestDigests(trace.payloads)
    calls = [event for event in trace.events if isinstance(event, ModelCall)]
    found = [reader.of(call) for call in calls]
    return {
        "payloads": [known.hex() for known in trace.digests],
        "seals": [seal.hex() for seal in seals.seals(trace)],
        "requests": [[request and request.hex(), answer and answer.hex()] for request, answer in found],
        "chunk": [bytes_digest(zstd.decompress(chunk.data)) for chunk in packing.pack(trace.events, trace.payloads)],
    }


def path_digests() -> Any:
    """Return the paths under every contract that was ever written down: a further rule makes a further contract."""
    trace = small_trace()
    written = json.loads((GOLDEN / "paths.json").read_text())["paths"]
    paths = {key: comparators.path(trace, Contract.of_key(key)) for key in written}
    return {
        "comparator": COMPARATOR,
        "paths": {key: {"events": len(path), "head": path.head.hex()} for key, path in paths.items()},
    }


def manifest_digests() -> Any:
    manifest = small_manifest()
    return {"digest": manifest.digest, "identity": manifest.identity, "bytes": bytes_digest(manifest.canonical())}


def manifest_versions() -> Any:
    """Return what each version of the manifest is made of; a version that was ever stored under never changes."""
    return {
        MANIFESTS.schema(number): {
            "fields": [each.name for each in schema.fields],
            "sections": list(schema.sections),
            schema.identity.schema: list(schema.identity.names),
            schema.experiment_identity.schema: list(schema.experiment_identity.names),
        }
        for number, schema in MANIFESTS.rules.items()
    } | {"digest of an experiment": identity_digest({"a": small_manifest(), "b": small_manifest()})}


def derived_seeds() -> Any:
    names = [(0, "request", "case-1", 0, 0), (2**64 - 1, "request", "case-1", 0, 0), (7, "sampling", "é", 3, 9)]
    names += [(7, stream, "case-1", 0, 0) for stream in seeds.STREAMS]
    return [[str(name[0]), *name[1:], str(seeds.derive(*name))] for name in names]


SCHEMES: dict[str, Callable[[], Any]] = {
    "canonical.json": canonical_values,
    "trace.json": trace_digests,
    "paths.json": path_digests,
    "manifest.json": manifest_digests,
    "manifest-versions.json": manifest_versions,
    "seeds.json": derived_seeds,
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_digest_scheme_gives_what_it_always_gave(name: str) -> None:
    assert SCHEMES[name]() == json.loads((GOLDEN / name).read_text())


def test_a_value_written_long_ago_reads_as_the_same_value() -> None:
    for entry in json.loads((GOLDEN / "canonical.json").read_text()):
        assert canonical_bytes(parse(entry["canonical"])).decode() == entry["canonical"]
        assert bytes_digest(entry["canonical"].encode()) == entry["digest"]


def rewrite() -> None:
    """Write the expected values anew, after a deliberate change of a scheme's version."""
    for name, scheme in SCHEMES.items():
        (GOLDEN / name).write_text(json.dumps(scheme(), indent=1) + "\n")


if __name__ == "__main__":
    rewrite()
