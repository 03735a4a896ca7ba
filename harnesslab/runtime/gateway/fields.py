"""Reading requests field by field, so that nothing an agent states is dropped without a word."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.runtime.gateway.requests import RequestRefused


class Fields:
    """The fields of an object; each is taken, and `done` refuses what is left."""

    def __init__(self, values: JSON, where: str) -> None:
        if not isinstance(values, Mapping):
            raise RequestRefused(f"{where} is no JSON object")
        self._values = {name: value for name, value in values.items() if value is not None}
        self._where = where

    def take(self, name: str) -> JSON:
        """Return a field and count it as read; null counts as not stated."""
        return self._values.pop(name, None)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a field that is text; raises `RequestRefused`."""
        value = self.take(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise RequestRefused(f"{self._where} needs {name} as text")
        return value

    def items(self, name: str) -> Sequence[JSON]:
        """Return a field that is a list, an empty one where it is not stated; raises `RequestRefused`."""
        value = self.take(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise RequestRefused(f"{name} of {self._where} is no list")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a field that is true or false; raises `RequestRefused`."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise RequestRefused(f"{name} of {self._where} is neither true nor false")
        return value

    def among(self, names: Collection[str]) -> dict[str, JSON]:
        """Take the fields of these names, without those that the request doesn't state."""
        return {name: self._values.pop(name) for name in names if name in self._values}

    def without(self, name: str, allowed: Sequence[JSON]) -> None:
        """Refuse a field that states anything but one of the allowed values."""
        value = self.take(name)
        if value is not None and value not in allowed:
            self.refuse(f"{name} {excerpt(value)}")

    def refuse(self, what: str) -> NoReturn:
        """Refuse the request for something that can't be passed on."""
        raise RequestRefused(f"the gateway can't pass on {what} of {self._where}")

    def done(self) -> None:
        """Refuse a request with fields that nobody took, since they can't be passed on; raises `RequestRefused`."""
        if self._values:
            self.refuse(", ".join(map(excerpt, sorted(self._values))))


def excerpt(value: JSON) -> str:
    """Return a value as a sentence can hold it."""
    text = value if isinstance(value, str) else canonical_bytes(value).decode(errors="replace")
    return text if len(text) <= 80 else f"{text[:80]}…"


def text_parts(content: JSON, where: str, kinds: Collection[str]) -> str:
    """Return the text of content that may be text or parts of text; raises `RequestRefused` for other parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise RequestRefused(f"the content of {where} is neither text nor a list")
    texts = []
    for part in content:
        if not isinstance(part, Mapping) or str(part.get("type")) not in kinds or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, Mapping) else part
            raise RequestRefused(f"the gateway can't pass on a part {excerpt(kind)} of {where}")
        texts.append(part["text"])
    return "\n".join(texts)
