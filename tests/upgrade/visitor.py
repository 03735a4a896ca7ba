"""A person at a running server, who knows its pages and API and nothing of its code."""

from __future__ import annotations

import json
import re
import secrets
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar
from typing import Any, TypeVar
from urllib.error import HTTPError

T = TypeVar("T")
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Visitor:
    """An admin's session at `address`."""

    def __init__(self, address: str, password: str, name: str = "admin") -> None:
        self.address = address.rstrip("/")
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self._token = ""
        self.post("/login", username=name, password=password)

    def get(self, path: str) -> bytes:
        """Return what an address answers; raises `HTTPError` for a refusal."""
        with self._opener.open(self.address + path) as answer:
            body: bytes = answer.read()
        return body

    def json(self, path: str) -> Any:
        """Return what the API answers at a path below its root."""
        return json.loads(self.get(f"/api/v1{path}"))

    def post(self, path: str, **form: object) -> bytes:
        """Send a form of a page."""
        return self._send(path, urllib.parse.urlencode(form).encode(), "application/x-www-form-urlencoded")

    def ask(self, path: str, document: Mapping[str, object]) -> Any:
        """Send a document to the API."""
        return json.loads(self._send(f"/api/v1{path}", json.dumps(document).encode(), "application/json"))

    def send_files(self, project: str, files: Mapping[str, bytes]) -> Any:
        """Import files as dropped on the page."""
        border = secrets.token_hex(12)
        parts = [f'--{border}\r\nContent-Disposition: form-data; name="project"\r\n\r\n{project}\r\n'.encode()]
        for name, data in files.items():
            head = f'--{border}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
            parts.append(head.encode() + data + b"\r\n")
        body = b"".join(parts) + f"--{border}--\r\n".encode()
        return json.loads(self._send("/api/v1/imports", body, f"multipart/form-data; boundary={border}"))

    def _send(self, path: str, body: bytes, kind: str) -> bytes:
        page = self.get("/login" if path == "/login" else "/account/")
        if (token := TOKEN.search(page.decode())) is not None:
            self._token = token[1]
        headers = {"Content-Type": kind, "X-CSRFToken": self._token, "Referer": self.address}
        request = urllib.request.Request(self.address + path, body, headers)
        try:
            with self._opener.open(request) as answer:
                data: bytes = answer.read()
        except HTTPError as error:
            raise RuntimeError(f"{path}: {error.code} {error.read()[:2000].decode(errors='replace')}") from error
        return data


def waited(look: Callable[[], T], seconds: float = 1800.0) -> T:
    """Return the first true answer; raises `TimeoutError`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := look():
            return answer
        time.sleep(1)
    raise TimeoutError(f"not within {seconds:g} s")
