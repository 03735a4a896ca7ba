"""Real loopback servers for the engines' tests: one that says exactly what it is told to, one that passes on and
records, one that repeats what was recorded."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import http.server
import json
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LONGEST = 2000
"""Characters of a request that are kept in a recording."""


@contextlib.contextmanager
def raw_server(speak: Callable[[socket.socket, bytes], None], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve connections by a function that gets the socket and the request as it came."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                connection = self.request if tls is None else tls.wrap_socket(self.request, server_side=True)
                speak(connection, _request(connection))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    match = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while match and len(body) < int(match.group(1)):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def response(body: bytes, status: str = "200 OK", content: str = "application/json", **headers: str) -> bytes:
    """Return a whole HTTP response that ends with the connection."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(slots=True)
class Record:
    """Exchanges by request, in the order they came; a request that came twice may have two answers."""

    exchanges: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def key(method: str, path: str, body: bytes) -> str:
        """Name a request by what it says, a long one by its digest; the name it has at the server is new each time."""
        document = json.loads(body) if body else None
        if isinstance(document, dict):
            document.pop("rid", None)
        said = json.dumps([method, path, document], sort_keys=True)
        return said if len(said) <= LONGEST else f"{method} {path} {hashlib.sha256(said.encode()).hexdigest()}"

    def write(self, path: Path, clean: Callable[[str], str]) -> None:
        """Write it, made free of places and names of one machine."""
        text = json.dumps(self.exchanges, indent=0, ensure_ascii=False)
        path.write_text(clean(text) + "\n")

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read what `write` wrote."""
        return cls(json.loads(path.read_text()))


@contextlib.contextmanager
def recording(address: str, record: Record) -> Iterator[str]:
    """Pass requests on to a real server and keep what was said."""
    target = urlsplit(address)

    def serve(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
        headers = {"content-type": "application/json"} if body else {}
        connection.request(handler.command, handler.path, body or None, headers)
        got = connection.getresponse()
        said = got.read()
        connection.close()
        kind = got.headers.get("content-type") or ""
        record.exchanges.append(
            {
                "request": Record.key(handler.command, handler.path, body),
                "status": got.status,
                "type": kind,
                "body": said.decode(),
            }
        )
        return got.status, kind, said

    with _http_server(serve) as served:
        yield served


@contextlib.contextmanager
def replaying(record: Record) -> Iterator[str]:
    """Answer each request as it was answered; the last answer to it again when there are no more."""
    left: dict[str, list[dict[str, Any]]] = {}
    for exchange in record.exchanges:
        left.setdefault(exchange["request"], []).append(exchange)

    def serve(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, str, bytes]:
        answers = left.get(Record.key(handler.command, handler.path, body))
        if not answers:
            return 501, "text/plain", b"not recorded"
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer["status"], answer["type"], answer["body"].encode()

    with _http_server(serve) as served:
        yield served


@contextlib.contextmanager
def _http_server(
    serve: Callable[[http.server.BaseHTTPRequestHandler, bytes], tuple[int, str, bytes]],
) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, kind, said = serve(self, body)
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
