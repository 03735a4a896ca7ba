"""Whatever bytes an agent sends, the gateway answers or closes, keeps nothing, and goes on."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from harnesslab.core.trace.events import ModelCall
from harnesslab.runtime.gateway import bodies, exchange, server
from tests.runtime.gateway.speaking import Client, Said, client

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def asking() -> Iterator[Client]:
    """A gateway, which must still answer when a test is done with it."""
    with client() as made:
        yield made
        assert made.post(CHAT, HI).status == 200
        assert made.gateway._server.bytes._left == server.IN_FLIGHT


def request(asking: Client, body: bytes, *headers: str, path: str = CHAT) -> bytes:
    head = "\r\n".join([f"POST {asking.gateway.path}{path} HTTP/1.1", "Host: x", *headers])
    return head.encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "path",
    ["/", "/v1/models", "/r/", "/r//v1/models", "/r/x/v1/models", "/r/é/v1/models", "//r/x", "/r/" + "x" * 9000],
)
def test_a_wrong_path_is_not_found_without_a_hint(asking: Client, path: str) -> None:
    right = asking.ask("GET", f"{asking.gateway.path}/v1/nothing")
    got = asking.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert b"404" in got.partition(b"\r\n")[0]
    assert got.partition(b"\r\n\r\n")[2] == right.body
    assert asking.ask("GET", f"{asking.gateway.path}x/v1/models").status == 404
    assert asking.ask("POST", path.encode("ascii", "ignore").decode()[:50], b"{}").status == 404


def test_two_rollouts_have_two_secrets() -> None:
    with client() as one, client() as two:
        assert one.gateway.path != two.gateway.path
        assert len(one.gateway.path) > 40
        assert one.ask("GET", f"{two.gateway.path}/v1/models").status == 404
        assert one.ask("GET", f"{one.gateway.path}/v1/models").json["data"][0]["id"] == "m"


def test_text_that_is_hardly_text_comes_through(asking: Client) -> None:
    text = "nul \0, half \ud800, bell \a, \u202e"
    body = json.dumps({**HI, "messages": [{"role": "user", "content": text}]}).encode()
    assert asking.post(CHAT, body).status == 200
    assert asking.said.asked[0].messages[0] == {"role": "user", "content": text}
    assert asking.said.asked[0].body == body
    asking.said.reply = ModelCall(text=text)
    assert asking.post(CHAT, HI).json["choices"][0]["message"]["content"] == text
    assert asking.post("/v1/messages", {**HI, "stream": True}).events[2]["delta"]["text"] == text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"messages": 1}',
        b'{"messages": [[]]}',
        b'{"messages": [{"role": []}], "input": [{"role": "user", "content": [{"type": {}, "text": "x"}]}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "system": [{"type": [], "text": "x"}]}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"messages": [{"role": "user", "content": ' + b"[" * 190 + b"]" * 190 + b"}]}",
    ],
    ids=range(14),
)
def test_bodies_without_sense_are_refused(asking: Client, body: bytes) -> None:
    for path in exchange.DIALECTS:
        answer = asking.post(path, body)
        assert answer.status == 400
        assert answer.json["error"]["message"]
    assert asking.said.asked == []


def test_numbers_that_are_none_are_taken_as_they_are(asking: Client) -> None:
    body = (
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN, "seed": 123456789012345678901234567890}'
    )
    assert asking.post(CHAT, body).status == 200
    assert asking.said.asked[0].settings["seed"] == 123456789012345678901234567890


def test_a_body_that_is_too_long_is_refused_before_it_is_read(asking: Client) -> None:
    got = asking.raw(request(asking, b"x" * 1000, f"Content-Length: {100 * 2**20}"))
    assert b" 413 " in got.partition(b"\r\n")[0]
    assert b"longer than 16 MiB" in got
    piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    got = asking.raw(request(asking, piece * 20, "Transfer-Encoding: chunked"))
    assert b" 413 " in got.partition(b"\r\n")[0] or got == b""
    assert "longer than 16 MiB" in asking.said.refusals[-1]


def test_chunks_are_read(asking: Client) -> None:
    text = json.dumps(HI).encode()
    body = b"".join(
        f"{len(text[n : n + 5]):x}\r\n".encode() + text[n : n + 5] + b"\r\n" for n in range(0, len(text), 5)
    )
    got = asking.raw(request(asking, body + b"0\r\n\r\n", "Transfer-Encoding: chunked", "Connection: close"))
    assert b" 200 " in got.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Content-Length: -1"],
        ["Content-Length: +5"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: chunked"],
        ["Content-Length: " + "9" * 400],
        ["Content-Length: 5", "Content-Encoding: gzip"],
        ["Content-Length: ٣"],
    ],
    ids=range(10),
)
def test_lengths_without_sense_close_the_connection(asking: Client, headers: list[str]) -> None:
    head = f"POST {asking.gateway.path}{CHAT} HTTP/1.1\r\nHost: x\r\n" + "".join(f"{line}\r\n" for line in headers)
    got = asking.raw(head.encode() + b"\r\nhello" + b"GET / HTTP/1.1\r\n\r\n")
    assert got.partition(b"\r\n")[0].split()[1][:1] == b"4"
    assert got.count(b"HTTP/1.1 ") == 1
    assert asking.said.asked == []


@pytest.mark.parametrize(
    "data",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500 + b"\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"z" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"",
    ],
    ids=range(8),
)
def test_what_is_no_http_is_no_harm(asking: Client, data: bytes) -> None:
    got = asking.raw(data)
    assert b" 200 " not in got


def test_half_a_request_leaves_nothing_behind(asking: Client) -> None:
    asking.raw(request(asking, b'{"mess', "Content-Length: 500"))
    assert "ended before its length" in asking.said.refusals[0]


def test_requests_one_behind_the_other_are_answered_in_order(asking: Client) -> None:
    body = json.dumps(HI).encode()
    one = request(asking, body, f"Content-Length: {len(body)}")
    got = asking.raw(one * 20)
    assert got.count(b"HTTP/1.1 200 ") == 20
    assert len(asking.said.asked) == 20


def test_a_client_that_asks_before_it_sends_is_told_to(asking: Client) -> None:
    body = json.dumps(HI).encode()
    with socket.create_connection(("127.0.0.1", asking.gateway.port), 10) as connection:
        connection.sendall(request(asking, b"", f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert b" 200 " in connection.recv(4000)


def test_more_connections_than_there_are_places_are_closed(asking: Client) -> None:
    held = [socket.create_connection(("127.0.0.1", asking.gateway.port), 10) for _ in range(server.CONNECTIONS)]
    time.sleep(0.3)
    try:
        assert asking.raw(b"GET / HTTP/1.1\r\n\r\n") == b""
    finally:
        for connection in held:
            connection.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and asking.raw(b"GET / HTTP/1.0\r\n\r\n") == b"":
        time.sleep(0.05)


def test_a_slow_client_is_let_go(asking: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_S", 0.5)
    monkeypatch.setattr(exchange.Handler, "timeout", 1.0)
    with socket.create_connection(("127.0.0.1", asking.gateway.port), 10) as connection:
        connection.sendall(request(asking, b"", "Content-Length: 100"))
        with contextlib.suppress(OSError):
            for _ in range(8):
                time.sleep(0.1)
                connection.sendall(b"x")
        assert b" 408 " in connection.recv(4000)
    with socket.create_connection(("127.0.0.1", asking.gateway.port), 10) as connection:
        connection.sendall(b"POST /")
        assert connection.recv(100) == b""


def test_bodies_held_at_once_are_bounded(asking: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asking.gateway._server.bytes._left = 1000
    got = asking.raw(request(asking, b"x" * 2000, "Content-Length: 2000"))
    assert b" 503 " in got.partition(b"\r\n")[0]
    asking.gateway._server.bytes._left = server.IN_FLIGHT


def closed_under(act: Callable[[Client], None]) -> float:
    """Close a gateway while a request waits, and return how long that took."""
    waiting, going = threading.Event(), threading.Event()

    def before() -> None:
        waiting.set()
        going.wait(10)

    with client(Said(before=before)) as made:
        thread = threading.Thread(target=lambda: act(made), daemon=True)
        thread.start()
        waiting.wait(10)
        began = time.monotonic()
        made.gateway.close()
        took = time.monotonic() - began
        going.set()
        thread.join(10)
        assert not thread.is_alive()
    return took


def test_closing_ends_the_connections_that_wait() -> None:
    def act(made: Client) -> None:
        with pytest.raises(OSError, match=r".*"):
            made.post(CHAT, HI)

    assert closed_under(act) < 5
