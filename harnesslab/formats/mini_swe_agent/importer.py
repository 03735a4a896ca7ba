"""mini-swe-agent trajectories: `.traj.json` with or without a format version, and bare message lists.

Version 1 keeps the text of the conversation, in which a command stands in a code block and the next message is
the observation; later versions state commands, raw output and return code beside the messages. The diff is a
submission: no verdict is in these files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.core.running.rollout import Recording, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import HarnessAction, RolloutStarted, ToolRequest, UserTurn
from harnesslab.core.trace.messages import MessageView, text_of, view
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.mini_swe_agent.run import HARNESS, manifest_of, outcome_of, replayability_of, totals_of
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.rows import stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.transcript import Transcript, tool_call
from harnesslab.formats.reading.values import elapsed, epoch_time, items, mapping, moment, number, text

NAME = HARNESS
_REJECTED = "FormatError"
_BLOCK = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)
_RETURN_CODE = re.compile(r"\s*<returncode>(-?\d{1,10})</returncode>")


def recognises(shape: Shape) -> bool:
    """Messages with the agent's own info or format name, or a bare list in its observation dialect."""
    document = shape.object
    if isinstance(document.get("messages"), list):
        info = mapping(document.get("info"))
        named = text(document.get("trajectory_format")).startswith("mini-swe-agent")
        return named or bool({"mini_version", "exit_status", "submission"} & info.keys())
    messages = [mapping(item) for item in shape.items]
    if not messages or not all("role" in message for message in messages):
        return False
    return any(_is_observation(item) or "```mswea_bash_command" in text(item.get("content")) for item in messages)


def read(unit: Unit, report: Report) -> Iterator[Recording]:
    """Yield the file's one rollout."""
    document = unit.only.json()
    run = document if isinstance(document, Mapping) else {"messages": document}
    yield _recording(run, unit, report)


def _recording(run: Mapping[str, JSON], unit: Unit, report: Report) -> Recording:
    info = mapping(run.get("info"))
    manifest = manifest_of(run, info)
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    walk = _Walk(builder, mapping(mapping(info.get("config")).get("model")))
    walk.read(items(run.get("messages")), report)
    outcome, error = outcome_of(info, mapping(info.get("config")))
    replayability, missing = replayability_of(manifest)
    agent = mapping(mapping(info.get("config")).get("agent"))
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome, diff=text(info.get("submission")) or None, error=error),
        outcome=outcome,
        case=text(run.get("instance_id")) or stem(unit),
        source=Source(unit.name, unit.digest(), NAME),
        harness=NAME,
        revision=text(info.get("mini_version")),
        model=walk.model,
        replayability=replayability,
        missing=missing,
        started_at=epoch_time(walk.start),
        ended_at=epoch_time(walk.last),
        budgets={"steps": limit} if (limit := number(agent.get("step_limit"))) else {},
        facts={
            **{key: value for key, value in run.items() if key not in ("info", "messages")},
            **{key: value for key, value in info.items() if key != "submission"},
        },
        totals=totals_of(run, info),
    )


