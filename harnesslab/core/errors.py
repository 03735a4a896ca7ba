"""The typed errors of the domain; each carries one clear sentence: what, where, and what would help."""

from __future__ import annotations


class HarnessLabError(Exception):
    """An expected failure that a person can read: `what` happened, `where`, and a `hint` that would help."""

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """The whole message as one line."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head} ({self.hint})" if self.hint else head


class InvalidValue(HarnessLabError):
    """A value breaks a rule of the domain."""


class NotCanonical(InvalidValue):
    """A value has no canonical JSON form."""


class FormatRefused(HarnessLabError):
    """A file, member or line can't be read as any known format."""


class LimitExceeded(FormatRefused):
    """An input is larger than a declared bound."""


class SealBroken(HarnessLabError):
    """A stored or exported trace doesn't match its seals."""


class NotComparable(HarnessLabError):
    """A trace lacks what a comparison level needs."""


class NotFound(HarnessLabError):
    """A named thing doesn't exist, or may not be seen."""


class Conflict(HarnessLabError):
    """A write lost a race, or would repeat one that already happened."""


class TryLater(HarnessLabError):
    """Something was tried too often."""
