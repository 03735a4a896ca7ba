"""How two texts differ where they differ in little: white space, invisible characters, dates, hosts, or their order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from harnesslab.core.canonical import JSON

MAX_TEXT = 400_000
"""Longer texts are not looked at for small differences."""


class Kind(StrEnum):
    """What alone differs."""

    WHITE_SPACE = "white space"
    INVISIBLE = "invisible"
    DATE = "date"
    HOST = "host"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Manner:
    """All in which two texts differ, and the words for it; `kinds` holds more than one where several are needed."""

    kinds: frozenset[Kind]
    words: str

    @property
    def blank(self) -> bool:
        """Whether white space alone differs, which nobody says."""
        return self.kinds == {Kind.WHITE_SPACE}


@dataclass(frozen=True, slots=True)
class _Rewriting:
    kind: Kind
    words: str
    apply: Callable[[str], str]


_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*day)?"
_TIME = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AaPp][Mm])?(?:Z|\s?(?:UTC|GMT)|[+-]\d\d:?\d\d)?"
_DATE = re.compile(
    rf"(?:\b{_WEEKDAY},?\s+)?(?:\b\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\b\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}"
    rf"|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+(?:{_TIME}\s+)?\d{{4}})?|\b\d{{1,2}}\.?\s+{_MONTH}(?:,?\s+\d{{4}})?)"
    rf"(?:[T ,]+(?:at )?{_TIME})?|\b{_TIME}|\b1[4-9]\d{{8}}(?:\d{{3}}|\.\d+)?\b|\b{_WEEKDAY}\b"
)
_HOST_SAID = (
    r"(?i)(?<=\bhostname)(?:\s*[:=]|\s+is)?\s*\"?[\w.-]+|(?<=\bhost)(?:\s+name)?(?:\s*[:=]|\s+is\b)\s*\"?[\w.-]+"
    r"|(?<=\bon host )[\w.-]+|(?<=\bLinux )[\w.-]+(?= \d)"
    r"|(?<=\bmachine)\s*[:=]\s*[\w.-]+|(?<=\bnode)\s*[:=]\s*[\w.-]+"
)
"""A host's name where the words around it say so."""
_HOST_SHAPED = (
    r"|(?<=@)[\w-]+(?:\.[\w-]+)*(?=[:\s$#>~])|\b[\w-]+\.(?:local|lan|internal|localdomain)\b"
    r"|\bip-\d+-\d+-\d+-\d+\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b"
)
_HOST = re.compile(_HOST_SAID + _HOST_SHAPED)
_NAMED_HOST = re.compile(_HOST_SAID)
_PAIRS = (
    "\u0430a\u0441c\u0435e\u043eo\u0440p\u0445x\u0443y\u0458j\u0456i\u0455s\u0501d\u04bbh\u043ak\u04cfl"
    "\u043cm\u043fn\u0442t\u0475v\u0461w\u042cb\u0410A\u0412B\u0421C\u0415E\u041dH\u0406I\u0408J\u041aK"
    "\u041cM\u039dN\u041eO\u0420P\u0405S\u0422T\u0425X\u0423Y\u0396Z\u0391A\u0392B\u0395E\u0397H\u0399I"
    "\u039aK\u039cM\u039fO\u03a1P\u03a4T\u03a7X\u03a5Y\u03bdv\u03bfo\u03b7n\u03c5u"
)
LOOK_ALIKES = {ord(odd): latin for odd, latin in zip(_PAIRS[::2], _PAIRS[1::2], strict=True)}
"""Cyrillic and Greek letters by the Latin ones that they are taken for."""
_ZERO = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_SPACE = re.compile(r"[ \t\r\n\f\v]+")

_REWRITINGS = (
    _Rewriting(Kind.WHITE_SPACE, "line ends", lambda text: text.replace("\r\n", "\n").replace("\r", "\n")),
    _Rewriting(Kind.WHITE_SPACE, "white space", lambda text: _SPACE.sub("", text)),
    _Rewriting(Kind.INVISIBLE, "no-break or other wide spaces", lambda text: _BLANKS.sub(" ", text)),
    _Rewriting(Kind.INVISIBLE, "zero-width characters", lambda text: _ZERO.sub("", text)),
    _Rewriting(
        Kind.INVISIBLE, "how letters are composed (NFC and NFD)", lambda text: unicodedata.normalize("NFC", text)
    ),
    _Rewriting(Kind.INVISIBLE, "look-alike letters of another script", lambda text: text.translate(LOOK_ALIKES)),
    _Rewriting(Kind.DATE, "a date or time", lambda text: _DATE.sub("<date>", text)),
    _Rewriting(Kind.HOST, "a host name", lambda text: _HOST.sub("<host>", text)),
)


