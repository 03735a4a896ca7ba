"""Panels as folders: `panel.toml`, and a folder a case; Harbor's task folders are read as cases too.

panel.toml              name, cases (which, in order), [budgets] for all
sort-lines/
  case.toml             name, tags, image, setup, [budgets], [verifier.tests], [user]; each of them optional
  instruction.md
  environment/          files of the work folder at the start
  verifier/             files put into `.verifier/` when it is judged
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.cases import Budgets, CaseDefinition, SimulatedUser, Verifier
from harnesslab.core.running.panels import PanelDefinition
from harnesslab.formats.harbor import tasks as harbor_tasks
from harnesslab.formats.panels.tree import PanelTree

PANEL, CASE, INSTRUCTION, FILES, VERIFIER = "panel.toml", "case.toml", "instruction.md", "environment", "verifier"
LONGEST_NAME = 200
_BY_DIGEST = re.compile(r"(\S+@)?sha256:[0-9a-f]{64}")
_T = TypeVar("_T", bound=msgspec.Struct)


class PanelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `panel.toml` says."""

    name: str = ""
    cases: tuple[str, ...] | None = None
    budgets: dict[str, Any] = msgspec.field(default_factory=dict)


class Tests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[verifier]`; its files are those of the folder beside."""

    tests: dict[str, str] = msgspec.field(default_factory=dict)


class CaseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `case.toml` says."""

    name: str = ""
    tags: tuple[str, ...] = ()
    image: str = ""
    setup: tuple[str, ...] = ()
    user: SimulatedUser | None = None
    budgets: dict[str, Any] = msgspec.field(default_factory=dict)
    verifier: Tests = Tests()


@dataclass(frozen=True, slots=True)
class PanelFolder:
    """A panel as its folder says it."""

    name: str
    cases: tuple[CaseDefinition, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    """Tasks that can't be run here, by name, with the reason."""
    unlisted: tuple[str, ...] = ()
    """Cases that `cases` doesn't name, and that are left out for it."""

    @property
    def definition(self) -> PanelDefinition:
        """The panel to keep; raises `InvalidValue` where no case is left."""
        return PanelDefinition(self.cases)


def read_panel(folder: Path) -> PanelFolder:
    """Read a panel's folder, or one Harbor task's; raises `FormatRefused` or `LimitExceeded` naming the file."""
    if not folder.is_dir():
        raise FormatRefused("no such folder", where=str(folder))
    tree = PanelTree(folder.resolve())
    named = tree.root / PANEL
    said = _table(tree, named, PanelFile) if tree.has(named) else PanelFile()
    alone = tree.has(tree.root / harbor_tasks.TASK)
    found: dict[str, CaseDefinition] = {}
    places: dict[str, Path] = {}
    refused: dict[str, str] = {}
    for place in [tree.root] if alone else tree.folders(tree.root):
        try:
            case = _case(tree, place, said.budgets)
        except harbor_tasks.CannotRun as error:
            refused[place.name] = error.sentence
            continue
        if case.name in found:
            where = f"{tree.name_in_messages(places[case.name])} and {tree.name_in_messages(place)}"
            raise FormatRefused(f"two cases are named {case.name!r}", where=where, hint="rename one")
        found[case.name], places[case.name] = case, place
    if not found and not refused:
        hint = f"each case is a folder with {INSTRUCTION}"
        raise FormatRefused("no case", where=str(folder), hint=hint)
    cases, unlisted = _in_order(said, found, refused)
    return PanelFolder(said.name.strip() or folder.resolve().name, cases, refused, unlisted)


def _in_order(
    said: PanelFile, found: Mapping[str, CaseDefinition], refused: Mapping[str, str]
) -> tuple[tuple[CaseDefinition, ...], tuple[str, ...]]:
    if said.cases is None:
        return tuple(found.values()), ()
    names = list(dict.fromkeys(name for name in said.cases if name not in refused))
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise FormatRefused(f"there is no case {missing!r}", where=f"{PANEL}: cases", hint="cases are named by folder")
    return tuple(found[name] for name in names), tuple(name for name in found if name not in names)


def _case(tree: PanelTree, place: Path, budgets: Mapping[str, Any]) -> CaseDefinition:
    own = place / CASE
    task = place / harbor_tasks.TASK
    if not tree.has(place / INSTRUCTION):
        hint = "it says what is asked of the agent"
        raise FormatRefused(f"no {INSTRUCTION}", where=tree.name_in_messages(place), hint=hint)
    instruction = tree.text(place / INSTRUCTION).removesuffix("\n")
    if not instruction.strip():
        raise FormatRefused("the instruction is empty", where=tree.name_in_messages(place / INSTRUCTION))
    if tree.has(task) and not tree.has(own):
        parts = harbor_tasks.TaskFolder(
            place.name, instruction, tree.below(place / harbor_tasks.FILES), tree.below(place / harbor_tasks.TESTS)
        )
        document = tree.toml(task)
        case = harbor_tasks.case_of(document, parts, tree.name_in_messages(task))
        own_budgets = _budgets(
            tree.name_in_messages(task), harbor_tasks.limits(document), {**harbor_tasks.BUDGETS, **budgets}
        )
        return msgspec.structs.replace(case, budgets=own_budgets)
    said = _table(tree, own, CaseFile) if tree.has(own) else CaseFile()
    where = tree.name_in_messages(own)
    return CaseDefinition(
        name=_name(said.name or place.name, where),
        instruction=instruction,
        files=tree.below(place / FILES),
        setup=said.setup,
        verifier=Verifier(said.verifier.tests, tree.below(place / VERIFIER)),
        budgets=_budgets(where, said.budgets, budgets),
        user=said.user,
        image=_image(said.image, where),
        tags=said.tags,
    )


def _budgets(where: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> Budgets:
    try:
        made = msgspec.convert({**shared, **own}, type=Budgets)
    except msgspec.ValidationError as error:
        raise FormatRefused(f"budgets: {_plain(error)}", where=where) from None
    for name in Budgets.__struct_fields__:
        value = getattr(made, name)
        if not math.isfinite(value) or not 0 < value < 2**31:
            raise FormatRefused(f"budgets: {name} = {value}", where=where, hint="a number above 0")
    return made


def _name(name: str, where: str) -> str:
    if not name.isprintable() or not name.strip() or len(name) > LONGEST_NAME:
        raise FormatRefused(f"no name of a case: {name[:60]!r}", where=where, hint=f"1 to {LONGEST_NAME} characters")
    return name


def _image(image: str, where: str) -> str:
    if image and not _BY_DIGEST.fullmatch(image):
        hint = "such as python@sha256:…, as `docker image inspect` prints it"
        raise FormatRefused(f"the image {image[:80]!r} is not named by its digest", where=where, hint=hint)
    return image


def _table(tree: PanelTree, place: Path, kind: type[_T]) -> _T:
    document: Mapping[str, JSON] = tree.toml(place)
    try:
        return msgspec.convert(document, type=kind)
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_fields__)
        raise FormatRefused(_plain(error), where=tree.name_in_messages(place), hint=f"it may say {known}") from None


def _plain(error: msgspec.ValidationError) -> str:
    """Return what msgspec says in the words of TOML."""
    return str(error).replace("Object contains unknown", "unknown").replace("`object`", "`table`").replace("$.", "")
