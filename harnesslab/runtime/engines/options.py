"""Options of a registration, read one by one; what is wrong is said with the option's name."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import InvalidValue


class Options:
    """Options of a registration; `done` refuses those whose names were never read."""

    def __init__(self, kind: str, given: Mapping[str, JSON]) -> None:
        self._kind = kind
        self._given = given
        self._known: set[str] = set()

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def maybe(self, name: str) -> bool | None:
        """Return true, false, or None where it is not known."""
        value = self._take(name)
        return None if value is None else self.flag(name, default=False)

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """Return a whole number within bounds."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(name, value, f"a whole number from {least} to {most}")
        return value

    def seconds(self, name: str, default: float) -> float:
        """Return a length of time."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise self._wrong(name, value, "a number of seconds")
        return float(value)

    def text(self, name: str, default: str = "", allowed: tuple[str, ...] = ()) -> str:
        """Return text, one of `allowed` where there are any."""
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, str) or (allowed and value not in allowed):
            raise self._wrong(name, value, f"one of {', '.join(allowed)}" if allowed else "text")
        return value

    def mapping(self, name: str) -> Mapping[str, JSON]:
        """Return an object."""
        value = self._take(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self._wrong(name, value, "an object")
        return value

    def key(self) -> str:
        """Return the API key from the environment variable that `api_key_env` names; the key itself is no option."""
        for name in self._given:
            if re.fullmatch(r"(?i)(api[_-]?)?(key|token)|authorization|secret", name):
                raise InvalidValue(
                    "a key is never kept", where=name, hint="put it into an environment variable named by api_key_env"
                )
        variable = self.text("api_key_env")
        if not variable:
            return ""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
            raise self._wrong("api_key_env", "…", "the name of an environment variable")
        key = os.environ.get(variable, "").strip()
        if not key:
            raise InvalidValue(f"the environment variable {variable} is not set", where="api_key_env")
        if not (key.isascii() and key.isprintable()):
            raise InvalidValue(f"what {variable} holds can't be a key", where="api_key_env")
        return key

    def done(self) -> None:
        """Refuse what was given beside the known options."""
        unknown = sorted(set(self._given) - self._known)
        if unknown:
            raise InvalidValue(
                f"no option of a {self._kind} engine", where=unknown[0], hint=f"known: {', '.join(sorted(self._known))}"
            )

    def _take(self, name: str) -> JSON:
        self._known.add(name)
        return self._given.get(name)

    def _wrong(self, name: str, value: JSON, wanted: str) -> InvalidValue:
        return InvalidValue(f"{str(value)[:60]!r} is not {wanted}", where=name)
