"""The instance's signing key, made at its first use."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from harnesslab.formats.bundle import Signer


def instance_signer() -> Signer:
    """Return the signer of this instance's exports."""
    key = Ed25519PrivateKey.from_private_bytes(_private_bytes(Path(settings.CONFIG.home) / "instance-key"))
    return Signer(key.public_key().public_bytes_raw().hex(), key.sign)


def _private_bytes(file: Path) -> bytes:
    """Return the kept key; of two processes that make one at a time, the first wins."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return bytes.fromhex(file.read_text())
    made = Ed25519PrivateKey.generate().private_bytes_raw()
    with os.fdopen(descriptor, "w") as handle:
        handle.write(made.hex())
    return made