def manner(a: str, b: str) -> Manner | None:
    """Say in what alone two unequal texts differ; None where it is more than that, or where they are equal."""
    if a == b or max(len(a), len(b)) > MAX_TEXT:
        return None
    for rewriting in _REWRITINGS:
        if rewriting.apply(a) == rewriting.apply(b):
            return _named((rewriting,), a, b)
    if _rewritten(_REWRITINGS, a) != _rewritten(_REWRITINGS, b):
        return None
    for count in (2, 3):
        for chosen in combinations(_REWRITINGS, count):
            if _rewritten(chosen, a) == _rewritten(chosen, b):
                return _named(chosen, a, b)
    return _named(_REWRITINGS, a, b)


def _rewritten(rewritings: Sequence[_Rewriting], text: str) -> str:
    for rewriting in reversed(rewritings):  # white space last: dates and hosts are found by what stands around them
        text = rewriting.apply(text)
    return text


def _named(rewritings: Sequence[_Rewriting], a: str, b: str) -> Manner:
    words = [rewriting.words for rewriting in rewritings]
    if words == ["white space"]:
        words = [f"white space{_at_end(a, b)}"]
    if words == ["line ends"]:
        words = [f"line ends (CRLF in {'A' if a.count(chr(13)) > b.count(chr(13)) else 'B'})"]
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return Manner(frozenset(rewriting.kind for rewriting in rewritings), listed)


def _at_end(a: str, b: str) -> str:
    """Say what stands at the end of one text alone, where nothing else differs."""
    if a.rstrip(" \t\r\n") != b.rstrip(" \t\r\n"):
        return ""
    side, longer, shorter = ("A", a, b) if len(a) > len(b) else ("B", b, a)
    rest = longer[len(shorter) :] if longer.startswith(shorter) else longer[len(longer.rstrip(" \t\r\n")) :]
    if not rest:
        return " at the end"
    newlines = rest.count("\n")
    what = ("a final newline" if newlines == 1 else f"{newlines} final newlines") if newlines else "a trailing blank"
    return f" ({what} in {side})"


def lasting(value: JSON) -> JSON:
    """Return what a case is told in every trial of it: without the host's name, and white space at ends of lines."""
    if isinstance(value, str):
        lines = _NAMED_HOST.sub("<host>", value).splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n")
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [lasting(item) for item in value]
    return value


def reordered(a: str, b: str) -> bool:
    """Say whether two texts have the same lines, or else the same words, in another order."""
    if a == b:
        return False
    for pieces_a, pieces_b in ((a.split("\n"), b.split("\n")), (_words(a), _words(b))):
        if len(pieces_a) > 1 and pieces_a != pieces_b and sorted(pieces_a) == sorted(pieces_b):
            return True
    return False


def _words(text: str) -> list[str]:
    return [piece for piece in re.split(r"[\s,\[\]{}\"']+", text) if piece]


def revealed(text: str) -> str:
    """Return text with what no eye tells apart written out: spaces that aren't the usual one, joiners, look-alikes."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    match character:
        case "\n":
            return "⟨newline⟩"
        case "\r":
            return "⟨carriage return⟩"
        case "\t":
            return "⟨tab⟩"
    if character.isascii():
        return character
    odd = ord(character) in LOOK_ALIKES or unicodedata.category(character) in ("Zs", "Zl", "Zp", "Cf", "Mn")
    return f"⟨U+{ord(character):04X}⟩" if odd else character


BEFORE = 8
"""Characters quoted before the first that differs."""


def quoted(a: str, b: str, width: int) -> tuple[str, str]:
    """Return both texts around the first character that differs, with all that is invisible there written out."""
    shorter = min(len(a), len(b))
    at = next((index for index in range(shorter) if a[index] != b[index]), shorter)
    start = max(0, at - BEFORE)
    word = a.rfind(" ", 0, start + 1) + 1
    if start - word <= BEFORE and "\n" not in a[word:at]:
        start = word
    return _around(a, start, at, width), _around(b, start, at, width)


def _around(text: str, start: int, at: int, width: int) -> str:
    shown, index = "", start
    while index < len(text) and (index < at + 2 or not text[index].isspace()):
        blank = text[index] == " " and index >= at - 1
        piece = "⟨space⟩" if blank else revealed(text[index])
        if len(shown) + len(piece) > width:
            break
        shown, index = shown + piece, index + 1
    return shown or "⟨nothing⟩"
