"""One connection's requests, one after the other: read, checked, answered."""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import http.server
import select
import socket
import time
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol, cast

from harnesslab.core.canonical import JSON, MAX_DEPTH, nested_within, parse
from harnesslab.runtime.gateway import sse
from harnesslab.runtime.gateway.anthropic import Anthropic
from harnesslab.runtime.gateway.bodies import Bad, BodyBudget, read_body
from harnesslab.runtime.gateway.chat import Chat
from harnesslab.runtime.gateway.requests import Dialect, ModelBoundary, Problem, RequestRefused, bad_request
from harnesslab.runtime.gateway.responses import Responses

LINGER_S = 2.0
IDLE_S = 120.0
"""Seconds a connection may say nothing."""
DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": Chat(),
    "/v1/responses": Responses(),
    "/v1/messages": Anthropic(),
}
COUNTING = "/v1/messages/count_tokens"
MODELS = "/v1/models"
DEEPEST = MAX_DEPTH - 40


class Serving(Protocol):
    """What a handler needs of its server."""

    boundary: ModelBoundary
    secret: str

    bytes: BodyBudget


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "harnesslab"
    sys_version = ""
    timeout = IDLE_S
    wbufsize = 1 << 16  # an answer's head and body in one packet
    error_message_format = '{"error": {"message": "%(message)s", "type": "invalid_request_error"}}'
    error_content_type = "application/json"

    def handle_expect_100(self) -> bool:
        """Let a client that asks first send its body."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def do_GET(self) -> None:
        """Answer a question without a body."""
        path = self._inside()
        if path == MODELS:
            listed: list[JSON] = [_model(name) for name in self._serving.boundary.models()]
            self._say(200, {"object": "list", "data": listed, "has_more": False})
        elif path in DIALECTS or path == COUNTING:
            self._say(405, _plain("ask with POST"))
        else:
            self._nothing_here()

    def do_POST(self) -> None:
        """Answer a request for the model."""
        path = self._inside()
        if path not in DIALECTS and path != COUNTING:
            self.close_connection = True  # its body wasn't read, and would be taken for the next request
            self._nothing_here()
            return
        dialect = DIALECTS.get(path, DIALECTS["/v1/messages"])
        try:
            body, held = read_body(cast(BinaryIO, self.rfile), self.headers, self._serving.bytes)
        except Bad as bad:
            self.close_connection = True
            self._serving.boundary.refused(bad.sentence)
            self._problem(dialect, bad_request(bad.sentence, bad.status))
            self._let_it_finish()
            return
        try:
            self._answer(path, dialect, body)
        finally:
            self._serving.bytes.give_back(held)

    def _answer(self, path: str, dialect: Dialect, body: bytes) -> None:
        boundary = self._serving.boundary
        try:
            if path == COUNTING:
                raise RequestRefused(
                    "the gateway counts no tokens: the engine's tokenizer is not the one that is asked for"
                )
            asked = dataclasses.replace(dialect.read(_object(body)), body=body, retry=self._retry())
        except RequestRefused as error:
            boundary.refused(error.sentence)
            self._problem(dialect, bad_request(error.sentence))
            return
        answer = boundary.ask(asked, self._gone)
        if isinstance(answer, Problem):
            self._problem(dialect, answer)
            return
        try:
            if asked.stream:
                self._stream(dialect.stream(asked, answer))
            else:
                self._say(200, dialect.answer(asked, answer))
        except RequestRefused as error:
            boundary.refused(error.sentence)
            self._problem(dialect, Problem(502, "answer_has_no_place", error.sentence))

    def _gone(self) -> bool:
        """Say whether the client has closed the connection; called from other threads too, and takes nothing of it."""
        ready = select.poll()  # first, since a socket with a time limit waits for it whatever its flags say
        try:
            ready.register(self.connection, select.POLLIN)
            return bool(ready.poll(0)) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):  # the connection was closed on this side
            return True

    def _let_it_finish(self) -> None:
        """Read on for a moment: a client that still sends would lose the answer to a closed connection."""
        self.wfile.flush()
        deadline = time.monotonic() + LINGER_S
        self.connection.settimeout(LINGER_S)
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and self.connection.recv(1 << 16):
                pass

    @property
    def _serving(self) -> Serving:
        return cast(Serving, self.server)

    def _inside(self) -> str:
        """Return the path below the secret one; empty for every other path, compared in constant time."""
        head, _, rest = self.path.partition("?")[0].removeprefix("/r/").partition("/")
        right = hmac.compare_digest(head.encode(errors="replace"), self._serving.secret.encode())
        return f"/{rest}" if right and self.path.startswith("/r/") else ""

    def _retry(self) -> int:
        stated = self.headers.get("x-stainless-retry-count", "")
        return int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 6 else 0

    def _nothing_here(self) -> None:
        self._say(404, _plain("not found"))

    def _problem(self, dialect: Dialect, problem: Problem) -> None:
        status, body = dialect.problem(problem)
        headers = {"x-should-retry": "true" if problem.retried else "false"}
        if problem.retry_after is not None:
            headers["Retry-After"] = f"{max(problem.retry_after, 0):.0f}"
        self._say(status, body, headers)

    def _say(self, status: int, body: Mapping[str, JSON], headers: Mapping[str, str] | None = None) -> None:
        data = sse.encoded(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pieces: Iterator[bytes]) -> None:
        data = b"".join(pieces)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing: what was asked is in the record."""


def _object(body: bytes) -> Mapping[str, JSON]:
    try:
        value = parse(body)
    except ValueError as error:
        raise RequestRefused("the body is no JSON") from error
    if not isinstance(value, Mapping):
        raise RequestRefused("the body is no JSON object")
    if not nested_within(value, DEEPEST):
        raise RequestRefused(f"the body is nested deeper than {DEEPEST} levels")
    return value


def _model(name: str) -> JSON:
    made = int(time.time())
    ids: dict[str, JSON] = {"id": name, "object": "model", "created": made, "owned_by": "harnesslab"}
    return {**ids, "type": "model", "display_name": name}


def _plain(sentence: str) -> dict[str, JSON]:
    return {"error": {"message": sentence, "type": "invalid_request_error", "param": None, "code": None}}
