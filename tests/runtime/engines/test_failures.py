"""Servers that misbehave, over real sockets: every failure is told for what it is, and nothing received is lost."""

from __future__ import annotations

import datetime
import json
import math
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harnesslab.core.canonical import JSON, canonical_bytes
from harnesslab.core.running.ports import Exchange, FailureKind, ModelRequest
from harnesslab.runtime.engines import transport
from harnesslab.runtime.engines.openai import OpenAIEngine, OpenAISettings
from tests.runtime.engines.loopback import raw_server, response

GOOD: JSON = {
    "id": "c1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
HELLO: list[JSON] = [{"role": "user", "content": "hello"}]


def speaking(*pieces: bytes, pause: float = 0.0) -> Callable[[socket.socket, bytes], None]:
    """Return a server that says these bytes and hangs up."""

    def speak(connection: socket.socket, _request: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)

    return speak


def ask(
    speak: Callable[[socket.socket, bytes], None],
    *,
    stream: bool = False,
    timeout: float = 10.0,
    on_text: Callable[[str], bool] | None = None,
    key: str = "",
    settings: OpenAISettings | None = None,
) -> Exchange:
    """Make one attempt at a server that speaks so; the server sees exactly one request."""
    requests: list[bytes] = []

    def counted(connection: socket.socket, request: bytes) -> None:
        requests.append(request)
        speak(connection, request)

    with raw_server(counted) as address:
        engine = OpenAIEngine(f"{address}/v1", "m", settings, key=key)
        got = engine.ask(ModelRequest(HELLO, {"seed": 5}, stream=stream), timeout=timeout, on_text=on_text)
    assert len(requests) == 1
    assert (got.answer is None) != (got.failure is None)
    assert b"\r\n\r\n" + got.raw_request in requests[0]
    return got


def failed(got: Exchange, kind: FailureKind, *words: str) -> None:
    """Expect a failure of a kind, in one line that holds these words."""
    assert got.failure is not None, got.answer
    assert got.failure.kind is kind, got.failure
    assert "\n" not in got.failure.sentence
    for word in words:
        assert word in got.failure.sentence


def chunks(*events: JSON, done: bool = True) -> bytes:
    """Return a stream of these events."""
    lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    return response(
        b"".join(lines) + (b"data: [DONE]\n\n" if done else b""), content="text/event-stream; charset=utf-8"
    )


def piece(text: str, reason: str | None = None) -> JSON:
    """Return a chunk of text."""
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def test_a_good_answer() -> None:
    got = ask(speaking(response(json.dumps(GOOD).encode())))
    assert got.answer is not None
    assert (got.answer.text, got.answer.finish_reason, got.answer.response_id) == ("hi", "stop", "c1")
    assert got.answer.usage is not None
    assert (got.answer.usage.input, got.answer.usage.output) == (3, 1)
    assert json.loads(got.raw_response) == GOOD
    assert got.settings == {"seed": "5"}


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    got = OpenAIEngine(f"http://127.0.0.1:{port}", "m").ask(ModelRequest(HELLO), timeout=5)
    failed(got, FailureKind.UNREACHABLE, "no answer from")
    assert got.raw_response == b""


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_overload_says_when_to_try_again(status: str) -> None:
    body = b'{"error":{"message":"slow down","type":"rate_limit"}}'
    got = ask(speaking(response(body, status, Retry_After="7")))
    failed(got, FailureKind.OVERLOADED, "slow down")
    assert got.failure is not None
    assert got.failure.retry_after == 7.0
    dated = ask(speaking(response(body, status, Retry_After="Wed, 01 Jan 2020 00:00:00 GMT")))
    assert dated.failure is not None
    assert dated.failure.retry_after == 0.0
    senseless = ask(speaking(response(body, status, Retry_After="soon")))
    assert senseless.failure is not None
    assert senseless.failure.retry_after is None


def test_an_empty_account_is_no_overload() -> None:
    body = b'{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}'
    failed(ask(speaking(response(body, "429 Too Many Requests"))), FailureKind.REFUSED)


CONTEXT = [
    (
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 10,031"
            " tokens. Please reduce the length of the messages."
        ),
        {"context_limit": 8192, "prompt_tokens": 10031},
    ),
    (
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the"
            " messages, 1000 in the completion). Please reduce the length of the messages or completion."
        ),
        {"context_limit": 4096, "prompt_tokens": 4000, "completion_tokens": 1000, "requested_tokens": 5000},
    ),
    (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is"
            " 4096 tokens and your request has 37 input tokens (5000 > 4096 - 37)."
        ),
        {"context_limit": 4096, "prompt_tokens": 37, "completion_tokens": 5000},
    ),
    (
        (
            "You passed 8193 input tokens and requested 0 output tokens. However, the model's context length is"
            " only 8192 tokens, resulting in a maximum input length of 8192 tokens."
        ),
        {"context_limit": 8192, "prompt_tokens": 8193, "completion_tokens": 0},
    ),
    (
        "The input (3031 tokens) is longer than the model's context length (2048 tokens).",
        {"context_limit": 2048, "prompt_tokens": 3031},
    ),
    (
        (
            "Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a"
            " total of 3000 tokens: 1000 tokens from the input messages and 2000 tokens for the completion."
        ),
        {"context_limit": 2048, "prompt_tokens": 1000, "completion_tokens": 2000, "requested_tokens": 3000},
    ),
    (
        "request (5031 tokens) exceeds the available context size (2048 tokens), try increasing it",
        {"context_limit": 2048, "prompt_tokens": 5031},
    ),
    ("prompt is too long: 210000 tokens > 200000 maximum", {"context_limit": 200000, "prompt_tokens": 210000}),
]


