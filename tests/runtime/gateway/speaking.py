"""Speaking to a gateway whose answers a test decides: as a client of HTTP, or byte by byte."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesslab.core.trace.events import ModelCall, ToolRequest, Usage
from harnesslab.runtime.gateway.requests import AgentRequest, Problem
from harnesslab.runtime.gateway.server import Gateway, served

CALL = ModelCall(
    step=3,
    model="m",
    text="hello",
    reasoning="hm",
    tool_calls=(ToolRequest("run", {"command": "ls"}, '{"command": "ls"}', "c1"), ToolRequest("say", {"a": [1]})),
    finish_reason="tool_calls",
    usage=Usage(20, 7, 5, None, 2),
    response_id="r1",
)


@dataclass(slots=True)
class Said:
    """A boundary that answers what it is told to."""

    reply: ModelCall | Problem = CALL
    asked: list[AgentRequest] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def ask(self, asked: AgentRequest, _: Callable[[], bool]) -> ModelCall | Problem:
        """Answer."""
        self.asked.append(asked)
        self.before()
        return self.reply

    def refused(self, sentence: str) -> None:
        """Note a refusal."""
        self.refusals.append(sentence)

    def models(self) -> list[str]:
        """List one model."""
        return ["m"]


@dataclass(slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of a stream's events; each event's name must be its type."""
        found: list[Any] = []
        for block in self.body.decode().removesuffix("\n\n").split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.split("\n"))
            if lines["data"] == "[DONE]":
                found.append("[DONE]")
                continue
            found.append(json.loads(lines["data"]))
            assert "event" not in lines or lines["event"] == found[-1]["type"]
        return found


class Client:
    """Asks one gateway."""

    def __init__(self, gateway: Gateway, said: Said) -> None:
        self.gateway, self.said = gateway, said

    def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a body below the secret path, as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", f"{self.gateway.path}{path}", data, headers)

    def ask(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request to any path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, data, dict(headers or {}))
            got = connection.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())

    def raw(self, data: bytes, *, timeout: float = 20) -> bytes:
        """Send bytes as they are, then read to the end."""
        with socket.create_connection(("127.0.0.1", self.gateway.port), timeout) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            got = b""
            with contextlib.suppress(OSError):
                while piece := connection.recv(65536):
                    got += piece
            return got


@contextlib.contextmanager
def client(said: Said | None = None) -> Iterator[Client]:
    """Serve a boundary on a loopback port."""
    boundary = said or Said()
    with served(boundary) as gateway:
        yield Client(gateway, boundary)
