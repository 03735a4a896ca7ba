"""Streamed chat completions: chunks of several streams told apart, and the chunks of one joined into a completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesslab.core.canonical import JSON
from harnesslab.formats.reading.sse import is_stream, stream_data
from harnesslab.formats.reading.values import items, mapping, text, whole, without_nulls

CHUNK = "chat.completion.chunk"
_OPEN = 1_000
"""Streams that are held at a time; beyond it those that ended are given out."""


@dataclass(slots=True)
class Stream:
    """One stream's chunks so far."""

    origin: str
    chunks: list[Mapping[str, JSON]] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)

    def take(self, chunk: Mapping[str, JSON]) -> None:
        """Add the next chunk."""
        self.chunks.append(chunk)
        for choice in map(mapping, items(chunk.get("choices"))):
            index = whole(choice.get("index")) or 0
            (self.ended if choice.get("finish_reason") else self.open).add(index)

    def goes_on_with(self, chunk: Mapping[str, JSON]) -> bool:
        """Say whether a chunk of this stream's id is its own: an answer that ended opens no more, another stream does.

        Some servers give every stream one id.
        """
        for choice in map(mapping, items(chunk.get("choices"))):
            opens = bool(mapping(choice.get("delta")).get("role"))
            if opens and (whole(choice.get("index")) or 0) in self.ended:
                return False
        return True


class Streams:
    """Tells the chunks of streams apart that were written while others ran: by id, else by what came last."""

    def __init__(self) -> None:
        self._streams: list[Stream] = []
        self._by_id: dict[str, Stream] = {}
        self._last: Stream | None = None

    def __bool__(self) -> bool:
        return bool(self._streams)

    def take(self, chunk: Mapping[str, JSON], origin: str) -> Iterator[Stream]:
        """Add a chunk; yields streams that ended where too many are held."""
        name = text(chunk.get("id"))
        stream = self._by_id.get(name) if name else self._last
        if stream is None or not stream.goes_on_with(chunk):
            stream = Stream(origin)
            self._streams.append(stream)
        self._by_id[name] = self._last = stream
        stream.take(chunk)
        if len(self._streams) > _OPEN:
            yield from self._ended()

    def broke(self, row: Mapping[str, JSON]) -> None:
        """Add what a stream that broke off says in its place."""
        if self._last is not None:
            self._last.chunks.append(row)

    def close(self) -> list[Stream]:
        """Return all streams in the order in which they began, and forget them."""
        found, self._streams, self._by_id, self._last = self._streams, [], {}, None
        return found

    def _ended(self) -> list[Stream]:
        done = [stream for stream in self._streams if stream.ended and stream is not self._last]
        gone = set(map(id, done))
        self._streams = [stream for stream in self._streams if id(stream) not in gone]
        self._by_id = {name: stream for name, stream in self._by_id.items() if id(stream) not in gone}
        return done


def is_chunk(row: Mapping[str, JSON]) -> bool:
    """Say whether a row is a chunk of a streamed completion, which some servers don't name."""
    return row.get("object") == CHUNK or ("object" not in row and "delta" in _first(row))


def chunks_in(answer: JSON) -> list[Mapping[str, JSON]]:
    """Return the chunks that an answer is: a list of them, an object that lists them, or the text of a stream."""
    if isinstance(answer, str) and is_stream(answer):
        found = stream_data(answer)
        return found if any("choices" in chunk for chunk in found) else []
    held = answer.get("chunks") if isinstance(answer, Mapping) and "choices" not in answer else answer
    listed = [mapping(item) for item in items(held)]
    chunked = bool(listed) and all(map(is_chunk, listed[:3]))
    return listed if chunked else []


def _first(chunk: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return mapping(next(iter(items(chunk.get("choices"))), None))


class _Answer:
    """One answer of a stream as its pieces come."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.calls: dict[int, dict[str, Any]] = {}
        self.ids: list[JSON] = []
        self.logprobs: list[JSON] = []
        self.finish: JSON = None

    def take(self, choice: Mapping[str, JSON]) -> None:
        self.finish = choice.get("finish_reason") or self.finish
        self.ids += items(choice.get("token_ids"))
        self.logprobs += items(mapping(choice.get("logprobs")).get("content"))
        delta = mapping(choice.get("delta"))
        for key in ("content", "reasoning_content", "reasoning", "refusal"):
            if text(delta.get(key)):
                self.texts.setdefault(key, []).append(text(delta[key]))
        for order, part in enumerate(items(delta.get("tool_calls"))):
            self._join_call(mapping(part), order)

    def _join_call(self, part: Mapping[str, JSON], order: int) -> None:
        """Add the piece of a tool call that one chunk carries; a name that is whole already is only said again."""
        index = whole(part.get("index"))
        call = self.calls.setdefault(order if index is None else index, {"id": "", "name": "", "text": []})
        function = mapping(part.get("function"))
        call["id"] = text(part.get("id")) or call["id"]
        name = text(function.get("name"))
        call["name"] += "" if name == call["name"] else name
        call["text"].append(text(function.get("arguments")))

    def choice(self, index: int) -> dict[str, JSON]:
        message: dict[str, JSON] = {"role": "assistant", **{key: "".join(said) for key, said in self.texts.items()}}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": "".join(call["text"])},
                }
                for _, call in sorted(self.calls.items())
            ]
        answer: dict[str, JSON] = {"index": index, "message": message, "finish_reason": self.finish}
        if self.ids:
            answer["token_ids"] = self.ids
        if self.logprobs:
            answer["logprobs"] = {"content": self.logprobs}
        return answer


def joined(chunks: Sequence[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Put the chunks of one stream together into a completion; the chunks themselves are kept beside it."""
    answers: dict[int, _Answer] = {0: _Answer()}
    body: dict[str, JSON] = {}
    for chunk in chunks:
        body |= without_nulls(chunk, "choices", "object")
        for choice in map(mapping, items(chunk.get("choices"))):
            answers.setdefault(whole(choice.get("index")) or 0, _Answer()).take(choice)
    choices: list[JSON] = [answer.choice(index) for index, answer in sorted(answers.items())]
    return {**body, "object": "chat.completion", "choices": choices, "chunks": [dict(chunk) for chunk in chunks]}
