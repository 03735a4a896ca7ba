"""A module or file that a docstring, template or page of the docs names is there."""

from __future__ import annotations

import importlib
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
    parts = (name if name.startswith("harnesslab.") else f"harnesslab.{name}").split(".")
    for end in range(len(parts), 1, -1):
        try:
            place: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            place = getattr(place, part, None)
        return place is not None
    return False
