"""The instance's signing key, made at its first use."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from harnesslab.formats.bundle import Signer
from harnesslab.kept_secret import kept_secret


def instance_signer() -> Signer:
    """Return the signer of this instance's exports."""
    kept = kept_secret(Path(settings.CONFIG.home) / "instance-key", _new_key)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(kept))
    return Signer(key.public_key().public_bytes_raw().hex(), key.sign)


def _new_key() -> str:
    return Ed25519PrivateKey.generate().private_bytes_raw().hex()
