"""Harbor's task folders as cases: what a container image by digest and its own tests can judge here.

A task runs in the work folder `/work` of its image, without network and without root. Its `tests/` are put into
`.verifier/`, where the paths `/tests` and `/logs/verifier` that they name are rewritten to lie; it is solved where the
reward they write is 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import HarnessLabError
from harnesslab.core.running.cases import CaseDefinition, Verifier
from harnesslab.formats.reading.values import mapping, number, text

TASK, FILES, TESTS = "task.toml", "environment", "tests"
BUDGETS: Mapping[str, float] = {"steps": 100, "command": 300.0}
"""Budgets of a task that its panel doesn't state, since Harbor limits the time alone."""
_SCRIPT = "test.sh"
_BUILD = re.compile(r"(.*/)?(Dockerfile.*|docker-compose.*\.ya?ml|\.dockerignore)")
_BY_DIGEST = re.compile(r"(\S+@)?sha256:[0-9a-f]{64}")
_LOGS = re.compile(r"(?<![\w./-])/logs/verifier(?![\w-])")
_TESTS = re.compile(r"(?<![\w./-])/tests(?![\w-])")
_FETCHES = re.compile(r"^[^#\n]*?\b(apt-get|apk|curl|wget|uvx|uv|pip3? install)\b", re.MULTILINE)
JUDGED = (
    "rm -rf .verifier/logs && mkdir -p .verifier/logs; bash .verifier/test.sh; "
    "if [ -f .verifier/logs/reward.txt ]; "
    "then grep -Eq '^[[:space:]]*1([.]0*)?[[:space:]]*$' .verifier/logs/reward.txt; "
    "else grep -Eq '\"reward\"[[:space:]]*:[[:space:]]*1([.]0*)?[[:space:]]*[,}]' .verifier/logs/reward.json; fi"
)
"""The one test of a task: its reward, afresh, is 1."""


class CannotRun(HarnessLabError):
    """A task that is read well and needs what is not here."""


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """What lies in a task's folder beside `task.toml`."""

    name: str
    instruction: str
    files: Mapping[str, str]
    tests: Mapping[str, str]


def case_of(task: Mapping[str, JSON], parts: TaskFolder, where: str) -> CaseDefinition:
    """Return a task as a case; raises `CannotRun` where it can't be run here."""
    environment = mapping(task.get("environment"))
    image = text(environment.get("docker_image"))
    if why := _why_not(task, image, parts):
        raise CannotRun(why[0], where=where, hint=why[1])
    tags = mapping(task.get("metadata")).get("tags")
    return CaseDefinition(
        name=parts.name,
        instruction=parts.instruction,
        files={name: content for name, content in parts.files.items() if not _BUILD.fullmatch(name)},
        verifier=Verifier({"reward": JUDGED}, {name: _moved(content) for name, content in parts.tests.items()}),
        image=image,
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
    )


def _why_not(task: Mapping[str, JSON], image: str, parts: TaskFolder) -> tuple[str, str] | None:
    """Say why a task can't be run here, and what would help; None where it can."""
    if task.get("steps"):
        return "a task of several steps, which workers don't run", ""
    if number(mapping(task.get("environment")).get("gpus")):
        return "it needs a GPU, which no sandbox has", ""
    if not image:
        hint = 'build it, push it, and name it under [environment] as docker_image = "…@sha256:…"'
        return "it names no image, only a Dockerfile, and workers build none", hint
    if not _BY_DIGEST.fullmatch(image):
        return f"its image {image[:80]!r} is not named by its digest", "as `docker image inspect` prints it"
    script = parts.tests.get(_SCRIPT)
    if script is None:
        return f"no {TESTS}/{_SCRIPT}, so that nothing would judge it", ""
    if fetches := _FETCHES.search(script):
        hint = "put what it needs into the image"
        return f"{TESTS}/{_SCRIPT} fetches things ({fetches[1]}), and sandboxes have no network", hint
    return None


def limits(task: Mapping[str, JSON]) -> dict[str, float]:
    """Return the budgets that a task states."""
    stated = {"wall": task.get("agent"), "verify": task.get("verifier")}
    found = {name: number(mapping(table).get("timeout_sec")) for name, table in stated.items()}
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def _moved(content: str) -> str:
    """Return a file of the tests with the places where they lie here."""
    return _TESTS.sub("/work/.verifier", _LOGS.sub("/work/.verifier/logs", content))
