"""Scrub rules: named, versioned patterns of volatile text, each removal counted and shown.

A rule removes only what its pattern captures: the word that gives a number its meaning and the unit after it
stay, and so does every number outside the pattern. The text of refusals is never scrubbed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harnesslab.core.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: everything the pattern's group `x` matches becomes `<label>`."""

    name: str
    version: int
    label: str
    help: str
    pattern: re.Pattern[str]
    hint: str
    """Characters of which any match contains one: text without them is passed quickly."""

    @property
    def key(self) -> str:
        """Name and version, such as `durations@1`."""
        return f"{self.name}@{self.version}"


def _rule(name: str, label: str, text: str, pattern: str, hint: str, flags: int = 0) -> Rule:
    return Rule(name, 1, label, text, re.compile(pattern, flags), hint)


_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_DATE = rf"(?:{_MONTH}\s+\d{{1,2}}|\d{{1,2}} {_MONTH})"
_ZONE = r"(?:UTC|GMT|CES?T|EES?T|WES?T|[ECMPA][SD]T|BST|IST|JST|KST|MSK|AES?T|AEDT)"
_NO_ADDRESS = "".join(rf"(?<!\b[0-9a-fA-F]{{{digits}}}:)" for digits in (1, 2, 3, 4)) + "(?<!::)"
"""Not after a group of a MAC or IPv6 address."""
_RANDOM = r"(?=[A-Za-z0-9_]*(?:[A-Z]|\d_?[A-Za-z]))"
"""A suffix that looks generated: with a capital, or a letter after a digit."""
RULES: tuple[Rule, ...] = (  # a changed rule is a further entry of the next version: what names the old one stays true
    _rule("addresses", "address", "Hexadecimal memory addresses.", r"\b(?P<x>0x[0-9a-fA-F]{6,16})\b", "x"),
    _rule(
        "ls-dates",
        "date",
        "Modification dates in long directory listings.",
        rf"^(?:total \d+\n)?[-dlbcps][-rwxsStT]{{9}}[.+@]?\s+\d+\s+\S+\s+\S+\s+[\d,.]+[KMGT]?\s+"
        rf"(?P<x>{_MONTH}\s+\d{{1,2}}\s+(?:\d\d:\d\d|\d{{4}})"
        r"|\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d\.\d+ [+-]\d{4})?)",
        "-rwxsStT",
        re.MULTILINE,
    ),
    _rule(
        "clock-times",
        "time",
        "Dates with a time, and times of day.",
        r"(?P<x>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
        rf"|\b{_DAY},? {_DATE}(?: \d{{4}})? \d\d:\d\d:\d\d(?: {_ZONE}\b)?(?: \d{{4}}\b)?"
        rf"|\b{_DATE}(?: \d{{4}})? \d\d:\d\d:\d\d(?: {_ZONE}\b)?"
        rf"|{_NO_ADDRESS}\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b(?!:\w))",
        ":",
    ),
    _rule(
        "durations",
        "duration",
        "How long something took, where a word says so; the unit stays.",
        r"\b(?i:in|took|taken|elapsed|after|real|user|sys|duration|total time|wall time)[ \t:=]+"
        r"(?P<x>(?:\d+m)?\d+(?:\.\d+)?)(?=\s?(?:ms|s|us|µs|ns|[Ss]ecs?|[Ss]econds?|[Mm]illiseconds?|[Mm]inutes?)\b)",
        "0123456789",
    ),
    _rule(
        "pids", "pid", "Process ids, where a word says so.", r"(?i)\b(?:pid|ppid|process id)[ \t:=#]*(?P<x>\d+)\b", "iI"
    ),
    _rule(
        "uuids",
        "uuid",
        "UUIDs.",
        r"\b(?P<x>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})\b",
        "-",
    ),
    _rule(
        "temp-names",
        "temp",
        "Generated names of temporary files and folders.",
        r"(?:/tmp/|/var/tmp/|\bT/)(?P<x>tmp(?!_)[a-z0-9_]{8}\b|tmp\.[A-Za-z0-9]{6,}|pytest-of-\w+/pytest-\d+"
        rf"|[\w.-]*\.{_RANDOM}[A-Za-z0-9]{{6,}}|[\w-]+-{_RANDOM}[A-Za-z0-9_]{{8,}})",
        "/",
    ),
)
BY_KEY: dict[str, Rule] = {rule.key: rule for rule in RULES}
"""Every version of every rule, side by side: links, findings and kept paths name theirs for good."""


