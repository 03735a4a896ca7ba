"""What import contracts can't say: the core knows the standard library and four small packages, nothing else."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = {"harnesslab", "msgspec", "rfc8785", "rapidfuzz", "backports"}


def imported(path: Path) -> Iterator[str]:
    """Yield the first name of every absolute import of a module, wherever it stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "harnesslab" / "core").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_core_imports_only_what_it_may(path: Path) -> None:
    assert set(imported(path)) - CORE - set(sys.stdlib_module_names) == set()


@pytest.mark.parametrize("banned", ["utils", "helpers", "common", "misc", "manager", "service", "handlers"])
def test_no_module_has_a_name_that_says_nothing(banned: str) -> None:
    found = [path for part in ("harnesslab", "workers", "tests") for path in (ROOT / part).rglob(f"{banned}.py")]
    assert found == []


@pytest.mark.parametrize("name", ["base", "embedded", "test"])
def test_every_requirement_is_hashed_and_names_no_index(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert "://" not in text
    pinned = [line for line in text.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert pinned
    assert all(line.endswith("\\") for line in pinned)
