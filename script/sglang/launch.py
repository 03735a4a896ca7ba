"""Starts the unmodified SGLang wheel on a machine without a GPU, standing in for the native parts it imports.

`HARNESSLAB_SGLANG_ROWS=1` makes the deterministic flag pass for the CPU's attention and multiplies matrices row by row,
so that a batch can't change a row's result. That is this script's doing, not SGLang's: what such a server shows says
nothing of what SGLang guarantees on a GPU. It is a file of its own because SGLang's children import it again.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import runpy  # noqa: F401 - SGLang's children run this file by it
import sys
import types

os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
import torch

ROWS = os.environ.get("HARNESSLAB_SGLANG_ROWS") == "1"
_LOW = 0xFFFFFFFF


class _Missing:
    """A native function that this machine lacks: it can be imported and named, never called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> _Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"{self.__name__}.{name}")

    def __call__(self, *_args: object, **_options: object) -> object:
        raise NotImplementedError(f"{self.__name__} needs a native kernel")


class _KernelModule(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> _Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Missing(f"{self.__name__}.{name}")


class _Kernels(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `sgl_kernel` and all below it."""

    def find_spec(self, name: str, *_where: object) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] != "sgl_kernel":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _KernelModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


def _times(value: torch.Tensor, factor: int) -> torch.Tensor:
    """Multiply 32-bit values held in 64 bits without overflow."""
    low, high = (value & 0xFFFF) * factor, (value >> 16) * (factor & 0xFFFF)
    return (low + ((high & 0xFFFF) << 16)) & _LOW


def _rotated(value: torch.Tensor, by: int) -> torch.Tensor:
    return ((value << by) | (value >> (32 - by))) & _LOW


def _murmur3(seed: torch.Tensor, positions: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """MurmurHash3 of (seed, position, column): what SGLang's seeded sampling draws its noise from."""
    wide = seed.view(torch.int64) if seed.dtype == torch.uint64 else seed.to(torch.int64)
    words = ((wide & _LOW).view(-1, 1), ((wide >> 32) & _LOW).view(-1, 1))
    words += ((positions.to(torch.int64) & _LOW).view(-1, 1), (columns.to(torch.int64) & _LOW).view(1, -1))
    state = torch.zeros_like(words[0])
    for word in words:
        mixed = _times(_rotated(_times(word, 0xCC9E2D51), 15), 0x1B873593)
        state = (_rotated(state ^ mixed, 13) * 5 + 0xE6546B64) & _LOW
    state = state ^ 16
    state = _times(state ^ (state >> 16), 0x85EBCA6B)
    state = _times(state ^ (state >> 13), 0xC2B2AE35)
    return (state ^ (state >> 16)).to(torch.uint32)


def _multiply_by_rows(*_args: object, **_options: object) -> None:
    """Replace SGLang's Triton overrides: each row by itself, so that its neighbours can't change the rounding."""
    linear, matmul = torch.nn.functional.linear, torch.matmul

    def by_rows(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if x.dim() == 2 and x.shape[0] > 1:
            return torch.cat([linear(x[row : row + 1], weight, bias) for row in range(x.shape[0])], 0)
        return linear(x, weight, bias)

    def product(a: torch.Tensor, b: torch.Tensor, **options: object) -> torch.Tensor:
        if a.dim() == 2 and b.dim() == 2 and a.shape[0] > 1:
            return torch.cat([matmul(a[row : row + 1], b, **options) for row in range(a.shape[0])], 0)
        return matmul(a, b, **options)

    torch.nn.functional.linear = by_rows
    torch.matmul = product


def _stand_in() -> list[torch.library.Library]:
    vision, kernels = torch.library.Library("torchvision", "FRAGMENT"), torch.library.Library("sgl_kernel", "FRAGMENT")
    for name in ("nms", "qnms"):
        vision.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    kernels.define("murmur_hash32_cpu(Tensor seed, Tensor positions, Tensor col_indices) -> Tensor")
    kernels.impl("murmur_hash32_cpu", _murmur3, "CPU")
    sys.meta_path.insert(0, _Kernels())
    if ROWS:
        import sglang.srt.arg_groups.choices as choices
        import sglang.srt.batch_invariant_ops as invariant

        choices.add_deterministic_attention_backend_choices(["torch_native"])
        invariant.enable_batch_invariant_mode = _multiply_by_rows
    return [vision, kernels]


_LIBRARIES = _stand_in()

if __name__ == "__main__":
    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    arguments = prepare_server_args(sys.argv[1:])
    sys.argv[0] = "sglang.launch_server"
    try:
        run_server(arguments)
    finally:
        kill_process_tree(os.getpid(), include_parent=False)
