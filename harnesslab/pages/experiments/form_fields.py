"""What experiments and trainings have in common on their forms."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from django.http import QueryDict

from harnesslab.core.errors import InvalidValue
from harnesslab.core.natural import natural

ASKED = {"trials": "1", "seed": "12345", "temperature": "0", "engine": ""}
CASE = "case"


def words_of(given: QueryDict) -> tuple[dict[str, str], list[str]]:
    """Return a form's values, and the cases that are ticked."""
    return {name: str(value) for name, value in given.items() if name != CASE}, given.getlist(CASE)


def common(form: dict[str, str], cases: Sequence[str]) -> dict[str, Any]:
    """Return the fields that both forms have; raises `InvalidValue` naming the one that is wrong."""
    return {
        "project": form.get("project", ""),
        "panel": form.get("panel", ""),
        "engine": form.get("engine", ""),
        "trials": whole(form, "trials"),
        "seed": form.get("seed", "").strip(),
        "temperature": number(form, "temperature"),
        "cases": tuple(cases) or None,
    }


def whole(form: dict[str, str], name: str) -> int:
    """Return a field's whole number."""
    value = form.get(name, "").strip()
    found = natural(value)
    if found is None:
        raise InvalidValue(f"{value[:40]!r} is no whole number", where=name)
    return found


def number(form: dict[str, str], name: str) -> float | None:
    """Return a field's number, or None where it is empty."""
    value = form.get(name, "").strip()
    try:
        return float(value) if value else None
    except ValueError:
        raise InvalidValue(f"{value[:40]!r} is no number", where=name) from None


def command_of(text: str) -> tuple[str, ...]:
    """Return a command's words as a shell splits them; raises `InvalidValue`."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidValue(f"{error}: {text[:80]!r}", where="command") from None
