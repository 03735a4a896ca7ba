"""The processor that the embedded engine computes on."""

from __future__ import annotations

import platform
from pathlib import Path

_VECTOR = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_tile")
_ARM = ("asimd", "asimddp", "i8mm", "bf16", "sve", "sve2")


def model_name() -> str:
    """Return the processor's name, as far as the system tells it."""
    return _stated("model name") or platform.processor() or platform.machine()


def instruction_set() -> str:
    """Return the architecture and the vector extensions that the processor has."""
    flags = set((_stated("flags") or _stated("Features")).split())
    return " ".join([platform.machine(), *(flag for flag in (*_VECTOR, *_ARM) if flag in flags)])


def _stated(name: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = (line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name)
    return next(found, "")
