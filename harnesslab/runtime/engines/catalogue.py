"""Every kind of engine by its name, made from what a registration says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.ports import EnginePort
from harnesslab.runtime.engines.embedded import EmbeddedEngine, EmbeddedSettings
from harnesslab.runtime.engines.openai import OpenAIEngine, OpenAISettings
from harnesslab.runtime.engines.options import Options
from harnesslab.runtime.engines.sglang import SGLangEngine, SGLangSettings


def engine(kind: str, address: str, model: str, options: Mapping[str, JSON], home: Path) -> EnginePort:
    """Make an engine; raises `InvalidValue` naming the option that is wrong.

    `address` is empty for the embedded engine, which asks the host of `home`; its model's name may be empty.
    """
    maker = _KINDS.get(kind)
    if maker is None:
        raise InvalidValue(f"no such kind of engine: {kind}", hint=f"known: {', '.join(_KINDS)}")
    read = Options(kind, options)
    made = maker(address, model, read, home)
    read.done()
    return made


def _openai(address: str, model: str, options: Options, _home: Path) -> EnginePort:
    return OpenAIEngine(address, _named(model), OpenAISettings.of(options), key=options.key())


def _sglang(address: str, model: str, options: Options, _home: Path) -> EnginePort:
    return SGLangEngine(address, _named(model), SGLangSettings.of(options), key=options.key())


def _embedded(address: str, model: str, options: Options, home: Path) -> EnginePort:
    if address:
        raise InvalidValue("an embedded engine has no address", where=address, hint="leave it empty")
    settings = EmbeddedSettings.of(options)
    return EmbeddedEngine(home, model or Path(settings.configuration.model).stem, settings)


def _named(model: str) -> str:
    if not model.strip():
        raise InvalidValue("the model has no name", where="model", hint="give the name the server knows it by")
    return model.strip()


_KINDS: dict[str, Callable[[str, str, Options, Path], EnginePort]] = {
    "embedded": _embedded,
    "openai": _openai,
    "sglang": _sglang,
}
KINDS = tuple(_KINDS)
