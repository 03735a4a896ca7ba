from __future__ import annotations

import json
from typing import Any

import pytest

from harnesslab.core.errors import FormatRefused
from harnesslab.formats import registry
from tests.formats.building import file_unit, json_unit, lines_unit

SPAN = {"name": "chat", "trace_id": "t", "span_id": "s", "attributes": {}}


def refusal(unit: Any) -> FormatRefused:
    with pytest.raises(FormatRefused) as caught:
        registry.recognise(unit)
    return caught.value


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"resourceSpans": []}, "an OpenTelemetry span export (OTLP)"),
        ({"batches": []}, "a Grafana Tempo span export"),
        ({"data": [{"traceID": "t", "spans": []}]}, "a Jaeger span export"),
        ({"trace": {}, "observations": []}, "a Langfuse trace export"),
        ([SPAN], "a list of OpenTelemetry spans"),
        ([SPAN | {"attributes": {"monocle_apptrace.version": "1"}}], "a Monocle span list"),
        ({"session_id": "s", "spans": [SPAN]}, "a dump of OpenTelemetry spans"),
        ({"promotion_history": [], "head": "x"}, "a history of commits or candidates"),
        ({"source": "x", "commits": []}, "a history of commits or candidates"),
        ({"task_duration_seconds": {}}, "a table of task durations"),
        ([{"history": [{"action": "run"}], "git_patch": ""}], "OpenHands evaluation output"),
        ({"events": [], "expected": {}}, "a test case with its expected result"),
    ],
)
def test_a_known_shape_is_refused_by_its_name(document: Any, what: str) -> None:
    found = refusal(json_unit(document))
    assert found.what.startswith(what)
    assert found.hint
    assert found.where == "run.json"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"sessionId": "s", "type": "user", "message": {"role": "user", "parts": []}}, "a Qwen Code session"),
        ({"type": "tool.start", "toolName": "exec"}, "OpenClaw telemetry"),
        ({"instance_id": "x", "model_patch": "", "model_name_or_path": "m"}, "SWE-bench predictions"),
    ],
)
def test_known_lines_are_refused_by_their_name(row: Any, what: str) -> None:
    assert refusal(lines_unit([row, row])).what.startswith(what)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("# Results\n\nAll is well.\n", "a Markdown text"),
        ('version = "1.0"\n\n[metadata]\n', "a TOML file"),
        ("kind: swe\ntask_names:\n- a\n- b\n", "a YAML file"),
    ],
)
def test_texts_are_refused_by_their_kind(text: str, what: str) -> None:
    assert refusal(file_unit(text.encode(), "file")).what.startswith(what)


def test_an_unknown_shape_is_described() -> None:
    assert refusal(json_unit({"a": 1, "b": 2})).what == "no known trace format: a JSON object with the keys a, b"


def test_a_document_that_is_cut_off_is_said_to_be() -> None:
    whole = json.dumps({"info": {}, "messages": [{"role": "user", "content": "x"}]}, indent=1)
    found = refusal(file_unit(whole[:40].encode()))
    assert found.what.startswith("not valid JSON: the file ends inside a value (line ")
    assert found.hint == "it looks cut off; copy or export it again"


def test_a_fault_inside_a_document_is_named_by_its_place() -> None:
    found = refusal(file_unit(b'{\n "a": 1,\n "b": oops\n}'))
    assert found.what == "not valid JSON: Expecting value at line 3, column 7"


@pytest.mark.parametrize("between", ["", "\n", ",\n"])
def test_documents_one_after_another_are_said_to_be_several(between: str) -> None:
    document = json.dumps([{"a": 1}], indent=1)
    found = refusal(file_unit((document + between + document).encode()))
    assert found.what.startswith("several JSON documents one after another")


def test_a_pretty_printed_document_with_short_lines_is_no_json_lines() -> None:
    document = '{\n "a": [\n  {}\n ],\n "b": [\n  {}\n ],\n "c": "x"\n}'
    assert "a JSON object with the keys a, b, c" in refusal(file_unit(document.encode())).what


def test_binary_data_is_said_to_be() -> None:
    assert "binary data" in refusal(file_unit(b"\x00\x01\x02")).what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("['clear', 'Enter']\n['ls -la', 'Enter']\n", "a list of commands"),
        ('["clear", "Enter"]\n["ls -la", "Enter"]\n', "a list of commands"),
        ("[ -f a.txt ] && rm a.txt\nls\n", "a script"),
        ("{ ls; pwd; } > out.txt\n", "a script"),
        ("#!/bin/bash\n# install\nset -e\n", "a script"),
        ("# settings\nname: x\nsteps:\n  - a\n", "a YAML file"),
        ("name: x\ncommand: |\n  do this\n  and that\nsteps:\n  - run: y\n  - run: z\nend: 1\n", "a YAML file"),
        ("# Title\n\nSome words: and more.\n", "a Markdown text"),
        ('[tool.black]\nline = 3\n', "a TOML file"),
        (
            'HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\ndata: {"a": 1}\n\ndata: {"a": 2}\n',
            "server-sent events with other text around them",
        ),
        ('data: {"a": 1}\n\ndata: [DONE]\n', "server-sent events of no known kind"),
        ("12:00:01 started\n12:00:02 ended\n", "no known trace format: text data"),
    ],
)  # fmt: skip
def test_a_text_is_refused_as_what_it_is(text: str, what: str) -> None:
    assert refusal(file_unit(text.encode(), "some.txt")).what.startswith(what)


def test_json_that_is_broken_is_still_said_to_be_broken() -> None:
    assert refusal(file_unit(b'{"a": [1, 2', "x.json")).what.startswith("not valid JSON: the file ends inside")
    assert refusal(file_unit(b'[{"a": 1}, {"a" 2}]', "x.json")).what.startswith("not valid JSON: ")


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"sessionId": "g", "projectHash": "abc", "startTime": "t", "messages": []}, "a Gemini CLI session"),
        ({"requesterUsername": "u", "responderUsername": "a", "requests": []}, "a VS Code Copilot Chat export"),
        ({"info": {}, "messages": [{"info": {}, "parts": []}]}, "an OpenCode session"),
        ({"id": "m", "sessionID": "s", "messageID": "m", "type": "text"}, "an OpenCode session"),
        ([{"id": "r", "run_type": "llm", "inputs": {}, "outputs": {}}], "a LangSmith run export"),
        ({"log": {"version": "1.2", "creator": {}, "entries": []}}, "an HTTP archive"),
        ({"cells": [], "metadata": {}, "nbformat": 4}, "a notebook"),
    ],
)
def test_a_session_of_a_known_agent_is_refused_by_its_name(document: Any, what: str) -> None:
    assert refusal(json_unit(document)).what.startswith(what)


def test_a_recording_of_a_terminal_is_refused_by_its_name() -> None:
    cast = b'{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "hi"]\n[0.2, "o", "ho"]\n'
    assert refusal(file_unit(cast, "recording.cast")).what.startswith("a recording of a terminal")
