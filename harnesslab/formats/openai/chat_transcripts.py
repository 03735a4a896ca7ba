"""Transcripts without requests: `messages` documents and lines, labelled multi-agent histories, displayed text.

Part of the chat-log format: each document or line is one rollout, its calls rebuilt from the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.core.canonical import JSON, digest
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.running.rollout import Outcome, Recording, Source
from harnesslab.core.trace import usage
from harnesslab.core.trace.events import HarnessAction, RolloutStarted, ToolCall, UserTurn, Verification
from harnesslab.core.trace.messages import text_of
from harnesslab.core.trace.stated import Totals
from harnesslab.core.trace.trace import TraceBuilder
from harnesslab.formats.reading.conversation import add_conversation
from harnesslab.formats.reading.inputs import Report, Unit
from harnesslab.formats.reading.rows import rows_of, stem
from harnesslab.formats.reading.sniff import Shape
from harnesslab.formats.reading.values import items, mapping, number, text

_UNKNOWN = "not recorded by a bare transcript"
_MISSING = "model: the requests are not recorded, only the conversation; harness: none is named"
_VERDICTS = ("resolved", "correct", "verdict", "judgement", "judgment", "grade")
_WORDS = {
    **dict.fromkeys(("correct", "pass", "passed"), True),
    **dict.fromkeys(("incorrect", "wrong", "fail", "failed"), False),
}
_CASES = ("instance_id", "task_id", "question_ID", "case", "id")
_LABEL = re.compile(r"^(user|assistant|tool|system): ?", re.MULTILINE)
_SPEAKER = re.compile(r"(.+?) \((.+)\)")
_EXIT_CODE = re.compile(r"exit ?code: (-?\d{1,6})", re.IGNORECASE)
_ROLES = ("user", "human", "assistant", "model", "system", "developer", "tool", "function")


def recognises(shape: Shape) -> bool:
    """Documents, lists or lines of messages with role and content, labelled histories, displayed text."""
    if shape.items and all(_is_message(item) for item in shape.items):
        return True
    rows = [mapping(row) for row in ([shape.object] if shape.object else [*shape.head, *shape.items[:10]])]
    return bool(rows) and 2 * sum(bool(_kind(row)) for row in rows) >= len(rows)


def read(unit: Unit, report: Report, name: str) -> Iterator[Recording]:
    """Yield one recording for each transcript, in file order."""
    trials: dict[str, int] = {}
    position = 0
    source_digest = unit.digest()
    for number_, row in _transcripts(unit, report):
        kind = _kind(row)
        if not kind:
            report.skip(f"line {number_}" if number_ else unit.name, "no messages")
            continue
        case = next((str(row[key]) for key in _CASES if isinstance(row.get(key), str | int)), "")
        case = case or (f"{stem(unit)} line {number_}" if number_ else stem(unit))
        trials[case] = trials.get(case, -1) + 1
        source = Source(unit.name, source_digest, name, position)
        yield _recording(row, kind, case, trials[case], source)
        position += 1


def _transcripts(unit: Unit, report: Report) -> Iterator[tuple[int, Mapping[str, JSON]]]:
    """Yield (line, transcript); line 0 for a file that is one transcript."""
    loose: list[JSON] = []
    for line in rows_of(unit, report, "conversations", "data"):
        if _is_message(line.value) and not _kind(line.value):
            loose.append(line.value)
        else:
            yield (line.number if line.end or line.number > 1 else 0), line.value
    if loose:
        yield 0, {"messages": loose}


def _is_message(value: JSON) -> bool:
    message = mapping(value)
    return text(message.get("role")) in _ROLES and ("content" in message or "tool_calls" in message)


def _kind(row: Mapping[str, JSON]) -> str:
    """Name the key that holds a row's transcript; empty where there is none."""
    if isinstance(row.get("messages_display"), str):
        return "messages_display"
    for key in ("messages", "history", "conversation"):
        found = items(row.get(key))
        if found and "role" in mapping(found[0]) and "content" in mapping(found[0]):
            return key
    return ""


