"""Which attempts went one way, by the last digests of their kept paths: no trace is read."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import BinaryField
from django.db.models.functions import Length, Substr

from harnesslab.core.contracts.comparators import WIDTH
from harnesslab.core.contracts.contract import Contract
from harnesslab.store.models import StoredPath


def path_heads(contracts: Mapping[int, Contract]) -> dict[int, bytes]:
    """Return the digest of each rollout's whole path under its contract, where it is kept; equal ones went one way."""
    keys = {contract.key for contract in contracts.values()}
    rows = StoredPath.objects.filter(rollout_id__in=contracts, contract__in=keys)
    last = Substr("path", Length("path") - (WIDTH - 1), output_field=BinaryField())
    found = rows.exclude(path=b"").annotate(last=last).values_list("rollout_id", "contract", "last")
    return {pk: bytes(head) for pk, key, head in found if contracts[pk].key == key}
