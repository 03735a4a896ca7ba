"""A panel as files, in the shape that `panels` reads: reading them again gives the same digest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.cases import CaseDefinition, content
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.formats.panels.reading import CASE, FILES, INSTRUCTION, PANEL, VERIFIER

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@ -]{0,99}")


def panel_files(name: str, definition: PanelDefinition) -> dict[str, bytes]:
    """Return a panel's files by path; raises `InvalidValue` for text that no TOML file holds."""
    folders = _folders(definition.cases)
    names = [case.name for case in definition.cases]
    found = {PANEL: _toml([("name", name), ("cases", names)]).encode()}
    for folder, case in zip(folders, definition.cases, strict=True):
        if table := _table(case, folder):
            found[f"{folder}/{CASE}"] = table.encode()
        found[f"{folder}/{INSTRUCTION}"] = content(f"{case.instruction}\n")
        for place, files in ((FILES, case.files), (VERIFIER, case.verifier.files)):
            found |= {f"{folder}/{place}/{path}": content(text) for path, text in files.items()}
    return found


def _folders(cases: Sequence[CaseDefinition]) -> list[str]:
    """Return a folder for each case: its name where that is one, else its number."""
    used: set[str] = set()
    folders = []
    for place, case in enumerate(cases):
        plain = _PLAIN.fullmatch(case.name) and case.name.casefold() not in used
        folder = case.name.rstrip(". ") if plain else ""
        folder = folder if folder == case.name else f"case-{place + 1:04d}"
        while folder.casefold() in used:
            folder += "-"
        used.add(folder.casefold())
        folders.append(folder)
    return folders


def _table(case: CaseDefinition, folder: str) -> str:
    given = msgspec.to_builtins(case)
    head = [("name", case.name)] if folder != case.name else []
    head += [(key, given[key]) for key in ("tags", "image", "setup") if given.get(key)]
    text = _toml(head)
    for title, values in (
        ("budgets", given.get("budgets")),
        ("verifier.tests", dict(case.verifier.tests)),
        ("user", given.get("user") if case.user is not None else None),
    ):
        if values or (title == "user" and case.user is not None):
            text += f"{chr(10) if text else ''}[{title}]\n{_toml(list((values or {}).items()))}"
    return text


def _toml(values: Sequence[tuple[str, object]]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in values)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _value(value: object) -> str:
    match value:
        case str():
            return _text(value)
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(_value(each) for each in value)}]"
    raise InvalidValue(f"no value of a TOML file: {type(value).__name__}", where="panel")


def _text(text: str) -> str:
    """Return a basic string: JSON's escapes are TOML's, but for the one control character that JSON lets through."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("half a character, which no TOML file holds", where=f"{text[:60]!r}") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def unpacked(files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the files, checked once more that none leaves the folder they are written to; raises `InvalidValue`."""
    for path, data in files.items():
        if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
            raise InvalidValue(f"the path {path[:80]!r} would leave the folder", where="panel")
        yield path, data
