"""Reading manifests."""

from __future__ import annotations

from backports import zstd

from harnesslab.core.canonical import parse
from harnesslab.core.errors import NotFound
from harnesslab.core.manifest import Manifest
from harnesslab.store.models import StoredManifest


def manifest_bytes(digest: str) -> bytes:
    """Return the canonical bytes whose SHA-256 is the digest; raises `NotFound`."""
    body = StoredManifest.objects.filter(pk=digest).values_list("body", flat=True).first()
    if body is None:
        raise NotFound("no such manifest", where=digest)
    return zstd.decompress(bytes(body))


def load_manifest(digest: str) -> Manifest:
    """Return a stored manifest; raises `NotFound`."""
    return Manifest.from_json(parse(manifest_bytes(digest)))
