"""A module or file that a docstring, template or page of the docs names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = "|".join(sorted(path.name for path in (ROOT / "harnesslab").iterdir() if (path / "__init__.py").exists()))
DOTTED = re.compile(rf"`((?:harnesslab\.)?(?:{ROOMS})(?:\.\w+)+)`")
FILE = re.compile(r"`((?:harnesslab|workers|templates|static|tests|docs)/[\w./-]+\.(?:py|html|js|css|md|toml|sql))`")


def texts() -> Iterator[tuple[Path, str]]:
    for folder, pattern in (("harnesslab", "*.py"), ("workers", "*.py"), ("templates", "*.html"), ("docs", "*.md")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            yield path, path.read_text()
    yield from ((ROOT / name, (ROOT / name).read_text()) for name in ("README.md", "CONTRIBUTING.md"))


def test_every_dotted_name_leads_to_something() -> None:
    named = [(path.relative_to(ROOT), each) for path, text in texts() for each in DOTTED.findall(text)]
    assert named
    assert [(str(path), each) for path, each in named if not leads_somewhere(each)] == []


def test_every_file_that_is_named_is_there() -> None:
    named = [(path.relative_to(ROOT), each) for path, text in texts() for each in FILE.findall(text)]
    assert [
        (str(path), each) for path, each in named if not re.search("NAME|NOUN", each) and not (ROOT / each).exists()
    ] == []


def leads_somewhere(name: str) -> bool:
    """Say whether a dotted name is a module, or a name that its module defines; nothing is imported."""
    parts = name.removeprefix("harnesslab.").split(".")
    place = ROOT / "harnesslab"
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").exists():
        place /= f"{parts.pop(0)}.py"
    if not parts:
        return True
    module = place if place.is_file() else place / "__init__.py"
    return (
        re.search(rf"^(?:def|class) {parts[0]}\b|^{parts[0]}\b.* = |^{parts[0]}: ", module.read_text(), re.M)
        is not None
    )
