"""One HTTP attempt: bytes out, bytes in, and a failure that says what happened. It never retries or follows."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpcore2 as httpcore

from harnesslab.core.errors import InvalidValue
from harnesslab.core.running.ports import Failure, FailureKind
from harnesslab.runtime.engines.deadline import Deadline, DeadlineBackend

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of an answer that are read; a longer one is no answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; `failure` is set where the network, not the server, decided the end."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name."""
    body: bytes = b""
    latency: float = 0.0
    failure: Failure | None = None

    @property
    def content_type(self) -> str:
        """The media type without parameters."""
        return self.headers.get("content-type", "").split(";")[0].strip().lower()


class _Stop(Exception):
    """The reader wants no more."""


class _Caller(Exception):
    """What the caller's own function raised, which is no failure of the network."""


class Transport:
    """Speaks HTTP with one server, each request on a connection of its own.

    A kept connection that the server has meanwhile closed would fail an attempt that the server never saw.
    """

    def __init__(self, address: str, *, key: str = "", most: int = MOST_BYTES) -> None:
        self.address = checked_address(address)
        self._most = most
        self._key = key.encode()
        self._headers = {"accept-encoding": "identity", "user-agent": "harnesslab"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._tls = ssl.create_default_context() if self.address.startswith("https:") else None

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout: float,
        on_bytes: Callable[[bytes], bool] | None = None,
    ) -> Reply:
        """Send a request and read the answer; `on_bytes` gets an answer's pieces and ends it by answering False.

        Closing the connection before the answer's end is what makes a server stop generating.
        """
        began, deadline = time.monotonic(), Deadline.after(timeout)
        gathered = _Gathered(self._most)
        failure = None
        try:
            self._exchange(method, path, body, deadline, gathered, on_bytes)
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError, _Stop) as error:
            failure = self._failure(error, gathered, deadline, timeout)
        except _Caller as error:
            raise error.args[0] from None
        latency = time.monotonic() - began
        return Reply(gathered.status, gathered.headers, self._clean(bytes(gathered.body)), latency, failure)

    def _clean(self, said: bytes) -> bytes:
        """Take the key out of what a server said: some repeat it where they refuse it."""
        return said.replace(self._key, b"[key]") if self._key else said

    def _exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        deadline: Deadline,
        gathered: _Gathered,
        on_bytes: Callable[[bytes], bool] | None,
    ) -> None:
        headers = self._headers if body is None else {**self._headers, "content-type": "application/json"}
        with (
            httpcore.ConnectionPool(
                ssl_context=self._tls, network_backend=DeadlineBackend(deadline), max_keepalive_connections=0
            ) as pool,
            pool.stream(method, self.address + path, headers=list(headers.items()), content=body) as response,
        ):
            gathered.begin(response)
            for piece in response.iter_stream():
                deadline.left()
                gathered.add(piece)
                if on_bytes is not None and response.status == 200:
                    _pass_on(self._clean(piece), on_bytes)

    def _failure(self, error: Exception, gathered: _Gathered, deadline: Deadline, timeout: float) -> Failure:
        size = len(gathered.body)
        if gathered.over:
            sentence = f"the answer was longer than {self._most:,} bytes and was not read on"
            return Failure(FailureKind.MALFORMED, sentence, {"bytes": size})
        if isinstance(error, _Stop):
            return Failure(FailureKind.STOPPED, f"stopped by the caller after {size:,} bytes of the answer")
        if deadline.passed:
            came = f"{size:,} bytes had come" if gathered.status is not None else "no answer had begun"
            return Failure(FailureKind.TIMEOUT, f"no whole answer within {timeout:g} s; {came}")
        if isinstance(error, httpcore.ProtocolError) and not _was_lost(error):
            return Failure(FailureKind.MALFORMED, f"{self.address} did not speak HTTP: {error}")
        if gathered.status is not None:
            return Failure(FailureKind.UNREACHABLE, f"the connection was lost after {size:,} bytes of the answer")
        reason = str(error) or type(error).__name__
        return Failure(FailureKind.UNREACHABLE, f"no answer from {self.address}: {reason}")


@dataclass(slots=True)
class _Gathered:
    """What has come of an answer so far."""

    most: int
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    over: bool = False

    def begin(self, response: httpcore.Response) -> None:
        self.status = response.status
        for name, value in response.headers:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def add(self, piece: bytes) -> None:
        room = self.most - len(self.body)
        self.body += piece[:room]
        if len(piece) > room:
            self.over = True
            raise _Stop


def _pass_on(piece: bytes, on_bytes: Callable[[bytes], bool]) -> None:
    try:
        wanted = on_bytes(piece)
    except OSError as error:
        raise _Caller(error) from error
    if not wanted:
        raise _Stop


def _was_lost(error: httpcore.ProtocolError) -> bool:
    """Say whether a protocol error only means that the other side went away."""
    text = str(error).lower()
    return "disconnected" in text or "closed" in text


def checked_address(address: str) -> str:
    """Return a server's address without a slash at its end; raises `InvalidValue` for what is none."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(address.strip())
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and plain and address.isascii():
            return address.strip().rstrip("/")
    raise InvalidValue("not the address of a server", where=address, hint="such as http://127.0.0.1:8000/v1")