@pytest.mark.parametrize(("message", "counts"), CONTEXT, ids=range(len(CONTEXT)))
def test_a_full_context_is_told_with_the_counts_in_every_wording(message: str, counts: dict[str, int]) -> None:
    got = ask(speaking(response(json.dumps({"error": {"message": message}}).encode(), "400 Bad Request")))
    failed(got, FailureKind.CONTEXT_EXCEEDED)
    assert got.failure is not None
    names = ("context_limit", "prompt_tokens", "completion_tokens", "requested_tokens")
    assert {name: got.failure.facts[name] for name in names if name in got.failure.facts} == counts


@pytest.mark.parametrize(
    "message",
    ["The context parameter is not known", "model not found", "context_length is not a setting that may be given"],
)
def test_other_refusals_are_no_full_context(message: str) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    failed(ask(speaking(response(body, "400 Bad Request"))), FailureKind.REFUSED, message)


def test_a_rejected_tool_call_keeps_what_the_model_wrote() -> None:
    error = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<call>{"}
    got = ask(speaking(response(json.dumps({"error": error}).encode(), "400 Bad Request")))
    failed(got, FailureKind.TOOL_CALL_REJECTED)
    assert got.failure is not None
    assert got.failure.facts["failed_generation"] == "<call>{"
    body = b'{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON","type":"server_error"}}'
    failed(ask(speaking(response(body, "500 Internal Server Error"))), FailureKind.TOOL_CALL_REJECTED)


def test_errors_of_the_server_and_of_the_request() -> None:
    failed(ask(speaking(response(b"oh no", "500 Oops", "text/plain"))), FailureKind.SERVER_ERROR, "oh no")
    failed(ask(speaking(response(b'{"detail":"who?"}', "401 Unauthorized"))), FailureKind.REFUSED, "who?")
    got = ask(speaking(response(b"", "307 Temporary Redirect", Location="http://127.0.0.1:9/v1")))
    failed(got, FailureKind.REFUSED, "redirects to http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("body", "content", "words"),
    [
        (b"", "application/json", "empty"),
        (b"<html>login</html>", "text/html", "no JSON (text/html"),
        (b'{"choices": [', "application/json", "no JSON"),
        (b'{"choices": []}', "application/json", "no choice"),
        (b'{"choices": "x"}', "application/json", "no choice"),
        (b'{"choices": [{"message": null}]}', "application/json", "no choice"),
        (b"[1]", "application/json", "not a JSON object"),
        (b"\x00\xff\xfe", "application/octet-stream", "no JSON"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "application/json", "nested"),
    ],
)
def test_what_is_no_answer_is_malformed_and_kept(body: bytes, content: str, words: str) -> None:
    got = ask(speaking(response(body, content=content)))
    assert got.failure is not None
    assert got.failure.kind is FailureKind.MALFORMED
    assert got.raw_response == body


def test_an_error_inside_an_answer_that_began_well() -> None:
    body = b'{"error":{"message":"The input (30 tokens) is longer than the model\'s context length (20 tokens)."}}'
    got = ask(speaking(response(body)))
    failed(got, FailureKind.CONTEXT_EXCEEDED)
    in_stream = ask(speaking(chunks(piece("a"), {"error": {"message": "out of memory", "code": 500}})), stream=True)
    failed(in_stream, FailureKind.SERVER_ERROR, "out of memory")
    assert b"out of memory" in in_stream.raw_response


def test_hostile_values_reach_the_answer_and_have_a_canonical_form() -> None:
    body = (
        b'{"choices":[{"message":{"content":"a\\u0000b \\ud800","tool_calls":[{"id":"1","function":{"name":"f",'
        b'"arguments":"{\\"x\\": "}}]},"finish_reason":"stop","logprobs":{"content":[{"token":"a","logprob":NaN,'
        b'"top_logprobs":[{"token":"\\udfff","logprob":-Infinity}]}]}}],"usage":{"prompt_tokens":-1}}'
    )
    got = ask(speaking(response(body)))
    assert got.answer is not None, got.failure
    assert got.answer.text == "a\x00b \ud800"
    assert got.answer.logprobs is not None
    assert math.isnan(got.answer.logprobs[0])
    (call,) = got.answer.tool_calls
    assert (call.arguments, call.raw) == (None, '{"x": ')
    assert canonical_bytes([got.answer.text, list(got.answer.logprobs), *(got.answer.alternatives or ())])
    assert got.raw_response == body


def test_an_answer_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(response(b'{"x":"'))
        while True:
            connection.sendall(b"x" * 65536)

    with raw_server(endless) as address:
        link = transport.Transport(address, most=1_000_000)
        reply = link.send("POST", "/", b"{}", timeout=20)
    assert reply.failure is not None
    assert reply.failure.sentence == "the answer was longer than 1,000,000 bytes and was not read on"
    assert len(reply.body) == 1_000_000


def test_a_server_that_drips_gains_no_time() -> None:
    def drip_head(connection: socket.socket, _request: bytes) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 1000:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    def drip_body(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(response(b"", content="text/event-stream"))
        for _ in range(1000):
            connection.sendall(b": still here\n\n")
            time.sleep(0.05)

    for speak, words in ((drip_head, "no answer had begun"), (drip_body, "bytes had come")):
        got = ask(speak, stream=True, timeout=0.6)
        failed(got, FailureKind.TIMEOUT, "0.6 s", words)


def test_a_connection_lost_in_the_middle() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{half"
    got = ask(speaking(half))
    failed(got, FailureKind.UNREACHABLE, "lost after 5 bytes")
    assert got.raw_response == b"{half"
    failed(ask(speaking()), FailureKind.UNREACHABLE)
    failed(ask(speaking(b"SSH-2.0-OpenSSH_9\r\n\r\n")), FailureKind.MALFORMED, "HTTP")


def test_half_a_stream_is_no_answer() -> None:
    got = ask(speaking(chunks(piece("half an ans"), done=False)), stream=True)
    failed(got, FailureKind.MALFORMED, "ended before the answer did")
    assert b"half an ans" in got.raw_response
    failed(ask(speaking(response(b"data: {oops\n\n", content="text/event-stream")), stream=True), FailureKind.MALFORMED)
    failed(ask(speaking(chunks()), stream=True), FailureKind.MALFORMED)


def test_a_stream_however_it_is_cut() -> None:
    usage: JSON = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    whole = chunks(piece("h\u00e9"), piece("llo"), piece("", "stop"), usage)
    for step in (1, 3, 7, len(whole)):
        texts: list[str] = []
        cut = [whole[at : at + step] for at in range(0, len(whole), step)]
        got = ask(speaking(*cut), stream=True, on_text=lambda text, seen=texts: seen.append(text) is None)  # type: ignore[misc]
        assert got.answer is not None, got.failure
        assert got.answer.text == "h\u00e9llo"
        assert "".join(texts) == "h\u00e9llo"
        assert got.answer.usage is not None
        assert got.first_token is not None
        assert whole.endswith(got.raw_response)


def test_tool_calls_that_come_in_pieces() -> None:
    def part(**call: JSON) -> JSON:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

    events: list[JSON] = [
        part(index=0, id="a", function={"name": "f", "arguments": ""}),
        part(index=0, function={"arguments": '{"x"'}),
        part(index=1, id="b", function={"name": "g", "arguments": "{}"}),
        part(index=0, function={"arguments": ": 1}"}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    got = ask(speaking(chunks(*events)), stream=True)
    assert got.answer is not None, got.failure
    assert [(call.id, call.name, call.arguments) for call in got.answer.tool_calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {}),
    ]


def test_a_server_that_answers_whole_where_a_stream_was_asked_for() -> None:
    got = ask(speaking(response(json.dumps(GOOD).encode())), stream=True)
    assert got.answer is not None
    assert got.answer.text == "hi"
    assert got.first_token is None


def test_a_stop_hangs_up_on_the_server() -> None:
    noticed: list[bool] = []

    def speak(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(response(b"", content="text/event-stream"))
        try:
            for _ in range(200):
                connection.sendall(b"data: " + json.dumps(piece("word ")).encode() + b"\n\n")
                time.sleep(0.01)
        except OSError:
            noticed.append(True)

    got = ask(speak, stream=True, on_text=lambda _text: False)
    failed(got, FailureKind.STOPPED)
    assert b"word" in got.raw_response
    for _ in range(100):
        if noticed:
            break
        time.sleep(0.02)
    assert noticed


def test_a_key_is_sent_and_nowhere_kept() -> None:
    seen: list[bytes] = []

    def repeat(connection: socket.socket, request: bytes) -> None:
        seen.append(request)
        body = json.dumps({"error": {"message": "Incorrect API key provided: sk-very-secret"}}).encode()
        connection.sendall(response(body, "401 Unauthorized"))

    got = ask(repeat, key="sk-very-secret")
    assert b"authorization: Bearer sk-very-secret" in seen[0]
    failed(got, FailureKind.REFUSED, "[key]")
    assert "sk-very-secret" not in repr(got)


def test_token_ids_as_vllm_gives_them() -> None:
    body: JSON = {
        "prompt_token_ids": [1, 2, 3],
        "choices": [{"message": {"content": "x"}, "finish_reason": "stop", "token_ids": [9]}],
    }
    settings = OpenAISettings(return_token_ids=True, logprobs=3, seed_honoured=True)
    got = ask(speaking(response(json.dumps(body).encode())), settings=settings)
    assert got.answer is not None
    assert (got.answer.prompt_token_ids, got.answer.token_ids, got.answer.seed_honoured) == ((1, 2, 3), (9,), True)
    sent = json.loads(got.raw_request)
    assert (sent["return_token_ids"], sent["logprobs"], sent["top_logprobs"]) == (True, True, 3)


def test_what_the_callers_own_function_raises_is_its_own() -> None:
    def broken(_text: str) -> bool:
        raise BrokenPipeError("my reader went away")

    with pytest.raises(BrokenPipeError, match="my reader"):
        ask(speaking(chunks(piece("a"))), stream=True, on_text=broken)


def test_tls_is_checked_and_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def speak(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(response(json.dumps(GOOD).encode()))

    with raw_server(speak, context) as address:
        secure = address.replace("http://127.0.0.1", "https://localhost")
        doubtful = OpenAIEngine(secure, "m").ask(ModelRequest(HELLO), timeout=10)
        failed(doubtful, FailureKind.UNREACHABLE, "certificate verify failed")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        got = OpenAIEngine(secure, "m").ask(ModelRequest(HELLO), timeout=10)
        assert got.answer is not None, got.failure


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(form))
    private.write_bytes(key.private_bytes(form, kind, serialization.NoEncryption()))
    return certificate, private
