"""Who proposes a change: a queue of patch files, or any program in a worktree with the memo and the evidence."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harnesslab.core.canonical import JSON, nested_within
from harnesslab.core.errors import HarnessLabError, InvalidValue
from harnesslab.core.training.training import Proposer, ProposerKind
from harnesslab.runtime.driver.checkout import outside_repositories
from harnesslab.runtime.training.repository import Candidate, NoChange, OutsideEditableFiles, Repository

POLL_S = 0.5
SHOWN = 2000
"""Bytes of a program's output that are read, from its end."""
LARGEST_PATCH = 32_000_000
LARGEST_SAID, DEEPEST = 1_000_000, 20
"""Bytes of a memo, and of what a program says of itself; levels of the latter."""
_OURS = re.compile("HARNESSLAB_.*|DJANGO_.*|DATABASE_URL|REDIS_URL")
"""What the lab is configured with, passwords among it: none of a proposer's business."""
_HEADER = re.compile(r"^(mechanism|fires|model|effort):[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)
_DIFF = re.compile(r"^(diff --git |--- )", re.MULTILINE)


class ProposerFailed(HarnessLabError):
    """A proposer came to no proposal: it failed, or took too long."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a proposer is asked with."""

    base: str
    memo: str
    evidence: Mapping[str, bytes]
    """Files by name: what the baseline did, case by case, and what became of earlier candidates."""
    used: Collection[str] = ()
    """Patches that this training has taken already."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed change."""

    candidate: Candidate
    mechanism: str
    """The change in one line."""
    changed: tuple[str, ...] | None
    """Mechanisms that it changes, by the names under which they fire; None where it doesn't say."""
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """What the proposer states of itself."""
    memo: str | None = None
    """The memo as the proposer left it; None where it has not touched it."""


@dataclass(frozen=True, slots=True)
class Declined:
    """No change came of it, and why."""

    why: str
    mechanism: str = ""
    facts: Mapping[str, JSON] = field(default_factory=dict)
    over: bool = False
    """Whether there is nothing more to propose."""


class Asks(Protocol):
    """A way to be asked for a change."""

    def propose(self, repository: Repository, occasion: Occasion, stopped: Callable[[], bool]) -> Proposal | Declined:
        """Return one change, or why there is none."""


def proposer(request: Proposer) -> Asks:
    """Return the proposer that a training names; raises `InvalidValue` for one that can't be asked."""
    match request.kind:
        case ProposerKind.PATCHES:
            return PatchQueue(Path(request.folder))
        case ProposerKind.COMMAND:
            return CommandProposer(request)


@dataclass(frozen=True, slots=True)
class PatchQueue:
    """Patch files of a folder in the order of their names; lines before the diff say what they change.

    `mechanism: one line` and `fires: name, name` are read; anything else there is a comment.
    """

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InvalidValue(f"no such folder: {self.folder}", where="patches")

    def names(self) -> list[str]:
        """Return the patches in order."""
        return sorted(path.name for path in self.folder.glob("*.patch") if path.is_file())

    def propose(self, repository: Repository, occasion: Occasion, stopped: Callable[[], bool]) -> Proposal | Declined:
        """Return the next patch's change."""
        name = next((name for name in self.names() if name not in occasion.used), None)
        if name is None:
            return Declined("the patch queue is used up", over=True)
        size = (self.folder / name).stat().st_size
        if size > LARGEST_PATCH:
            return Declined(f"the patch is larger than {LARGEST_PATCH:,} bytes", name, {"patch": name})
        data = (self.folder / name).read_bytes()
        said = headers(data)
        mechanism = said.get("mechanism") or name.removesuffix(".patch")
        facts: dict[str, JSON] = {"patch": name, **{key: said[key] for key in ("model", "effort") if said.get(key)}}
        try:
            candidate = repository.candidate_of_patch(occasion.base, data, mechanism)
        except (NoChange, OutsideEditableFiles) as error:
            return Declined(error.sentence, mechanism, facts)
        fires = said.get("fires")
        changed = None if fires is None else tuple(part.strip() for part in fires.split(",") if part.strip())
        return Proposal(candidate, mechanism, changed, facts)


def headers(patch: bytes) -> dict[str, str]:
    """Return what a patch file says of itself before its diff."""
    text = patch.decode(errors="replace")
    start = _DIFF.search(text)
    return {name.lower(): value.strip() for name, value in _HEADER.findall(text[: start.start() if start else None])}


@dataclass(frozen=True, slots=True)
class CommandProposer:
    """A program of the user's own, such as an agent's command line; it runs as the worker does, with its network.

    It is started in a worktree of the base and changes files there. Its environment names the memo
    (`HARNESSLAB_MEMO`, which it may rewrite), a folder with the evidence (`HARNESSLAB_EVIDENCE`), and where to say
    what it did (`HARNESSLAB_PROPOSAL`: JSON with `mechanism`, `changes`, `model`, `effort`, `cost`, `input_tokens`,
    `output_tokens`).
    """

    proposer: Proposer

    def __post_init__(self) -> None:
        if not self.proposer.command:
            raise InvalidValue("a command proposer needs a command", where="proposer")

    def propose(self, repository: Repository, occasion: Occasion, stopped: Callable[[], bool]) -> Proposal | Declined:
        """Run the program and return what it changed."""
        began = time.monotonic()
        with repository.worktree(occasion.base) as place, tempfile.TemporaryDirectory() as beside:
            desk = _Desk(Path(beside))
            desk.lay(occasion)
            failed = ""
            try:
                _run(self.proposer, place, desk.environ(occasion.base), stopped)
            except ProposerFailed as error:
                failed = error.sentence
            stated = desk.own_account()
            mechanism = " ".join(str(stated.get("mechanism") or "").split())[:400]
            facts: dict[str, JSON] = {"model": self.proposer.name, "effort": self.proposer.effort, **stated}
            facts["seconds"] = round(time.monotonic() - began, 1)
            if failed:
                return Declined(failed, mechanism, facts)
            mechanism = mechanism or "a change without a description"
            try:
                candidate = repository.candidate_of_tree(occasion.base, place, mechanism)
            except (NoChange, OutsideEditableFiles) as error:
                return Declined(error.sentence, mechanism, facts)
            changes = stated.get("changes")
            changed = tuple(str(each) for each in changes) if isinstance(changes, list) else None
            return Proposal(candidate, mechanism, changed, facts, desk.memo(occasion))


@dataclass(frozen=True, slots=True)
class _Desk:
    """The files beside a worktree that a program reads and writes."""

    folder: Path

    def lay(self, occasion: Occasion) -> None:
        (self.folder / "memo.md").write_bytes(occasion.memo.encode("utf-8", "replace"))
        (self.folder / "evidence").mkdir()
        for name, data in occasion.evidence.items():
            (self.folder / "evidence" / name).write_bytes(data)

    def environ(self, base: str) -> dict[str, str]:
        names = {"MEMO": "memo.md", "EVIDENCE": "evidence", "PROPOSAL": "proposal.json"}
        found = {f"HARNESSLAB_{name}": str(self.folder / file) for name, file in names.items()}
        return {**found, "HARNESSLAB_BASE": base}

    def memo(self, occasion: Occasion) -> str | None:
        place = self.folder / "memo.md"
        laid = occasion.memo.encode("utf-8", "replace")
        written = _beginning(place) if place.is_file() else laid
        return None if written == laid else written.decode(errors="replace")

    def own_account(self) -> dict[str, JSON]:
        """Read what the program says of itself; what is no JSON object is said to be none."""
        place = self.folder / "proposal.json"
        if not place.is_file():
            return {}
        try:
            document = json.loads(_beginning(place))
        except (ValueError, RecursionError):
            return {"unreadable": "what it said of itself is no JSON"}
        plain = isinstance(document, dict) and nested_within(document, DEEPEST)
        return document if plain else {"unreadable": "what it said of itself is no plain JSON object"}


def _beginning(place: Path) -> bytes:
    with place.open("rb") as file:
        return file.read(LARGEST_SAID)


def _run(proposer: Proposer, place: Path, environ: Mapping[str, str], stopped: Callable[[], bool]) -> None:
    """Run a program to its end, or end it with all it started."""
    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen(  # noqa: S603 - the user's own program, as a list
                proposer.command,
                cwd=place,
                env={**_theirs(os.environ), **proposer.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # such as a NUL in an argument
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise ProposerFailed(f"{proposer.command[0]} can't be started: {why}") from None
        why = _waited(child, time.monotonic() + proposer.timeout, stopped)
        output.seek(max(0, output.seek(0, os.SEEK_END) - SHOWN))
        shown = output.read().decode(errors="replace").strip()
    if why:
        raise ProposerFailed(why, hint=shown.splitlines()[-1][:200] if shown else "")


def _theirs(environ: Mapping[str, str]) -> dict[str, str]:
    """Return a worker's environment as its user's programs get it."""
    return {name: value for name, value in outside_repositories(environ).items() if not _OURS.fullmatch(name)}


def _waited(child: subprocess.Popen[bytes], deadline: float, stopped: Callable[[], bool]) -> str:
    """Wait for a program; returns why it gave no proposal, or nothing."""
    why = ""
    while child.poll() is None and not why:
        try:
            child.wait(POLL_S)
        except subprocess.TimeoutExpired:
            why = "it was stopped" if stopped() else "it took too long" if time.monotonic() > deadline else ""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what it started ends with it
    code = child.wait()
    return why or (f"it ended with {code}" if code else "")
