"""Reading manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backports import zstd

from harnesslab.core.canonical import parse
from harnesslab.core.conditions.manifest import Manifest
from harnesslab.core.errors import NotFound
from harnesslab.store.models import Rollout, StoredManifest

_BEGINNING = re.compile("[0-9a-f]{1,64}")


def manifest_bytes(digest: str) -> bytes:
    """Return the canonical bytes whose SHA-256 is the digest; raises `NotFound`."""
    body = StoredManifest.objects.filter(pk=digest).values_list("body", flat=True).first()
    if body is None:
        raise NotFound("no such manifest", where=digest)
    return zstd.decompress(bytes(body))


def load_manifest(digest: str) -> Manifest:
    """Return a stored manifest; raises `NotFound`."""
    return Manifest.from_json(parse(manifest_bytes(digest)))


def manifests_of(rollouts: Mapping[str, int]) -> dict[str, Manifest]:
    """Return the manifests of some rollouts by the names that they are given under, in one query."""
    rows = Rollout.objects.filter(pk__in=rollouts.values()).values_list("pk", "manifest_id", "manifest__body")
    bodies = {pk: (digest, bytes(body)) for pk, digest, body in rows}
    read = {digest: Manifest.from_json(parse(zstd.decompress(body))) for digest, body in bodies.values()}
    return {name: read[bodies[pk][0]] for name, pk in rollouts.items() if pk in bodies}


def find_manifest(beginning: str) -> str:
    """Return the digest that begins like this; raises `NotFound` where none or several do."""
    if not _BEGINNING.fullmatch(beginning):
        raise NotFound("no such manifest", where=beginning[:80])
    found = list(StoredManifest.objects.filter(pk__startswith=beginning).values_list("pk", flat=True)[:2])
    if len(found) != 1:
        raise NotFound("no such manifest" if not found else "several manifests begin like this", where=beginning)
    return found[0]


def users_of(digest: str) -> list[tuple[int, str, int]]:
    """Return (rollout, case, trial) of rollouts that ran under a manifest; at most 50."""
    rows = Rollout.objects.filter(manifest_id=digest).order_by("pk")
    return list(rows.values_list("pk", "case__name", "trial")[:50])
