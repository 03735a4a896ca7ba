"""Output of a container that stops before its end is said to, and never passes for all there was."""

from __future__ import annotations

import concurrent.futures
import datetime
import io
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.runtime.sandboxes.docker_streams import FRAME, Reading, Wire, pieces


def breaking() -> Iterator[bytes]:
    yield b"begun"
    raise ConnectionResetError("reset")


def test_what_came_before_a_break_is_kept_and_the_break_is_named() -> None:
    got: list[bytes] = []
    reading = Reading(breaking(), got.append)
    assert reading.ended.wait(10)
    assert (got, reading.broken) == ([b"begun"], "reset")


def test_an_output_that_ends_is_whole() -> None:
    reading = Reading([b"all"], lambda _: None)
    assert reading.ended.wait(10)
    assert reading.broken == ""


class Stream:
    """A stream as the SDK hands it out: a socket, and the answer whose head the HTTP client read."""

    class _Answer:
        def __init__(self, ahead: bytes, theirs: socket.socket) -> None:
            self.raw = self._fp = self
            self.fp = io.BufferedReader(socket.SocketIO(theirs, "r"))
            self._ahead = ahead
            if ahead:
                self.fp.peek()

    def __init__(self, mine: socket.socket, ahead: bytes) -> None:
        self._sock = mine
        self._response = self._Answer(ahead, mine)

    def close(self) -> None:
        self._sock.close()


@pytest.mark.parametrize("ahead", [b"", FRAME.pack(1, 3) + b"out", FRAME.pack(1, 3) + b"o", FRAME.pack(1, 3)[:2]])
def test_what_came_with_the_head_of_the_answer_is_output_too(ahead: bytes) -> None:
    theirs, mine = socket.socketpair()
    whole = FRAME.pack(1, 3) + b"out" + FRAME.pack(2, 4) + b"errs"
    theirs.sendall(ahead)
    stream = Stream(mine, ahead)  # its client has read so much ahead of whoever reads the socket
    theirs.sendall(whole[len(ahead) :])
    theirs.close()
    assert list(pieces(stream)) == [b"out", b"errs"]


def test_a_piece_that_is_cut_is_no_end() -> None:
    theirs, mine = socket.socketpair()
    theirs.sendall(FRAME.pack(1, 9) + b"half")
    theirs.close()
    with pytest.raises(ConnectionError, match="within a piece"):
        list(pieces(Stream(mine, b"")))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Write a key and a certificate of its own for `localhost`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "key.pem", folder / "certificate.pem"


def test_a_connection_under_tls_that_has_nothing_yet_is_waited_for(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    theirs, mine = socket.socketpair()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        wrapped = pool.submit(serving.wrap_socket, theirs, server_side=True)
        client = trusting.wrap_socket(mine, server_hostname="localhost")
        server = wrapped.result(10)
        wire = Wire(Stream(client, b""))
        server.sendall(b"out")
        assert wire.recv(3) == b"out"
        server.close()
        client.close()
