"""Inspect logs: one rollout per sample and epoch, requests as sent, verdicts as scored."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from backports.zstd import zipfile as zstd_zipfile

from harnesslab.core.errors import FormatRefused, LimitExceeded
from harnesslab.core.running.rollout import Outcome, Replayability
from harnesslab.core.trace import seals
from harnesslab.core.trace.events import (
    Fidelity,
    HarnessAction,
    MemoryAccess,
    ModelCall,
    SubagentCall,
    ToolCall,
    Usage,
    Verification,
)
from harnesslab.core.trace.trace import messages_at
from harnesslab.formats.inspect import importer as inspect
from harnesslab.formats.reading import archives
from harnesslab.formats.reading.inputs import Report
from harnesslab.formats.registry import experiments, recognise
from tests.formats.making import as_bytes, events_of, file_unit, read, sent, zipped

NOW = "2026-01-01T00:00:0{}+00:00"


def header(status: str = "success", **more: Any) -> dict[str, Any]:
    spec = {
        "eval_id": "e1",
        "run_id": "r1",
        "created": NOW.format(0),
        "task": "popularity",
        "task_version": 2,
        "dataset": {"sample_ids": ["b", "a"]},
        "model": "openai/gpt-x",
        "model_generate_config": {"temperature": 0.5, "seed": 3},
        "config": {"epochs": 2, "time_limit": 60},
        "revision": {"type": "git", "origin": "o", "commit": "c0ffee"},
        **more,
    }
    return {"version": 2, "status": status, "eval": spec, "plan": {"steps": [{"solver": "react"}]}}


def model(at: int = 1, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "hi", "tool_calls": more.pop("calls", [])}
    usage = {"input_tokens": 86, "output_tokens": 412, "total_tokens": 18315, "input_tokens_cache_read": 17817}
    return {
        "event": "model",
        "timestamp": NOW.format(at),
        "model": "openai/gpt-x",
        "input": [{"role": "user", "content": "go"}],
        "tools": [],
        "tool_choice": "auto",
        "config": {"temperature": 0.5},
        "output": {"model": "gpt-x-1", "choices": [{"message": message, "stop_reason": "stop"}], "usage": usage},
        **more,
    }


def event(kind: str, at: int = 1, **more: Any) -> dict[str, Any]:
    return {"event": kind, "timestamp": NOW.format(at), **more}


def sample(*events: Any, **more: Any) -> dict[str, Any]:
    return {"id": "a", "epoch": 1, "input": "go", "target": "x", "events": list(events), "attachments": {}, **more}


def imported(*events: Any, **more: Any) -> Any:
    (rollout,), _ = read(file_unit("log.json", {**header(), "samples": [sample(*events, **more)]}), inspect)
    return rollout


def archive(*samples: dict[str, Any], start: Any = None, **more: Any) -> bytes:
    members = {"_journal/start.json": start or header("started")}
    members |= {f"samples/{item['id']}_epoch_{item['epoch']}.json": item for item in samples}
    return zipped({**members, "header.json": header(), **more})


def test_samples_come_in_the_data_sets_order_then_by_epoch() -> None:
    members = [sample(model(), id="a", epoch=2), sample(model(), id="b", epoch=1), sample(model(), id="a", epoch=1)]
    for unit in (
        file_unit("log.eval", archive(*members)),
        file_unit("log.json", {**header(), "samples": members}),
    ):
        rollouts, _ = read(unit, inspect)
        assert [(rollout.case, rollout.trial, rollout.source.position) for rollout in rollouts] == [
            ("b", 0, 0),
            ("a", 0, 1),
            ("a", 1, 2),
        ]
        assert all(rollout.trial_stated for rollout in rollouts)


def test_a_json_log_and_an_archive_of_the_same_sample_make_the_same_trace() -> None:
    one = sample(model(), scores={"match": {"value": "C"}})
    (from_json,), _ = read(file_unit("log.json", {**header(), "samples": [one]}), inspect)
    (from_zip,), _ = read(file_unit("log.eval", archive(one)), inspect)
    assert seals.seals(from_json.trace) == seals.seals(from_zip.trace)


def test_zstandard_archives_are_read() -> None:
    out = io.BytesIO()
    with zstd_zipfile.ZipFile(out, "w", zstd_zipfile.ZIP_ZSTANDARD) as log:
        log.writestr("header.json", as_bytes(header()))
        log.writestr("samples/a_epoch_1.json", as_bytes(sample(model())))
    assert len(read(file_unit("log.eval", out.getvalue()), inspect)[0]) == 1


def test_a_call_has_the_request_as_sent() -> None:
    request = {
        "messages": [{"role": "user", "content": "attachment://h1"}],
        "system": "be good",
        "tools": [{"name": "bash"}],
        "max_tokens": 9,
        "extra_headers": {"x-id": "random"},
    }
    call = {"request": request, "response": {"id": "resp", "system_fingerprint": "fp"}, "time": 1.5}
    rollout = imported(model(call=call), attachments={"h1": "long text"})
    (made,) = events_of(rollout, ModelCall)
    assert messages_at(rollout.trace, 1) == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "long text"},
    ]
    assert rollout.trace.payloads[made.tools] == [{"name": "bash"}]
    assert made.settings == {"max_tokens": 9}
    assert made.extra["headers"] == {"x-id": "random"}
    assert (made.fidelity, made.latency, made.response_id, made.fingerprint) == (Fidelity.RECORDED, 1.5, "resp", "fp")
    assert made.raw_response == {"id": "resp", "system_fingerprint": "fp"}


def test_input_excludes_the_cache_in_inspect_and_includes_it_here() -> None:
    assert events_of(imported(model()), ModelCall)[0].usage == Usage(input=17_903, output=412, cache_read=17_817)


def test_what_else_a_call_states_is_kept() -> None:
    (made,) = events_of(imported(model(cache="read", retries=2, error="overloaded", role="grader")), ModelCall)
    assert (made.served_from_cache, made.error) == (True, "overloaded")
    assert (made.extra["retries"], made.extra["role"]) == (2, "grader")
    assert made.settings == {"temperature": 0.5, "tool_choice": "auto"}


@pytest.mark.parametrize("place", ["events_data", "message_pool"])
def test_pooled_messages_are_put_back(place: str) -> None:
    pool = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}, {"role": "user", "content": "3"}]
    pools = {"events_data": {"messages": pool}} if place == "events_data" else {"message_pool": pool}
    rollout = imported(model(input=[], input_refs=[[0, 1], [2, 3]]), **pools)
    assert [message["content"] for message in sent(rollout, 1)] == ["one", "3"]


def test_pooled_requests_are_put_back_and_a_range_outside_the_pool_is_named() -> None:
    call = {"request": {"model": "m"}, "call_refs": [[0, 1]], "call_key": "messages", "response": {}}
    pools = {"events_data": {"messages": [], "calls": [{"role": "user", "content": "raw"}]}}
    assert messages_at(imported(model(call=call), **pools).trace, 1) == [{"role": "user", "content": "raw"}]
    beyond = imported(model(input=[], input_refs=[[0, 4]]), events_data={"messages": [{"role": "user"}]})
    assert "messages 1 to 4 are not in the log" in str(messages_at(beyond.trace, 1)[-1])


def test_tools_have_arguments_result_error_and_place() -> None:
    calls = [{"id": f"c{i}", "function": "bash", "arguments": {"cmd": str(i)}} for i in range(2)]
    failed = {"type": "timeout", "message": "too slow"}
    rollout = imported(
        model(calls=calls),
        event("tool", 3, id="c1", function="bash", arguments={"cmd": "1"}, result="", error=failed, working_time=0.5),
        event("tool", 4, id="c0", function="bash", arguments={"cmd": "0"}, result="ok"),
    )
    slow, fine = events_of(rollout, ToolCall)
    assert (slow.error, slow.timed_out, slow.emitted, slow.at, slow.latency) == ("timeout: too slow", True, 1, 2.0, 0.5)
    assert (fine.result, fine.error, fine.emitted) == ("ok", None, 0)
    assert [call.name for call in events_of(rollout, ModelCall)[0].tool_calls] == ["bash", "bash"]


def test_a_call_that_could_not_be_parsed_keeps_its_text() -> None:
    calls = [{"id": "c", "function": "bash", "arguments": '{"a":', "parse_error": "cut"}]
    (asked,) = events_of(imported(model(calls=calls)), ModelCall)[0].tool_calls
    assert (asked.arguments, asked.raw) == (None, '{"a":')


@pytest.mark.parametrize(
    ("value", "passed", "reward", "outcome"),
    [
        ("C", True, 1.0, Outcome.SOLVED),
        ("I", False, 0.0, Outcome.FAILED_VERIFICATION),
        ("P", False, 0.5, Outcome.FAILED_VERIFICATION),
        (1, True, 1.0, Outcome.SOLVED),
        (True, True, 1.0, Outcome.SOLVED),
        (0.25, False, 0.25, Outcome.FAILED_VERIFICATION),
        (-3.5, None, -3.5, Outcome.UNKNOWN),
        (math.nan, None, None, Outcome.UNKNOWN),
        ("A long answer", None, None, Outcome.UNKNOWN),
        ({"a": 1, "b": 0}, None, None, Outcome.UNKNOWN),
    ],
)
def test_scores_become_verdicts(value: Any, passed: bool | None, reward: float | None, outcome: Outcome) -> None:
    rollout = imported(model(), scores={"match": {"value": value, "answer": "x"}})
    (said,) = events_of(rollout, Verification)
    assert (said.passed, said.reward, said.extra["answer"]) == (passed, reward, "x")
    assert (rollout.outcome, rollout.reward) == (outcome, reward)


def test_a_score_event_is_not_counted_twice_and_an_intermediate_one_is_no_verdict() -> None:
    rollout = imported(
        model(),
        event("score", 2, score={"value": 0}, intermediate=True),
        event("score", 3, score={"value": "C"}, target="x"),
        scores={"match": {"value": "C"}},
    )
    assert [said.reward for said in events_of(rollout, Verification)] == [0.0, 1.0]
    assert rollout.outcome is Outcome.SOLVED


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({"error": {"message": "boom"}}, Outcome.CRASH),
        ({"error": {"message": "CancelledError()"}}, Outcome.INTERRUPTED),
        ({"limit": {"type": "message", "limit": 5}}, Outcome.STEP_CAP),
        ({"limit": {"type": "time", "limit": 5}}, Outcome.TIMEOUT),
        ({"limit": {"type": "message"}, "scores": {"m": {"value": "C"}}}, Outcome.SOLVED),
        ({"error": {"message": "boom"}, "scores": {"m": {"value": "I"}}}, Outcome.CRASH),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_errors_and_limits_are_no_failures(more: Any, outcome: Outcome) -> None:
    assert imported(model(), **more).outcome is outcome


def span(name: str, kind: str, number: str, parent: str | None = None) -> dict[str, Any]:
    return event("span_begin", 1, id=number, name=name, type=kind, parent_id=parent, span_id=number)


def test_the_outer_agent_is_the_main_one_and_agents_inside_have_a_path() -> None:
    rollout = imported(
        span("react", "agent", "1"),
        model(span_id="1"),
        span("ask", "tool", "2", "1"),
        span("web", "agent", "3", "2"),
        model(span_id="3"),
        span("web", "agent", "4", "2"),
        model(span_id="4"),
        model(span_id="1"),
    )
    assert [call.agent for call in events_of(rollout, ModelCall)] == ["", "web", "web/2", ""]
    assert [(made.name, made.child) for made in events_of(rollout, SubagentCall)] == [("web", "web"), ("web", "web/2")]


def test_a_graders_calls_are_not_the_agents() -> None:
    newer = imported(model(), span("graded", "scorer", "9"), model(span_id="9"), event("score", score=1, span_id="9"))
    older = imported(model(), event("step", action="begin", type="scorer", name="graded"), model())
    assert [call.agent for call in events_of(newer, ModelCall)] == ["", "scorer/graded"]
    assert [call.agent for call in events_of(older, ModelCall)] == ["", "scorer/graded"]
    assert events_of(newer, Verification)[0].scores == {"graded": 1}


def test_a_subtasks_nested_events_follow_it_under_its_path() -> None:
    nested = event("subtask", name="search", input={"q": 1}, result="r", events=[model()])
    rollout = imported(model(), nested, nested)
    assert [call.agent for call in events_of(rollout, ModelCall)] == ["", "search", "search/2"]
    first = events_of(rollout, SubagentCall)[0]
    assert (first.child, first.input, first.output) == ("search", {"q": 1}, "r")


def test_the_store_is_memory_and_other_events_are_the_harnesss() -> None:
    rollout = imported(
        event("store", changes=[{"op": "add", "path": "/k", "value": "v"}]),
        event("state", changes=[{"op": "add", "path": "/messages/0", "value": {}}, {"op": "add", "path": "/tools/0"}]),
        event("info", data="note"),
        event("sandbox", action="exec", cmd="ls", result=0),
        model(),
    )
    (memory,) = events_of(rollout, MemoryAccess)
    assert (memory.operation, memory.key, memory.value) == ("add", "/k", "v")
    assert [made.name for made in events_of(rollout, HarnessAction)] == ["state", "info", "sandbox"]


def test_a_log_without_events_gives_its_conversation() -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": "bash", "arguments": {"cmd": 1}}]},
        {
            "role": "tool",
            "tool_call_id": "c",
            "function": "bash",
            "content": "",
            "error": {"type": "timeout", "message": "slow"},
        },
    ]
    rollout = imported(messages=messages, scores={"m": {"value": "I"}})
    assert events_of(rollout, ModelCall)[0].fidelity is Fidelity.REBUILT
    (made,) = events_of(rollout, ToolCall)
    assert (made.name, made.arguments, made.error, made.timed_out) == ("bash", {"cmd": 1}, "timeout: slow", True)
    assert rollout.missing == "model: the log holds no model events, only the conversation"


def test_conditions_and_grade() -> None:
    rollout = imported(model(scores={}))
    assert (rollout.panel, rollout.experiment, rollout.harness, rollout.revision) == (
        "popularity",
        "e1",
        "react",
        "c0ffee",
    )
    assert (rollout.manifest.value("seeds.seed"), rollout.budgets) == (3, {"wall": 60.0})
    assert rollout.replayability is Replayability.RECORDED
    without = {**header(), "samples": [sample(model())]}
    without["eval"] = {**without["eval"], "revision": None}
    (other,), _ = read(file_unit("log.json", without), inspect)
    assert (other.replayability, other.missing) == (
        Replayability.VIEW_ONLY,
        "harness: the log names no commit of the task's code",
    )


@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_a_log_without_samples_is_refused_with_its_status(status: str) -> None:
    with pytest.raises(FormatRefused, match=f"no samples, its status is {status}"):
        read(file_unit("log.json", {**header(status), "samples": []}), inspect)
    with pytest.raises(FormatRefused, match="its status is success"):
        read(file_unit("log.eval", archive()), inspect)


def test_a_log_that_never_finished_is_read_from_its_journal() -> None:
    data = zipped({"_journal/start.json": header("started"), "samples/a_epoch_1.json": sample(model())})
    (rollout,), _ = read(file_unit("log.eval", data), inspect)
    assert rollout.panel == "popularity"


def test_whole_samples_of_a_cut_archive_are_imported_and_the_rest_is_listed() -> None:
    data = archive(sample(model(), id="b"), sample(model(), id="a"))
    cut = data[: data.index(b"samples/a_epoch_1") + 25]
    (rollout,), report = read(file_unit("log.eval", cut), inspect)
    assert rollout.case == "b"
    noted = {note.where for note in report.skipped}
    assert {"log.eval", "sample a epoch 1", "sample b epoch 2", "sample a epoch 2"} <= noted


def test_a_damaged_sample_loses_only_itself() -> None:
    data = archive(sample(model(), id="b"), start=header(), **{"samples/a_epoch_1.json": "{broken"})
    (rollout,), report = read(file_unit("log.eval", data), inspect)
    assert rollout.case == "b"
    assert report.skipped[0].where == "sample a epoch 1"


def test_a_sample_kept_in_parts_is_put_together() -> None:
    inside = "samples/a_epoch_1"
    parts = {
        f"{inside}/sample.json": sample(attachments={"h0": "zero"}),
        f"{inside}/events/0.json": [model(input=[], input_refs=[[0, 2]])],
        f"{inside}/events/1.json": [event("info", data="attachment://h1")],
        f"{inside}/messages/0.json": [{"role": "user", "content": "attachment://h0"}],
        f"{inside}/messages/1.json": [{"role": "user", "content": "two"}],
        f"{inside}/attachments/0.json": {"h1": "one"},
    }
    (rollout,), _ = read(file_unit("log.eval", archive(**parts)), inspect)
    assert [message["content"] for message in sent(rollout, 1)] == ["zero", "two"]
    assert events_of(rollout, HarnessAction)[0].detail == {"data": "one"}


def test_a_zip_bomb_is_refused_with_the_bound() -> None:
    bomb = archive(**{"samples/a_epoch_1.json": b" " * (archives.RATIO_FROM + 1)})
    with pytest.raises(LimitExceeded, match="expands more than"):
        read(file_unit("log.eval", bomb), inspect)


def test_references_that_multiply_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.formats.inspect.events._MAX_CHANGES", 100)
    pool = [{"role": "user", "content": str(index)} for index in range(30)]
    turns = [model(input=[], input_refs=[[index % 2, 30]]) for index in range(10)]
    with pytest.raises(FormatRefused, match="change more than 100 messages"):
        imported(*turns, events_data={"messages": pool})


def test_what_is_nested_without_end_is_refused_or_left_out() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    hostile = sample(model(input=[{"role": "user", "content": deep}]), id="a")
    (rollout,), report = read(
        file_unit("log.json", {**header(), "samples": [hostile, sample(model(), id="b")]}), inspect
    )
    assert rollout.case == "b"
    assert "nested deeper" in report.skipped[0].why
    with pytest.raises(FormatRefused):
        read(file_unit("log.json", b'{"status": 1, "eval": ' + b"[" * 100_000), inspect)


def test_nan_nul_and_lone_surrogates_pass() -> None:
    data = as_bytes({**header(), "samples": [sample(model(), event("info", data=[math.inf, "\x00", "\udcb2"]))]})
    (rollout,), _ = read(file_unit("log.json", data), inspect)
    seals.verify(rollout.trace, seals.seals(rollout.trace))
    assert events_of(rollout, HarnessAction)[0].detail == {"data": [math.inf, "\x00", "\udcb2"]}


def test_a_bare_list_of_old_events_is_one_rollout() -> None:
    events = [
        {**event("step", action="begin", type="solver", name="s"), "working_start": 0.0},
        model(output={}, input=[]),
    ]
    (rollout,), _ = read(file_unit("old.json", {"events": events, "expected": {}}), inspect)
    assert rollout.case == "old"
    assert rollout.missing == "model: 1 of 1 calls lack their request or response"


def test_waiting_for_a_turn_is_no_part_of_the_run() -> None:
    early, begins = "2025-12-31T00:00:00+00:00", event("span_begin", id="s", name="init")
    rollout = imported(
        {**begins, "timestamp": early},
        {**event("sample_init"), "timestamp": early},
        event("span_end", 1, id="s"),
        model(2),
        event("info", 5, data="x"),
    )
    times = [item.at for item in rollout.trace.events if item.at is not None]
    assert times == [1.0, 4.0]
    assert rollout.started_at.isoformat() == NOW.format(1)


def evaluations(*documents: dict[str, Any]) -> list[Any]:
    units = (file_unit("log.json", {**document, "samples": [{"id": "a", "epoch": 1}]}) for document in documents)
    return [record for unit in units for record in experiments(recognise(unit), Report())]


def test_an_evaluation_is_an_experiment_and_its_epochs_are_trials() -> None:
    samples = [{"id": "a", "epoch": epoch} for epoch in (1, 2)]
    first, second = read(file_unit("log.json", {**header(), "samples": samples}), inspect)[0]
    (record,) = evaluations(header())
    assert (record.external_id, record.kind, record.revision) == ("e1", "eval", "c0ffee")
    assert first.experiment == second.experiment == record.external_id
    assert (first.trial, second.trial) == (0, 1)


def test_two_older_logs_of_one_run_are_two_experiments() -> None:
    names = [row.external_id for row in evaluations(header(eval_id=None), header(eval_id=None, task="browser"))]
    assert names == ["r1 popularity", "r1 browser"]


def test_a_log_without_samples_states_no_experiment() -> None:
    assert list(experiments(recognise(file_unit("log.json", {**header("error"), "samples": []})), Report())) == []
