"""The contract: what must repeat. A comparison level, the scrub rules, and the comparator that decides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harnesslab.core.contracts import scrub
from harnesslab.core.errors import InvalidValue

COMPARATOR = "harnesslab.comparator/1"
"""Name and version of the code that turns events into comparable content; stored with every result."""


class Level(StrEnum):
    """What is compared, strictest first."""

    LOGPROBS = "logprobs"
    TOKEN_IDS = "token-ids"  # noqa: S105 - not a secret
    TEXT = "text"
    JSON = "json"
    BEHAVIOUR = "behaviour"


LADDER: tuple[Level, ...] = tuple(Level)
TITLES: dict[Level, str] = {
    Level.LOGPROBS: "log-probabilities",
    Level.TOKEN_IDS: "token ids",
    Level.TEXT: "text",
    Level.JSON: "JSON",
    Level.BEHAVIOUR: "behaviour",
}


class Scope(StrEnum):
    """Which events are compared."""

    ALL = "all"
    TOOL_CALLS = "tool-calls"
    """Tool names and arguments alone, results left out."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A level with the scrub rules applied before comparing, by `name@version`, and what is compared."""

    level: Level = Level.TEXT
    rules: tuple[str, ...] = ()
    scope: Scope = Scope.ALL

    @classmethod
    def of(cls, level: str, rules: tuple[str, ...] | None = None, scope: Scope = Scope.ALL) -> Contract:
        """Make a contract of names; None means every rule in its newest version.

        Raises `InvalidValue` for unknown names.
        """
        try:
            chosen = Level(level)
        except ValueError:
            raise InvalidValue(f"no such comparison level: {level}", hint=f"levels: {', '.join(LADDER)}") from None
        keys = tuple(rule.key for rule in scrub.newest()) if rules is None else rules
        return cls(chosen, tuple(rule.key for rule in scrub.rules(keys)), scope)

    @classmethod
    def parse(cls, level: str = "", rules: str = "", only: str = "") -> Contract:
        """Read a contract as URLs and commands write it; raises `InvalidValue`.

        `rules` is `none` or names with commas, the newest of every rule by default; `only` is empty or `tool-calls`,
        which compares parsed values unless another level is named.
        """
        if only not in ("", Scope.TOOL_CALLS.value):
            raise InvalidValue(f"can't compare only {only!r}", where="only", hint=Scope.TOOL_CALLS.value)
        chosen = None if not rules else () if rules == "none" else tuple(rules.split(","))
        default = Level.JSON if only else Level.TEXT
        return cls.of(level or default.value, chosen, Scope(only) if only else Scope.ALL)

    @classmethod
    def of_key(cls, key: str) -> Contract:
        """Read a contract that `key` named, whatever rules are newer now; raises `InvalidValue`."""
        comparator, level, scope, rules = [*key.split("|"), "", "", ""][:4]
        if comparator != COMPARATOR:
            raise InvalidValue(f"compared by {comparator!r}", hint=f"this version compares by {COMPARATOR}")
        return cls.parse(level, rules or "none", "" if scope == Scope.ALL else scope)

    def query(self) -> dict[str, str]:
        """Return it as URLs write it: `parse` reads it back, its rules by name and version."""
        only = "" if self.scope is Scope.ALL else self.scope.value
        return {"level": self.level.value, "rules": ",".join(self.rules) or "none", "only": only}

    @property
    def key(self) -> str:
        """A stable name for this contract under this comparator, used to cache results."""
        return "|".join((COMPARATOR, self.level.value, self.scope.value, ",".join(self.rules)))


RAW = Contract(Level.TEXT, ())
"""Every character counts; only generated ids are renamed."""
