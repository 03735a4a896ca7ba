"""How single values are read, whichever door they come through: text from a form or an argument, or JSON's own types.

Each is the metadata of an annotated type, refuses with one sentence, and states its bounds in the OpenAPI document.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from harnesslab.requests.refusals import refused

_WHOLE = re.compile("-?[0-9]+")
_DIGITS = 18
"""So many fit into every database's whole numbers."""


def written(value: object) -> str:
    """Return a value as a refusal shows it: cut, and with what can't be printed as escapes."""
    if isinstance(value, str):
        return ascii(value[:40]) if not value[:40].isprintable() else repr(value[:40])
    return f"{value}" if isinstance(value, float | bool | None) else f"a value of type {type(value).__name__}"


class Reading:
    """Metadata of an annotated type: reads a value with `read`, which raises what `refused` returns."""

    def read(self, value: object) -> object:
        """Return the value as its type."""
        raise NotImplementedError

    def document(self) -> dict[str, Any]:
        """Return its JSON schema."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.document()


@dataclass(frozen=True)
class Text(Reading):
    """A text; `check` raises for one that can't be meant."""

    check: Callable[[str], None] | None = None
    strip: bool = True

    def read(self, value: object) -> str:
        """Return the text, without what surrounds it where it is stripped."""
        if not isinstance(value, str):
            raise refused(f"{written(value)} is no text")
        text = value.strip() if self.strip else value
        if self.check is not None:
            self.check(text)
        return text

    def document(self) -> dict[str, Any]:
        """Return its JSON schema."""
        return {"type": "string"}


@dataclass(frozen=True)
class Whole(Reading):
    """A whole number; `what` says of one out of bounds that it is none."""

    low: int
    high: int | None
    what: str
    hint: str = ""

    def read(self, value: object) -> int:
        """Return the number."""
        number = _whole(value, "" if self.hint else self.bounds)
        if number < self.low or (self.high is not None and number > self.high):
            raise refused(self.what.format(number), self.bounds)
        return number

    @property
    def bounds(self) -> str:
        """What would help."""
        return self.hint or f"from {self.low} to {self.high:,}"

    def document(self) -> dict[str, Any]:
        """Return its JSON schema."""
        return {"type": "integer", "minimum": self.low} | ({} if self.high is None else {"maximum": self.high})


def _whole(value: object, hint: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10**_DIGITS:
            raise refused(f"a number of more than {_DIGITS} digits", hint)
        return value
    text = value.strip() if isinstance(value, str) else ""
    if not _WHOLE.fullmatch(text):
        raise refused(f"{written(value)} is no whole number", hint)
    if len(text.lstrip("-")) > _DIGITS:
        raise refused(f"a number of more than {_DIGITS} digits", hint)
    return int(text)


@dataclass(frozen=True)
class Number(Reading):
    """A finite number; `what` says of one out of bounds that it is none."""

    low: float
    high: float
    what: str
    above: bool = False
    """Whether the lower bound itself is out of them."""

    def read(self, value: object) -> float:
        """Return the number."""
        number = _float(value)
        if not self.low <= number <= self.high or (self.above and number == self.low):
            raise refused(self.what.format(f"{number:g}"), self.bounds)
        return number

    @property
    def bounds(self) -> str:
        """What would help."""
        return f"{'above' if self.above else 'from'} {self.low:g} to {self.high:,.0f}"

    def document(self) -> dict[str, Any]:
        """Return its JSON schema."""
        return {"type": "number", "exclusiveMinimum" if self.above else "minimum": self.low, "maximum": self.high}


def _float(value: object) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
        except ValueError:
            pass
    raise refused(f"{written(value)} is no number")


@dataclass(frozen=True)
class Choice(Reading):
    """One of a few words; where `empty` is set, an empty text is that."""

    of: Callable[[str], object]
    words: tuple[str, ...]
    noun: str
    optional: bool = False

    def read(self, value: object) -> object:
        """Return the choice."""
        if self.optional and value in ("", None):
            return None
        if not isinstance(value, str) or value.strip() not in self.words:
            raise refused(f"no {self.noun}: {written(value)}", f"one of {', '.join(self.words)}")
        return self.of(value.strip())

    def document(self) -> dict[str, Any]:
        """Return its JSON schema."""
        return {"type": "string", "enum": [*self.words, ""] if self.optional else list(self.words)}


@dataclass(frozen=True)
class _Flag(Reading):
    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise refused(f"{written(value)} is neither true nor false")
        return value

    def document(self) -> dict[str, Any]:
        return {"type": "boolean"}


Flag = Annotated[bool, _Flag()]
"""Whether something is so."""


@dataclass(frozen=True)
class Words(Reading):
    """A list of texts; one text is parted by `split` where that is given."""

    split: Callable[[str], Iterable[str]] | None = None
    none: str = ""
    """What is said of an empty list, where that is refused."""

    def read(self, value: object) -> tuple[str, ...]:
        """Return the texts."""
        if isinstance(value, str) and self.split is not None:
            value = list(self.split(value))
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise refused(f"{written(value)} is no list of texts")
        if not value and self.none:
            raise refused(self.none)
        return tuple(value)

    def document(self) -> dict[str, Any]:
        """Return its JSON schema."""
        return {"type": "array", "items": {"type": "string"}} | ({"minItems": 1} if self.none else {})


class Program(Words):
    """A program and its arguments, which may be typed as one text."""


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise refused(f"{error}: {written(text)}") from None


Command = Annotated[tuple[str, ...], Program(_shell_words)]
"""A program and its arguments: a list of words, or one text that is parted as a shell does."""


def printable(text: str) -> None:
    """Refuse control characters in a name."""
    if not text.isprintable():
        raise refused(f"no name: {written(text)}", "without control characters")


def encodable(text: str) -> bool:
    """Say whether every database takes a text as it is."""
    return "\x00" not in text and not any("\ud800" <= each <= "\udfff" for each in text)
