"""OpenAI Responses logs, and the rollout rows of NeMo-Gym that hold a whole episode as one response.

In a plain log each row is one exchange with the model. In a NeMo-Gym row the output holds every turn of the
episode with the tools' outputs between, beside a reward and the numbers of the task and the rollout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.comparing.manner import lasting
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import FormatRefused
from harnesslab.core.running.rollout import Outcome, Recording, Replayability, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import HarnessAction, ModelCall, RolloutStarted, UserTurn
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.openai.episode_verdicts import add_verdict, outcome_of, totals_of
from harnesslab.formats.openai.exchanges import LoggedExchange, rollouts
from harnesslab.formats.openai.response_items import Walk, output_of
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.rows import line_at, rows_of
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.sse import is_stream, stream_data
from harnesslab.formats.reading.values import epoch_time, items, mapping, moment, number, text, whole, without_nulls

NAME = "openai-responses"
_UNKNOWN = "not recorded by the rollout row"
_CLOSED = ("response.completed", "response.incomplete", "response.failed")
"""Events of a stream that carry the whole response."""
_REQUEST = "responses_create_params"
_KEPT = (_REQUEST, "response", "model_patch")


def recognises(shape: Shape) -> bool:
    """Rows with a response made of output items; rows around a Harbor trial belong to that format."""
    if shape.kind not in ("json", "lines", "stream"):
        return False
    if shape.kind == "stream":
        return text(shape.first_object().get("type")).startswith("response.")
    rows = [mapping(row) for row in (shape.object, *shape.head, *shape.items[:10])]
    return any(_is_row(row) for row in rows) and not any(_is_harbor(row) for row in rows)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield rollouts by task and rollout number where rows state them, else in file order."""
    episodes = False
    for line in rows_of(unit, Report(), "data", "rows"):
        if _is_row(line.value):
            episodes = _REQUEST in line.value
            break
    found = False
    for recording in _episodes(unit, report) if episodes else _log(unit, report):
        found = True
        yield recording
    if not found:
        raise FormatRefused("no response could be read", where=unit.name)


def _is_row(row: Mapping[str, JSON]) -> bool:
    response = _answer(row.get("response"))
    if isinstance(response.get("output"), list):
        return True
    body = mapping(response.get("body"))
    return "output" in body or (row.get("object") == "response" and isinstance(row.get("output"), list))


def _is_harbor(row: Mapping[str, JSON]) -> bool:
    places = (mapping(row.get("metadata")), mapping(mapping(row.get("response")).get("metadata")))
    return any({"trial_name", "task_name"} <= place.keys() for place in places)