def _recording(row: Mapping[str, JSON], kind: str, case: str, trial: int, source: Source) -> Recording:
    messages = _displayed(text(row[kind])) if kind == "messages_display" else items(row[kind])
    tools, settings = row.get("tools") or None, mapping(row.get("settings"))
    model = text(row.get("model"))
    stated_case = any(row.get(key) for key in _CASES)
    manifest = Manifest.of(
        {
            "panel.case": case if stated_case else None,
            "panel.case_digest": digest(row["question"]) if isinstance(row.get("question"), str) else None,
            "model.name": model or None,
            "tools.schemas": digest(tools) if tools else None,
        },
        unknown=_UNKNOWN,
    )
    builder = TraceBuilder()
    builder.add(RolloutStarted(manifest=manifest.digest))
    if kind == "history":
        step = _add_history(builder, messages, row.get("system_prompt"))
    else:
        known: dict[str, Any] = {"tools": tools, "model": model, "settings": settings, "prompt": _prompt(row, messages)}
        step = add_conversation(builder, messages, call_details=_call_details, **known)
    outcome = _verify(builder, row, max(step - 1, 0))
    return Recording(
        manifest=manifest,
        trace=builder.close(outcome),
        outcome=outcome,
        case=case,
        source=source,
        model=model,
        trial=trial,
        missing=_MISSING,
        facts={key: value for key, value in row.items() if key not in (kind, "tools")},
        totals=Totals.of(usage.openai(row.get("usage")), cost=number(row.get("cost")) or None),
    )


def _prompt(row: Mapping[str, JSON], messages: Sequence[JSON]) -> JSON:
    """Return the system prompt that a row states beside its messages; None where they begin with one."""
    opens = mapping(messages[0]).get("role") if messages else ""
    stated = next((row[key] for key in ("system_prompt", "system") if isinstance(row.get(key), str | list)), None)
    return None if opens in ("system", "developer") else stated or None


def _call_details(position: int, message: JSON) -> Mapping[str, Any]:
    """Return what an assistant message states beyond its text."""
    said = mapping(message)
    return {
        "usage": usage.openai(said.get("usage")),
        "finish_reason": text(said.get("finish_reason")) or None,
        "refusal": text(said.get("refusal")) or None,
    }


def worded(value: JSON) -> bool | None:
    """Read a verdict: a flag, or a word for one; None for anything else."""
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _verify(builder: TraceBuilder, row: Mapping[str, JSON], step: int) -> Outcome:
    """Append the verdict that a row states: its own flag, a reward, or the label of the mistake that failed it."""
    correct, reward = row.get("is_correct"), number(row.get("reward"))
    stated = (correct, *(row.get(key) for key in _VERDICTS))
    passed = next((flag for value in stated if (flag := worded(value)) is not None), None)
    if passed is None and reward is not None:
        passed = reward >= 1
    labels = {key: value for key, value in row.items() if key.startswith("mistake_")}
    if passed is None and labels.get("mistake_step") is not None:
        passed = False
    if passed is None:
        return Outcome.UNKNOWN
    builder.add(Verification(step=step, passed=passed, reward=reward, extra=labels))
    return Outcome.SOLVED if passed else Outcome.FAILED_VERIFICATION


def _add_history(builder: TraceBuilder, messages: Sequence[JSON], prompts: JSON) -> int:
    """Append a conversation of several agents: every speaker that is no person and no terminal is a model."""
    step = 0
    for position, message in enumerate(messages):
        said = mapping(message)
        role = text(said.get("role"))
        found = _SPEAKER.fullmatch(role)
        speaker, manner = (found.group(1), found.group(2)) if found else (text(said.get("name")) or role, "")
        fields: dict[str, Any] = {"step": step, "origin": f"message {position}"}
        content = said.get("content")
        if role in ("human", "user") and not said.get("name"):
            builder.add(UserTurn(content=content, **fields))
        elif role in ("system", "developer"):
            builder.add(HarnessAction(name=role, detail=content, **fields))
        elif "terminal" in speaker.lower():
            code = _EXIT_CODE.match(text(content).lstrip())
            exit_code = int(code.group(1)) if code else None
            builder.add(ToolCall(name=speaker, result=content, agent=speaker, exit_code=exit_code, **fields))
        else:
            prompt = prompts.get(speaker) if isinstance(prompts, Mapping) else prompts or None
            sent: list[JSON] = [] if prompt is None else [{"role": "system", "content": prompt}]
            extra: dict[str, JSON] = {"manner": manner} if manner else {}
            told = [*sent, *messages[:position]]
            builder.model_call(told, agent=speaker, text=text_of(content), extra=extra, **fields)
            step += 1
    return step


def _displayed(shown: str) -> list[JSON]:
    """Split a displayed transcript at its role labels; `None` is how an empty content was displayed."""
    parts = _LABEL.split(shown)
    messages: list[JSON] = []
    for role, content in zip(parts[1::2], parts[2::2], strict=True):
        body = content.removesuffix("\n")
        messages.append({"role": role, "content": None if body == "None" and role == "assistant" else body})
    return messages
