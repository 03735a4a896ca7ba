"""Server-sent events, and the completion that their pieces add up to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harnesslab.core.canonical import JSON, parse
from harnesslab.core.running.ports import Failure, FailureKind
from harnesslab.runtime.engines import refusals

LONGEST_LINE = 16 * 1024 * 1024
DONE = b"[DONE]"


class Events:
    """Cuts bytes into the data of events, however the network cut them; other fields and comments say nothing here."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that are whole now; raises `ValueError` for a line without end."""
        self._rest += piece
        # an end of a line that the network cut in two waits in the rest until its second half comes
        *lines, rest = self._rest.replace(b"\r\n", b"\n").split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise ValueError(f"a line of the stream is longer than {LONGEST_LINE:,} bytes")
        self._rest = rest
        return [data for line in lines if (data := self._line(bytes(line))) is not None]

    def end(self) -> list[bytes]:
        """Return the data of a last event whose closing empty line never came."""
        return [data for data in (self._line(bytes(self._rest)), self._line(b"")) if data is not None]

    def _line(self, line: bytes) -> bytes | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            return None
        if line or not self._data:
            return None
        data, self._data = b"\n".join(self._data), []
        return data


@dataclass(slots=True)
class _Call:
    """A tool call that is still being written."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Completion:
    """A chat completion put together from its chunks."""

    top: dict[str, JSON] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    content: list[JSON] = field(default_factory=list)
    """What is stated of each token's probability."""
    choice: dict[str, JSON] = field(default_factory=dict)
    ids: list[JSON] = field(default_factory=list)
    finished: bool = False

    def add(self, chunk: Mapping[str, JSON]) -> str:
        """Take a chunk in and return the text it adds."""
        for key in ("id", "system_fingerprint", "usage", "prompt_token_ids", "timings", "sglext"):
            if chunk.get(key) is not None:
                self.top[key] = chunk[key]
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                return self._choice(choice)
        return ""

    def _choice(self, choice: Mapping[str, JSON]) -> str:
        if choice.get("finish_reason") is not None:
            self.finished = True
        for key in ("finish_reason", "prompt_token_ids", "sglext"):
            if choice.get(key) is not None:
                self.choice[key] = choice[key]
        ids, logprobs = choice.get("token_ids"), choice.get("logprobs")
        content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
        self.ids += ids if isinstance(ids, list) else []
        self.content += content if isinstance(content, list) else []
        delta = choice.get("delta")
        return self._delta(delta) if isinstance(delta, Mapping) else ""

    def _delta(self, delta: Mapping[str, JSON]) -> str:
        for pieces, value in (
            (self.reasoning, delta.get("reasoning_content") or delta.get("reasoning")),
            (self.refusal, delta.get("refusal")),
        ):
            if isinstance(value, str):
                pieces.append(value)
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, Mapping):
                self._call(call, position)
        text = delta.get("content")
        if not isinstance(text, str):
            return ""
        self.text.append(text)
        return text

    def _call(self, call: Mapping[str, JSON], position: int) -> None:
        index = call.get("index", position)
        known = self.calls.setdefault(index if isinstance(index, int) else position, _Call())
        function = call.get("function")
        body: Mapping[str, JSON] = function if isinstance(function, Mapping) else {}
        id_, name, arguments = call.get("id"), body.get("name"), body.get("arguments")
        known.id = known.id or (id_ if isinstance(id_, str) else "")
        known.name = known.name or (name if isinstance(name, str) else "")
        if isinstance(arguments, str):
            known.arguments.append(arguments)

    def to_json(self) -> dict[str, JSON]:
        """Return it as if it had come whole."""
        message: dict[str, JSON] = {"role": "assistant", "content": "".join(self.text) if self.text else None}
        for key, pieces in (("reasoning_content", self.reasoning), ("refusal", self.refusal)):
            if pieces:
                message[key] = "".join(pieces)
        if self.calls:
            message["tool_calls"] = [
                {"id": call.id, "function": {"name": call.name, "arguments": "".join(call.arguments)}}
                for _, call in sorted(self.calls.items())
            ]
        choice: dict[str, JSON] = {**self.choice, "message": message}
        if self.content:
            choice["logprobs"] = {"content": self.content}
        if self.ids:
            choice["token_ids"] = self.ids
        return {**self.top, "choices": [choice]}


class StreamReader:
    """Reads a stream of JSON events as it comes; `on_text` can stop it, which `take` then says by False."""

    def __init__(self, on_event: Callable[[Mapping[str, JSON]], str], on_text: Callable[[str], bool] | None) -> None:
        self._events = Events()
        self._on_event = on_event
        self._on_text = on_text
        self._began = time.monotonic()
        self.failure: Failure | None = None
        self.done = False
        self.first_token: float | None = None

    def take(self, piece: bytes) -> bool:
        """Read a piece of the body; False means that no more is wanted."""
        try:
            for data in self._events.feed(piece):
                if not self._event(data):
                    return False
        except ValueError as error:
            self.failure = Failure(FailureKind.MALFORMED, f"the stream can't be read: {error}")
        return self.failure is None

    def end(self) -> None:
        """Read what an end without a closing line left over."""
        for data in self._events.end():
            self._event(data)

    def _event(self, data: bytes) -> bool:
        if data.strip() == DONE:
            self.done = True
            return True
        if self.done or self.failure is not None:
            return True
        try:
            event = parse(data)
        except ValueError:
            shown = data[:80].decode("utf-8", "replace")
            self.failure = Failure(FailureKind.MALFORMED, refusals.shortened(f"the stream holds no JSON: {shown!r}"))
            return False
        if not isinstance(event, Mapping):
            self.failure = Failure(FailureKind.MALFORMED, "the stream holds an event that is not an object")
            return False
        if event.get("error") is not None:
            self.failure = refusals.in_answer(event["error"])
            return False
        text = self._on_event(event)
        if text and self.first_token is None:
            self.first_token = time.monotonic() - self._began
        return self._on_text is None or self._on_text(text)
