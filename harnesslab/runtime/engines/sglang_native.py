"""SGLang's native `/generate`: sampling parameters by their native names, token ids in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON
from harnesslab.core.running.ports import Answer, Failure, FailureKind
from harnesslab.core.trace.events import Usage
from harnesslab.runtime.engines import dialect, refusals

_NAMES = {
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "seed": "sampling_seed",
    **{
        same: same
        for same in (
            *("temperature", "top_p", "top_k", "min_p", "stop", "stop_token_ids", "stop_regex", "ignore_eos"),
            *("frequency_penalty", "presence_penalty", "repetition_penalty", "regex", "ebnf", "min_new_tokens"),
            *("skip_special_tokens", "no_stop_trim"),
        )
    },
}
_OTHERWISE = frozenset({"logprobs", "top_logprobs", "tool_choice", "parallel_tool_calls", "response_format"})
"""Settings that the native body says in another way, or that mean nothing without tools."""


def body_of(chat: Mapping[str, JSON], ids: Sequence[int], *, alternatives: int) -> dict[str, JSON] | Failure:
    """Turn a chat body into a native one; a setting that has no native name is refused, never dropped."""
    sampling: dict[str, JSON] = {}
    for name, value in chat.items():
        if name in _NAMES:
            sampling[_NAMES[name]] = value
        elif name not in dialect.NOT_SETTINGS | _OTHERWISE:
            return Failure(FailureKind.REFUSED, f"/generate has no setting {name}: use the endpoint chat for it")
    schema = _schema(chat.get("response_format"))
    if isinstance(schema, Failure):
        return schema
    if schema is not None:
        sampling["json_schema"] = schema
    wanted: dict[str, JSON] = {"return_logprob": True, "return_text_in_logprobs": True}
    if alternatives:
        wanted["top_logprobs_num"] = alternatives
    stream: dict[str, JSON] = {"stream": True} if chat.get("stream") else {}
    return {"rid": chat["rid"], "input_ids": list(ids), "sampling_params": sampling, **wanted, **stream}


@dataclass(slots=True)
class Generation:
    """A generation put together from events that each repeat all of it so far."""

    last: Mapping[str, JSON] = field(default_factory=dict)
    seen: int = 0
    finished: bool = False

    def add(self, event: Mapping[str, JSON], /) -> str:
        """Take an event in and return the text it adds."""
        self.last = event
        meta, text = event.get("meta_info"), event.get("text")
        if isinstance(meta, Mapping) and meta.get("finish_reason") is not None:
            self.finished = True
        if not isinstance(text, str):
            return ""
        added, self.seen = text[self.seen :], max(self.seen, len(text))
        return added

    def to_json(self) -> dict[str, JSON]:
        """Return the last event, which is the whole."""
        return dict(self.last)


def answer_of(document: JSON) -> Answer | Failure:
    """Read a generation."""
    meta = document.get("meta_info") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(meta, Mapping) or not isinstance(document.get("text"), str):
        return Failure(FailureKind.MALFORMED, "the answer holds no text with its facts")
    reason = meta.get("finish_reason")
    ended = reason if isinstance(reason, Mapping) else {}
    if ended.get("type") == "abort":
        return refusals.in_answer({"message": ended.get("message"), "code": ended.get("status_code")})
    logprobs = _logprobs(meta.get("output_token_logprobs"))
    kind, name = ended.get("type"), meta.get("id")
    text = document["text"]
    return Answer(
        text=text if isinstance(text, str) else None,
        finish_reason=kind if isinstance(kind, str) else None,
        usage=Usage(*(_count(meta.get(key)) for key in ("prompt_tokens", "completion_tokens", "cached_tokens"))),
        response_id=name if isinstance(name, str) else None,
        token_ids=dialect.token_ids(document.get("output_ids")),
        logprobs=logprobs,
        alternatives=_alternatives(meta.get("output_top_logprobs")),
    )


def _schema(wanted: JSON) -> JSON | Failure:
    match wanted:
        case None | {"type": "text"}:
            return None
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return dialect.encoded(schema).decode()
        case {"type": "json_object"}:
            return '{"type":"object"}'
    return Failure(FailureKind.REFUSED, "/generate can't be held to this response_format: use the endpoint chat for it")


def _logprobs(stated: JSON) -> tuple[float, ...] | None:
    """Read `[[log-probability, id, text], …]`; what isn't stated for every token is not stated."""
    if not isinstance(stated, list):
        return None
    values = [dialect.number(item[0]) if isinstance(item, list) and item else None for item in stated]
    known = tuple(value for value in values if value is not None)
    return known if known and len(known) == len(values) else None


def _alternatives(stated: JSON) -> tuple[JSON, ...] | None:
    if not isinstance(stated, list) or not any(stated):
        return None
    tokens = [item if isinstance(item, list) else [] for item in stated]
    return tuple([[part[2], part[0]] for part in token if isinstance(part, list) and len(part) > 2] for token in tokens)


def _count(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