def _log(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the rollouts of a plain log of requests and responses."""

    def exchanges() -> Iterator[LoggedExchange]:
        for line in rows_of(unit, report, "data", "rows"):
            if text(line.value.get("type")).startswith("response."):
                yield from [_exchange(line.value, f"event {line.number}")] if line.value.get("type") in _CLOSED else []
            elif _is_row(line.value) or "error" in line.value:
                yield _exchange(line.value, f"line {line.number}")
            else:
                report.skip(f"line {line.number}", "no response with output items")

    yield from rollouts(exchanges(), NAME, (unit.name, unit.digest()))


def _answer(response: JSON) -> Mapping[str, JSON]:
    """Return a row's response, whether it is an object or the text of the stream in which it came."""
    if not isinstance(response, str) or not is_stream(response):
        return mapping(response)
    return mapping(next((event["response"] for event in stream_data(response) if event.get("type") in _CLOSED), None))


def _exchange(row: Mapping[str, JSON], origin: str) -> LoggedExchange:
    envelope = row if row.get("object") == "response" else _answer(row.get("response"))
    body = mapping(envelope.get("body")) if "body" in envelope else envelope
    request = mapping(row.get("request")) or mapping(row.get("body"))
    asked = request.get("input")
    messages: list[JSON] = [{"role": "user", "content": asked}] if isinstance(asked, str) else items(asked)
    if request.get("instructions"):
        messages = [{"role": "system", "content": request["instructions"]}, *messages]
    error = body.get("error") or row.get("error")
    incomplete = mapping(body.get("incomplete_details")).get("reason")
    found = output_of([mapping(item) for item in items(body.get("output"))])
    return LoggedExchange(
        messages=messages,
        settings=without_nulls(request, "input", "instructions", "tools", "model", "previous_response_id"),
        output={
            **found.fields,
            "finish_reason": text(incomplete) or text(body.get("status")) or None,
            "usage": usage.openai(body.get("usage")),
            "response_id": text(body.get("id")) or None,
            "raw_response": None if envelope is row else dict(envelope),
            "error": (text(mapping(error).get("message")) or str(error)) if error else None,
        },
        tools=request.get("tools") or None,
        recorded=bool(request),
        model=text(request.get("model")) or text(body.get("model")),
        case=text(row.get("custom_id")),
        at=moment(body.get("created_at")) or moment(row.get("timestamp")),
        status=whole(envelope.get("status_code")),
        origin=origin,
        previous=text(request.get("previous_response_id")),
        facts=without_nulls(row, "request", "response", "body", "output", "object"),
    )


def _episodes(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the rows in the order of their own numbers, one in memory at a time."""
    data = unit.only.read()
    places: list[tuple[bool, float, float, int, int, int, Mapping[str, JSON]]] = []
    for line in rows_of(unit, report, "data", "rows"):
        if not _is_row(line.value):
            report.skip(f"line {line.number}", "no response with output items")
            continue
        task, rollout = whole(line.value.get("_ng_task_index")), whole(line.value.get("_ng_rollout_index"))
        numbered = task is not None and rollout is not None
        kept = {} if line.end else line.value
        places.append((not numbered, task or 0, rollout or 0, line.number, line.start, line.end, kept))
    places.sort(key=lambda place: place[:4])
    source_digest, trials = unit.digest(), dict[str, int]()
    for position, (_, _, _, line_number, start, end, kept) in enumerate(places):
        row = line_at(data, start, end) if end else kept
        source = Source(unit.name, source_digest, NAME, position)
        yield _episode(row, f"line {line_number}", source, trials)


def _episode(row: Mapping[str, JSON], origin: str, source: Source, trials: dict[str, int]) -> Recording:
    request, response = mapping(row.get(_REQUEST)), mapping(row.get("response"))
    case, reward = _case(row, request, origin), number(row.get("reward"))
    trials[case] = trials.get(case, -1) + 1
    trial = whole(row.get("_ng_rollout_index"))
    manifest = _manifest(row, request, response, case)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    _add_episode(builder, request, response)
    outcome, why = outcome_of(row, response, reward)
    add_verdict(builder, row, outcome, reward, why)
    unscored = outcome in (Outcome.UNKNOWN, Outcome.INFRA_ERROR, Outcome.VERIFY_TIMEOUT)
    scored = None if unscored else reward
    patch = row.get("model_patch") or mapping(row.get("metadata")).get("model_patch")
    agent = text(mapping(row.get("agent_ref")).get("name"))
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, diff=text(patch) or None, error=why),
        outcome=outcome,
        case=case,
        source=source,
        panel=text(manifest.value("panel.name")),
        harness=agent,
        model=text(manifest.value("model.name")),
        trial=trials[case] if trial is None else trial,
        trial_stated=trial is not None,
        reward=scored,
        replayability=Replayability.VIEW_ONLY,
        missing="model: the episode is one response; its single requests and their responses are not recorded",
        started_at=epoch_time(moment(response.get("created_at"))),
        facts={
            **without_nulls(row, *_KEPT),
            "response": {key: value for key, value in response.items() if key not in ("output", "tools")},
            "line": origin,
        },
        totals=totals_of(response, reward if outcome in (Outcome.SOLVED, Outcome.FAILED_VERIFICATION) else None),
    )


def _case(row: Mapping[str, JSON], request: Mapping[str, JSON], origin: str) -> str:
    """Return the case a row names, else its task number or line with a digest of its input.

    Equal inputs may hide different cases, and equal numbers of two files are different ones.
    """
    problem = mapping(mapping(row.get("instance_config")).get("problem_info"))
    for place in (row, mapping(request.get("metadata")), problem, mapping(row.get("verifier_metadata"))):
        for key in ("instance_id", "task_id"):
            if isinstance(place.get(key), str | int) and place[key] != "":
                return str(place[key])
    task, content = whole(row.get("_ng_task_index")), digest(lasting(request.get("input")))[:8]
    return f"{origin if task is None else f'task {task}'} ({content})"


def _add_episode(builder: TraceBuilder, request: Mapping[str, JSON], response: Mapping[str, JSON]) -> None:
    """Append the input and the output items of an episode."""
    walk = Walk(builder)
    walk.call_fields = {
        "model": text(response.get("model")) or text(request.get("model")),
        "settings": without_nulls(request, "input", "instructions", "tools", "model", "metadata"),
    }
    walk.tools = request.get("tools") or response.get("tools") or None
    asked, told = request.get("input"), request.get("instructions")
    sent: list[JSON] = [{"role": "user", "content": asked}] if isinstance(asked, str) else items(asked)
    for position, message in enumerate([{"role": "system", "content": told}, *sent] if told else sent):
        if mapping(message).get("role") == "user":
            builder.add(UserTurn(content=mapping(message).get("content"), origin=f"input {position}"))
        walk.transcript.say(message)
    for position, item in enumerate(items(response.get("output"))):
        if isinstance(item, Mapping):
            walk.take(item, origin=f"output {position}")
        else:
            builder.add(HarnessAction(name="item", detail=item, origin=f"output {position}"))
    walk.close()
    calls = [index for index, event in enumerate(builder.events) if isinstance(event, ModelCall)]
    counted = usage.openai(response.get("usage"))
    if len(calls) == 1 and counted is not None and (counted.input or counted.output):
        walk.amend(calls[0], usage=counted, response_id=text(response.get("id")) or None)


def _manifest(
    row: Mapping[str, JSON], request: Mapping[str, JSON], response: Mapping[str, JSON], case: str
) -> Manifest:
    config = mapping(row.get("instance_config"))
    problem = mapping(config.get("problem_info")) or mapping(request.get("metadata"))
    tools = request.get("tools") or response.get("tools")
    model = request.get("model") or response.get("model")
    named = not case.startswith(("task ", "line "))
    effort = mapping(request.get("reasoning")).get("effort")
    return Manifest.of(
        {
            "harness.name": text(mapping(row.get("agent_ref")).get("name")) or None,
            "panel.name": problem.get("dataset_name") or row.get("subset"),
            "panel.case": case if named else None,
            "panel.case_digest": digest(lasting(request["input"])) if request.get("input") else None,
            "model.name": model or None,
            "sampling.temperature": request.get("temperature"),
            "sampling.top_p": request.get("top_p"),
            "sampling.max_tokens": request.get("max_output_tokens"),
            "sampling.reasoning_effort": effort,
            "environment.image": config.get("container") or row.get("image"),
            "tools.schemas": digest(tools) if tools else None,
            "serving.concurrency": config.get("concurrency"),
        },
        unknown=_UNKNOWN,
        reasons={"seeds.seed": "the request states no seed"},
    )
