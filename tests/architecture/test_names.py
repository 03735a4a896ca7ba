"""One word a thing: no two public classes share a name, and results are named by what they are."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for part in ("harnesslab", "workers")
    for path in sorted((ROOT / part).rglob("*.py"))
    if "migrations" not in path.parts
]
TREES = {path: ast.parse(path.read_text()) for path in SOURCES}
HOW_NOT_WHAT = frozenset({"found", "asked", "told", "given", "stated", "kept", "shown"})
KEYS_OF_THE_API = {"Cancelled.asked", "Proposed.stated"}
"""Names that others read in JSON, and those of documents that are stored."""
STORED = {"ToolUse.asked"}
OF_ONE_MACHINE = re.compile(r"[\"'(=]/(work/(?:main|shared)|root/\.pyenv|home/(?!user\b|agent\b|you\b)[a-z]+)/")


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path, tree in TREES.items():
        yield from ((path, node) for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")


def test_every_public_class_has_a_name_of_its_own() -> None:
    counts = Counter(node.name for _, node in classes())
    assert [name for name, count in counts.items() if count > 1] == []


def test_public_signatures_and_fields_say_what_a_value_is_not_how_it_came() -> None:
    said = {f"{node.name}.{name}" for _, node in classes() for name in fields(node)}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                names = {node.name, *(each.arg for each in (*node.args.args, *node.args.kwonlyargs))}
                said |= {f"{path.relative_to(ROOT)}: {node.name}({name})" for name in names & HOW_NOT_WHAT}
    assert said - KEYS_OF_THE_API - STORED == set()


def fields(node: ast.ClassDef) -> set[str]:
    names = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return names & HOW_NOT_WHAT


def test_no_code_or_test_names_a_path_of_one_machine() -> None:
    written = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]
    named = {str(path.relative_to(ROOT)): OF_ONE_MACHINE.findall(path.read_text()) for path in written}
    assert {path: places for path, places in named.items() if places} == {}
