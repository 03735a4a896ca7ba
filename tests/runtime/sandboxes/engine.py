"""A stand-in for a Docker engine: a real HTTP server that speaks the shapes the SDK sends, and keeps the requests.

Commands run in a folder of this machine in place of a container, so that tar and shell are real; nothing is isolated.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IMAGE = "registry.invalid/agent@sha256:" + "a" * 64


class Engine:
    """Serves on a loopback port until it is closed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.requests: list[tuple[str, str, Any]] = []
        self.execs: list[dict[str, Any]] = []
        self.codes: dict[int, int] = {}
        self.running: list[subprocess.Popen[bytes]] = []
        self.left = b""
        self.program: list[str] = []
        engine = self

        class Handler(_Handler):
            served = engine

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"tcp://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def body(self, method: str, path: str) -> Any:
        """Return what the last such request carried."""
        return [body for one, asked, body in self.requests if one == method and re.fullmatch(path, asked)][-1]

    def close(self) -> None:
        """Stop serving."""
        for process in self.running:
            process.kill()
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: Engine
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_DELETE(self) -> None:
        self._handle("DELETE")

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def _handle(self, method: str) -> None:
        path = re.sub(r"^/v[0-9.]+", "", self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        plain = path.partition("?")[0]
        self.served.requests.append((method, plain, body))
        if found := re.fullmatch(r"/exec/(\d+)/start", plain):
            self._run(int(found[1]))
        elif plain.endswith("/attach"):
            self._stream(self.served.program, dict(os.environ))
        else:
            self._answer(*self._plain(method, plain, body))

    def _plain(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        served = self.served
        if path == "/version":
            return 200, {"ApiVersion": "1.44"}
        if path.startswith("/images/"):
            return (200, {"Id": "sha256:1"}) if "aaaa" in path else (404, {"message": "No such image"})
        if path == "/containers/create":
            served.program = body["Cmd"]
            return 201, {"Id": "box", "Warnings": []}
        if path.endswith("/exec"):
            served.execs.append(body)
            return 201, {"Id": str(len(served.execs) - 1)}
        if found := re.fullmatch(r"/exec/(\d+)/json", path):
            return 200, {"ExitCode": served.codes[int(found[1])]}
        if path.endswith("/wait"):
            return 200, {"StatusCode": served.codes[-1]}
        return (204, None) if method == "DELETE" or path.endswith("/start") else (200, {})

    def _answer(self, status: int, content: Any) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _run(self, number: int) -> None:
        asked = self.served.execs[number]
        if "kill -9 -1" in asked["Cmd"][-1]:
            for process in self.served.running:
                process.kill()
            self._stream(["printf", self.served.left.decode()], {}, number)
        else:
            command = [self.served.folder if part == "/work" else part for part in asked["Cmd"]]
            environ = dict(one.split("=", 1) for one in asked.get("Env") or [])
            self._stream(command, environ, number, listens=asked["AttachStdin"])

    def _stream(self, command: list[str], environ: dict[str, str], number: int = -1, listens: bool = True) -> None:
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "tcp")
        self.end_headers()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.served.folder,
            env={"PATH": os.environ["PATH"], **environ},
        )
        self.served.running.append(process)
        if listens:
            threading.Thread(target=self._feed, args=(process,), daemon=True).start()
        copies = [
            threading.Thread(target=self._copy, args=(kind, stream))
            for kind, stream in ((1, process.stdout), (2, process.stderr))
        ]
        for copy in copies:
            copy.start()
        for copy in copies:
            copy.join()
        self.served.codes[number] = process.wait()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)  # also ends the thread that still reads

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with process.stdin:
            while data := self.rfile.read1(65536):
                process.stdin.write(data)
                process.stdin.flush()

    def _copy(self, kind: int, stream: Any) -> None:
        with stream:
            while data := os.read(stream.fileno(), 4096):
                self.wfile.write(struct.pack(">BxxxI", kind, len(data)) + data)
