"""What an error answer means: whose fault it is, whether it may pass, and the counts it states."""

from __future__ import annotations

import datetime
import email.utils
import re
from collections.abc import Mapping

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.running.ports import Failure, FailureKind
from harnesslab.runtime.engines.transport import Reply

LONGEST_SENTENCE = 600
_NUMBER = r"([\d,]+)"
_CONTEXT = re.compile(
    r"context[ _](?:length|size|window)|maximum allowed length|prompt is too long|exceed_context|too many tokens"
    r"|max_model_len|longer than the model|KV cache (?:capacity|size)",
    re.IGNORECASE,
)
_EXCEEDS = re.compile(
    r"exceed|longer than|too (?:long|large|many)|maximum|is only|reduce|at most|resulted in", re.IGNORECASE
)
_COUNTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE))
    for name, pattern in (
        ("context_limit", r"context length (?:is|of)(?: only)? N"),
        ("context_limit", r"(?:context length|context size|maximum allowed length) \(N"),
        ("context_limit", r"\d tokens > N"),
        ("prompt_tokens", r"(?:request|input|input length) \(N tokens\)"),
        ("prompt_tokens", r"(?:request|prompt) (?:has|contains at least|contains) N input tokens"),
        ("prompt_tokens", r"you passed N input tokens"),
        ("prompt_tokens", r"N (?:tokens )?(?:in|from) (?:the|your) (?:input )?(?:messages|prompt)"),
        ("prompt_tokens", r"messages resulted in N"),
        ("prompt_tokens", r"prompt is too long: N"),
        ("completion_tokens", r"N (?:tokens )?(?:in|for) (?:the|your) completion"),
        ("completion_tokens", r"requested N output tokens"),
        ("completion_tokens", r"is too large: N"),
        ("requested_tokens", r"you requested (?:a total of )?N tokens"),
    )
)
_TOOL_CALL = re.compile(
    r"tool_use_failed|failed to (?:parse|call) (?:a |the )?(?:tool|function)"
    r"|(?:invalid|malformed|unparsable) (?:tool|function) call"
    r"|tool call (?:arguments|validation|parsing) |failed_generation|model produced output that does not match",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)


def failure(reply: Reply) -> Failure:
    """Say what an answer with an error status means."""
    status = reply.status or 0
    said = error_of(reply.body)
    if 300 <= status < 400:
        where = reply.headers.get("location", "elsewhere")
        sentence = f"the server redirects to {where}, which is not followed: register that address"
        return Failure(FailureKind.REFUSED, sentence, {"status": status})
    facts: dict[str, JSON] = {"status": status, **said}
    kind = _kind(status, said)
    if kind is FailureKind.CONTEXT_EXCEEDED:
        facts.update(counts(said))
    sentence = f"HTTP {status}: {_message(reply, said)}"
    wait = _retry_after(reply.headers) if kind is FailureKind.OVERLOADED else None
    return Failure(kind, shortened(sentence), facts, wait)


def in_answer(error: JSON) -> Failure:
    """Say what an error inside an answer that began well means."""
    said = _said(error)
    kind = _kind(_whole(said.get("code")) or 500, said)
    facts: dict[str, JSON] = {**said, **(counts(said) if kind is FailureKind.CONTEXT_EXCEEDED else {})}
    return Failure(kind, shortened(f"the server broke off: {said.get('message') or 'without a reason'}"), facts)


def error_of(body: bytes) -> dict[str, JSON]:
    """Return what an error body states: message, type, code and counts, whatever dialect it is written in."""
    try:
        document = parse(body)
    except ValueError:
        return {}
    if not isinstance(document, Mapping):
        return {}
    return _said(document.get("error", document))


def counts(said: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the token counts that a message about a full context states."""
    text = str(said.get("message", ""))
    found: dict[str, JSON] = {}
    for name, pattern in _COUNTS:
        match = pattern.search(text)
        digits = match.group(1).replace(",", "") if match else ""
        if digits and len(digits) < 16:
            found.setdefault(name, int(digits))
    for name, key in (("prompt_tokens", "n_prompt_tokens"), ("context_limit", "n_ctx")):  # llama.cpp
        if isinstance(said.get(key), int):
            found[name] = said[key]
    return found


def shortened(sentence: str) -> str:
    """Return a sentence as one line of bounded length."""
    line = " ".join(sentence.split())
    return line if len(line) <= LONGEST_SENTENCE else f"{line[:LONGEST_SENTENCE]}… ({len(line):,} characters)"


def _kind(status: int, said: Mapping[str, JSON]) -> FailureKind:
    text = " ".join(str(said.get(key, "")) for key in ("message", "type", "code"))
    if status not in (401, 403, 404) and _is_context(text):
        return FailureKind.CONTEXT_EXCEEDED
    if "failed_generation" in said or _TOOL_CALL.search(text):
        return FailureKind.TOOL_CALL_REJECTED
    if status in (429, 503, 529):
        return FailureKind.REFUSED if _NO_MONEY.search(text) else FailureKind.OVERLOADED
    if status >= 500 or status == 408:
        return FailureKind.SERVER_ERROR
    return FailureKind.REFUSED


def _is_context(text: str) -> bool:
    return bool("context_length_exceeded" in text or (_CONTEXT.search(text) and _EXCEEDS.search(text)))


def _said(error: JSON) -> dict[str, JSON]:
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, Mapping):
        return {}
    kept = ("message", "type", "code", "param", "failed_generation", "n_prompt_tokens", "n_ctx")
    said = {key: error[key] for key in kept if error.get(key) is not None}
    if "message" not in said and isinstance(error.get("detail"), str):
        said["message"] = error["detail"]
    return said


def _message(reply: Reply, said: Mapping[str, JSON]) -> str:
    message = said.get("message")
    if isinstance(message, str) and message:
        return message
    return reply.body[:300].decode("utf-8", "replace").strip() or "without a reason"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read seconds or a date; a date that has passed means now."""
    given = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", given):
        return float(given)
    try:
        at = email.utils.parsedate_to_datetime(given)
    except (ValueError, TypeError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
    return max(0.0, (at - datetime.datetime.now(datetime.UTC)).total_seconds())


def _whole(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
