"""How single values are read, whichever door they come through: text from a form or an argument, or JSON's own types.

Each is the metadata of an annotated type, refuses with one sentence, and states its bounds in the OpenAPI document.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from harnesslab.requests.refusals import refused

_WHOLE = re.compile("-?[0-9]+")
_DIGITS = 18
"""So many fit into every database's whole numbers."""
_LIST: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}


def written(value: object) -> str:
    """Return a value as a refusal shows it: cut, and with what can't be printed as escapes."""
    if isinstance(value, str):
        return ascii(value[:40]) if not value[:40].isprintable() else repr(value[:40])
    return f"{value}" if isinstance(value, float | bool | None) else f"a value of type {type(value).__name__}"


@dataclass(frozen=True, eq=False)
class ValueReading:
    """Metadata of an annotated type: `read` returns the value, or raises what `refused` returns."""

    read: Callable[[object], object]
    document: Mapping[str, Any]
    """Its JSON schema."""
    many: bool = False
    """Whether it is a list, of which a command takes one at a time."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.document)


def text(check: Callable[[str], None] | None = None, *, strip: bool = True) -> ValueReading:
    """Read a text; `check` raises for one that can't be meant."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise refused(f"{written(value)} is no text")
        found = value.strip() if strip else value
        if check is not None:
            check(found)
        return found

    return ValueReading(read, {"type": "string"})


def whole(low: int, high: int | None, what: str, hint: str = "") -> ValueReading:
    """Read a whole number; `what` says of one out of bounds that it is none."""
    bounds = hint or f"from {low} to {high:,}"

    def read(value: object) -> int:
        number = _whole(value, "" if hint else bounds)
        if number < low or (high is not None and number > high):
            raise refused(what.format(number), bounds)
        return number

    return ValueReading(read, {"type": "integer", "minimum": low} | ({} if high is None else {"maximum": high}))


def _whole(value: object, hint: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    digits = value.strip() if isinstance(value, str) else ""
    if isinstance(value, int) and not isinstance(value, bool):
        digits = str(value) if abs(value) < 10**_DIGITS else "9" * (_DIGITS + 1)  # of too many, Python makes no text
    if not _WHOLE.fullmatch(digits):
        raise refused(f"{written(value)} is no whole number", hint)
    if len(digits.lstrip("-")) > _DIGITS:
        raise refused(f"a number of more than {_DIGITS} digits", hint)
    return int(digits)


def decimal(low: float, high: float, what: str, *, above: bool = False) -> ValueReading:
    """Read a finite number; `above` says that the lower bound is out of bounds itself."""

    def read(value: object) -> float:
        number = _float(value)
        if not low <= number <= high or (above and number == low):
            raise refused(what.format(f"{number:g}"), f"{'above' if above else 'from'} {low:g} to {high:,.0f}")
        return number

    return ValueReading(read, {"type": "number", "exclusiveMinimum" if above else "minimum": low, "maximum": high})


def _float(value: object) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
        except ValueError:
            pass
    raise refused(f"{written(value)} is no number")


def choice(of: Callable[[str], object], words: Iterable[str], noun: str, *, optional: bool = False) -> ValueReading:
    """Read one of a few words; where it is optional, an empty text is none."""
    known = tuple(map(str, words))

    def read(value: object) -> object:
        if optional and value in ("", None):
            return None
        if not isinstance(value, str) or value.strip() not in known:
            raise refused(f"no {noun}: {written(value)}", f"one of {', '.join(known)}")
        return of(value.strip())

    return ValueReading(read, {"type": "string", "enum": list(known)})


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise refused(f"{written(value)} is neither true nor false")
    return value


Flag = Annotated[bool, ValueReading(_flag, {"type": "boolean"})]
"""Whether something is so."""


def texts(split: Callable[[str], Iterable[str]] | None = None, none: str = "") -> ValueReading:
    """Read a list of texts; `split` parts a single one, `none` is said of an empty list where that is refused."""

    def read(value: object) -> tuple[str, ...]:
        words = _texts(list(split(value)) if isinstance(value, str) and split is not None else value)
        if not words and none:
            raise refused(none)
        return words

    return ValueReading(read, _LIST, many=True)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise refused(f"{written(value)} is no list of texts")
    if not all(map(encodable, value)):
        raise refused("a text with NUL or half a character")
    return tuple(value)


def _shell_words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise refused(f"{error}: {written(line)}") from None


def _command(value: object) -> tuple[str, ...]:
    words = _texts(_shell_words(value) if isinstance(value, str) else value)
    if words and not words[0].strip():
        raise refused("which program?", "a program and its arguments")
    return words


Command = Annotated[tuple[str, ...], ValueReading(_command, _LIST)]
"""A program and its arguments: a list of words, or one text that is parted as a shell does."""


def printable(name: str) -> None:
    """Refuse control characters in a name."""
    if not name.isprintable():
        raise refused(f"no name: {written(name)}", "without control characters")


Name = Annotated[str, text(printable)]
"""The name of something, in one line."""


def encodable(value: str) -> bool:
    """Say whether every database takes a text as it is."""
    return "\x00" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
