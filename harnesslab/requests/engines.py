"""Registering an engine, and how much it is asked at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from harnesslab.core.canonical import JSON
from harnesslab.requests.refusals import refused
from harnesslab.requests.schema import RequestSchema
from harnesslab.requests.values import ValueReading, choice, encodable, text, whole, written
from harnesslab.runtime.engines import catalogue

KINDS = catalogue.KINDS
LONGEST_ADDRESS, LONGEST_MODEL, LONGEST_OPTIONS = 500, 200, 65_536
_NAME = re.compile(r"\w[\w .,()+:-]{0,98}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _name(text: str) -> None:
    if not _NAME.fullmatch(text):
        raise refused(f"not a name: {written(text)}", "letters, digits, spaces and . , ( ) + : - _")


def _kept_whole(text: str, most: int) -> None:
    """Refuse what the database would have to cut or change: the engine would be another one than was named."""
    if len(text) > most or not encodable(text):
        raise refused(f"at most {most:,} characters, without NUL or half a character")


def _address(text: str) -> None:
    _kept_whole(text, LONGEST_ADDRESS)
    if text and not re.match(r"https?://[^\s/]+", text):
        raise refused(f"no address: {written(text)}", "http://host:port")


def _model(text: str) -> None:
    _kept_whole(text, LONGEST_MODEL)


def _variable(text: str) -> None:
    if text and not _VARIABLE.fullmatch(text):
        raise refused("not the name of an environment variable", "such as MY_KEY")


def _options(value: object) -> dict[str, Any]:
    try:
        known = json.loads(value.strip() or "{}") if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise refused(f"not JSON: {error}") from None
    if not isinstance(known, dict):
        raise refused("not an object", 'such as {"seed_honoured": true}')
    try:
        line = json.dumps(known, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise refused("numbers that are none, or nested too deeply") from None
    if len(line) > LONGEST_OPTIONS:
        raise refused(f"at most {LONGEST_OPTIONS:,} characters")
    if not all(map(encodable, _texts_in(known))):
        raise refused("a text with NUL or half a character")
    return known


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts and keys of a JSON value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item


Ceiling = Annotated[int, whole(1, 4096, "{} requests at a time")]


class EngineRequest(RequestSchema):
    """An engine as it is registered; `api_key_env` ends up among its options."""

    noun: ClassVar[str] = "engine"
    name: Annotated[str, text(_name)]
    kind: Annotated[str, choice(str, KINDS, "kind of engine")]
    address: Annotated[str, text(_address)] = Field(default="", description="http://host:port; none where embedded.")
    model: Annotated[str, text(_model)] = Field(default="", description="The model as the server names it.")
    ceiling: Ceiling = Field(default=1, description="Most requests at a time, over all workers.")
    options: Annotated[dict[str, JSON], ValueReading(_options, {"type": "object"})] = Field(
        default={}, description="Options of the client, as a JSON object."
    )
    api_key_env: Annotated[str, text(_variable)] = Field(
        default="", description="Variable that holds the API key; the key itself is never stored."
    )

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.kind != "embedded" and not self.address:
            raise refused("no address: ''", "http://host:port", field="address")
        stated = self.options.get("api_key_env")
        if stated is not None and not (isinstance(stated, str) and _VARIABLE.fullmatch(stated)):
            raise refused("not the name of an environment variable", "such as MY_KEY", field="api_key_env")

    @property
    def all_options(self) -> dict[str, JSON]:
        """The options with the name of the key's variable."""
        return {**self.options, "api_key_env": self.api_key_env} if self.api_key_env else dict(self.options)


class CeilingRequest(RequestSchema):
    """How many requests an engine gets at a time."""

    noun: ClassVar[str] = "engine"
    ceiling: Ceiling
