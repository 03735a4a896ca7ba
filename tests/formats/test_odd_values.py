"""Whatever stands anywhere in a file, it is imported or refused with a sentence, and what is imported is sealed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.core.trace import seals
from harnesslab.formats import registry
from harnesslab.formats.reading.inputs import Report, Unit
from tests.formats import (
    test_coding_sessions as coding,
)
from tests.formats import (
    test_mini_swe_agent as mini,
)
from tests.formats import (
    test_openhands as openhands,
)
from tests.formats import (
    test_session_branches as tree,
)
from tests.formats import (
    test_swe_agent as swe,
)
from tests.formats.building import file_unit, json_unit, lines_unit
from tests.formats.claude_code import test_claude_code as claude
from tests.formats.claude_code import test_trees as trees
from tests.formats.codex import test_codex as codex
from tests.formats.codex import test_forks as forks
from tests.formats.openai import test_chat_log as chat
from tests.formats.openai import test_responses_log as responses

ODD: list[Any] = [
    None,
    True,
    -1,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "x\x00",
    "\ud800",
    [],
    {},
    [[]],
    [{}],
    {"": None},
]
FILES: dict[str, Any] = {
    "mini": mini.run(mini.said("ls"), mini.seen("a")),
    "swe": swe.run(swe.step("ls", "a"), replay_config=swe.CONFIG),
    "chat": [chat.row([chat.ASKED], chat.calling("{}")), chat.chunk({"content": "a"})],
    "transcript": [{"messages": [chat.ASKED, chat.calling("{}"), chat.answered("a")]}] * 2,
    "responses": [
        responses.episode(responses.call(), responses.output()),
        responses.exchange([], responses.message("")),
    ],
    "claude": [claude.asked(), claude.reply(claude.use()), claude.result(toolUseResult={"stdout": "a"})],
    "codex": [
        codex.meta(),
        codex.TURN,
        codex.asked(),
        codex.call(),
        codex.output(),
        codex.event("token_count", info={}),
    ],
    "coding": [coding.PI, coding.message("user", coding.text("a")), coding.reply(coding.CALL)],
    "claude tree": [
        trees.asked("a", None, "x"),
        trees.reply("b", "a", trees.use("ls")),
        trees.results("c", "b", "s"),
        trees.row("k", None, type="system", subtype="compact_boundary", compactMetadata={"preservedSegment": {}}),
        trees.asked("s", "k", "summary", isCompactSummary=True, forkedFrom={"sessionId": "q"}),
        trees.asked("e", "a", "y", sessionId="two"),
    ],
    "codex fork": [*forks.fork(*forks.OWN), forks.row("event_msg", 60, type="thread_rolled_back", num_turns=1)],
    "coding tree": [
        tree.header(parentSession="/s/one.jsonl"),
        tree.asked("a", None, "x"),
        tree.reply("b", "a", "1"),
        tree.entry("k", "b", type="compaction", summary="in short", firstKeptEntryId="b"),
        tree.asked("c", "a", "y"),
    ],
    "openhands": [openhands.asked(), openhands.acted(), openhands.observed()],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return changed


def unit_of(name: str, value: Any) -> Unit:
    return lines_unit(value) if isinstance(value, list) and name != "openhands" else json_unit(value)


@pytest.mark.parametrize("name", FILES)
def test_an_odd_value_anywhere_is_no_crash(name: str) -> None:
    for index, path in enumerate(places(FILES[name])):
        for odd in ODD[index % 3 :: 3]:  # a third of them at each place keeps this quick
            unit = unit_of(name, replaced(FILES[name], path, odd))
            try:
                found = list(registry.recognise(unit).importer.read(unit, Report()))
            except FormatRefused:
                continue
            for recording in found:
                seals.verify(recording.trace, seals.seals(recording.trace))
                assert recording.manifest.digest


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere_is_imported_in_part_or_refused(name: str) -> None:
    data = unit_of(name, FILES[name]).only.read()
    for end in range(1, len(data), max(len(data) // 150, 1)):
        unit = file_unit(data[:end], "cut")
        try:
            recognised = registry.recognise(unit)
            for recording in recognised.importer.read(unit, Report()):
                seals.verify(recording.trace, seals.seals(recording.trace))
        except FormatRefused:
            continue
