"""Whether two model calls can have been given the same input: what the record says beside the messages themselves."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.core.conditions.manifest import Known
from harnesslab.core.contracts.trace_reader import TraceReader
from harnesslab.core.trace.events import Fidelity, ModelCall

HIDDEN_TOKENS = 32
HIDDEN_SHARE = 0.01
"""Prompt tokens, and share of a prompt, that additions nobody recorded may explain: a date, a host, a session's id."""


@dataclass(frozen=True, slots=True)
class InputRecord:
    """What of the record speaks for two inputs being the same, what against it, and what isn't there to be seen."""

    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """What a difference that nobody recorded would explain: not shown equal."""
    unseen: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether both prompts were counted, and the counts are equal."""
        return bool(self.supports)


def input_record(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> InputRecord:
    """Weigh what is recorded of two requests whose recorded messages and tools are equal."""
    unseen = []
    for name, call in (("A", left), ("B", right)):
        if call.fidelity is Fidelity.REBUILT:
            unseen.append(f"the request of {name} as it was sent")
        if call.tools is None:
            unseen.append(f"the tools offered in {name}")
    tools_a, tools_b = a.manifest["tools.schemas"], b.manifest["tools.schemas"]
    contradicts: list[str] = []
    if isinstance(tools_a, Known) and isinstance(tools_b, Known) and tools_a.value != tools_b.value:
        contradicts.append("the manifests state other tool schemas")
    counts = _counts(a, b, left, right)
    if counts is None:
        return InputRecord((), tuple(contradicts), (), (*unseen, "prompt tokens counted alike on both sides"))
    said = f"{counts[0]:,} against {counts[1]:,} prompt tokens"
    if counts[0] == counts[1]:
        return InputRecord((f"both prompts were counted as {counts[0]:,} tokens",), tuple(contradicts), (), (*unseen,))
    if abs(counts[0] - counts[1]) <= max(HIDDEN_TOKENS, HIDDEN_SHARE * min(counts)) and min(counts) > HIDDEN_TOKENS:
        return InputRecord((), tuple(contradicts), (said,), (*unseen,))
    return InputRecord((), (*contradicts, said), (), (*unseen,))


def _counts(a: TraceReader, b: TraceReader, left: ModelCall, right: ModelCall) -> tuple[int, int] | None:
    """Return the prompt tokens of both, where both have them by the same convention, model and source."""
    if left.usage is None or right.usage is None or left.usage.input is None or right.usage.input is None:
        return None
    if a.identity.format != b.identity.format or left.model != right.model:
        return None
    return (left.usage.input, right.usage.input) if left.usage.input and right.usage.input else None
