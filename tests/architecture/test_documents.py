"""What the documents and templates promise of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.core.conditions.fields import FIELDS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for part in ("harnesslab", "workers") for path in sorted((ROOT / part).rglob("*.py"))]
WRITTEN = [path for path in SOURCES if "migrations" not in path.parts]
MOST_LINES, MOST_OF_A_FUNCTION = 300, 40
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
LONGER: dict[str, int] = {}
"""Modules whose meaning doesn't part where the cap falls, with the lines they may have: a ratchet, it only shrinks."""
REGISTRIES = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|/opt/pypi", re.IGNORECASE)
INLINE = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE)


def documents() -> str:
    return "\n".join(path.read_text() for path in PAGES)


def variables() -> Iterator[str]:
    """Yield the names that the configuration reads."""
    for node in ast.walk(ast.parse((ROOT / "harnesslab" / "config.py").read_text())):
        if isinstance(node, ast.Constant) and re.fullmatch("(HARNESSLAB|DATABASE|REDIS)(_[A-Z]+)+", str(node.value)):
            yield str(node.value)


def test_every_variable_is_in_the_table_and_the_table_names_no_other() -> None:
    listed = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs" / "configuration.md").read_text(), re.MULTILINE))
    assert listed == set(variables())


def test_every_command_is_documented() -> None:
    declared = [
        name
        for path in (ROOT / "harnesslab" / "cli").rglob("*.py")
        for name in re.findall(r'@click\.command\("([a-z-]+)"', path.read_text())
    ]
    table = (ROOT / "docs" / "configuration.md").read_text()
    assert len(declared) >= 8
    assert set(re.findall(r"^\| `harnesslab ([a-z-]+)`", table, re.MULTILINE)) == set(declared)


def test_every_condition_has_help() -> None:
    assert [field.name for field in FIELDS if not field.help.strip() or not field.title.strip()] == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_are_short_or_say_why_not(path: Path) -> None:
    text = path.read_text()
    allowed = LONGER.get(str(path.relative_to(ROOT)), MOST_LINES)
    assert len(text.splitlines()) <= allowed
    long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= MOST_OF_A_FUNCTION
    ]
    assert long == []


def test_the_allow_list_holds_only_what_is_longer_than_the_cap() -> None:
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name in LONGER}
    assert {name: length for name, length in lengths.items() if not MOST_LINES < length <= LONGER[name]} == {}


@pytest.mark.parametrize("path", sorted((ROOT / "templates").rglob("*.html")), ids=lambda path: str(path.name))
def test_no_template_has_a_style_or_script_of_its_own(path: Path) -> None:
    assert INLINE.findall(path.read_text()) == []
    assert "|safe" not in path.read_text()
    assert "autoescape off" not in path.read_text()


def test_no_file_names_a_package_index() -> None:
    kept = (".py", ".md", ".txt", ".in", ".toml", ".yml", ".html", ".js", ".css", ".sql", ".sh", "")
    folders = ("harnesslab", "workers", "templates", "static", "docs", "docker", "script", "requirements", "benchmarks")
    found = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file() and path.suffix in kept]
    assert [path for path in found if REGISTRIES.search(path.read_text(errors="replace"))] == []


def test_links_between_documents_lead_somewhere() -> None:
    for path in PAGES:
        for target in re.findall(r"(?<!!)\[[^]]*\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_documents_name_every_format() -> None:
    from harnesslab.formats.registry import supported

    text = documents()
    assert [name for name in supported() if f"`{name}`" not in text] == []


def test_the_documents_name_every_message_of_the_loop_protocol() -> None:
    """The harness's messages are patterns in the loop, the worker's are what its boundaries answer."""
    driver = ROOT / "harnesslab" / "runtime" / "driver"
    sources = [(driver / name).read_text() for name in ("loop.py", "model.py", "tools.py", "others.py")]
    kinds = {kind for text in sources for kind in re.findall(r'"type": "(\w+)"', text)}
    told = (ROOT / "docs" / "harnesses.md").read_text()
    assert len(kinds) >= 14
    assert [kind for kind in sorted(kinds) if f"`{kind}`" not in told] == []


def test_the_documents_name_what_the_gateway_takes() -> None:
    from harnesslab.runtime.gateway import chat, exchange, responses

    told = (ROOT / "docs" / "harnesses.md").read_text()
    names = {*exchange.DIALECTS, exchange.COUNTING, exchange.MODELS}
    taken = (chat.SETTINGS | chat.KEPT_BACK | responses.KEPT_BACK) - {"stream_options"}
    penalties = {name for name in taken if "penalty" in name}
    assert [name for name in sorted(names) if name not in told] == []
    assert [name for name in sorted(taken - penalties) if f"`{name}`" not in told] == []