def newest() -> tuple[Rule, ...]:
    """Return the newest version of each rule, in the order they are applied."""
    by_name: dict[str, Rule] = {}
    for rule in BY_KEY.values():
        known = by_name.setdefault(rule.name, rule)
        by_name[rule.name] = max(known, rule, key=lambda each: each.version)
    return tuple(by_name.values())


@dataclass(slots=True)
class Removed:
    """What was removed, by rule: how often, and the first few pieces."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, rule: str, piece: str) -> None:
        """Count one removal."""
        self.counts[rule] += 1
        kept = self.examples.setdefault(rule, [])
        if len(kept) < 5 and piece not in kept:
            kept.append(piece)

    def add(self, other: Removed) -> None:
        """Count what was removed elsewhere too."""
        self.counts.update(other.counts)
        for rule, pieces in other.examples.items():
            kept = self.examples.setdefault(rule, [])
            kept += [piece for piece in pieces if piece not in kept][: 5 - len(kept)]


def rules(keys: Iterable[str]) -> tuple[Rule, ...]:
    """Return rules by `name@version`, in the order they are applied.

    Raises `InvalidValue` for unknown ones, and for two versions of one rule.
    """
    wanted = set(keys)
    unknown = wanted - BY_KEY.keys()
    if unknown:
        raise InvalidValue(
            f"no such scrub rule: {', '.join(sorted(unknown))}", hint=f"known rules: {', '.join(BY_KEY)}"
        )
    by_name = {BY_KEY[key].name: BY_KEY[key] for key in wanted}
    if len(by_name) < len(wanted):
        raise InvalidValue("two versions of one scrub rule", hint=f"the newest: {', '.join(r.key for r in newest())}")
    return tuple(by_name[rule.name] for rule in newest() if rule.name in by_name)


def offered(keys: Iterable[str]) -> tuple[Rule, ...]:
    """Return each rule once: in the version that is named among `keys`, else in its newest."""
    named = {rule.name: rule for rule in rules(keys)}
    return tuple(named.get(rule.name, rule) for rule in newest())


def scrub(text: str, applied: Iterable[Rule], removed: Removed | None = None) -> str:
    """Return text with every match of the rules replaced by its label, noting each removal."""
    for rule in applied:
        if any(character in text for character in rule.hint):
            text = _apply(rule, text, removed)
    return text


def _apply(rule: Rule, text: str, removed: Removed | None) -> str:
    def replace(match: re.Match[str]) -> str:
        piece = match.group("x")
        if removed is not None:
            removed.note(rule.key, piece)
        start = match.start("x") - match.start()
        whole = match.group()
        return f"{whole[:start]}<{rule.label}>{whole[start + len(piece) :]}"

    return rule.pattern.sub(replace, text)


REMEMBERED = 4_000_000
"""Characters of text that a scrubber remembers."""


class Scrubber:
    """Applies rules, remembering what became of each text: a trace says most things twice, and levels share rules."""

    def __init__(self, applied: Iterable[Rule]) -> None:
        self._rules = tuple(applied)
        self._known: dict[str, tuple[str, Removed]] = {}
        self._size = 0

    def scrub(self, text: str, removed: Removed) -> str:
        """Return text with every match replaced, noting each removal."""
        if not self._rules:
            return text
        known = self._known.get(text)
        if known is None:
            self._size += len(text)
            if self._size > REMEMBERED:
                self._known, self._size = {}, len(text)
            found = Removed()
            known = self._known[text] = (scrub(text, self._rules, found), found)
        if known[1].counts:
            removed.add(known[1])
        return known[0]


def explaining(a: str, b: str) -> list[str]:
    """Return the fewest rules found under which two unequal texts become equal; empty where none do."""
    if a == b:
        return []
    every = newest()
    for rule in every:
        if scrub(a, (rule,)) == scrub(b, (rule,)):
            return [rule.key]
    if scrub(a, every) != scrub(b, every):
        return []
    needed = list(every)
    for rule in every:
        fewer = [item for item in needed if item is not rule]
        if scrub(a, fewer) == scrub(b, fewer):
            needed = fewer
    return [rule.key for rule in needed]