class _Walk:
    """Turns the messages into events, one step for each assistant message."""

    def __init__(self, builder: TraceBuilder, model: Mapping[str, JSON]) -> None:
        self.builder = builder
        self.transcript = Transcript(builder)
        self.model = text(model.get("model_name"))
        self.settings = dict(mapping(model.get("model_kwargs")))
        self.start: float | None = None
        self.last: float | None = None

    def read(self, messages: Sequence[JSON], report: Report) -> None:
        """Append the events of all messages."""
        step, pending = -1, list[tuple[int, ToolRequest]]()
        for position, message in enumerate(messages):
            if not isinstance(message, Mapping):
                report.skip(f"message {position}", "not an object")
                continue
            fields: dict[str, Any] = {"step": max(step, 0), "origin": f"message {position}", "at": self._at(message)}
            seen = _view(message)
            if seen.role == "assistant":
                self._unanswered(pending, step)
                step += 1
                pending = list(enumerate(self._call(message, seen, {**fields, "step": step})))
            elif mapping(message.get("extra")).get("interrupt_type") == _REJECTED:
                self._unanswered(pending, step)
                step, pending = step + 1, []
                self._rejected(message, {**fields, "step": step})
            else:
                self._other(message, seen, pending, step, fields)
            self.transcript.say(message)
        self._unanswered(pending, step)

    def _at(self, message: Mapping[str, JSON]) -> float | None:
        extra = mapping(message.get("extra"))
        seconds = moment(extra.get("timestamp")) or moment(mapping(extra.get("response")).get("created"))
        if seconds is None:
            return None
        self.start = seconds if self.start is None else self.start
        self.last = seconds
        return elapsed(seconds, self.start)

    def _call(self, message: Mapping[str, JSON], seen: MessageView, fields: dict[str, Any]) -> Sequence[ToolRequest]:
        extra = mapping(message.get("extra"))
        requests = seen.tool_calls or _requests(message, seen.text)
        if len(requests) != 1 and not seen.tool_calls and "actions" not in extra:
            fields["rejected"] = f"{len(requests)} commands where the harness wants one"
            requests = ()
        self.transcript.call(
            **fields,
            model=self.model or text(mapping(extra.get("response")).get("model")),
            settings=self.settings,
            text=seen.text or None,
            tool_calls=seen.tool_calls,
            extra={key: value for key, value in extra.items() if key not in ("response", "timestamp")},
            **_response(extra.get("response"), seen),
        )
        self.model = self.model or text(mapping(extra.get("response")).get("model"))
        return requests

    def _rejected(self, message: Mapping[str, JSON], fields: dict[str, Any]) -> None:
        """Append the call whose answer the harness did not accept: no message of its own, but kept beside the reply."""
        extra = mapping(message.get("extra"))
        answer, response = extra.get("model_response"), extra.get("response")
        body = mapping(answer) or mapping(
            mapping(next(iter(items(mapping(response).get("choices"))), None)).get("message")
        )
        seen = view({"role": "assistant", **body}) if body else view({"role": "assistant", "content": answer})
        kept = {key: value for key, value in extra.items() if key not in ("model_response", "response", "timestamp")}
        self.transcript.call(
            **fields,
            model=self.model,
            settings=self.settings,
            text=seen.text or None,
            tool_calls=seen.tool_calls,
            rejected=text_of(message.get("content")) or _REJECTED,
            extra=kept if seen.text or seen.tool_calls else {**kept, "answer": "not kept by the source"},
            **_response(response, seen),
        )
        self.builder.add(HarnessAction(name="message", detail=message.get("content"), extra=kept, **fields))

    def _other(
        self,
        message: Mapping[str, JSON],
        seen: MessageView,
        pending: list[tuple[int, ToolRequest]],
        step: int,
        fields: dict[str, Any],
    ) -> None:
        """Append what a message that is not the model's is: an observation, the task, or the harness's own word."""
        extra = mapping(message.get("extra"))
        if seen.role == "exit" or "exit_status" in extra:
            detail: dict[str, JSON] = {"content": message.get("content"), **extra}
            self.builder.add(HarnessAction(name="exit", detail=detail, **fields))
        elif pending and "interrupt_type" not in extra:
            index = next((i for i, (_, request) in enumerate(pending) if request.id and request.id == seen.answers), 0)
            emitted, request = pending.pop(index)
            self.builder.add(tool_call(request, emitted=emitted, **_observation(message, seen), **fields))
        elif seen.role == "user" and step < 0:
            written: dict[str, JSON] = {"provenance": "template"}  # the instance template, filled in
            self.builder.add(UserTurn(content=message.get("content"), extra=written, **fields))
        elif seen.role != "system":
            self.builder.add(HarnessAction(name="message", detail=message.get("content"), extra=dict(extra), **fields))

    def _unanswered(self, pending: list[tuple[int, ToolRequest]], step: int) -> None:
        for emitted, request in pending:
            self.builder.add(tool_call(request, emitted=emitted, step=max(step, 0), has_result=False))


def _view(message: Mapping[str, JSON]) -> MessageView:
    """Read a message; one that holds a whole response is read as the items of its output together."""
    if message.get("object") != "response":
        return view(message)
    views = [view(item) for item in items(message.get("output"))]
    return MessageView(
        "assistant",
        "\n".join(item.text for item in views if item.text),
        "\n".join(item.reasoning for item in views if item.reasoning),
        tuple(call for item in views for call in item.tool_calls),
    )


def _requests(message: Mapping[str, JSON], said: str) -> tuple[ToolRequest, ...]:
    """Return the commands of a text message: those that the harness noted, else the code blocks."""
    noted = mapping(message.get("extra")).get("actions")
    if isinstance(noted, list):
        return tuple(
            ToolRequest(
                "bash", {"command": mapping(action).get("command")}, id=text(mapping(action).get("tool_call_id"))
            )
            for action in noted
        )
    return tuple(ToolRequest("bash", {"command": command.strip()}) for command in _BLOCK.findall(said))


def _observation(message: Mapping[str, JSON], seen: MessageView) -> dict[str, Any]:
    """Return the result as produced and as seen; older files hold only what the model saw."""
    extra = mapping(message.get("extra"))
    shown, code, problem = seen.text, extra.get("returncode"), extra.get("exception_info")
    if code is None and (found := _RETURN_CODE.match(shown)):
        code = int(found.group(1))
    produced = extra.get("raw_output", shown)
    return {
        "result": produced,
        "seen": shown if produced != shown else None,
        "exit_code": code if isinstance(code, int) else None,
        "error": text_of(problem) or None if problem else None,
        "timed_out": "TimeoutExpired" in text(problem) or "timed out and has been killed" in shown[:20_000],
        "extra": {key: item for key, item in extra.items() if key not in ("raw_output", "returncode", "timestamp")},
    }


def _response(response: JSON, seen: MessageView) -> dict[str, Any]:
    """Return the fields of the provider's response; one kept as its printed form is kept as that text."""
    body = mapping(response)
    choice = mapping(next(iter(items(body.get("choices"))), None))
    answer = mapping(choice.get("message"))
    reasoning = text(answer.get("reasoning")) or text(answer.get("reasoning_content"))
    return {
        "raw_response": response,
        "response_id": text(body.get("id")) or None,
        "fingerprint": text(body.get("system_fingerprint")) or None,
        "finish_reason": text(choice.get("finish_reason")) or None,
        "reasoning": reasoning or seen.reasoning or None,
        "refusal": text(answer.get("refusal")) or None,
        "usage": usage.openai(body.get("usage")),
    }


def _is_observation(message: Mapping[str, JSON]) -> bool:
    return message.get("role") == "user" and _RETURN_CODE.match(text(message.get("content"))) is not None
